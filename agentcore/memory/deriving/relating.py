"""Compares new messages with the nearest ones of the same speaker; links those that they make outdated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import is_message
from agentcore.memory.contradictions import rule_input
from agentcore.memory.encoding import embedding_text
from agentcore.memory.lexical import Bm25, LexicalStatistics
from agentcore.memory.models import CHANGES, Link, MemoryRecord, MemoryType
from agentcore.memory.parts import MemoryParts
from agentcore.memory.ranking.calibration import OffTopicPrompts
from agentcore.memory.ranking.candidates import Candidate
from agentcore.memory.rows.memory_rows import PendingRelation
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.vector_store import SearchRequest

BATCH = 16
# How many of the nearest earlier and later messages one is compared with; their minimum cosine.
COMPARED, MIN_SIMILARITY = 6, 0.2
# A less probable change is not stored.
MIN_PROBABILITY = 0.05
# Logistic regression on 16 streams not used to train the classifier (`benchmarks/training/relations.md`).
LOG_ODDS_WEIGHT, EXCESS_WEIGHT, BIAS = 0.84, 0.616, -1.353
# `typical` and `spread` of the off-topic prompts in vectors of the local model.
LOCAL_COSINES = 0.476, 0.0951
_TYPES = [MemoryType.EPISODIC.value, MemoryType.SEMANTIC.value]

Pair = tuple[UUID, UUID]


class Relating:
    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    async def run(self) -> bool:
        """Compares a batch; returns whether more may be pending. Raises DependencyUnavailable."""
        classifier = self._parts.relations
        if classifier is None:
            return False
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.relations.pending(BATCH, self._parts.vector_model)
        if not rows:
            return False
        compared = [row for row in rows if row.embedding is not None and is_message(row)]
        pairs, cosines = await self._pairs(compared)
        scores = await classifier.changes([*pairs.values()]) if pairs else np.array([])
        off_topic = None if self._parts.samples is None else self._parts.samples.off_topic
        probabilities = calibrated(scores, np.array([*cosines.values()]), off_topic)
        likely = zip(pairs, probabilities.tolist(), strict=True)
        probable = {pair: probability for pair, probability in likely if probability >= MIN_PROBABILITY}
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await _write(transaction, rows, probable)
        return len(rows) == BATCH

    async def _pairs(self, rows: Sequence[PendingRelation]) -> tuple[dict[Pair, tuple[str, str]], dict[Pair, float]]:
        messages: dict[UUID, PendingRelation | MemoryRecord] = {row.memory_id: row for row in rows}
        statistics = await self._parts.vectors.statistics(self._caller.agent_id, [])
        near = await self._without_pending([await self._nearest(row, statistics) for row in rows], rows)
        wanted = {each for ids in near.values() for each in ids} - messages.keys()
        records = await self._parts.storage.get(self._caller.agent_id, sorted(wanted))
        messages |= {memory_id: record for memory_id, record in records.items() if is_message(record)}
        cosines = {
            _in_order(messages[each], messages[other]): cosine
            for each, others in near.items()
            for other, cosine in others.items()
            if other in messages
        }
        ordered = {pair: cosines[pair] for pair in sorted(cosines)}
        return {(old, new): (_text(messages[old]), _text(messages[new])) for old, new in ordered}, ordered

    async def _without_pending(
        self, near: Sequence[tuple[dict[UUID, float], dict[UUID, float]]], rows: Sequence[PendingRelation]
    ) -> dict[UUID, dict[UUID, float]]:
        """Returns the cosines of each message's nearest ones, without later ones that are pending themselves.

        Those will be compared with their own earlier ones: an import costs as much as storing one by one.
        """
        later = {each for _, ids in near for each in ids}
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            pending = await transaction.relations.still_pending(sorted(later))
        return {
            row.memory_id: earlier | {each: cosine for each, cosine in after.items() if each not in pending}
            for row, (earlier, after) in zip(rows, near, strict=True)
        }

    async def _nearest(
        self, row: PendingRelation, statistics: LexicalStatistics
    ) -> tuple[dict[UUID, float], dict[UUID, float]]:
        conditions = {"current": True, "unflagged": True, "memory_types": _TYPES}
        place = {"user_id": row.user_id, "namespace": row.namespace}
        conditions |= {name: value for name, value in place.items() if value is not None}
        vector = None if row.embedding is None else np.asarray(row.embedding.to_numpy(), np.float32)[None]
        request = SearchRequest(conditions, vector, self._parts.vector_model, Bm25([], statistics))
        found = await self._parts.vectors.search(self._caller.agent_id, request)
        likely = sorted(_similar(row, found.candidates), key=lambda each: -(each.similarity or 0.0))
        order = (row.timestamp, row.memory_id)
        earlier = [each for each in likely if (each.timestamp, each.memory_id) < order]
        later = [each for each in likely if (each.timestamp, each.memory_id) > order]
        return _cosines(earlier[:COMPARED]), _cosines(later[:COMPARED])


def _cosines(candidates: Sequence[Candidate]) -> dict[UUID, float]:
    return {each.memory_id: each.similarity or 0.0 for each in candidates}


def _similar(row: PendingRelation, candidates: Sequence[Candidate]) -> list[Candidate]:
    scope = (row.speaker, row.user_id, row.namespace)
    return [
        each
        for each in candidates
        if each.memory_id != row.memory_id
        and each.text[1:] == scope
        and not each.is_summary
        and (each.similarity or 0.0) >= MIN_SIMILARITY
    ]


def calibrated(scores: NDArray[Any], cosines: NDArray[Any], off_topic: OffTopicPrompts | None) -> NDArray[np.float64]:
    """Returns the probabilities of changes, by the classifier's scores and the cosines, all (n,).

    The classifier alone takes many unrelated messages for changes. `off_topic` makes the cosines of embedding
    models comparable; without it the constants of the local model apply.
    """
    scores = np.clip(np.asarray(scores, np.float64), 1e-4, 1 - 1e-4)
    typical, spread = LOCAL_COSINES if off_topic is None else (off_topic.typical, off_topic.spread)
    excess = (np.asarray(cosines, np.float64) - typical) / spread
    log_odds = LOG_ODDS_WEIGHT * np.log(scores / (1 - scores)) + EXCESS_WEIGHT * excess + BIAS
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def _text(memory: PendingRelation | MemoryRecord) -> str:
    return embedding_text(rule_input(memory).content, memory.speaker)


def _in_order(one: PendingRelation | MemoryRecord, other: PendingRelation | MemoryRecord) -> Pair:
    first, second = sorted((one, other), key=lambda each: (each.timestamp, each.memory_id))
    return first.memory_id, second.memory_id


async def _write(
    transaction: MemoryTransaction, rows: Sequence[PendingRelation], probable: Mapping[Pair, float]
) -> None:
    versions = {row.memory_id: row.version for row in rows}
    others = {each for pair in probable for each in pair} | await transaction.relations.ends([*versions])
    there = await transaction.existing(others | versions.keys(), changing=versions)
    claimed = await transaction.llm.dequeue_unchanged("relations", versions)
    await transaction.relations.forget(sorted(claimed))
    links: dict[UUID, list[Link]] = {}
    for (earlier, later), probability in probable.items():
        if {earlier, later} <= there and not {earlier, later}.isdisjoint(claimed):
            link = Link.model_construct(target_id=earlier, relation=CHANGES, weight=probability)
            links.setdefault(later, []).append(link)
    await transaction.links.add_all(links)
