"""PostgreSQL connections that notice a server that does not answer, and the circuit that follows from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from psycopg import AsyncConnection, Error
from psycopg.errors import _WaitTimeout
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agentcore.circuit_breaker import CircuitBreaker
from agentcore.errors import PoolExhausted, Unreachable

# Calls wait this long from the opening on: a server that is restarted is back in less.
FIRST_PATIENCE_SECONDS = 1.5
# A probe: enough for one attempt to connect.
LATER_PATIENCE_SECONDS = 0.5
# The pool's own attempts, begun anew by each call: given up soon, so that none is put off for long.
ATTEMPTS_SECONDS = 2.0
# Over statements while the circuit is open, and for the server to accept a cancel request.
PROBE_SECONDS, CANCEL_SECONDS = 2.0, 0.5
AWAY = "PostgreSQL does not answer."


class Reachability:
    """Gives out one pool's connections as far as the server's circuit allows."""

    def __init__(
        self, circuit: CircuitBreaker, reason: Callable[[], str | None], answer_seconds: float | None
    ) -> None:
        """`reason` may say why nobody answers, and that nobody will: then nobody waits.

        `answer_seconds`: the longest wait for the server's answer on one of the connections.
        """
        self.circuit = circuit
        self._reason = reason
        self._answer_seconds = answer_seconds
        self._in_use = 0
        self._waiting: set[asyncio.Timeout] = set()

    @property
    def answer_seconds(self) -> float | None:
        """The longest wait for an answer now: short while the circuit is open."""
        longest = self._answer_seconds
        return min(PROBE_SECONDS, longest or PROBE_SECONDS) if self.circuit.is_open else longest

    def connected(self) -> None:
        """A connection was made."""
        self.circuit.succeeded()
        self._reschedule()

    def refused(self, cause: Error | OSError) -> None:
        """A connection could not be made. Others in use may mean that the server has no place for more."""
        if not self._in_use:
            self.circuit.failed(cause)
        self._reschedule()

    @asynccontextmanager
    async def connection(
        self, pool: AsyncConnectionPool[WatchedConnection], timeout_seconds: float | None = None
    ) -> AsyncIterator[WatchedConnection]:
        """One of the pool's, until the block ends. Raises Unreachable and PoolExhausted."""
        if self.circuit.open_seconds >= FIRST_PATIENCE_SECONDS and not self.circuit.admits():
            raise Unreachable(self._reason() or AWAY)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(None) as patience:
                    self._waiting.add(patience)
                    try:
                        patience.reschedule(self._deadline())
                        given = await stack.enter_async_context(pool.connection(timeout_seconds))
                    finally:
                        self._waiting.discard(patience)
            except (TimeoutError, PoolTimeout):
                if self._in_use and not self.circuit.is_open:
                    raise PoolExhausted from None
                raise Unreachable(self._reason() or AWAY) from None
            self._in_use += 1
            stack.callback(self._returned)
            yield given
            self.circuit.succeeded()

    def _returned(self) -> None:
        self._in_use -= 1
        self._reschedule()

    def _reschedule(self) -> None:
        deadline = self._deadline()
        for patience in self._waiting:
            if not patience.expired():
                patience.reschedule(deadline)

    def _deadline(self) -> float | None:
        """Until when to wait, by the event loop's clock; None: as long as the pool does."""
        if not self.circuit.is_open:
            return None
        now = asyncio.get_running_loop().time()
        if self._reason() is not None:
            return now
        return now + max(FIRST_PATIENCE_SECONDS - self.circuit.open_seconds, LATER_PATIENCE_SECONDS)


class WatchedConnection(AsyncConnection[DictRow]):
    """A connection that is closed once the server has not answered in time."""

    watch: Reachability | None = None

    @classmethod
    async def connect(  # type: ignore[override]  # the pool gives what it was given, by name
        cls, conninfo: str = "", *, watch: Reachability | None = None, **named: Any
    ) -> Self:
        """As the driver does. Raises psycopg.Error."""
        try:
            made = await super().connect(conninfo, **named)
        except (Error, OSError) as cause:
            if watch is not None:
                watch.refused(cause)
            raise
        made.watch = watch
        if watch is not None:
            watch.connected()
        return made

    async def wait(
        self, gen: Any, interval: float = 0.1, timeout: float | None = None,  # noqa: ASYNC109 - the driver's
    ) -> Any:
        """As the driver does, for no longer than `watch` allows; then the connection is closed."""
        limit = timeout if timeout is not None or self.watch is None else self.watch.answer_seconds
        try:
            return await super().wait(gen, interval, limit)
        except _WaitTimeout:
            if timeout is None and self.watch is not None:
                self.pgconn.finish()
                self.watch.circuit.failed(f"no answer within {limit:g} s")
            raise

    async def cancel_safe(self, *, timeout: float = CANCEL_SECONDS) -> None:  # noqa: ASYNC109
        """As the driver does, but a server that does not accept the request at once loses the connection."""
        try:
            await super().cancel_safe(timeout=min(timeout, CANCEL_SECONDS))
        except Error:
            self.pgconn.finish()
            raise
