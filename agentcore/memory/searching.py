"""Searching, as a story: complete the query, embed, ask every arm, rank, fetch what is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentcore.errors import DependencyUnavailable, InvalidParams
from agentcore.memory.api import Caller
from agentcore.memory.lexical import Bm25, idf, rarest, select_query_keys, term_keys
from agentcore.memory.models import Dropped, MemorySummary, Receipt
from agentcore.memory.notes import Notes
from agentcore.memory.params import ContextParams, RetrieveParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.query import complete, weighed
from agentcore.memory.reranking import depth, reranked
from agentcore.memory.retrieval import MatchScale, Ranked, rank
from agentcore.memory.rewriting import rewritten, together
from agentcore.memory.text import words
from agentcore.memory.vector_store import Found, SearchRequest, WordHits
from agentcore.telemetry import Steps

MAX_POSTINGS = 2_000
MAX_QUERY_TERMS = 64
THREAD_ABOVE_CHARS = 4_000
WORDS_ONLY = "embedding: the embedder does not answer; searched by words alone"

NO_MIN_SCORE = "min_score: not applied, there is no vector to compare"


@dataclass(frozen=True)
class SearchResult:
    """The memories, best first, and the receipt of how they were found."""

    memories: list[MemorySummary]
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
        self._notes = Notes(steps)
        self._conditions = dict(conditions)
        if params.as_of is None:
            self._conditions["current"] = True
        else:
            self._conditions["as_of"] = params.as_of.isoformat()

    async def run(self, k: int) -> SearchResult:
        """The `k` best memories. Raises InvalidParams (a vector of another length), DependencyUnavailable."""
        now: datetime = self._params.asked_at or self._params.as_of or self._parts.clock()
        text = complete(self._params.query, self._params.history)
        vectors, (keys, bm25, hits) = await asyncio.gather(self._vectors(text), self._words(text))
        requests = [
            SearchRequest(self._conditions, vector, self._parts.vector_model, bm25, hits)
            for vector in vectors
        ]
        with self._steps("search"):
            searches = [self._parts.vectors.search(self._agent_id, request) for request in requests]
            found = together(await asyncio.gather(*searches))
        with self._steps("rank"):
            ranking = rank(
                found.candidates,
                found.ties,
                found.neighbours,
                weighed(self._params.query, self._parts.policy.weights),
                now=now,
                k=depth(self._parts, k),
                scale=MatchScale(_full_match(keys, found, bm25), bm25.weigh(keys)),
                query_words=frozenset(words(self._params.query)),
                min_score=self._params.min_score,
                with_vectors=vectors[0] is not None,
            )
        ranking = await reranked(self._parts, self._agent_id, text, ranking, k, self._notes)
        with self._steps("fetch"):
            memories = await self._read(ranking.ranked)
        return SearchResult(memories, self._receipt(found, list(ranking.dropped), text))

    async def _vectors(self, text: str) -> Sequence[NDArray[np.float32] | None]:
        if self._params.query_vector is not None:
            return [self._given_vector(self._params.query_vector)]
        if self._parts.embedder is None:
            return [None]
        texts = await rewritten(self._parts, self._params.query, text, self._params.history, self._notes)
        try:
            with self._steps("embed"):
                return list(await self._parts.embedder.embed(texts, "query"))
        except DependencyUnavailable:
            self._notes.degraded.append(WORDS_ONLY)
            if self._params.min_score is not None:
                self._notes.degraded.append(NO_MIN_SCORE)
            return [None]

    def _given_vector(self, given: list[float]) -> NDArray[np.float32]:
        dimensions = self._parts.policy.embedding_dimensions
        if len(given) != dimensions:
            raise InvalidParams(
                f"query_vector has {len(given)} dimensions, this service stores {dimensions}",
                data={"field": "query_vector"},
            )
        return np.asarray(given, dtype=np.float32)

    async def _words(self, text: str) -> tuple[list[int], Bm25, WordHits]:
        """The query's rarest terms, the score they give, and what holds the rarest of them."""
        vectors = self._parts.vectors
        with self._steps("statistics"):
            keys = await self._keys(text)
            statistics = await vectors.statistics(self._agent_id, keys)
        keys = rarest(keys, statistics.document_frequency, MAX_QUERY_TERMS)
        chosen = select_query_keys(keys, statistics.document_frequency, MAX_POSTINGS)
        weights = {
            key: idf(statistics.document_frequency.get(key, 0), statistics.memory_count) for key in chosen
        }
        with self._steps("words"):
            hits = await vectors.search_words(self._agent_id, weights, self._conditions)
        return keys, Bm25(keys, statistics), hits

    async def _keys(self, text: str) -> list[int]:
        if len(text) <= THREAD_ABOVE_CHARS:
            return term_keys(self._agent_id, text)
        return await asyncio.to_thread(term_keys, self._agent_id, text)

    async def _read(self, ranked: Sequence[Ranked]) -> list[MemorySummary]:
        """What is given back, with its score and, if asked for, the terms of it."""
        summaries = await self._parts.storage.summaries(self._agent_id, [each.memory_id for each in ranked])
        explain = self._params.explain
        return [
            summaries[each.memory_id].model_copy(
                update={
                    "score": each.score,
                    "similarity": each.similarity,
                    "terms": dict(each.terms) if explain else None,
                }
            )
            for each in ranked
            if each.memory_id in summaries
        ]

    def _receipt(self, found: Found, dropped: list[Dropped], text: str) -> Receipt:
        searched: dict[str, Any] = {
            "arms": sorted(found.counts),
            "vectors": found.mode,
            "filters": sorted(set(self._conditions) - {"current"}),
            **self._notes.searched,
        }
        if text != self._params.query:
            searched["completed_from_history"] = True
        return Receipt(
            searched=searched,
            candidates=dict(found.counts),
            dropped=dropped,
            degraded=self._notes.degraded,
            timings_ms=self._steps.timings_ms,
        )


def _full_match(keys: list[int], found: Found, bm25: Bm25) -> float:
    """The BM25 score that counts as a full match: the best one found, but no less than half of what a text
    made of the query alone would have, so that one common word in common is no match."""
    best = max((candidate.words for candidate in found.candidates), default=0.0)
    return max(best, 0.5 * bm25(keys))
