"""A newer memory that changes an older one ranks above it; the older one is not removed."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import Candidate, CandidateLink, MatchScale, Question
from agentcore.memory.retrieval import FRESHNESS_GAIN, FRESHNESS_LOSS, LIFT, Ranking, rank, weighed_changes
from agentcore.memory.scoring import RetrievalWeights

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SCALE = MatchScale(words=10.0, query_words=10.0)


def candidate(number: int, similarity: float) -> Candidate:
    text = (str(number).encode(), None, None, None)
    day = NOW - timedelta(days=1)
    return Candidate(UUID(int=number), day, 0.5, similarity, 0.0, None, 0, None, text)


def ranking(changes: list[CandidateLink], cut_offs: CutOffs | None = None) -> Ranking:
    candidates = [candidate(1, 0.9), candidate(2, 0.8), candidate(3, 0.7), candidate(4, 0.6)]
    question = Question(now=NOW, scale=SCALE, changes=changes)
    return rank(candidates, [], [], RetrievalWeights(), question, 10, cut_offs or CutOffs())


def change(new: int, old: int, probability: float) -> CandidateLink:
    return CandidateLink(UUID(int=new), UUID(int=old), probability)


def numbers(found: Ranking) -> list[int]:
    return [each.memory_id.int for each in found.ranked]


def test_the_newer_rises_and_the_older_falls() -> None:
    without, found = ranking([]), ranking([change(4, 1, 0.5)])
    before = {each.memory_id: each.score for each in without.ranked}
    after = {each.memory_id: each.score for each in found.ranked}
    new, old = UUID(int=4), UUID(int=1)
    assert numbers(found)[0] == 4
    nearer = before[new] + LIFT * math.sqrt(0.5) * (before[old] - before[new])
    assert after[new] == pytest.approx(nearer * (1 + FRESHNESS_GAIN * math.sqrt(0.5)))
    assert after[old] == pytest.approx(before[old] - FRESHNESS_LOSS * math.sqrt(0.5) * nearer)
    assert found.ranked[numbers(found).index(1)].outdated_by == new


def test_a_change_of_an_irrelevant_memory_moves_nothing_up() -> None:
    without, found = ranking([]), ranking([change(3, 4, 0.9)])
    assert numbers(found) == numbers(without)
    assert found.ranked[2].score == pytest.approx(without.ranked[2].score)
    assert found.ranked[3].score < without.ranked[3].score


def test_of_several_messages_that_change_one_the_most_probable_counts() -> None:
    once, twice = ranking([change(4, 1, 0.9)]), ranking([change(4, 1, 0.9), change(3, 1, 0.1)])
    losses = [next(each.score for each in found.ranked if each.memory_id.int == 1) for found in (once, twice)]
    assert losses[0] == pytest.approx(losses[1])


def test_a_message_that_changes_several_shares_its_probability() -> None:
    changes = [CandidateLink(UUID(int=4), UUID(int=old), weight) for old, weight in ((1, 0.6), (2, 0.3), (9, 0.9))]
    places = {UUID(int=number): number for number in (1, 2, 4)}
    made = weighed_changes(changes, places, factor=0.5)
    assert [(each.new, each.old) for each in made] == [(4, 1), (4, 2)]
    weights = [0.5 * 0.6 / math.sqrt(0.9), 0.5 * 0.3 / math.sqrt(0.9)]
    assert [each.weight for each in made] == pytest.approx(weights)


def test_an_improbable_change_is_not_reported() -> None:
    assert {each.outdated_by for each in ranking([change(4, 1, 0.39)]).ranked} == {None}


def test_a_change_that_ranks_below_is_not_reported() -> None:
    found = ranking([change(4, 1, 0.5)])
    assert all(each.outdated_by is None for each in found.ranked[: numbers(found).index(4)])


@pytest.mark.parametrize("probability", [0.3, 0.6, 0.95])
def test_freshness_leaves_nothing_out(probability: float) -> None:
    cut_offs = CutOffs(least_share=0.6, widest_gap=0.2)
    assert {*numbers(ranking([], cut_offs))} == {*numbers(ranking([change(4, 1, probability)], cut_offs))}
