"""Decay, frequency and retention: values, bounds and directions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentcore.memory.scoring import frequency, half_life_decay, positive_cosine, recency, retention

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_a_half_life_halves() -> None:
    assert half_life_decay(0, 30) == 1.0
    assert half_life_decay(30 * 86_400, 30) == pytest.approx(0.5)
    assert half_life_decay(60 * 86_400, 30) == pytest.approx(0.25)


def test_a_future_time_counts_as_now() -> None:
    assert recency(NOW + timedelta(days=3), NOW, 30) == 1.0


def test_frequency_grows_with_use_and_is_full_at_a_hundred() -> None:
    values = [frequency(count, NOW, NOW, 30) for count in (0, 1, 10, 100, 10_000)]
    assert values[0] == 0.0
    assert values == sorted(values)
    assert values[3] == values[4] == 1.0


def test_frequency_fades_with_time_since_the_last_access() -> None:
    assert frequency(100, NOW - timedelta(days=30), NOW, 30) == pytest.approx(0.5)
    assert frequency(100, None, NOW, 30) == 0.0


@pytest.mark.parametrize(("cosine", "value"), [(None, 0.0), (-0.4, 0.0), (0.3, 0.3), (1.0000001, 1.0)])
def test_a_cosine_becomes_a_share(cosine: float | None, value: float) -> None:
    assert positive_cosine(cosine) == value


def test_retention_is_the_weighted_sum_of_its_three_parts() -> None:
    assert retention(1.0, 1.0, 1.0) == pytest.approx(1.0)
    assert retention(0.5, 0.0, 1.0) == pytest.approx(0.5)
