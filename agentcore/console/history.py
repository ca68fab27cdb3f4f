"""Samples of the metrics of the last hour, for the plots of the overview.

The first process of `agentcore serve` writes them to Redis; all processes read them there. Without Redis: none.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from redis.asyncio import Redis
from redis.exceptions import RedisError

SAMPLE_SECONDS = 10.0
MAX_SAMPLES = 360
KEPT_SECONDS = 2 * 3_600
METHODS = ("memory.store", "memory.store_batch", "memory.add_session", "memory.retrieve", "memory.get_context")
TIMED = ("memory.store", "memory.retrieve", "memory.get_context")
# Key in a sample: metric and its label.
GAUGES = {
    "queues": ("agentcore_queue_length", "queue"),
    "circuits": ("agentcore_circuit_open", "dependency"),
    "jobs": ("agentcore_jobs", "state"),
    "tables": ("agentcore_table_bytes", "table"),
    "recall": ("agentcore_index_recall", "index"),
}

Sample = Mapping[str, Any]


class MetricHistory:
    """A ring buffer of samples in Redis; `name` separates the services that share it."""

    def __init__(self, redis: Redis | None, name: str) -> None:
        self._redis = redis
        self._key = f"agentcore:console:{name}"

    async def record(self, read_metrics: Callable[[], Awaitable[bytes]], stopping: asyncio.Event) -> None:
        """Takes a sample every 10 seconds until `stopping` is set."""
        while self._redis is not None and not stopping.is_set():
            sample = json.dumps(await asyncio.to_thread(sample_of, (await read_metrics()).decode()))
            with suppress(RedisError, OSError):  # readiness reports it
                async with self._redis.pipeline() as commands:
                    commands.rpush(self._key, sample)
                    commands.ltrim(self._key, -MAX_SAMPLES, -1)
                    commands.expire(self._key, KEPT_SECONDS)
                    await commands.execute()
            try:
                await asyncio.wait_for(stopping.wait(), SAMPLE_SECONDS)
            except TimeoutError:
                continue

    async def samples(self) -> list[Sample]:
        """Returns the samples, oldest first; none while Redis does not answer."""
        if self._redis is None:
            return []
        try:
            return [json.loads(each) for each in await self._redis.lrange(self._key, 0, -1)]
        except (RedisError, OSError):
            return []


def sample_of(exposition: str) -> Sample:
    """Returns the figures of a Prometheus exposition that the overview plots; counters since the start."""
    families = {family.name: family.samples for family in text_string_to_metric_families(exposition)}
    requests = _counted(families, "agentcore_requests")
    bounds = [each for each in families.get("agentcore_request_seconds", ()) if each.name.endswith("_bucket")]
    return {
        "at": time.time(),
        "calls": {name: _sum(_of_method(requests, name)) for name in METHODS},
        "failures": _sum([each for each in requests if each.labels["outcome"] != "ok"]),
        "abstentions": _sum(_counted(families, "agentcore_abstentions")),
        "searches": _sum(_counted(families, "agentcore_searches")),
        "buckets": {name: [(each.labels["le"], each.value) for each in _of_method(bounds, name)] for name in TIMED},
        **{name: _by_label(families.get(metric, ()), label) for name, (metric, label) in GAUGES.items()},
    }


def _by_label(samples: Sequence[Any], label: str) -> dict[str, float]:
    return {each.labels[label]: each.value for each in samples}


def _of_method(samples: Sequence[Any], method: str) -> list[Any]:
    return [each for each in samples if each.labels["method"] == method]


def _sum(samples: Sequence[Any]) -> float:
    return sum(float(each.value) for each in samples)


def _counted(families: Mapping[str, Sequence[Any]], counter: str) -> list[Any]:
    return [each for each in families.get(counter, ()) if each.name.endswith("_total")]


def series(samples: Sequence[Sample]) -> dict[str, list[float | None]]:
    """Returns for each pair of samples: the time (s), calls per minute, percentiles (ms), and abstentions (per cent).

    Percentiles and abstentions are None without calls; rates are None if a counter fell (a process restarted).
    """
    found: dict[str, list[float | None]] = {"at": []}
    for before, after in pairwise(samples):
        minutes = (after["at"] - before["at"]) / 60
        found["at"].append(after["at"])
        values: dict[str, float | None] = {}
        for method in METHODS:
            values[f"per_minute:{method}"] = _increase(before["calls"].get(method), after["calls"].get(method), minutes)
        values["per_minute:failures"] = _increase(before["failures"], after["failures"], minutes)
        for method in TIMED:
            within = _within(before["buckets"].get(method, ()), after["buckets"].get(method, ()))
            for quantile in (0.5, 0.95):
                values[f"p{quantile * 100:.0f}:{method}"] = percentile_ms(within, quantile)
        searched = _increase(before["searches"], after["searches"], 1.0)
        empty = _increase(before["abstentions"], after["abstentions"], 1.0)
        values["abstained"] = 100 * empty / searched if searched and empty is not None else None
        for queue in after["queues"]:
            values[f"queue:{queue}"] = after["queues"][queue]
        for name, value in values.items():
            found.setdefault(name, [None] * (len(found["at"]) - 1)).append(value)
        for column in found.values():
            column.extend([None] * (len(found["at"]) - len(column)))
    return found


def _increase(before: float | None, after: float | None, minutes: float = 1.0) -> float | None:
    grown = (after or 0.0) - (before or 0.0)
    return grown / minutes if grown >= 0 and minutes > 0 else None


def _within(before: Sequence[tuple[str, float]], after: Sequence[tuple[str, float]]) -> list[tuple[float, float]]:
    """Returns the calls between two samples at most as long as each bound (s)."""
    earlier = dict(before)
    return [(float(bound), count - earlier.get(bound, 0.0)) for bound, count in after]


def percentile_ms(buckets: Sequence[tuple[float, float]], quantile: float) -> float | None:
    """Interpolates linearly within the bucket, as Prometheus' histogram_quantile does; None without calls.

    `buckets`: upper bounds (s), ascending up to infinity, with cumulative counts.
    """
    count = buckets[-1][1] if buckets else 0.0
    if count <= 0:
        return None
    wanted, low, below = quantile * count, 0.0, 0.0
    for bound, at_most in buckets:
        if at_most >= wanted:
            if bound == float("inf"):
                return low * 1_000
            return (low + (bound - low) * (wanted - below) / (at_most - below or 1.0)) * 1_000
        low, below = bound, at_most
    return None
