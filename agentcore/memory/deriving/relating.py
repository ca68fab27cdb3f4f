"""Compares new messages with the nearest ones of the same speaker; links those that they make outdated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from agentcore.memory.api import Caller
from agentcore.memory.consequences.relations import is_message
from agentcore.memory.consolidation import told
from agentcore.memory.encoding import embedding_text
from agentcore.memory.lexical import Bm25, LexicalStatistics
from agentcore.memory.models import CHANGES, Link, MemoryType
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.owned_rows import Row
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.vector_store import SearchRequest, WordHits

BATCH = 16
# How many of the nearest earlier and later messages one is compared with; their minimum cosine.
COMPARED, MIN_SIMILARITY = 6, 0.2
# A less probable change is not kept.
MIN_PROBABILITY = 0.2
_TYPES = [MemoryType.EPISODIC.value, MemoryType.SEMANTIC.value]

Pair = tuple[UUID, UUID]
"""The ids of an earlier and a later message."""


@dataclass(frozen=True)
class _Message:
    memory_id: UUID
    text: str
    order: tuple[Any, ...]


class Relating:
    """Compares one batch of pending messages of one agent."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    async def run(self) -> bool:
        """Compares a batch of pending messages; returns whether more may be pending.

        Raises DependencyUnavailable.
        """
        classifier = self._parts.relations
        if classifier is None:
            return False
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.relations.pending(BATCH, self._parts.vector_model)
        if not rows:
            return False
        pairs = await self._pairs([row for row in rows if row["embedding"] is not None and is_message(row)])
        probabilities = await classifier.changes([*pairs.values()]) if pairs else ()
        likely = zip(pairs, map(float, probabilities), strict=True)
        probable = {pair: probability for pair, probability in likely if probability >= MIN_PROBABILITY}
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await _write(transaction, rows, probable)
        return len(rows) == BATCH

    async def _pairs(self, rows: Sequence[Row]) -> dict[Pair, tuple[str, str]]:
        """Returns the texts of each pair to compare, the earlier first, by their ids."""
        messages = _messages(rows)
        statistics = await self._parts.vectors.statistics(self._caller.agent_id, [])
        near = {row["memory_id"]: await self._nearest(row, statistics) for row in rows}
        wanted = {each for ids in near.values() for each in ids} - messages.keys()
        records = await self._parts.storage.get(self._caller.agent_id, sorted(wanted))
        messages |= _messages([vars(each) for each in records.values()])
        compared = ((each, other) for each, others in near.items() for other in others if other in messages)
        pairs = sorted({_in_order(messages[each], messages[other]) for each, other in compared})
        return {(old, new): (messages[old].text, messages[new].text) for old, new in pairs}

    async def _nearest(self, row: Row, statistics: LexicalStatistics) -> list[UUID]:
        """Returns the nearest earlier and later messages of the same speaker among the vector candidates."""
        conditions: dict[str, Any] = {"current": True, "unflagged": True, "memory_types": _TYPES}
        conditions |= {name: row[name] for name in ("user_id", "namespace") if row[name] is not None}
        vector = np.asarray(row["embedding"].to_numpy(), np.float32)[None]
        no_words = Bm25([], statistics), WordHits()
        request = SearchRequest(conditions, vector, self._parts.vector_model, *no_words)
        found = await self._parts.vectors.search(self._caller.agent_id, request)
        scope = (row["speaker"], row["user_id"], row["namespace"])
        likely = sorted(
            (each for each in found.candidates
             if each.memory_id != row["memory_id"] and each.text[1:] == scope and not each.is_summary
             and (each.similarity or 0.0) >= MIN_SIMILARITY),
            key=lambda each: -(each.similarity or 0.0),
        )
        order = (row["timestamp"], row["memory_id"])
        earlier = [each.memory_id for each in likely if (each.timestamp, each.memory_id) < order]
        later = [each.memory_id for each in likely if (each.timestamp, each.memory_id) > order]
        return [*earlier[:COMPARED], *later[:COMPARED]]


def _messages(rows: Sequence[Row]) -> dict[UUID, _Message]:
    return {row["memory_id"]: _of_row(row) for row in rows if is_message(row)}


def _of_row(row: Row) -> _Message:
    text = embedding_text(told(row).content, row["speaker"])
    return _Message(row["memory_id"], text, (row["timestamp"], row["memory_id"]))


def _in_order(one: _Message, other: _Message) -> Pair:
    first, second = sorted((one, other), key=lambda each: each.order)
    return first.memory_id, second.memory_id


async def _write(
    transaction: MemoryTransaction, rows: Sequence[Row], probable: Mapping[Pair, float]
) -> None:
    """Dequeues the messages that were not changed meanwhile, and replaces their links."""
    versions = {row["memory_id"]: row["version"] for row in rows}
    others = {each for pair in probable for each in pair} | await transaction.relations.ends([*versions])
    there = await transaction.existing(others | versions.keys(), changing=versions)
    claimed = await transaction.llm.claim("relations", versions)
    await transaction.relations.forget(sorted(claimed))
    links: dict[UUID, list[Link]] = {}
    for (earlier, later), probability in probable.items():
        if {earlier, later} <= there and not {earlier, later}.isdisjoint(claimed):
            link = Link.model_construct(target_id=earlier, relation=CHANGES, weight=probability)
            links.setdefault(later, []).append(link)
    await transaction.links.add_all(links)
