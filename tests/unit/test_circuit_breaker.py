"""The circuit breaker: when it opens, which calls it admits, and its log lines."""

from __future__ import annotations

import logging

import pytest

from agentcore.circuit_breaker import CircuitBreaker, CircuitOpen


class Clock:
    """A manual clock."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker("redis", "nothing is cached", 5.0, clock)


@pytest.mark.shows("issue13-circuit-breaker")
def test_it_admits_everybody_until_it_opens_and_then_one_probe_a_rest() -> None:
    clock = Clock()
    circuit = breaker(clock)
    assert circuit.allow_request()
    circuit.record_failure("timeout")
    assert (circuit.is_open, circuit.allow_request()) == (True, False)
    clock.now += 5.0
    assert [circuit.allow_request(), circuit.allow_request()] == [True, False]
    clock.now += 5.0  # the probe was cancelled and reported no result
    assert circuit.allow_request()
    circuit.record_failure("timeout")
    assert not circuit.allow_request()
    assert circuit.open_seconds == 10.0
    circuit.record_success()
    assert (circuit.is_open, circuit.allow_request(), circuit.open_seconds) == (False, True, 0.0)


@pytest.mark.shows("issue13-circuit-breaker")
def test_each_change_is_one_log_line_with_the_cause_and_the_fallback(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    circuit = breaker(clock)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            circuit.record_failure(TimeoutError("no answer\nand more"))
        clock.now += 12.0
        for _ in range(3):
            circuit.record_success()
        circuit.record_failure(TimeoutError())
    assert [record.getMessage() for record in caplog.records] == [
        "redis: circuit open: no answer; fallback: nothing is cached",
        "redis: circuit closed after 12.0 s",
        "redis: circuit open: TimeoutError; fallback: nothing is cached",
    ]
    assert circuit.openings == 2


def test_a_guarded_use_reports_its_end() -> None:
    circuit = breaker(Clock())
    with pytest.raises(KeyError), circuit.guard(OSError):
        raise KeyError  # the dependency responded
    assert not circuit.is_open
    with pytest.raises(ConnectionResetError), circuit.guard(OSError):
        raise ConnectionResetError
    with pytest.raises(CircuitOpen, match="redis is unavailable"), circuit.guard(OSError):
        raise AssertionError("it was admitted")
    with circuit.guard(OSError, force=True):
        pass
    assert not circuit.is_open


@pytest.mark.shows("issue13-circuit-breaker")
def test_an_error_reply_closes_the_circuit() -> None:
    clock = Clock()
    circuit = breaker(clock)
    circuit.record_failure("connection refused")
    clock.now += 5.0
    with pytest.raises(KeyError), circuit.guard(LookupError, answers=(KeyError,)):
        raise KeyError
    assert not circuit.is_open
