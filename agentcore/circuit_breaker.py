"""A circuit breaker: stops calls to a dependency that is unavailable, and probes it from time to time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)
MAX_CAUSE_CHARS = 200


class CircuitOpen(Exception):
    """The request was not sent."""


class CircuitBreaker:
    """One per dependency. A failure opens the circuit, any success closes it; each transition is logged once.

    While open, one probe per `probe_interval_seconds` is allowed.
    """

    def __init__(
        self,
        dependency: str,
        fallback: str,
        probe_interval_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dependency = dependency
        self.openings = 0
        self._fallback = fallback
        self._probe_interval_seconds = probe_interval_seconds
        self._clock = clock
        self._opened_at: float | None = None
        self._next_probe_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None

    @property
    def open_seconds(self) -> float:
        """Returns how long the circuit has been open; 0 while it is closed."""
        return 0.0 if self._opened_at is None else self._clock() - self._opened_at

    def allow_request(self) -> bool:
        """Returns whether to send a request. While open, True makes the caller the probe."""
        if self._opened_at is None:
            return True
        now = self._clock()
        if now < self._next_probe_at:
            return False
        # Also after a cancelled probe, which reports nothing.
        self._next_probe_at = now + self._probe_interval_seconds
        return True

    def record_success(self) -> None:
        if self._opened_at is not None:
            seconds, self._opened_at = self._clock() - self._opened_at, None
            logger.warning("%s: circuit closed after %.1f s", self.dependency, seconds)

    def record_failure(self, cause: object) -> None:
        """`cause` is logged: it must not quote a memory."""
        now = self._clock()
        self._next_probe_at = now + self._probe_interval_seconds
        if self._opened_at is None:
            self._opened_at = now
            self.openings += 1
            reason = str(cause).partition("\n")[0][:MAX_CAUSE_CHARS] or type(cause).__name__
            logger.warning("%s: circuit open: %s; fallback: %s", self.dependency, reason, self._fallback)

    @contextmanager
    def guard(
        self, *failures: type[BaseException], answers: tuple[type[BaseException], ...] = (), force: bool = False
    ) -> Iterator[None]:
        """`failures` open the circuit, `answers` (error replies) close it; `force` ignores it. Raises CircuitOpen."""
        if not force and not self.allow_request():
            raise CircuitOpen(f"{self.dependency} is unavailable: its circuit is open.")
        try:
            yield
        except answers:
            self.record_success()
            raise
        except failures as cause:
            self.record_failure(cause)
            raise
        self.record_success()
