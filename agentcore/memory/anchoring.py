"""Anchoring, as a story: the events by which a query tells a time are looked up among the memories, and their
times become windows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.candidates import Span
from agentcore.memory.events import Telling, teller
from agentcore.memory.moments import Anchor, told_times
from agentcore.memory.notes import Notes
from agentcore.memory.parts import MemoryParts
from agentcore.memory.vector_store import Conditions, SearchRequest
from agentcore.memory.wording import Wording

NO_MEMORY = "no memory surely speaks of it"


@dataclass(frozen=True)
class Sought:
    """An anchor with what its event is looked up by: the one row of its vector, or none, and its words."""

    anchor: Anchor
    vectors: NDArray[np.float32] | None
    wording: Wording


@dataclass(frozen=True)
class Anchored:
    """An anchor with the memory that tells its event and the times that come of it, if anything does."""

    anchor: Anchor
    memory_id: UUID | None
    times: Sequence[Span]


async def anchored(
    parts: MemoryParts,
    agent_id: str,
    sought: Sequence[Sought],
    conditions: Conditions,
    names: Collection[str],
    now: datetime,
    notes: Notes,
) -> list[Anchored]:
    """What each anchor tells; all are looked up at once, and `notes` say what came of it.

    `names` are the query's words.
    """
    if not sought:
        return []
    with notes.steps("anchor"):
        tellings = await asyncio.gather(
            *(_telling(parts, agent_id, each, conditions, names) for each in sought)
        )
    found = [_anchored(each.anchor, told, now) for each, told in zip(sought, tellings, strict=True)]
    notes.searched["anchors"] = [_told(each) for each in found]
    return found


def _anchored(anchor: Anchor, telling: Telling | None, now: datetime) -> Anchored:
    if telling is None:
        return Anchored(anchor, None, ())
    memory = telling.memory
    return Anchored(anchor, memory.memory_id, told_times(anchor, memory.event, memory.timestamp, now))


async def _telling(
    parts: MemoryParts, agent_id: str, sought: Sought, conditions: Conditions, names: Collection[str]
) -> Telling | None:
    """The memory that surely speaks of the event, if one does."""
    bm25, hits = sought.wording.bm25, sought.wording.hits
    whole = bm25.weigh(sought.wording.keys)
    if not hits.memory_ids:
        return None
    request = SearchRequest(conditions, sought.vectors, parts.vector_model, bm25, hits)
    found = await parts.vectors.search(agent_id, request)
    return teller(found.candidates, lambda each: bm25.weigh(set(each.term_keys)) / whole, names)


def _told(anchored: Anchored) -> Mapping[str, Any]:
    """What the receipt says of it."""
    phrase = anchored.anchor.phrase
    if not anchored.times:
        return {"phrase": phrase, "windows": [], "reason": NO_MEMORY}
    windows = [[start.isoformat(), end.isoformat()] for start, end in anchored.times]
    return {"phrase": phrase, "windows": windows, "memory_id": str(anchored.memory_id)}
