"""What a tool answers a model with: compact JSON in a bounded number of characters, nulls left out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    Conflict,
    DependencyUnavailable,
    InvalidParams,
    NotAuthorised,
    NotFound,
    TooLarge,
    field_path,
    problem_sentence,
)
from agentcore.memory.models import MemoryRecord, MemorySummary, time_valid

MOST_MEMORIES_CHARS = 12_000
MOST_CONTENT_CHARS = 2_000
MOST_TAGS = 8
CUT = " [...]"

# The sentence a model gets for each failure; the service's own words where they are about the call.
_ADVICE: tuple[tuple[type[AgentCoreError], str], ...] = (
    (NotFound, "There is no such memory. Give a memory_id as recall_memory answered it."),
    (AuthenticationFailed, "The memory service refused the token. Go on without memory; do not call again."),
    (NotAuthorised, "This agent may not do that with its memory. Go on without; do not call again."),
)
_ABOUT_THE_CALL = (Conflict, InvalidParams, TooLarge)


def compact(answer: Any) -> str:
    """The answer as JSON without spaces and without what is null or empty."""
    return json.dumps(_filled(answer), ensure_ascii=False, separators=(",", ":"))


def told(memory: MemorySummary | MemoryRecord, *, score: float | None = None) -> dict[str, Any]:
    """A memory as a model gets it."""
    return {
        "memory_id": str(memory.memory_id),
        "content": _shortened(memory),
        "time": moment(memory.timestamp),
        "valid": time_valid(memory),
        "outdated_by": _outdated_by(memory),
        "type": memory.memory_type.value,
        "speaker": memory.speaker,
        "session_id": memory.session_id,
        "task_id": memory.task_id,
        "tags": list(memory.tags[:MOST_TAGS]),
        "score": None if score is None else round(score, 2),
    }


def _outdated_by(memory: MemorySummary | MemoryRecord) -> str | None:
    newer = memory.outdated_by if isinstance(memory, MemorySummary) else None
    return None if newer is None else str(newer)


def bounded(memories: Sequence[dict[str, Any]], room: int = MOST_MEMORIES_CHARS) -> dict[str, Any]:
    """As many of the memories, from the first, as fit; `left_out` says how many do not."""
    taken: list[dict[str, Any]] = []
    for memory in memories:
        room -= len(compact(memory)) + 1
        if room < 0:
            break
        taken.append(memory)
    return {"memories": taken, "left_out": len(memories) - len(taken) or None}


def moment(when: datetime) -> str:
    """To the minute, in UTC."""
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def failure_sentence(failure: AgentCoreError | ValidationError) -> str:
    """What went wrong and what to do, in words for a model: no value, no address, no trace."""
    if isinstance(failure, ValidationError):
        return "; ".join(_problems(failure)) + "."
    for kind, advice in _ADVICE:
        if isinstance(failure, kind):
            return advice
    if isinstance(failure, _ABOUT_THE_CALL):
        return failure.message
    if failure.retryable or isinstance(failure, DependencyUnavailable):
        return "Memory does not answer at the moment. Go on without it, and say so where it matters."
    return "Memory failed unexpectedly. Go on without it."


def _problems(failure: ValidationError) -> Iterable[str]:
    for found in failure.errors(include_url=False, include_context=False, include_input=False):
        place = field_path(found["loc"])
        sentence = problem_sentence(dict(found))
        yield f"{place} {sentence}" if place else sentence


def _shortened(memory: MemorySummary | MemoryRecord) -> str:
    if len(memory.content) <= MOST_CONTENT_CHARS:
        return memory.content
    text = memory.summary if memory.summary != memory.content else memory.content
    return text if len(text) <= MOST_CONTENT_CHARS else text[:MOST_CONTENT_CHARS - len(CUT)] + CUT


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each) for name, each in value.items() if each not in (None, [], {}, "")}
    if isinstance(value, list):
        return [_filled(each) for each in value]
    return value
