"""Explains the outcome of traced memories in a search: retrievers, ranks, and the step that removed each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agentcore.database import Row
from agentcore.memory.models import MemorySummary
from agentcore.memory.params.memories import MemoryTrace, TraceOutcome
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import Candidate, Question
from agentcore.memory.retrieval import Ranked, rank
from agentcore.memory.scoring import RetrievalWeights
from agentcore.memory.vector_store import Found


@dataclass(frozen=True)
class Traced:
    """A finished search: candidates, query features, cut-offs and results."""

    found: Found
    question: Question
    weights: RetrievalWeights
    cut_offs: CutOffs
    fit: float
    memories: Sequence[MemorySummary]
    conditions: Mapping[str, object]


def trace(search: Traced, memory_ids: Sequence[UUID], stored: Mapping[UUID, Row]) -> list[MemoryTrace]:
    """Returns a trace of each memory; `stored`: rows of the statement `compare_memories` by id."""
    found = search.found
    by_id = {each.memory_id: each for each in found.candidates}
    # Ranks all candidates without cut-offs, which reveals the rank of those that were cut off.
    ranked = rank(
        found.candidates, found.links, found.neighbours, search.weights, search.question, max(1, len(by_id))
    ).ranked
    places = {each.memory_id: place for place, each in enumerate(ranked, 1)}
    similarities = [each.similarity for each in found.candidates if each.similarity is not None]

    def traced(memory_id: UUID) -> MemoryTrace:
        row, own, place = stored.get(memory_id), by_id.get(memory_id), places.get(memory_id)
        if row is None:
            return MemoryTrace(memory_id=memory_id, outcome="unknown")
        outcome, by = _outcome(search, memory_id, row, own, place, ranked)
        values: dict[str, Any] = {"similarity": row["similarity"]}
        if own is not None:
            # A candidate has the similarity of its best passage.
            values["similarity"] = own.similarity
            values["similarity_rank"] = _rank(own.similarity, similarities)
            values["words"] = own.words
            values["words_rank"] = _rank(own.words or None, [each.words for each in found.candidates])
        if place is not None:
            hit = ranked[place - 1]
            values |= {"rank": place, "score": hit.score, "terms": dict(hit.terms)}
        return MemoryTrace(
            memory_id=memory_id,
            outcome=outcome,
            by=by,
            retrievers=sorted(found.found_by.get(memory_id, ())),
            least_similarity=min(similarities, default=None),
            candidate_count=len(by_id),
            **values,
        )

    return [traced(each) for each in memory_ids]


def _rank(value: float | None, values: Sequence[float]) -> int | None:
    return None if value is None else 1 + sum(each > value for each in values)


def _outcome(
    search: Traced, memory_id: UUID, row: Row, own: Candidate | None, place: int | None, ranked: Sequence[Ranked]
) -> tuple[TraceOutcome, UUID | None]:
    for each in search.memories:
        if each.memory_id == memory_id:
            return "returned", None
        if memory_id in each.instead_of:
            return "contradicted", each.memory_id
    if own is None:
        return _not_found(search, row)
    if place is None:
        return _not_ranked(search.question, own, ranked)
    if search.fit < search.cut_offs.min_fit:
        return "nothing_fits", None
    kept = search.cut_offs.kept([each.score for each in ranked], search.question.memory_count)
    return ("far_below_the_best" if place > kept else "beyond_k"), None


def _not_found(search: Traced, row: Row) -> tuple[TraceOutcome, UUID | None]:
    if not row["is_live"]:
        return "expired", None
    if row["superseded_by"] is not None and ("current" in search.conditions or not row["was_valid"]):
        return "superseded", row["superseded_by"]
    return ("not_found" if row["matches"] else "filtered"), None


def _not_ranked(question: Question, own: Candidate, ranked: Sequence[Ranked]) -> tuple[TraceOutcome, UUID | None]:
    newer = next((each.memory_id for each in ranked if own.memory_id in each.stands_for), None)
    if newer is not None:
        return "same_text", newer
    least = question.min_score
    is_below = least is not None and question.with_vectors and (own.similarity or 0.0) < least
    return ("below_min_score" if is_below else "query_or_summary"), None
