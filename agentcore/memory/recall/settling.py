"""Settling, as a story: of memories of one answer that contradict each other the newer alone is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from uuid import UUID

from agentcore.memory.models import Dropped, MemoryRecord, MemorySummary
from agentcore.memory.parts import MemoryParts
from agentcore.memory.ranking.opposition import CONTRADICTED, contradicted, instead_of
from agentcore.memory.recall.reranking import shortened
from agentcore.memory.retrieval import Ranked, Ranking

# How many are ranked beyond those wanted: what is left out makes room.
SPARE = 5

Read = Callable[[Sequence[Ranked]], Awaitable[list[MemorySummary]]]


async def settled(
    parts: MemoryParts, agent_id: str, ranking: Ranking, k: int, read: Read
) -> tuple[list[MemorySummary], Ranking]:
    """The `k` best that do not contradict each other, and the ranking with what was left out counted."""
    memories = await read(ranking.ranked[:k])
    if contradicted(agent_id, memories):
        memories += await read(ranking.ranked[k:])
        against = await _upheld(parts, agent_id, contradicted(agent_id, memories))
        ranking = _without(ranking, against)
        memories = [
            each.model_copy(update={"instead_of": instead_of(against, each.memory_id)})
            for each in memories
            if each.memory_id not in against
        ][:k]
    return memories, shortened(ranking, k)


async def _upheld(parts: MemoryParts, agent_id: str, against: dict[UUID, UUID]) -> dict[UUID, UUID]:
    """Without what is pinned, what was changed or said to hold again after the newer one was stored, and what
    the newer one was stored to stand beside (`supersede: false`)."""
    records = await parts.storage.get(agent_id, [*against, *against.values()])
    return {
        old: new
        for old, new in against.items()
        if old in records
        and new in records
        and not records[old].pinned
        and records[new].provenance.get("supersede") is not False
        and not _confirmed_since(records[old], records[new])
    }


def _confirmed_since(old: MemoryRecord, new: MemoryRecord) -> bool:
    return old.version > 1 and old.updated_at > new.created_at


def _without(ranking: Ranking, against: dict[UUID, UUID]) -> Ranking:
    if not against:
        return ranking
    left = [each for each in ranking.ranked if each.memory_id not in against]
    dropped = [*ranking.dropped, Dropped(reason=CONTRADICTED, count=len(ranking.ranked) - len(left))]
    return replace(ranking, ranked=left, dropped=sorted(dropped, key=lambda each: each.reason))
