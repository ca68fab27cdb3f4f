"""Moves up memories that callers linked to the best hits. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from agentcore.memory.models import Dropped, ScoreTerm
from agentcore.memory.ranking.candidates import Tie
from agentcore.memory.recall.reranking import shortened
from agentcore.memory.retrieval import Ranked, Ranking

LINKED = "linked"
# How many linked memories are moved at most.
MOST_LINKED = 3
# Target positions, from 0: for memories linked to the best hit; for those linked to the second and third.
BEHIND_BEST, BEHIND_NEXT = 3, 5
# Of the first three, hits below this share of the best score are ranked after memories linked to the best.
CLOSE_SHARE = 0.75


def with_linked(ranking: Ranking, k: int) -> Ranking:
    """Moves memories with strong links to the first three hits behind these, also those that were cut off.

    Each takes the score of the memory before it. At most `k` memories are left.
    """
    ranked = [*ranking.ranked]
    if not ranked or not ranking.links:
        return shortened(ranking, k)
    others = {each.memory_id: each for each in (*ranked, *ranking.linkable)}
    close = sum(each.score >= CLOSE_SHARE * ranked[0].score for each in ranked[:BEHIND_BEST])
    targets = [close, BEHIND_NEXT, BEHIND_NEXT]
    moved: set[UUID] = set()
    for seed, target in zip(ranking.ranked, targets, strict=False):
        for tie, other in _ends(seed.memory_id, ranking.links, others):
            place = min(target + len(moved), len(ranked))
            ahead = {each.memory_id for each in ranked[: max(place, BEHIND_BEST)]}
            if len(moved) == MOST_LINKED or other.memory_id in moved | ahead:
                continue
            moved.add(other.memory_id)
            ranked = [each for each in ranked if each is not other]
            ranked.insert(place, _moved(other, ranked[place - 1].score, seed.memory_id, tie.weight))
    brought = sum(each.memory_id in moved for each in ranking.linkable)
    return shortened(replace(ranking, ranked=ranked, dropped=_without(ranking.dropped, brought)), k)


def _ends(seed: UUID, links: Sequence[Tie], others: Mapping[UUID, Ranked]) -> Iterator[tuple[Tie, Ranked]]:
    """Yields the memories linked to the seed, in either direction, by descending weight and score."""
    found = []
    for tie in links:
        if seed in (tie.source_id, tie.target_id):
            end = tie.target_id if tie.source_id == seed else tie.source_id
            other = others.get(end)
            # What is outdated stays below the memory that changed it.
            if other is not None and end != seed and other.outdated_by is None:
                found.append((tie, other))
    yield from sorted(found, key=lambda each: (-each[0].weight, -each[1].score, each[1].memory_id))


def _moved(ranked: Ranked, score: float, linked_to: UUID, weight: float) -> Ranked:
    term = ScoreTerm(value=weight, weight=1.0, contribution=score - ranked.score)
    return replace(ranked, score=score, terms={**ranked.terms, LINKED: term}, linked_to=linked_to)


def _without(dropped: Sequence[Dropped], count: int) -> list[Dropped]:
    """Subtracts memories that are in the ranking again; a ranking is cut off for one reason."""
    cut = {"beyond_k", "far_below_the_best"}
    left = [
        each.model_copy(update={"count": each.count - count}) if each.reason in cut else each
        for each in dropped
    ]
    return [each for each in left if each.count]
