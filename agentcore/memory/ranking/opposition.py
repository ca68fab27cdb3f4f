"""Finds memories of one answer that a newer one of it contradicts. Pure.

An error hides a memory from one answer only, so the rules are less strict than those for superseding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from agentcore.memory.contradictions import judge, rule_input, subject_keys
from agentcore.memory.models import FACT_TAG, MemorySummary
from agentcore.memory.statements.facts import Fact, fact, fact_keys, may_end, speaks_against
from agentcore.memory.statements.statements import RuleInput, read

CONTRADICTED = "contradicted_by_newer"
# Queries that may also ask for earlier states.
_OF_THE_PAST = re.compile(
    r"\b(?:was|were|did|had|used|before|previous(?:ly)?|former(?:ly)?|first|original(?:ly)?|earlier|"
    r"initial(?:ly)?|histor\w+|chang\w+|ever|always|over time|back then|until|"
    r"ago|last|old|both|all|each|every|list|how many|how often|compare\w*|switch\w*|mov(?:e|ed|ing)|since)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Said:
    memory: MemorySummary
    told: RuleInput
    fact: Fact | None


def asks_of_the_past(query: str) -> bool:
    """Returns whether the query may ask for earlier states."""
    return _OF_THE_PAST.search(query) is not None


def contradicted(agent_id: str, memories: Sequence[MemorySummary]) -> dict[UUID, UUID]:
    """Returns the contradicted memories, each with the newest one that contradicts it."""
    against: dict[UUID, UUID] = {}
    for group in _on_one_subject(agent_id, memories):
        newest_first = sorted(group, key=lambda each: (each.told.timestamp, each.memory.memory_id), reverse=True)
        for place, old in enumerate(newest_first):
            newer = next((each for each in newest_first[:place] if _speaks_against(old, each)), None)
            if newer is not None:
                against.setdefault(old.memory.memory_id, newer.memory.memory_id)
    return against


def _on_one_subject(agent_id: str, memories: Sequence[MemorySummary]) -> Iterator[list[_Said]]:
    groups: dict[tuple[str | None, str | None, str], list[_Said]] = {}
    for memory in memories:
        said = _said(agent_id, memory)
        for key in _keys(said):
            groups.setdefault((memory.user_id, memory.namespace, key), []).append(said)
    return (group for group in groups.values() if len(group) > 1)


def _said(agent_id: str, memory: MemorySummary) -> _Said:
    told = rule_input(memory)
    told = replace(told, readings=_readings(agent_id, told.content, told.reply))
    return _Said(memory, told, told.once(fact, told.content))


@lru_cache(maxsize=4_096)
def _readings(agent_id: str, content: str, reply: str) -> dict[Any, Any]:
    return {}


def _keys(said: _Said) -> list[str]:
    speaker = said.told.speaker
    return [*subject_keys(said.told.once(read, said.told.content), speaker), *fact_keys(said.fact, speaker)]


def _speaks_against(old: _Said, new: _Said) -> bool:
    if _read_by_model(new.memory) and not _read_by_model(old.memory):
        return False
    if old.fact is not None and new.fact is not None:
        found = speaks_against(old.fact, new.fact) and may_end(old.fact, new.fact)
        if found and not old.told.reply:
            return True
    return judge(old.told, new.told).relation == "superseding"


def _read_by_model(memory: MemorySummary) -> bool:
    return memory.parent_memory_id is not None and FACT_TAG in memory.tags
