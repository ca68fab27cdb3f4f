"""The benchmarks' measures against manual calculation."""

from __future__ import annotations

import math

import pytest

from benchmarks.measures import interval, means, measures, paired_interval, recall

RANKED, RELEVANT = ["a", "x", "b", "b", "y", "z", "c"], ["a", "b", "c", "d"]


def test_each_measure_of_one_ranking() -> None:
    found = measures(RANKED, RELEVANT)
    assert found["R@5"] == 0.5
    assert found["R@10"] == 0.75
    assert found["hit@3"] == 1.0
    assert found["P@5"] == 0.4
    assert found["P@5 of best"] == pytest.approx(0.5)
    assert found["MRR"] == 1.0
    ideal = sum(1 / math.log2(place + 1) for place in range(1, 5))
    gained = 1 + 1 / math.log2(4) + 1 / math.log2(8)
    assert found["nDCG@10"] == pytest.approx(gained / ideal)


def test_precision_divides_by_five_though_fewer_came_back() -> None:
    assert measures(["a"], ["a"])["P@5"] == 0.2
    assert measures(["a"], ["a"])["P@5 of best"] == 1.0


def test_nothing_found_is_nothing() -> None:
    assert set(measures([], ["a"]).values()) == {0.0}


def test_a_question_without_evidence_has_no_recall() -> None:
    with pytest.raises(ValueError, match="nothing is relevant"):
        recall(["a"], [], 5)


def test_means_and_intervals_are_in_per_cent_and_repeatable() -> None:
    assert means([{"R@5": 0.5}, {"R@5": 1.0}]) == {"R@5": 75.0}
    low, high = interval([0.0, 1.0] * 50)
    assert 35 < low < 50 < high < 65
    assert interval([0.0, 1.0] * 50) == (low, high)
    assert paired_interval([0.2, 0.4], [0.3, 0.5]) == (10.0, 10.0)
