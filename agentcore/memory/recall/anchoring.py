"""Anchoring, as a story: the events by which a query tells a time are looked up among the memories, and their
times become windows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.language.moments import Anchor, told_times
from agentcore.memory.parts import MemoryParts
from agentcore.memory.ranking.candidates import Mention, Span
from agentcore.memory.ranking.events import teller
from agentcore.memory.recall.notes import Notes
from agentcore.memory.recall.wording import Wording
from agentcore.memory.vector_store import Conditions, Lookup

NO_MEMORY = "no memory surely speaks of it"


@dataclass(frozen=True)
class Sought:
    """An anchor with what its event is looked up by: its vector, where there is one, and its words."""

    anchor: Anchor
    vector: NDArray[np.float32] | None
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
    """What each anchor tells, in one round trip for all; `notes` say what came of it.

    `names` are the query's words.
    """
    if not sought:
        return []
    events = [Lookup(each.wording.hits.memory_ids, each.vector) for each in sought]
    with notes.steps("anchor"):
        mentions = await parts.vectors.mentions(agent_id, events, parts.vector_model, conditions)
    found = [_anchored(each, held, names, now) for each, held in zip(sought, mentions, strict=True)]
    notes.searched["anchors"] = [_told(each) for each in found]
    return found


def _anchored(
    sought: Sought, mentions: Sequence[Mention], names: Collection[str], now: datetime
) -> Anchored:
    bm25 = sought.wording.bm25
    whole = bm25.weigh(sought.wording.keys)
    telling = teller(
        mentions,
        lambda each: bm25.weigh(set(each.term_keys)) / whole,
        names,
        of_one_word=len(sought.wording.keys) == 1,
    )
    if telling is None:
        return Anchored(sought.anchor, None, ())
    memory = telling.memory
    times = told_times(sought.anchor, memory.event, memory.timestamp, now)
    return Anchored(sought.anchor, memory.memory_id, times)


def _told(anchored: Anchored) -> Mapping[str, Any]:
    phrase = anchored.anchor.phrase
    if not anchored.times:
        return {"phrase": phrase, "windows": [], "reason": NO_MEMORY}
    windows = [[start.isoformat(), end.isoformat()] for start, end in anchored.times]
    return {"phrase": phrase, "windows": windows, "memory_id": str(anchored.memory_id)}
