"""Reranks the top candidates within a time limit.

Scores of rerankers are not comparable between queries: they decide the order, cut-offs use the fused score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm_limits import LimitedReranker
from agentcore.memory.models import Dropped, ScoreTerm
from agentcore.memory.parts import MemoryParts
from agentcore.memory.recall.notes import Notes
from agentcore.memory.retrieval import Ranked, Ranking
from agentcore.memory.scoring import is_person

# What is handed to a reranker: together they fit a model of 512 tokens, and servers refuse what does not.
TEXT_CHARS = 1_600
QUERY_CHARS = 400
RERANKER = "reranker"
BEYOND_K = "beyond_k"


def depth(parts: MemoryParts, k: int) -> int:
    """How many must be ranked for the best `k`: a reranker chooses among more."""
    return k if parts.reranker is None else max(k, parts.reranker.candidates)


async def reranked(
    parts: MemoryParts,
    agent_id: str,
    query: str,
    ranking: Ranking,
    notes: Notes,
    passages: Mapping[UUID, tuple[int, int]],
) -> Ranking:
    """Returns the top hits in the reranker's order; `notes` say how far it got in its time.

    `passages`: of long memories, the offsets of what matched; the reranker reads from there on.
    """
    reranker = parts.reranker
    if reranker is None:
        return ranking
    leading = ranking.ranked[: _fitting(reranker, len(ranking.ranked), notes)]
    relevances: list[float] = []
    if leading:
        starts = {each.memory_id: passages.get(each.memory_id, (0, 0))[0] for each in leading}
        texts = await _texts(parts, agent_id, starts, notes)
        try:
            with notes.steps("rerank"):
                # The question stands last, behind what completes it.
                relevances = await reranker.relevances(query[-QUERY_CHARS:], texts)
        except DependencyUnavailable as failure:
            notes.degraded.append(f"reranker: skipped, {failure.message}")
    notes.searched["reranked"] = len(relevances)
    return reordered(ranking, relevances)


def _fitting(reranker: LimitedReranker, found: int, notes: Notes) -> int:
    count = min(found, reranker.candidates)
    if count < 2:
        return 0
    fitting = reranker.fitting(count)
    if fitting < count:
        done = f"{fitting} of {count} texts" if fitting else f"skipped, {count} texts"
        notes.degraded.append(f"reranker: {done}, more would not fit into {reranker.timeout_ms} ms")
    return fitting


async def _texts(
    parts: MemoryParts, agent_id: str, starts: Mapping[UUID, int], notes: Notes
) -> list[str]:
    with notes.steps("fetch"):
        rows = await parts.storage.contents(agent_id, starts, TEXT_CHARS)
    said = {
        row["memory_id"]: f"{row['speaker']}: " * is_person(row["speaker"]) + row["content"] for row in rows
    }
    return [said.get(memory_id, "") for memory_id in starts]


def reordered(ranking: Ranking, relevances: Sequence[float]) -> Ranking:
    """The foremost by their relevances, given in their order; equal ones stand as they stood.

    Each takes the score of the place it comes to; the term `reranker` says by how much that moved it.
    """
    leading = ranking.ranked[: len(relevances)]
    order = sorted(range(len(leading)), key=lambda place: (-relevances[place], place))
    moved = [_moved(leading[old], leading[new].score, relevances[old]) for new, old in enumerate(order)]
    return replace(ranking, ranked=[*moved, *ranking.ranked[len(leading) :]])


def _moved(ranked: Ranked, score: float, relevance: float) -> Ranked:
    term = ScoreTerm(value=relevance, weight=1.0, contribution=score - ranked.score)
    return replace(ranked, score=score, terms={**ranked.terms, RERANKER: term})


def shortened(ranking: Ranking, k: int) -> Ranking:
    """The `k` best, and what lies beyond them counted with the rest that does."""
    beyond = len(ranking.ranked) - k
    if beyond <= 0:
        return ranking
    counts = {each.reason: each.count for each in ranking.dropped}
    counts[BEYOND_K] = counts.get(BEYOND_K, 0) + beyond
    dropped = [Dropped(reason=reason, count=count) for reason, count in sorted(counts.items())]
    return replace(ranking, ranked=ranking.ranked[:k], dropped=dropped)
