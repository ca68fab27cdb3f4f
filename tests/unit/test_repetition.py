"""Near-duplicates of a better memory are demoted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.ranking import candidates
from agentcore.memory.ranking.candidates import LEAST_LIKENESS, left


def likenesses(scores: list[float], term_keys: list[list[int]]) -> list[float]:
    return list(candidates.likenesses(np.array(scores), term_keys).tolist())


LOG, LIKE_IT, OTHER = [1, 2, 3, 4], [1, 2, 3, 5], [7, 8, 9]


def test_what_repeats_a_better_one_is_known_by_how_much() -> None:
    assert likenesses([0.9, 0.8, 0.7], [LOG, LIKE_IT, OTHER]) == [0.0, pytest.approx(3 / 5), 0.0]
    assert likenesses([0.9, 0.8], [LOG, [*LOG, *LOG]]) == [0.0, 1.0]


def test_half_in_common_is_the_least_that_counts() -> None:
    assert likenesses([0.9, 0.8], [[1, 2, 3], [1, 2, 9, 8]]) == [0.0, 0.0]


def test_the_likest_better_one_counts() -> None:
    assert likenesses([0.9, 0.8, 0.2], [LOG, OTHER, LOG])[2] == 1.0
    assert likenesses([0.9, 0.85, 0.2], [LIKE_IT, LOG, LOG])[2] == 1.0


def test_one_that_stepped_back_pushes_nobody_who_now_stands_before_it() -> None:
    twin_of_twin = [2, 3, 4, 5, 6]
    found = likenesses([0.9, 0.8, 0.75], [[1, 2, 3, 4], [1, 2, 3, 4, 5], twin_of_twin])
    assert found[1] == pytest.approx(4 / 5)
    assert found[2] == 0.0


def test_memories_without_terms_repeat_nothing() -> None:
    assert likenesses([0.9, 0.8], [[], []]) == [0.0, 0.0]
    assert likenesses([], []) == []


@given(st.lists(st.tuples(st.floats(0, 1), st.lists(st.integers(0, 6), max_size=6)), max_size=30))
def test_a_likeness_is_a_share_and_no_score_rises(found: list[tuple[float, list[int]]]) -> None:
    found.sort(key=lambda each: -each[0])
    given_ = likenesses([score for score, _ in found], [keys for _, keys in found])
    assert all(each == 0 or LEAST_LIKENESS < each <= 1 for each in given_)
    kept = left(np.array([score for score, _ in found]), np.array(given_))
    assert all(0 <= after <= before for (before, _), after in zip(found, kept.tolist(), strict=True))
