"""Decay, frequency and retention: values, bounds and directions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from agentcore.memory.scoring import (
    frequencies,
    frequency,
    half_life_decay,
    half_life_decays,
    recency,
    remembered,
    retention,
    shares_of,
    spread_as_usual,
)

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_a_half_life_halves() -> None:
    assert half_life_decay(0, 30) == 1.0
    assert half_life_decay(30 * 86_400, 30) == pytest.approx(0.5)
    assert half_life_decay(60 * 86_400, 30) == pytest.approx(0.25)


def test_a_future_time_counts_as_now() -> None:
    assert recency(NOW + timedelta(days=3), NOW, 30) == 1.0


@pytest.mark.shows("FR-2.4")
def test_frequency_grows_with_use_and_is_full_at_a_hundred() -> None:
    values = [frequency(count, NOW, NOW, 30) for count in (0, 1, 10, 100, 10_000)]
    assert values[0] == 0.0
    assert values == sorted(values)
    assert values[3] == values[4] == 1.0


def test_frequency_fades_with_time_since_the_last_access() -> None:
    assert frequency(100, NOW - timedelta(days=30), NOW, 30) == pytest.approx(0.5)
    assert frequency(100, None, NOW, 30) == 0.0


def test_many_decay_and_count_as_one_does() -> None:
    ages = [0.0, 86_400.0 * 30, 86_400.0 * 400, -5.0]
    decays = half_life_decays(np.array([*ages, np.inf]), 30)
    assert decays.tolist() == pytest.approx([*(half_life_decay(each, 30) for each in ages), 0.0])
    counts = np.array([0, 1, 40, 1_000, 7])
    moments = [NOW, NOW - timedelta(days=3), NOW - timedelta(days=90), NOW, None]
    since = np.array([np.inf if each is None else (NOW - each).total_seconds() for each in moments])
    one_by_one = [frequency(int(count), each, NOW, 30) for count, each in zip(counts, moments, strict=True)]
    assert frequencies(counts, since, 30).tolist() == pytest.approx(one_by_one)


def test_cosines_that_lie_close_are_drawn_apart_and_those_that_lie_wide_together() -> None:
    close, wide = np.linspace(0.2, 0.3, 50), np.linspace(-0.1, 0.9, 50)
    for cosines, moved in ((close, spread_as_usual(close)), (wide, spread_as_usual(wide))):
        assert abs(moved.std() - 0.12) < abs(cosines.std() - 0.12)
        assert moved.mean() == pytest.approx(cosines.mean())
        assert np.argsort(moved).tolist() == np.argsort(cosines).tolist()


def test_where_nothing_is_alike_the_best_of_nothing_comes_to_look_alike_no_more() -> None:
    nothing, something = np.linspace(0.0, 0.05, 100), np.append(np.linspace(0.0, 0.3, 99), 0.7)
    assert spread_as_usual(nothing).max() < 0.2
    assert spread_as_usual(something).max() > 0.5


def test_a_few_cosines_tell_little_of_how_widely_they_lie() -> None:
    assert spread_as_usual(np.array([0.4])).tolist() == pytest.approx([0.4])
    assert spread_as_usual(np.array([0.30, 0.31])).tolist() == pytest.approx([0.30, 0.31], abs=0.001)


def test_a_cosine_that_is_not_known_counts_nothing_and_moves_no_other() -> None:
    known = [0.1, 0.5, 0.6]
    assert spread_as_usual(np.array([*known, np.nan])).tolist() == [*spread_as_usual(np.array(known)).tolist(), 0.0]
    assert spread_as_usual(np.array([np.nan, np.nan])).tolist() == [0.0, 0.0]
    assert spread_as_usual(np.array([])).tolist() == []


def test_a_share_lies_between_nothing_and_all() -> None:
    assert shares_of(np.array([-0.4, 0.0, 0.5, 3.0]), 2.0).tolist() == [0.0, 0.0, 0.25, 1.0]
    assert shares_of(np.array([1.0, 2.0]), 0.0).tolist() == [0.0, 0.0]


@pytest.mark.shows("issue4-5-curve")
def test_what_is_remembered_fades_with_time_and_holds_with_use() -> None:
    # R = exp(-t / S): a day unused is exp(-1); nine uses make the stability ten days.
    assert remembered(NOW - timedelta(days=1), 0, NOW) == pytest.approx(-1)
    assert remembered(NOW - timedelta(days=1), 9, NOW) == pytest.approx(-0.1)
    assert remembered(NOW + timedelta(days=1), 0, NOW) == 0.0
    faded = [remembered(NOW - timedelta(days=days), 3, NOW) for days in range(0, 9_000, 1_000)]
    assert faded == sorted(faded, reverse=True)
    assert len(set(faded)) == len(faded)


def test_retention_is_the_weighted_sum_of_its_three_parts() -> None:
    assert retention(1.0, 1.0, 1.0) == pytest.approx(1.0)
    assert retention(0.5, 0.0, 1.0) == pytest.approx(0.5)
