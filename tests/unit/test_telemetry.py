"""Metrics with bounded labels, W3C traces, and log lines without memory text."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import stamina
import stamina.instrumentation
from prometheus_client.parser import text_string_to_metric_families

from agentcore.errors import NotFound
from agentcore.telemetry import Metrics, Steps, Trace, configure_logging, describe_failure, new_request_id

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"
SECRET = "what Ada told us"


class Samples:
    """Metric values by name and label values in any order."""

    def __init__(self, metrics: Metrics) -> None:
        families = text_string_to_metric_families(metrics.exposition().decode())
        self._found = {
            (sample.name, frozenset(sample.labels.values())): sample.value
            for family in families
            for sample in family.samples
        }

    def __getitem__(self, key: tuple[str, ...]) -> float:
        return self._found[key[0], frozenset(key[1:])]


# --- metrics -----------------------------------------------------------------------------------------------


def test_calls_are_counted_by_method_and_outcome_and_timed_by_method() -> None:
    metrics = Metrics()
    metrics.call_ended("memory.store", "ok", 0.003)
    metrics.call_ended("memory.store", "ok", 0.030)
    metrics.call_ended("memory.store", "not_found", 0.001)
    found = Samples(metrics)
    assert found["agentcore_requests_total", "memory.store", "ok"] == 2
    assert found["agentcore_requests_total", "memory.store", "not_found"] == 1
    assert found["agentcore_request_seconds_count", "memory.store"] == 3
    assert found["agentcore_request_seconds_sum", "memory.store"] == pytest.approx(0.034)
    assert found["agentcore_request_seconds_bucket", "memory.store", "0.005"] == 2


def test_cache_and_rate_limit_are_counted() -> None:
    metrics = Metrics()
    metrics.embeddings_cached("process", hits=3, misses=1)
    metrics.embeddings_cached("redis", hits=0, misses=2)
    metrics.rate_limited(4)
    found = Samples(metrics)
    assert found["agentcore_embedding_cache_total", "process", "hit"] == 3
    assert found["agentcore_embedding_cache_total", "process", "miss"] == 1
    assert found["agentcore_embedding_cache_total", "redis", "miss"] == 2
    assert found["agentcore_rate_limited_total",] == 4


def test_a_watched_figure_is_read_when_it_is_asked_for() -> None:
    metrics = Metrics()
    connections = {"in_use": 1.0, "idle": 9.0}
    metrics.register_metric("pool_connections", "Connections.", "state", lambda: connections)
    assert Samples(metrics)["agentcore_pool_connections", "in_use"] == 1
    connections["in_use"] = 4.0
    assert Samples(metrics)["agentcore_pool_connections", "in_use"] == 4
    assert Samples(metrics)["agentcore_pool_connections", "idle"] == 9


def test_two_services_of_one_process_do_not_share_figures() -> None:
    one, other = Metrics(), Metrics()
    one.rate_limited(1)
    assert Samples(other)["agentcore_rate_limited_total",] == 0


# --- steps -------------------------------------------------------------------------------------------------


def ticking(*moments: float) -> Iterator[float]:
    yield from moments


def test_steps_are_timed_in_milliseconds_and_added_up() -> None:
    clock = ticking(0.0, 0.0015, 1.0, 1.25, 2.0, 2.5)
    metrics = Metrics()
    steps = Steps(metrics, clock=lambda: next(clock))
    for step in ("embed", "search", "embed"):
        with steps(step):
            pass
    assert steps.timings_ms == {"embed": 505.0, "search": 250.0}
    assert Samples(metrics)["agentcore_step_seconds_count", "embed"] == 2
    assert Samples(metrics)["agentcore_step_seconds_sum", "search"] == pytest.approx(0.25)


@pytest.mark.shows("A4")
def test_a_callers_timings_are_rounded_up_to_5_ms() -> None:
    """A hit still differs from a miss of 8 ms, so vector caches are keyed by agent."""
    clock = ticking(0.0, 0.00007, 1.0, 1.0049, 2.0, 2.008, 3.0, 3.0)
    steps = Steps(clock=lambda: next(clock))
    for step in ("hit", "short miss", "miss", "nothing"):
        with steps(step):
            pass
    assert steps.timings_ms == {"hit": 5.0, "short miss": 5.0, "miss": 10.0, "nothing": 5.0}


def test_a_step_that_fails_is_timed_too() -> None:
    steps = Steps()
    with pytest.raises(NotFound), steps("search"):
        raise NotFound
    assert steps.timings_ms["search"] >= 0


# --- traces ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE_ID}-{SPAN_ID}-01", True),
        (f"00-{TRACE_ID}-{SPAN_ID}-00", False),
        (f"00-{TRACE_ID}-{SPAN_ID}-03", True),
        (f" 00-{TRACE_ID}-{SPAN_ID}-01 ", True),
        (f"01-{TRACE_ID}-{SPAN_ID}-01", True),
        (f"cc-{TRACE_ID}-{SPAN_ID}-01-what-the-future-brings", True),
    ],
)
def test_a_traceparent_is_read(header: str, sampled: bool) -> None:
    assert Trace.parse(header) == Trace(TRACE_ID, SPAN_ID, sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        f"00-{TRACE_ID}-{SPAN_ID}",
        f"00-{TRACE_ID}-{SPAN_ID}-1",
        f"00-{TRACE_ID.upper()}-{SPAN_ID}-01",
        f"ff-{TRACE_ID}-{SPAN_ID}-01",
        f"00-{'0' * 32}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-01-more",
        f"00-{TRACE_ID}-{SPAN_ID}-01-",
        f"cc-{TRACE_ID}-{SPAN_ID}-01more",
        f"0x-{TRACE_ID}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-01\n00",
        f"\u0660\u0660-{TRACE_ID}-{SPAN_ID}-01",
    ],
)
def test_a_traceparent_that_breaks_the_recommendation_is_ignored(header: str) -> None:
    assert Trace.parse(header) is None


def test_a_child_stays_in_its_trace_and_has_a_span_of_its_own() -> None:
    parent = Trace(TRACE_ID, SPAN_ID, sampled=True)
    child = parent.child()
    assert (child.trace_id, child.sampled) == (TRACE_ID, True)
    assert child.span_id != SPAN_ID
    assert Trace.parse(str(child)) == child


def test_a_new_trace_can_be_read_back_and_is_new() -> None:
    begun = Trace.begin()
    assert Trace.parse(str(begun)) == begun
    assert begun.trace_id != Trace.begin().trace_id
    assert re.fullmatch("[0-9a-f]{16}", new_request_id())
    assert new_request_id() != new_request_id()


# --- logs --------------------------------------------------------------------------------------------------


class DriverError(Exception):
    sqlstate = "23505"


def failure() -> BaseException:
    """Returns a raised error of ours, caused by a driver's error."""
    try:
        try:
            raise DriverError(f"Key (content)=({SECRET}) exists")
        except DriverError as cause:
            raise NotFound("No such memory.") from cause
    except NotFound as error:
        return error


