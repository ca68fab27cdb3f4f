"""What may stand in a context for memories that have no room there: the stored summaries of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.contexts.context_lines import KNOWLEDGE, ContextEntry
from agentcore.memory.contexts.filling import LEAST_SUMMARISED
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.owned_rows import Row

# What has fewer characters for each token of room may all fit.
LEAST_CHARACTERS_PER_TOKEN = 2
MOST_STAND_INS = 16


async def stand_ins(
    parts: MemoryParts,
    caller: Caller,
    entries: Sequence[ContextEntry],
    conditions: Mapping[str, Any],
    max_tokens: int,
) -> list[ContextEntry]:
    """Summaries of several of these memories that the search did not find; none where all may fit."""
    said = sum(len(entry.content) for entry in entries)
    if parts.policy.summaries_share is None or said < max_tokens * LEAST_CHARACTERS_PER_TOKEN:
        return []
    of = [entry.memory_id for entry in entries]
    found = parts.storage.summaries_of(caller.agent_id, of, conditions, LEAST_SUMMARISED, MOST_STAND_INS)
    return [_entry(row) for row in await found]


def _entry(row: Row) -> ContextEntry:
    return ContextEntry(
        row["memory_id"],
        KNOWLEDGE,
        row["timestamp"],
        None,
        row["content"],
        row["summary"],
        row["token_count"],
        sources=frozenset(map(UUID, row["sources"])),
    )
