"""Samples of the metrics of the last hour, for the plots of the overview.

The first process of `agentcore serve` writes them to Redis; all processes read them there. Without Redis: none.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agentcore.telemetry import describe_failure

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

logger = logging.getLogger(__name__)


class MetricHistory:
    """A ring buffer of samples in Redis; `name` separates the services that share it."""

    def __init__(self, redis: Redis | None, name: str) -> None:
        self._redis = redis
        self._key = f"agentcore:console:{name}"

    @asynccontextmanager
    async def recording(self, read_metrics: Callable[[], Awaitable[bytes]]) -> AsyncIterator[None]:
        """Takes a sample every 10 seconds while the block runs."""
        recorder = asyncio.create_task(self._record(read_metrics))
        try:
            yield
        finally:
            recorder.cancel()
            await asyncio.gather(recorder, return_exceptions=True)

    async def _record(self, read_metrics: Callable[[], Awaitable[bytes]]) -> None:
        while self._redis is not None:
            try:
                sample = json.dumps(await asyncio.to_thread(sample_of, (await read_metrics()).decode()))
                async with self._redis.pipeline() as commands:
                    commands.rpush(self._key, sample)
                    commands.ltrim(self._key, -MAX_SAMPLES, -1)
                    commands.expire(self._key, KEPT_SECONDS)
                    await commands.execute()
            except (RedisError, OSError, ValueError) as failure:
                logger.debug("no sample of the metrics", extra={"failure": describe_failure(failure)})
            await asyncio.sleep(SAMPLE_SECONDS)

    async def series(self) -> dict[str, list[float | None]]:
        return await asyncio.to_thread(
            lambda texts: series_of([json.loads(each) for each in texts]), await self._read(0)
        )

    async def newest(self) -> Sample | None:
        """Returns the newest sample; None without Redis, or while it does not answer."""
        texts = await self._read(-1)
        return json.loads(texts[0]) if texts else None

    async def _read(self, start: int) -> Sequence[bytes | str]:
        if self._redis is None:
            return []
        try:
            return await self._redis.lrange(self._key, start, -1)
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


def series_of(samples: Sequence[Sample]) -> dict[str, list[float | None]]:
    """Returns for each pair of samples: the time (s), calls per minute, percentiles (ms), and abstentions (per cent).

    Percentiles and abstentions are None without calls, and all but the time where a process restarted.
    """
    rows: list[dict[str, float | None]] = []
    was_reset = False
    for before, after in pairwise(samples):
        is_reset = _is_reset(before, after)
        # The sample after a reset counts again what a process that did not answer had counted before.
        rows.append({"at": after["at"]} if is_reset or was_reset else _between(before, after))
        was_reset = is_reset
    names = {name: None for row in rows for name in row}
    return {name: [row.get(name) for row in rows] for name in {"at": None, **names}}


def _is_reset(before: Sample, after: Sample) -> bool:
    """Whether a counter fell: a process restarted, or did not answer."""
    counters = ("failures", "searches", "abstentions")
    fell = [after[name] < before[name] for name in counters]
    return any([*fell, *(after["calls"].get(name, 0.0) < count for name, count in before["calls"].items())])


def _between(before: Sample, after: Sample) -> dict[str, float | None]:
    minutes = max(after["at"] - before["at"], 1.0) / 60
    values: dict[str, float | None] = {"at": after["at"]}
    for method in METHODS:
        values[f"per_minute:{method}"] = (after["calls"].get(method, 0.0) - before["calls"].get(method, 0.0)) / minutes
    values["per_minute:failures"] = (after["failures"] - before["failures"]) / minutes
    for method in TIMED:
        within = _within(before["buckets"].get(method, ()), after["buckets"].get(method, ()))
        for quantile in (0.5, 0.95):
            values[f"p{quantile * 100:.0f}:{method}"] = percentile_ms(within, quantile)
    searches, empty = after["searches"] - before["searches"], after["abstentions"] - before["abstentions"]
    values["abstained"] = 100 * empty / searches if searches else None
    return values | {f"queue:{queue}": length for queue, length in after["queues"].items()}


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