def test_a_failure_tells_types_places_and_our_own_words_only() -> None:
    told = describe_failure(failure())
    assert "agentcore.errors.NotFound: No such memory." in told
    assert re.search(r"caused by \S*DriverError \[23505\]\n  \S+test_telemetry\.py:\d+ in failure", told)
    assert SECRET not in told


def test_a_long_chain_of_causes_is_cut() -> None:
    error: BaseException = ValueError()
    for _ in range(50):
        following = RuntimeError()
        following.__cause__, error = error, following
    assert describe_failure(error).count("caused by") == 7


def test_a_suppressed_context_is_left_out() -> None:
    error = ValueError()
    error.__context__ = DriverError()
    assert "DriverError" in describe_failure(error)
    error.__suppress_context__ = True
    assert "DriverError" not in describe_failure(error)


@pytest.fixture
def own_logging() -> Iterator[None]:
    root, ours, drivers = logging.getLogger(), logging.getLogger("agentcore"), logging.getLogger("psycopg")
    before = (root.handlers[:], root.level, ours.level, drivers.level)
    hooks = stamina.instrumentation.get_on_retry_hooks()
    yield
    root.handlers[:], level, our_level, drivers_level = before
    root.setLevel(level)
    ours.setLevel(our_level)
    drivers.setLevel(drivers_level)
    stamina.instrumentation.set_on_retry_hooks(hooks)


@pytest.mark.shows("B12")
def test_a_retry_logs_what_failed_and_when_the_next_attempt_is(
    own_logging: None, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("INFO", "text")
    for raised in (NotFound("The provider does not answer."), DriverError(SECRET)):
        for attempt in stamina.retry_context(on=type(raised), attempts=2, wait_initial=0.01, wait_jitter=0.0):
            with attempt:
                if attempt.num == 1:
                    raise raised
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("attempt 1 failed, the next is in 0.0 s: The provider does not answer.")
    assert second.endswith("attempt 1 failed, the next is in 0.0 s: DriverError")


@pytest.fixture
def log(own_logging: None, capsys: pytest.CaptureFixture[str]) -> Any:
    """Logs one line in a format and returns stderr."""

    def write(form: Any, level: int = logging.INFO, exc_info: Any = None, **extra: Any) -> str:
        configure_logging("INFO", form)
        logging.getLogger("agentcore.edge").log(level, "call", extra=extra, exc_info=exc_info)
        return capsys.readouterr().err

    return write


@pytest.mark.shows("issue2-14-logs")
def test_a_json_line_holds_the_known_fields_and_no_others(log: Any) -> None:
    line = json.loads(
        log("json", method="memory.store", agent_id="ada", duration_ms=1.5, trace_id=None, content=SECRET)
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("time"))
    assert line == {
        "level": "INFO",
        "logger": "agentcore.edge",
        "message": "call",
        "method": "memory.store",
        "agent_id": "ada",
        "duration_ms": 1.5,
    }


def test_a_text_line_quotes_what_could_pass_for_another_field(log: Any) -> None:
    line = log("text", method="memory.store", agent_id="a outcome=ok", source_agent="x\ny", duration_ms=1.5)
    assert line.endswith(
        'INFO    agentcore.edge: call agent_id="a outcome=ok" method=memory.store '
        'duration_ms=1.5 source_agent="x\\ny"\n'
    )
    assert line.count("\n") == 1


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_field_is_cut_to_its_length(log: Any, form: str) -> None:
    assert "x" * 255 in log(form, source_agent="x" * 300)
    assert "x" * 256 not in log(form, source_agent="x" * 300)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_traceback_is_written_without_the_exceptions_words(log: Any, form: str) -> None:
    error = failure()
    line = log(form, logging.ERROR, exc_info=(type(error), error, error.__traceback__))
    assert "DriverError [23505]" in line
    assert "in failure" in line
    assert SECRET not in line


def test_an_exc_info_without_an_exception_is_no_failure(log: Any) -> None:
    assert sys.exc_info() == (None, None, None)
    assert "failure" not in json.loads(log("json", exc_info=(None, None, None)))


def test_the_level_is_ours_and_libraries_only_warn(own_logging: None, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("WARNING", "json")
    logging.getLogger("agentcore.rpc").info("quiet")
    logging.getLogger("httpx").info("quiet")
    logging.getLogger("httpx").warning("loud")
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["loud"]
