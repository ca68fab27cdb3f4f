"""Memories linked to the best hits move up; without links the ranking is unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import Candidate, CandidateLink, MatchScale, Question
from agentcore.memory.recall.reranking import LINKED, MOST_LINKED, with_linked
from agentcore.memory.retrieval import Ranking, rank
from agentcore.memory.scoring import RetrievalWeights

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SCALE = MatchScale(words=10.0, query_words=10.0)
# Close hits, best first: none is far below the best.
CLOSE = tuple(0.9 - 0.03 * number for number in range(10))


def candidate(number: int, similarity: float) -> Candidate:
    text = (str(number).encode(), None, None, None)
    day = NOW - timedelta(days=1)
    return Candidate(UUID(int=number), day, 0.5, similarity, 0.0, None, 0, None, text)


def ranking(
    links: Sequence[CandidateLink], similarities: Sequence[float] = CLOSE, k: int = 5, cut_offs: CutOffs | None = None
) -> Ranking:
    candidates = [candidate(number, each) for number, each in enumerate(similarities, 1)]
    question = Question(now=NOW, scale=SCALE)
    found = rank(candidates, links, [], RetrievalWeights(), question, k, cut_offs or CutOffs())
    return with_linked(found, k)


def link(source: int, target: int, weight: float = 1.0, *, by_caller: bool = True) -> CandidateLink:
    return CandidateLink(UUID(int=source), UUID(int=target), weight, by_caller)


def numbers(found: Ranking) -> list[int]:
    return [each.memory_id.int for each in found.ranked]


@pytest.mark.parametrize("strong", [link(1, 10), link(10, 1), link(1, 10, 0.9)])
def test_what_is_linked_to_the_best_hit_comes_behind_three_hits(strong: CandidateLink) -> None:
    found = ranking([strong])
    assert numbers(found) == [1, 2, 3, 10, 4]
    moved = found.ranked[3]
    assert moved.linked_to == UUID(int=1)
    assert moved.terms[LINKED].value == strong.weight
    assert moved.score == found.ranked[2].score
    assert moved.score == pytest.approx(sum(each.contribution for each in moved.terms.values()))
    assert [(each.reason, each.count) for each in found.dropped] == [("beyond_k", 5)]


@pytest.mark.parametrize("weak", [link(1, 10, 0.8), link(1, 10, by_caller=False), link(5, 10), link(1, 99)])
def test_other_links_move_nothing(weak: CandidateLink) -> None:
    assert numbers(ranking([weak])) == [1, 2, 3, 4, 5]


def test_hits_far_below_the_best_come_behind_what_is_linked_to_it() -> None:
    assert numbers(ranking([link(1, 6)], [0.9, 0.3, 0.29, 0.28, 0.27, 0.1])) == [1, 6, 2, 3, 4]


def test_what_is_linked_to_the_next_hits_comes_behind_five() -> None:
    assert numbers(ranking([link(2, 9), link(3, 10)], k=8)) == [1, 2, 3, 4, 5, 9, 10, 6]
    assert numbers(ranking([link(2, 9)])) == [1, 2, 3, 4, 5]


def test_no_more_than_a_few_move_those_of_the_best_hit_first() -> None:
    links = [link(2, 6), *(link(1, number) for number in (7, 8, 9, 10))]
    found = ranking(links, k=10)
    assert sum(each.linked_to is not None for each in found.ranked) == MOST_LINKED
    assert numbers(found)[3:6] == [7, 8, 9]


def test_a_hit_among_the_first_keeps_its_place() -> None:
    found = ranking([link(1, 3), link(1, 2)])
    assert numbers(found) == [1, 2, 3, 4, 5]
    assert all(each.linked_to is None for each in found.ranked)


def test_a_linked_memory_far_below_the_best_is_not_cut_off() -> None:
    cut = CutOffs(least_share=0.9)
    scores = [0.9, 0.1, 0.1, 0.1]
    assert numbers(ranking([], scores, cut_offs=cut)) == [1]
    found = ranking([link(4, 1)], scores, cut_offs=cut)
    assert numbers(found) == [1, 4]
    assert [(each.reason, each.count) for each in found.dropped] == [("far_below_the_best", 2)]


def test_where_a_search_abstains_no_link_brings_anything() -> None:
    found = ranking([link(1, 2)], cut_offs=CutOffs(min_fit=1.0))
    assert numbers(found) == []
    assert [each.reason for each in found.dropped] == ["nothing_fits"]
