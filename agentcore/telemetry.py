"""Telemetry for operators: metrics, trace ids, log format. Never a memory's text."""

from __future__ import annotations

import json
import logging
import math
import re
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Self

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from agentcore.errors import AgentCoreError

LOG_FIELDS = (
    "request_id",
    "trace_id",
    "agent_id",
    "method",
    "outcome",
    "duration_ms",
    "source_agent",
    "target_agent",
    "session_id",
    "conversation_id",
    "timestamp",
    "reference",
    "failure",
)
MAX_FIELD_CHARS = 255
# Resolution of times in receipts, too coarse to time a single lookup. Metrics are exact.
TIMING_STEP_MS = 5.0
CALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0, 10.0, 30.0)
STEP_BUCKETS = (0.0001, 0.00025, 0.0005, *CALL_BUCKETS)

# Returns one value per label, read at each scrape.
Reading = Callable[[], Mapping[str, float]]
Family = type[GaugeMetricFamily] | type[CounterMetricFamily]

logger = logging.getLogger(__name__)
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_PLAIN = re.compile(r"[\w.:/@+-]+", re.ASCII)


# --- metrics -----------------------------------------------------------------------------------------------


class _Watched(Collector):
    def __init__(self, name: str, description: str, label: str, read: Reading, kind: Family) -> None:
        self._name, self._description, self._label, self._read = name, description, label, read
        self._kind = kind

    def describe(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        yield self._kind(self._name, self._description, labels=[self._label])

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        family = self._kind(self._name, self._description, labels=[self._label])
        for value, figure in self._read().items():
            family.add_metric([value], figure)
        yield family


class Metrics:
    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._calls = Counter(
            "agentcore_requests", "Calls by method and outcome.", ("method", "outcome"), registry=registry
        )
        self._call_seconds = Histogram(
            "agentcore_request_seconds", "Duration of calls.", ("method",), buckets=CALL_BUCKETS, registry=registry
        )
        self._step_seconds = Histogram(
            "agentcore_step_seconds", "Duration of a call's steps.", ("step",), buckets=STEP_BUCKETS, registry=registry
        )
        self._cache = Counter(
            "agentcore_embedding_cache", "Embeddings asked of a cache.", ("place", "outcome"), registry=registry
        )
        self._jobs = Counter("agentcore_jobs_ended", "Runs of background jobs.", ("job", "outcome"), registry=registry)
        self._llm_calls = Counter(
            "agentcore_llm_requests", "Requests to language models by use.", ("work", "outcome"), registry=registry
        )
        self._llm_tokens = Counter(
            "agentcore_llm_tokens",
            "Tokens of language models by use, charged or reserved for good.",
            ("work", "direction"),
            registry=registry,
        )
        self._llm_cost = Counter(
            "agentcore_llm_cost",
            "Cost of language models by use, in the currency of the prices.",
            ("work",),
            registry=registry,
        )
        self._searches = Counter(
            "agentcore_searches", "Searches by how vectors were compared.", ("vectors",), registry=registry
        )
        self._abstentions = Counter(
            "agentcore_abstentions", "Searches that returned nothing, as no memory fits the query.", registry=registry
        )
        self._rate_limited = Counter(
            "agentcore_rate_limited", "Calls rejected by the rate limit or because of overload.", registry=registry
        )

    def call_ended(self, method: str, outcome: str, seconds: float) -> None:
        """`method` is bounded: a name of the method table, `unknown`, `invalid` or `none`."""
        self._calls.labels(method, outcome).inc()
        self._call_seconds.labels(method).observe(seconds)

    def step_ended(self, step: str, seconds: float) -> None:
        self._step_seconds.labels(step).observe(seconds)

    def embeddings_cached(self, place: Literal["process", "redis"], *, hits: int, misses: int) -> None:
        self._cache.labels(place, "hit").inc(hits)
        self._cache.labels(place, "miss").inc(misses)

    def searched(self, vectors: str) -> None:
        """`vectors` is exact, indexed, external, or words if only words were searched."""
        self._searches.labels(vectors).inc()

    def abstained(self) -> None:
        self._abstentions.inc()

    def rate_limited(self, calls: int) -> None:
        self._rate_limited.inc(calls)

    def job_ended(self, job: str, outcome: Literal["done", "failed", "stopped"]) -> None:
        """`job` is a registered name."""
        self._jobs.labels(job, outcome).inc()

    def llm_asked(self, work: str, outcome: str) -> None:
        """`outcome`: answered, failed, refused (over budget) or crowded (over the concurrency limit)."""
        self._llm_calls.labels(work, outcome).inc()

    def llm_spent(self, work: str, input_tokens: int, output_tokens: int, cost: float) -> None:
        self._llm_tokens.labels(work, "input").inc(input_tokens)
        self._llm_tokens.labels(work, "output").inc(output_tokens)
        self._llm_cost.labels(work).inc(cost)

    def register_metric(
        self, name: str, description: str, label: str, read: Reading, kind: Family = GaugeMetricFamily
    ) -> None:
        """Registers a metric `agentcore_<name>`, read at each scrape."""
        self._registry.register(_Watched(f"agentcore_{name}", description, label, read, kind))

    def exposition(self) -> bytes:
        return generate_latest(self._registry)


class Steps:
    """Times a call's steps: `with steps("embed"): ...`; a repeated step adds up."""

    def __init__(self, metrics: Metrics | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._metrics = metrics
        self._clock = clock
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = self._clock()
        try:
            yield
        finally:
            seconds = self._clock() - started
            self._seconds[step] = self._seconds.get(step, 0.0) + seconds
            if self._metrics is not None:
                self._metrics.step_ended(step, seconds)

    @property
    def timings_ms(self) -> dict[str, float]:
        """Rounded up to TIMING_STEP_MS, in the order in which the steps ended."""
        return {
            step: max(1, math.ceil(seconds * 1_000 / TIMING_STEP_MS)) * TIMING_STEP_MS
            for step, seconds in self._seconds.items()
        }


# --- traces ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trace:
    """Position of a request in a distributed trace, by W3C Trace Context."""

    trace_id: str
    span_id: str
    sampled: bool = False

    @classmethod
    def begin(cls) -> Self:
        return cls(secrets.token_hex(16), secrets.token_hex(8))

    @classmethod
    def parse(cls, traceparent: str) -> Self | None:
        """Returns None for an invalid header, which the recommendation says to ignore."""
        match = _TRACEPARENT.fullmatch(traceparent.strip())
        if match is None:
            return None
        version, trace_id, span_id, flags, rest = match.groups()
        if version == "ff" or (version == "00" and rest) or not int(trace_id, 16) or not int(span_id, 16):
            return None
        return cls(trace_id, span_id, bool(int(flags, 16) & 1))

    def child(self) -> Trace:
        return Trace(self.trace_id, secrets.token_hex(8), self.sampled)

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def new_request_id() -> str:
    return secrets.token_hex(8)


# --- logs --------------------------------------------------------------------------------------------------


def describe_failure(error: BaseException) -> str:
    """Returns an exception's types and frames, and our own messages: a driver's may quote a memory."""
    lines: list[str] = []
    chain: BaseException | None = error
    while chain is not None and len(lines) < 8:
        lines.append(_one_failure(chain))
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
    return "\ncaused by ".join(lines)


def _one_failure(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    sqlstate = getattr(error, "sqlstate", None)
    said = f": {error.message}" if isinstance(error, AgentCoreError) else f" [{sqlstate}]" if sqlstate else ""
    frames = "".join(
        f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
    )
    return f"{name}{said}{frames}"


def _fields(record: logging.LogRecord) -> dict[str, str | float]:
    given = {name: getattr(record, name, None) for name in LOG_FIELDS}
    if record.exc_info and record.exc_info[1] is not None:
        given["failure"] = describe_failure(record.exc_info[1])
    return {
        name: value if isinstance(value, (int, float)) else _short(name, str(value))
        for name, value in given.items()
        if value is not None
    }


def _short(name: str, text: str) -> str:
    return text if name == "failure" else text[:MAX_FIELD_CHARS]


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _JsonForm(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(
            {
                "time": _moment(record),
                "level": record.levelname,
                "logger": record.name,
                "message": record.getMessage(),
                **_fields(record),
            }
        )


class _TextForm(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        failure = fields.pop("failure", None)
        pairs = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        tail = "" if failure is None else "\n" + str(failure)
        return f"{_moment(record)} {record.levelname:<7} {record.name}: {record.getMessage()}{pairs}{tail}"


def _quoted(value: str | float) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _log_retry(details: RetryDetails) -> None:
    cause = getattr(details.caused_by, "message", type(details.caused_by).__name__)
    logger.warning("attempt %d failed, the next is in %.1f s: %s", details.retry_num, details.wait_for, cause)


def configure_logging(level: str, form: Literal["json", "text"]) -> None:
    """Logs to standard error, in one format for our lines and the libraries'."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonForm() if form == "json" else _TextForm())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # The circuit breaker logs an outage once, the pool each attempt to connect.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    set_on_retry_hooks([_log_retry])
    logging.getLogger("agentcore").setLevel(level)
