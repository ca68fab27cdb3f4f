"""Explains the outcome of traced memories in a search: retrievers, ranks, and the step that removed each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from agentcore.database import Row
from agentcore.memory.models import MemorySummary
from agentcore.memory.params.memories import MemoryTrace, TraceOutcome
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import Question
from agentcore.memory.retrieval import Ranked, rank
from agentcore.memory.scoring import RetrievalWeights
from agentcore.memory.vector_store import Found


@dataclass(frozen=True)
class Traced:
    """A search as it ran: its candidates, what it asked, and what it returned."""

    found: Found
    question: Question
    weights: RetrievalWeights
    cut_offs: CutOffs
    fit: float
    memories: Sequence[MemorySummary]
    conditions: Mapping[str, object]


def trace(search: Traced, memory_ids: Sequence[UUID], stored: Mapping[UUID, Row]) -> list[MemoryTrace]:
    """Returns a trace of each memory; `stored`: rows of the statement `compare_memories` by id."""
    candidates = search.found.candidates
    # Ranks all candidates without cut-offs, which reveals the rank of those that were cut off.
    ranking = rank(
        candidates,
        search.found.links,
        search.found.neighbours,
        search.weights,
        search.question,
        max(1, len(candidates)),
    )
    places = {each.memory_id: place for place, each in enumerate(ranking.ranked, 1)}
    ranked = {each.memory_id: each for each in ranking.ranked}
    return [
        _trace(search, each, stored.get(each), places.get(each), ranked.get(each), ranking.ranked)
        for each in memory_ids
    ]


def _trace(
    search: Traced, memory_id: UUID, row: Row | None, place: int | None, hit: Ranked | None, ranked: Sequence[Ranked]
) -> MemoryTrace:
    if row is None:
        return MemoryTrace(memory_id=memory_id, outcome="unknown")
    candidates = search.found.candidates
    own = next((each for each in candidates if each.memory_id == memory_id), None)
    similarities = sorted((each.similarity for each in candidates if each.similarity is not None), reverse=True)
    words = sorted((each.words for each in candidates if each.words), reverse=True)
    outcome, by = _outcome(search, memory_id, row, place, ranked)
    # A candidate has the similarity of its best passage.
    similarity = row["similarity"] if own is None else own.similarity
    return MemoryTrace(
        memory_id=memory_id,
        outcome=outcome,
        by=by,
        retrievers=sorted(search.found.found_by.get(memory_id, ())),
        similarity=similarity,
        similarity_rank=_rank(similarity, similarities) if own is not None else None,
        least_similarity=similarities[-1] if similarities else None,
        words=None if own is None else own.words,
        words_rank=None if own is None or not own.words else _rank(own.words, words),
        candidate_count=len(candidates),
        rank=place,
        score=None if hit is None else hit.score,
        terms=None if hit is None else dict(hit.terms),
    )


def _rank(value: float | None, descending: Sequence[float]) -> int | None:
    return None if value is None else 1 + sum(each > value for each in descending)


def _outcome(
    search: Traced, memory_id: UUID, row: Row, place: int | None, ranked: Sequence[Ranked]
) -> tuple[TraceOutcome, UUID | None]:
    for each in search.memories:
        if each.memory_id == memory_id:
            return "returned", None
        if memory_id in each.instead_of:
            return "contradicted", each.memory_id
    if place is None:
        return _not_ranked(search, memory_id, row, ranked)
    if search.fit < search.cut_offs.min_fit:
        return "nothing_fits", None
    kept = search.cut_offs.kept([each.score for each in ranked], search.question.memory_count)
    return ("far_below_the_best" if place > kept else "beyond_k"), None


def _not_ranked(
    search: Traced, memory_id: UUID, row: Row, ranked: Sequence[Ranked]
) -> tuple[TraceOutcome, UUID | None]:
    if not row["is_live"]:
        return "expired", None
    is_of_now = "current" in search.conditions
    if row["superseded_by"] is not None and (is_of_now or not row["was_valid"]):
        return "superseded", row["superseded_by"]
    if not row["matches"]:
        return "filtered", None
    own = next((each for each in search.found.candidates if each.memory_id == memory_id), None)
    if own is None:
        return "not_found", None
    newer = next((each.memory_id for each in ranked if memory_id in each.stands_for), None)
    if newer is not None:
        return "same_text", newer
    least = search.question.min_score
    if least is not None and search.question.with_vectors and (own.similarity or 0.0) < least:
        return "below_min_score", None
    return "query_or_summary", None
