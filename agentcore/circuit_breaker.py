"""The circuit breaker: a dependency that does not answer is not asked again for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)
MAX_CAUSE_CHARS = 200


class CircuitOpen(Exception):
    """The dependency was not asked: its circuit is open."""


class CircuitBreaker:
    """Decides whether a dependency is asked. All users of one dependency share one.

    A failure opens it. While open it admits one probe every `rest_seconds`; any success closes it. Each
    change is one log line, which says what happens `meanwhile`.
    """

    def __init__(
        self, dependency: str, meanwhile: str, rest_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dependency = dependency
        self.openings = 0
        self._meanwhile = meanwhile
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._opened_at: float | None = None
        self._next_probe_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None

    @property
    def open_seconds(self) -> float:
        """For how long it has been open; 0 while it is closed."""
        return 0.0 if self._opened_at is None else self._clock() - self._opened_at

    def admits(self) -> bool:
        """Whether to ask the dependency. True while open makes the caller the probe."""
        if self._opened_at is None:
            return True
        now = self._clock()
        if now < self._next_probe_at:
            return False
        # Also ends the probe of a caller who is cancelled and reports nothing.
        self._next_probe_at = now + self._rest_seconds
        return True

    def succeeded(self) -> None:
        """The dependency answered."""
        if self._opened_at is not None:
            seconds, self._opened_at = self._clock() - self._opened_at, None
            logger.warning("%s: circuit closed: it answers again after %.1f s", self.dependency, seconds)

    def failed(self, cause: object) -> None:
        """The dependency did not answer. `cause` is logged: it must not quote a memory."""
        now = self._clock()
        self._next_probe_at = now + self._rest_seconds
        if self._opened_at is None:
            self._opened_at = now
            self.openings += 1
            said = str(cause).partition("\n")[0][:MAX_CAUSE_CHARS] or type(cause).__name__
            logger.warning("%s: circuit open: %s; meanwhile %s", self.dependency, said, self._meanwhile)

    @contextmanager
    def guard(self, *failures: type[BaseException], anyway: bool = False) -> Iterator[None]:
        """A use of the dependency; these exceptions mean that it did not answer. Raises CircuitOpen.

        `anyway`: also while it is open.
        """
        if not anyway and not self.admits():
            raise CircuitOpen(f"{self.dependency} does not answer: it is asked again soon.")
        try:
            yield
        except failures as cause:
            self.failed(cause)
            raise
        self.succeeded()
