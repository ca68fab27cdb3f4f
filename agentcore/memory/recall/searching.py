"""Searches: completes and rewrites the query, embeds it, runs every retriever, ranks, reads the results."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.database import Row
from agentcore.errors import DependencyUnavailable, InvalidParams
from agentcore.memory.api import Caller
from agentcore.memory.encoding import digest
from agentcore.memory.language import moments
from agentcore.memory.language.moments import Window
from agentcore.memory.language.text import normal_form, words
from agentcore.memory.llm import Rewriting
from agentcore.memory.models import Dropped, JsonObject, MemorySummary, MemoryType, Receipt
from agentcore.memory.params.memories import GetContextParams, MemoryTrace, RetrieveParams, Turn
from agentcore.memory.parts import MemoryParts
from agentcore.memory.query import (
    HISTORICAL_THRESHOLD,
    HistoricalScope,
    asks_for_time,
    asks_only_for,
    complete,
    historical_scope,
    is_short,
    split,
)
from agentcore.memory.ranking.calibration import CutOffs, QueryDetector
from agentcore.memory.ranking.candidates import Question, Span
from agentcore.memory.ranking.opposition import asks_of_the_past
from agentcore.memory.recall.reranking import SPARE, Notes, depth, reranked, settled, with_linked
from agentcore.memory.recall.tracing import Traced, trace
from agentcore.memory.recall.wording import READ_CHARS, Wording, read_text, read_words
from agentcore.memory.retrieval import Ranked, Ranking, rank
from agentcore.memory.vector_store import Found, SearchRequest
from agentcore.telemetry import Steps

MOST_QUERIES = 3
# Longer rewrites are truncated.
MOST_CHARS = 1_000
WORDS_ONLY = "embedding: the embedder does not answer; searched by words alone"
RESTART = "embedding: this process must start again with the model in force; searched by words alone"
# Fields that reveal that a memory is superseded.
PAST_FIELDS = ("superseded_by", "valid_from", "valid_to")
BEYOND_PAGE = "page_bytes"
# Without vectors of the off-topic prompts.
USUAL_BASELINE, USUAL_SPREAD = 0.25, 0.1
NO_MIN_SCORE = "min_score: not applied, there is no vector to compare"
NO_MIN_FIT = "min_fit: not applied, answerability cannot be estimated without vectors"

# The minimum probability at which a query is about what the assistant said.
ABOUT_ASSISTANT_THRESHOLD = 0.9
Vectors = NDArray[np.float32] | None
"""One row per text; None if only words are searched."""


@dataclass(frozen=True)
class SearchResult:
    """Memories, best first, and the offsets of the passages by which long ones matched."""

    memories: list[MemorySummary]
    receipt: Receipt
    passages: Mapping[UUID, tuple[int, int]] = field(default_factory=dict)
    traces: list[MemoryTrace] | None = None


@dataclass(frozen=True)
class Talk:
    """The conversation of a query: its turns complete a vague query, as the caller's `history` would.

    `own` and `own_text` as in `Question`.
    """

    own: Collection[UUID] = ()
    own_text: bytes | None = None
    turns: Sequence[Turn] = ()


NO_TALK = Talk()


def _probability(detector: QueryDetector | None, vectors: NDArray[Any], otherwise: float) -> float:
    return otherwise if detector is None else detector.probability(vectors[0])


def _has_words_alone(found: Found) -> bool:
    """Whether words found a memory without a vector."""
    return any(each.similarity is None and each.words for each in found.candidates)


class Search:
    def __init__(
        self,
        parts: MemoryParts,
        caller: Caller,
        params: RetrieveParams | GetContextParams,
        conditions: Mapping[str, Any],
        steps: Steps,
        talk: Talk = NO_TALK,
    ) -> None:
        self._parts = parts
        self._agent_id = caller.agent_id
        self._params = params
        self._talk = talk
        self._history = params.history or talk.turns
        self._traced = params.trace if isinstance(params, RetrieveParams) else []
        weights = params.weights if isinstance(params, RetrieveParams) else {}
        self._weights = replace(parts.policy.weights, **weights)
        self._found_by: Mapping[UUID, Sequence[str]] = {}
        self._steps = steps
        self._notes = Notes(steps)
        self._filters = conditions
        self._left_out = 0
        self._digest = b""

    async def run(self, k: int, cut_offs: CutOffs, breadth: int = 1) -> SearchResult:
        """Returns the `k` best memories. Raises InvalidParams, DependencyUnavailable."""
        now = self._asked_at()
        text, named = await self._understood(now)
        windows = [(each.start, each.end) for each in named]
        phrases = [each.phrase for each in named]
        vectors, wording = await asyncio.gather(self._vectors(text), self._words(text))
        kinds = self._kinds(vectors)
        back = self._historical_scope(list(zip(phrases, windows, strict=True)), now, kinds[0])
        request = SearchRequest(
            self._conditions(back),
            vectors,
            self._parts.vector_model,
            wording.bm25,
            wording.term_weights,
            windows,
            breadth,
            None if back is None else back.spans,
            self._params.explain or bool(self._traced),
        )
        with self._steps("search"):
            found = await self._parts.vectors.search(self._agent_id, request)
        self._found_by = found.found_by
        self._notes.degraded.extend(found.degraded)
        settles = self._settles(windows, back)
        wanted = k + SPARE if settles else k
        question = self._question(now, windows, found, wording, vectors, kinds)
        cut_offs = self._effective_cut_offs(cut_offs, found, phrases)
        ranking = await self._ranked(found, question, wanted, cut_offs)
        passages = found.passages
        ranking = await reranked(self._parts, self._agent_id, text, ranking, self._notes, passages)
        ranking = with_linked(ranking, wanted)
        with self._steps("fetch"):
            if not settles:
                memories = await self._read(ranking.ranked)
            else:
                memories, ranking = await settled(self._parts, self._agent_id, ranking, k, self._read)
        self._count(found, ranking)
        searched = Traced(found, question, self._weights, cut_offs, ranking.fit, memories, request.conditions)
        traces = await self._traces(request, searched) if self._traced else None
        return SearchResult(memories, self._receipt(found, ranking, memories, text, wording, back), passages, traces)

    async def _ranked(self, found: Found, question: Question, wanted: int, cut_offs: CutOffs) -> Ranking:
        arguments = (
            found.candidates,
            found.links,
            found.neighbours,
            self._weights,
            question,
            depth(self._parts, wanted),
            cut_offs,
        )
        with self._steps("rank"):
            return await asyncio.to_thread(rank, *arguments) if found.rank_in_thread else rank(*arguments)

    def _asked_at(self) -> datetime:
        return self._params.asked_at or self._params.as_of or self._parts.clock()

    def _settles(self, windows: Sequence[Span], back: HistoricalScope | None) -> bool:
        """Whether only the newest of contradicting memories is returned."""
        return self._params.distinct and not (windows or back or asks_of_the_past(self._params.query))

    def _count(self, found: Found, ranking: Ranking) -> None:
        metrics = self._parts.metrics
        if metrics is not None:
            metrics.searched(found.mode)
            if any(each.reason == "nothing_fits" for each in ranking.dropped):
                metrics.abstained()

    async def _traces(self, request: SearchRequest, searched: Traced) -> list[MemoryTrace]:
        stored = await self._parts.vectors.compare(self._agent_id, request, self._traced)
        return await asyncio.to_thread(trace, searched, self._traced, stored)

    def _historical_scope(
        self, times: Sequence[tuple[str, Span]], now: datetime, probability: float
    ) -> HistoricalScope | None:
        if self._params.as_of is not None:
            return None
        return historical_scope(self._params.query, times, now, probability)

    def _kinds(self, vectors: Vectors) -> tuple[float, float, float]:
        """Returns the probabilities that the query asks for an earlier state, a current state, the assistant's words.

        Long and split queries are not classified. Without a detector, queries for no earlier state ask for the current
        one.
        """
        samples, params = self._parts.samples, self._params
        is_whole = is_short(params.query) and "queries" not in self._notes.searched
        if samples is None or vectors is None or params.query_vector is not None or not is_whole:
            return 0.0, 1.0, 0.0
        historical = 0.0 if params.as_of is not None else _probability(samples.historical, vectors, 0.0)
        about_assistant = _probability(samples.about_assistant, vectors, 0.0)
        if about_assistant < ABOUT_ASSISTANT_THRESHOLD:
            about_assistant = 0.0
        else:
            self._notes.searched["about_assistant"] = {"probability": round(about_assistant, 2)}
        return historical, _probability(samples.current, vectors, 1.0 - historical), about_assistant

    def _conditions(self, back: HistoricalScope | None) -> Mapping[str, Any]:
        if self._params.as_of is not None:
            return {**self._filters, "as_of": self._params.as_of.isoformat()}
        return self._filters if back is not None else {**self._filters, "current": True}

    def _effective_cut_offs(self, cut_offs: CutOffs, found: Found, phrases: Sequence[str]) -> CutOffs:
        """Returns the cut-offs with the caller's threshold; none without vectors.

        The default does not apply if words found a memory without a vector, or if the query names only times and there
        are memories of these times: it resembles none.
        """
        given = self._params.min_fit
        if found.mode == "words":
            if given:
                self._notes.degraded.append(NO_MIN_FIT)
            return CutOffs()
        if _has_words_alone(found):
            return CutOffs(min_fit=given or 0.0)
        if given is None and found.counts.get("temporal") and asks_only_for(self._params.query, phrases):
            given = 0.0
        return cut_offs if given is None else replace(cut_offs, min_fit=given)

    def _question(
        self,
        now: datetime,
        windows: Sequence[Span],
        found: Found,
        wording: Wording,
        vectors: Vectors,
        kinds: tuple[float, float, float],
    ) -> Question:
        excess, generality = self._relatedness(found, vectors)
        historical, current, about_assistant = kinds
        return Question(
            now=now,
            scale=wording.full_match(found.candidates),
            words=frozenset(words(self._params.query[:READ_CHARS])),
            windows=windows,
            seeks_time=asks_for_time(self._params.query),
            min_score=self._params.min_score,
            with_vectors=found.mode != "words",
            distinct=self._params.distinct,
            memory_count=wording.bm25.statistics.memory_count,
            own=self._talk.own,
            own_text=self._talk.own_text,
            text=self._digest,
            changes=found.changes if historical < HISTORICAL_THRESHOLD else (),
            change_factor=current,
            about_assistant=about_assistant,
            excess=excess,
            generality=generality,
        )

    def _relatedness(self, found: Found, vectors: Vectors) -> tuple[dict[UUID, float], float]:
        near = [each for each in found.candidates if each.memory_id in found.near_vectors]
        if vectors is None or not near:
            return {}, 0.0
        ids = [each.memory_id for each in near]
        similarities = np.array([each.similarity or 0.0 for each in near])
        samples = self._parts.samples
        if samples is None:
            return dict(zip(ids, (similarities - USUAL_BASELINE) / USUAL_SPREAD, strict=True)), 0.0
        memories = np.array([found.near_vectors[each] for each in ids], np.float32)
        excess = samples.off_topic.excess(similarities, memories)
        return dict(zip(ids, excess.tolist(), strict=True)), samples.off_topic.generality(vectors)

    async def _vectors(self, text: str) -> Vectors:
        if self._params.query_vector is not None:
            return self._given_vector(self._params.query_vector)
        if self._parts.embedder is None:
            if self._params.min_score is not None:
                self._notes.degraded.append(NO_MIN_SCORE)
            return None
        wordings = await rewritten(self._parts, self._agent_id, self._params.query, text, self._history, self._notes)
        queries = await read_text(lambda: split(wordings[0]), len(wordings[0]))
        if len(queries) > 1:
            self._notes.searched["queries"] = len(queries)
        try:
            with self._steps("embed"):
                return await self._parts.embedder.embed([*queries, *wordings[1:]], "query")
        except DependencyUnavailable as failure:
            self._notes.degraded.append(RESTART if failure.data.get("restart") else WORDS_ONLY)
            if self._params.min_score is not None:
                self._notes.degraded.append(NO_MIN_SCORE)
            return None

    async def _understood(self, now: datetime) -> tuple[str, Sequence[Window]]:
        def read() -> tuple[str, Sequence[Window]]:
            self._digest = digest(normal_form(self._params.query))
            text = complete(self._params.query, self._history)
            return text, moments.windows(text[:READ_CHARS], now)

        return await read_text(read, len(self._params.query))

    def _given_vector(self, given: list[float]) -> NDArray[np.float32]:
        dimensions = self._parts.policy.embedding_dimensions
        if len(given) != dimensions:
            raise InvalidParams(
                f"query_vector has {len(given)} dimensions, this service stores {dimensions}",
                data={"field": "query_vector"},
            )
        return np.asarray([given], dtype=np.float32)

    async def _words(self, text: str) -> Wording:
        with_vectors = self._parts.embedder is not None or self._params.query_vector is not None
        with self._steps("statistics"):
            return await read_words(self._parts.vectors, self._agent_id, text, with_vectors=with_vectors)

    async def _read(self, ranked: Sequence[Ranked]) -> list[MemorySummary]:
        wanted = [each.memory_id for each in ranked]
        rows, left_out = await self._parts.storage.search_hits(self._agent_id, wanted)
        self._left_out += left_out
        return [self._summary(each, rows[each.memory_id]) for each in ranked if each.memory_id in rows]

    def _summary(self, hit: Ranked, row: Row) -> MemorySummary:
        # Every field is set: pydantic takes long to evaluate defaults.
        summary = MemorySummary.model_construct(
            **{
                **row,
                "memory_type": MemoryType(row["memory_type"]),
                "score": hit.score,
                "similarity": hit.similarity,
                "terms": dict(hit.terms) if self._params.explain else None,
                "retrievers": [*self._found_by.get(hit.memory_id, ())] if self._params.explain else None,
                "stands_for": list(hit.stands_for),
                "instead_of": [],
                "outdated_by": hit.outdated_by,
                "linked_to": hit.linked_to,
                # Under `as_of` the later end of its validity is not known yet.
                **({} if self._params.as_of is None else dict.fromkeys(PAST_FIELDS)),
            }
        )
        return summary.summing_up(row["sources"] or ())

    def _receipt(
        self,
        found: Found,
        ranking: Ranking,
        memories: Sequence[MemorySummary],
        text: str,
        wording: Wording,
        back: HistoricalScope | None,
    ) -> Receipt:
        searched: JsonObject = {
            **self._notes.searched,
            "arms": sorted(found.counts),
            # Not the mode: it depends on how much other agents store in the same partition.
            "vectors": "words" if found.mode == "words" else "nearest",
            "filters": sorted(set(self._conditions(back)) - {"current"}),
        }
        if linked := sum(each.linked_to is not None for each in memories):
            searched["linked"] = linked
        if back is not None:
            searched["history"] = back.as_receipt()
        if text != self._params.query:
            searched["completed_from_history"] = True
        if self._params.explain:
            searched["signals"] = asdict(ranking.signals)
        if wording.corrected:
            searched["corrected"] = dict(wording.corrected)
        beyond = [Dropped(reason=BEYOND_PAGE, count=self._left_out)] if self._left_out else []
        return Receipt(
            searched=searched,
            candidates=dict(found.counts),
            dropped=[*ranking.dropped, *beyond],
            fit=round(ranking.fit, 3),
            degraded=self._notes.degraded,
            timings_ms=self._steps.timings_ms,
        )


async def rewritten(
    parts: MemoryParts, agent_id: str, query: str, text: str, history: Sequence[Turn], notes: Notes
) -> list[str]:
    """Returns the texts to embed: `text`, then rewritten queries."""
    if parts.rewriter is None:
        return [text]
    try:
        with notes.steps("rewrite"):
            rewriting = await parts.rewriter.rewrite(query, history, agent_id=agent_id)
    except DependencyUnavailable as failure:
        notes.degraded.append(f"query rewriting: skipped, {failure.message}")
        rewriting = Rewriting()
    texts = list(dict.fromkeys([text, *_wordings(rewriting, query)]))
    notes.searched["rewritten"] = len(texts) - 1
    return texts


def _wordings(rewriting: Rewriting, query: str) -> Iterator[str]:
    answers = [] if rewriting.answer is None else [rewriting.answer]
    for each in [*rewriting.queries[:MOST_QUERIES], *answers]:
        wording = each[:MOST_CHARS].strip()
        if wording and wording.casefold() != query.strip().casefold():
            yield wording
