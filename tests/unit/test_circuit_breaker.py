"""The circuit breaker: when it opens, whom it admits, and what it logs."""

from __future__ import annotations

import logging

import pytest

from agentcore.circuit_breaker import CircuitBreaker, CircuitOpen


class Clock:
    """A time that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker("redis", "nothing is cached", 5.0, clock)


def test_it_admits_everybody_until_it_opens_and_then_one_probe_a_rest() -> None:
    clock = Clock()
    circuit = breaker(clock)
    assert circuit.admits()
    circuit.failed("timeout")
    assert (circuit.is_open, circuit.admits()) == (True, False)
    clock.now += 5.0
    assert [circuit.admits(), circuit.admits()] == [True, False]
    clock.now += 5.0  # the probe was cancelled and reported nothing
    assert circuit.admits()
    circuit.failed("timeout")
    assert not circuit.admits()
    assert circuit.open_seconds == 10.0
    circuit.succeeded()
    assert (circuit.is_open, circuit.admits(), circuit.open_seconds) == (False, True, 0.0)


def test_each_change_is_one_log_line_with_the_cause_and_what_happens_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    circuit = breaker(clock)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            circuit.failed(TimeoutError("no answer\nand more"))
        clock.now += 12.0
        for _ in range(3):
            circuit.succeeded()
        circuit.failed(TimeoutError())
    assert [record.getMessage() for record in caplog.records] == [
        "redis: circuit open: no answer; meanwhile nothing is cached",
        "redis: circuit closed: it answers again after 12.0 s",
        "redis: circuit open: TimeoutError; meanwhile nothing is cached",
    ]
    assert circuit.openings == 2


def test_a_guarded_use_reports_its_end() -> None:
    circuit = breaker(Clock())
    with pytest.raises(KeyError), circuit.guard(OSError):
        raise KeyError  # the dependency answered
    assert not circuit.is_open
    with pytest.raises(ConnectionResetError), circuit.guard(OSError):
        raise ConnectionResetError
    with pytest.raises(CircuitOpen, match="redis does not answer"), circuit.guard(OSError):
        raise AssertionError("it was admitted")
    with circuit.guard(OSError, anyway=True):
        pass
    assert not circuit.is_open
