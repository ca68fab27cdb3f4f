"""Changes a ranking within a search: reranks it, moves up linked memories, drops contradicted ones.

Scores of rerankers are not comparable between queries: they decide the order, cut-offs use the fused score.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from agentcore.errors import DependencyUnavailable
from agentcore.memory.models import Dropped, JsonObject, MemorySummary, ScoreTerm
from agentcore.memory.parts import MemoryParts
from agentcore.memory.ranking.candidates import CandidateLink
from agentcore.memory.ranking.opposition import CONTRADICTED, contradicted
from agentcore.memory.retrieval import Ranked, Ranking
from agentcore.memory.scoring import is_person
from agentcore.telemetry import Steps


@dataclass(frozen=True)
class Notes:
    steps: Steps
    degraded: list[str] = field(default_factory=list)
    searched: JsonObject = field(default_factory=dict)


# Limits of a reranker's input: together they fit a model of 512 tokens; servers reject longer input.
TEXT_CHARS = 1_600
QUERY_CHARS = 400
RERANKER = "reranker"
BEYOND_K = "beyond_k"


def depth(parts: MemoryParts, k: int) -> int:
    """Returns the number of hits to rank: a reranker needs more candidates."""
    return k if parts.reranker is None else max(k, parts.reranker.candidates)


async def reranked(
    parts: MemoryParts,
    agent_id: str,
    query: str,
    ranking: Ranking,
    notes: Notes,
    passages: Mapping[UUID, tuple[int, int]],
) -> Ranking:
    """Returns the top hits in the reranker's order; `notes` record how many it scored.

    `passages`: offsets of the match in long memories; the reranker reads from there.
    """
    reranker = parts.reranker
    if reranker is None:
        return ranking
    leading = ranking.ranked[: reranker.candidates]
    relevances: list[float] = []
    if len(leading) > 1:
        starts = {each.memory_id: passages.get(each.memory_id, (0, 0))[0] for each in leading}
        texts = await _texts(parts, agent_id, starts, notes)
        try:
            with notes.steps("rerank"):
                # The question is at the end, after the turns that complete it.
                relevances = await reranker.relevances(query[-QUERY_CHARS:], texts)
        except DependencyUnavailable as failure:
            notes.degraded.append(f"reranker: skipped, {failure.message}")
    notes.searched["reranked"] = len(relevances)
    return reordered(ranking, relevances)


async def _texts(parts: MemoryParts, agent_id: str, starts: Mapping[UUID, int], notes: Notes) -> list[str]:
    with notes.steps("fetch"):
        rows = await parts.storage.contents(agent_id, starts, TEXT_CHARS)
    said = {row["memory_id"]: f"{row['speaker']}: " * is_person(row["speaker"]) + row["content"] for row in rows}
    return [said.get(memory_id, "") for memory_id in starts]


def reordered(ranking: Ranking, relevances: Sequence[float]) -> Ranking:
    """Sorts the top hits by relevance. Each takes the score of its new position; the term `reranker` records the
    difference."""
    leading = ranking.ranked[: len(relevances)]
    order = sorted(range(len(leading)), key=lambda place: (-relevances[place], place))
    moved = [_moved(leading[old], leading[new].score, RERANKER, relevances[old]) for new, old in enumerate(order)]
    return replace(ranking, ranked=[*moved, *ranking.ranked[len(leading) :]])


def _moved(ranked: Ranked, score: float, name: str, value: float) -> Ranked:
    term = ScoreTerm(value=value, weight=1.0, contribution=score - ranked.score)
    return replace(ranked, score=score, terms={**ranked.terms, name: term})


def shortened(ranking: Ranking, k: int) -> Ranking:
    """Returns the top `k`, and counts the rest as dropped."""
    beyond = len(ranking.ranked) - k
    if beyond <= 0:
        return ranking
    counts = {each.reason: each.count for each in ranking.dropped}
    counts[BEYOND_K] = counts.get(BEYOND_K, 0) + beyond
    dropped = [Dropped(reason=reason, count=count) for reason, count in sorted(counts.items())]
    return replace(ranking, ranked=ranking.ranked[:k], dropped=dropped)


LINKED = "linked"
# The maximum number of linked memories moved up.
MOST_LINKED = 3
# Target positions, from 0, of memories linked to the best hit, and to the second and third.
BEHIND_BEST, BEHIND_NEXT = 3, 5
# Below this share of the best score, memories linked to the best hit are ranked first.
CLOSE_SHARE = 0.75


def with_linked(ranking: Ranking, k: int) -> Ranking:
    """Moves memories with strong links to the first three hits up to follow these, also those that were cut off.

    Each takes the score of the memory before it.
    """
    ranked = [*ranking.ranked]
    others = {each.memory_id: each for each in (*ranked, *ranking.linkable)}
    close = sum(each.score >= CLOSE_SHARE * ranked[0].score for each in ranked[:BEHIND_BEST])
    targets = [close, BEHIND_NEXT, BEHIND_NEXT]
    moved: set[UUID] = set()
    for seed, target in zip(ranking.ranked, targets, strict=False):
        for link, other in _ends(seed.memory_id, ranking.links, others):
            place = min(target + len(moved), len(ranked))
            ahead = {each.memory_id for each in ranked[: max(place, BEHIND_BEST)]}
            if len(moved) == MOST_LINKED or other.memory_id in moved | ahead:
                continue
            moved.add(other.memory_id)
            ranked = [each for each in ranked if each is not other]
            behind = _moved(other, ranked[place - 1].score, LINKED, link.weight)
            ranked.insert(place, replace(behind, linked_to=seed.memory_id))
    brought = sum(each.memory_id in moved for each in ranking.linkable)
    return shortened(replace(ranking, ranked=ranked, dropped=_uncounted(ranking.dropped, brought)), k)


def _ends(
    seed: UUID, links: Sequence[CandidateLink], others: Mapping[UUID, Ranked]
) -> Iterator[tuple[CandidateLink, Ranked]]:
    """Yields the memories linked to the seed, by descending weight and score."""
    found = []
    for link in links:
        if seed in (link.source_id, link.target_id):
            end = link.target_id if link.source_id == seed else link.source_id
            other = others.get(end)
            # An outdated memory stays below the one that changed it.
            if other is not None and end != seed and other.outdated_by is None:
                found.append((link, other))
    yield from sorted(found, key=lambda each: (-each[0].weight, -each[1].score, each[1].memory_id))


def _uncounted(dropped: Sequence[Dropped], count: int) -> list[Dropped]:
    """Subtracts memories that are ranked again."""
    cut = {"beyond_k", "far_below_the_best"}
    left = [each.model_copy(update={"count": each.count - count}) if each.reason in cut else each for each in dropped]
    return [each for each in left if each.count]


# Hits ranked beyond `k`: they replace contradicted ones.
SPARE = 5

Read = Callable[[Sequence[Ranked]], Awaitable[list[MemorySummary]]]


async def settled(
    parts: MemoryParts, agent_id: str, ranking: Ranking, k: int, read: Read
) -> tuple[list[MemorySummary], Ranking]:
    """Returns the top `k` without contradicted memories, and their ranking."""
    memories = await read(ranking.ranked[:k])
    if contradicted(agent_id, memories):
        memories += await read(ranking.ranked[k:])
        against = await _upheld(parts, agent_id, contradicted(agent_id, memories))
        ranking = _without_contradicted(ranking, against)
        memories = [
            each.model_copy(update={"instead_of": [old for old, new in against.items() if new == each.memory_id]})
            for each in memories
            if each.memory_id not in against
        ][:k]
    return memories, shortened(ranking, k)


async def _upheld(parts: MemoryParts, agent_id: str, against: dict[UUID, UUID]) -> dict[UUID, UUID]:
    """Drops contradictions of memories that are pinned or were changed after the newer one was stored, and by memories
    stored with `supersede: false`."""
    records = await parts.storage.get(agent_id, [*against, *against.values()])
    return {
        old: new
        for old, new in against.items()
        if old in records
        and new in records
        and not records[old].pinned
        and records[new].provenance.get("supersede") is not False
        and not (records[old].version > 1 and records[old].updated_at > records[new].created_at)
    }


def _without_contradicted(ranking: Ranking, against: dict[UUID, UUID]) -> Ranking:
    if not against:
        return ranking
    left = [each for each in ranking.ranked if each.memory_id not in against]
    dropped = [*ranking.dropped, Dropped(reason=CONTRADICTED, count=len(ranking.ranked) - len(left))]
    return replace(ranking, ranked=left, dropped=sorted(dropped, key=lambda each: each.reason))
