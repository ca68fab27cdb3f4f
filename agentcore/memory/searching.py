"""Searching, as a story: complete the query, embed, ask every arm, rank, fetch what is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentcore.errors import DependencyUnavailable, InvalidParams
from agentcore.memory.api import Caller
from agentcore.memory.lexical import LexicalStatistics, bm25, idf, rarest, select_query_keys, term_keys
from agentcore.memory.models import Dropped, MemoryRecord, MemorySummary, Receipt
from agentcore.memory.params import ContextParams, RetrieveParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.query import complete
from agentcore.memory.retrieval import Ranked, rank
from agentcore.memory.vector_store import Found, SearchRequest
from agentcore.telemetry import Steps

MAX_POSTINGS = 2_000
MAX_QUERY_TERMS = 64
THREAD_ABOVE_CHARS = 4_000
WORDS_ONLY = "embedding: the embedder does not answer; searched by words alone"

NO_MIN_SCORE = "min_score: not applied, there is no vector to compare"


@dataclass(frozen=True)
class SearchResult:
    """The ranked memories with their records, and the receipt of how they were found."""

    ranked: list[tuple[Ranked, MemoryRecord]]
    receipt: Receipt


class Search:
    """One query of one agent."""

    def __init__(
        self,
        parts: MemoryParts,
        caller: Caller,
        params: RetrieveParams | ContextParams,
        conditions: Mapping[str, Any],
        steps: Steps,
    ) -> None:
        self._parts = parts
        self._agent_id = caller.agent_id
        self._params = params
        self._steps = steps
        self._degraded: list[str] = []
        self._conditions = dict(conditions)
        if params.as_of is None:
            self._conditions["current"] = True
        else:
            self._conditions["as_of"] = params.as_of.isoformat()

    async def run(self, k: int) -> SearchResult:
        """The `k` best memories. Raises InvalidParams (a vector of another length), DependencyUnavailable."""
        now: datetime = self._params.asked_at or self._params.as_of or self._parts.clock()
        text = complete(self._params.query, self._params.history)
        vector, (keys, statistics) = await asyncio.gather(self._vector(text), self._words(text))
        request = self._request(keys, vector, statistics)
        with self._steps("search"):
            found = await self._parts.vectors.search(self._agent_id, request)
        with self._steps("rank"):
            ranking = rank(
                found.candidates,
                found.ties,
                self._parts.policy.weights,
                now=now,
                k=k,
                best_words=_full_match(keys, found, statistics),
                min_score=self._params.min_score,
                with_vectors=vector is not None,
            )
        with self._steps("fetch"):
            records = await self._parts.storage.get(
                self._agent_id, [each.memory_id for each in ranking.ranked]
            )
        ranked = [(each, records[each.memory_id]) for each in ranking.ranked if each.memory_id in records]
        return SearchResult(ranked, self._receipt(found, list(ranking.dropped), text))

    async def _vector(self, text: str) -> NDArray[np.float32] | None:
        if self._params.query_vector is not None:
            return self._given_vector(self._params.query_vector)
        if self._parts.embedder is None:
            return None
        try:
            with self._steps("embed"):
                vectors = await self._parts.embedder.embed([text], "query")
        except DependencyUnavailable:
            self._degraded.append(WORDS_ONLY)
            if self._params.min_score is not None:
                self._degraded.append(NO_MIN_SCORE)
            return None
        first: NDArray[np.float32] = vectors[0]
        return first

    def _given_vector(self, given: list[float]) -> NDArray[np.float32]:
        dimensions = self._parts.policy.embedding_dimensions
        if len(given) != dimensions:
            raise InvalidParams(
                f"query_vector has {len(given)} dimensions, this service stores {dimensions}",
                data={"field": "query_vector"},
            )
        return np.asarray(given, dtype=np.float32)

    async def _words(self, text: str) -> tuple[list[int], LexicalStatistics]:
        """The query's rarest terms, and in how many of the agent's memories each stands."""
        with self._steps("statistics"):
            keys = await self._keys(text)
            statistics = await self._parts.vectors.statistics(self._agent_id, keys)
        return rarest(keys, statistics.document_frequency, MAX_QUERY_TERMS), statistics

    async def _keys(self, text: str) -> list[int]:
        if len(text) <= THREAD_ABOVE_CHARS:
            return term_keys(self._agent_id, text)
        return await asyncio.to_thread(term_keys, self._agent_id, text)

    def _request(
        self, keys: list[int], vector: NDArray[np.float32] | None, statistics: LexicalStatistics
    ) -> SearchRequest:
        chosen = select_query_keys(keys, statistics.document_frequency, MAX_POSTINGS)
        weights = [idf(statistics.document_frequency.get(key, 0), statistics.memory_count) for key in chosen]
        return SearchRequest(
            self._conditions, vector, self._parts.vector_model, chosen, weights, keys, statistics
        )

    def _receipt(self, found: Found, dropped: list[Dropped], text: str) -> Receipt:
        searched: dict[str, Any] = {
            "arms": sorted(found.counts),
            "vectors": found.mode,
            "filters": sorted(set(self._conditions) - {"current"}),
        }
        if text != self._params.query:
            searched["completed_from_history"] = True
        return Receipt(
            searched=searched,
            candidates=dict(found.counts),
            dropped=dropped,
            degraded=self._degraded,
            timings_ms=self._steps.timings_ms,
        )


def _full_match(keys: list[int], found: Found, statistics: LexicalStatistics) -> float:
    """The BM25 score that counts as a full match: the best one found, but no less than half of what a text
    made of the query alone would have, so that one common word in common is no match."""
    best = max((candidate.words for candidate in found.candidates), default=0.0)
    return max(best, 0.5 * bm25(keys, keys, statistics))


def summarised(ranked: Ranked, record: MemoryRecord, *, explain: bool) -> MemorySummary:
    """A found memory as it is given back; with `explain`, with the terms of its score."""
    names = set(MemorySummary.model_fields) & set(MemoryRecord.model_fields)
    return MemorySummary.model_construct(
        **{name: getattr(record, name) for name in names},
        score=ranked.score,
        similarity=ranked.similarity,
        terms=dict(ranked.terms) if explain else None,
    )
