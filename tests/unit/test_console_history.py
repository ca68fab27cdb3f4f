"""Samples of the metrics, and the lines that the overview plots from them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcore.console.history import percentile_ms, sample_of, series_of
from agentcore.telemetry import Metrics


def sampled(metrics: Metrics, at: float) -> dict[str, Any]:
    return {**json.loads(json.dumps(sample_of(metrics.exposition().decode()))), "at": at}


def test_lines_are_differences_of_two_samples() -> None:
    metrics = Metrics()
    metrics.register_metric("queue_length", "Waiting.", "queue", lambda: {"calls": 3.0})
    metrics.call_ended("memory.retrieve", "ok", 0.5)
    samples = [sampled(metrics, 100.0)]
    for seconds in (0.011, 0.012, 0.013, 0.1):
        metrics.call_ended("memory.retrieve", "ok", seconds)
        metrics.searched("indexed")
    metrics.call_ended("memory.store", "failed", 0.1)
    metrics.abstained()
    samples.append(sampled(metrics, 130.0))

    lines = series_of(samples)
    assert lines["at"] == [130.0]
    assert lines["per_minute:memory.retrieve"] == [8.0]
    assert lines["per_minute:memory.store"] == [2.0]
    assert lines["per_minute:failures"] == [2.0]
    # Of 4 calls, the bound .02 s holds 3, from .01 s on: the second ends two thirds into it.
    assert lines["p50:memory.retrieve"] == [pytest.approx(10 + 10 * 2 / 3)]
    assert lines["p95:memory.retrieve"] == [pytest.approx(80 + 70 * 0.8)]
    assert lines["abstained"] == [25.0]
    assert lines["queue:calls"] == [3.0]


def test_nothing_is_plotted_where_a_process_restarted_or_nothing_was_called() -> None:
    busy, restarted = Metrics(), Metrics()
    busy.call_ended("memory.retrieve", "ok", 0.01)
    samples = [sampled(busy, 0.0), sampled(restarted, 10.0), sampled(busy, 20.0), sampled(busy, 30.0)]
    lines = series_of(samples)
    # The process did not answer for the second sample: what it had counted is no traffic of the third.
    assert lines["per_minute:memory.retrieve"] == [None, None, 0.0]
    assert lines["p50:memory.retrieve"] == [None, None, None]
    assert lines["abstained"] == [None, None, None]
    assert {len(each) for each in lines.values()} == {3}
    assert series_of([]) == {"at": []}


def test_a_call_longer_than_the_last_bound_counts_as_the_last_bound() -> None:
    assert percentile_ms([(1.0, 0.0), (10.0, 0.0), (float("inf"), 5.0)], 0.5) == 10_000
    assert percentile_ms([], 0.5) is None
