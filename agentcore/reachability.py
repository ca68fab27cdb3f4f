"""PostgreSQL connections with a reply limit, and acquire timeouts while the circuit is open."""

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

# Acquire timeout, counted from the opening of the circuit: a server usually restarts in less.
FIRST_ACQUIRE_SECONDS = 1.5
# Acquire timeout of a probe: enough for one attempt to connect.
PROBE_ACQUIRE_SECONDS = 0.5
# How long the pool itself retries to connect; each call starts a new series.
RECONNECT_SECONDS = 2.0
# Limit of a reply while the circuit is open, and of the reply to a cancel request.
PROBE_REPLY_SECONDS, CANCEL_SECONDS = 2.0, 0.5
UNAVAILABLE = "PostgreSQL does not answer."


class ConnectionGate:
    """Acquires connections of one pool, with a timeout that depends on the server's circuit."""

    def __init__(
        self, circuit: CircuitBreaker, reason: Callable[[], str | None], reply_seconds: float | None
    ) -> None:
        """`reason` returns why the server is gone for good, else None; if it is, acquiring fails at once.

        `reply_seconds`: the longest wait for the reply to one statement; None: no limit.
        """
        self.circuit = circuit
        self._reason = reason
        self._reply_seconds = reply_seconds
        self._in_use = 0
        self._acquiring: set[asyncio.Timeout] = set()

    def reply_limit(self, statements: int) -> float | None:
        """Returns the timeout of the replies to these statements; short while the circuit is open."""
        limit = self._reply_seconds
        if self.circuit.is_open:
            return min(PROBE_REPLY_SECONDS, limit or PROBE_REPLY_SECONDS)
        # statement_timeout applies to each statement of a pipeline, and one wait covers them all.
        return limit and limit * max(1, statements)

    def connected(self) -> None:
        self.circuit.record_success()
        self._reschedule()

    def connect_failed(self, cause: Error | OSError) -> None:
        """Opens the circuit, unless connections are in use: the server may have reached its maximum."""
        if not self._in_use:
            self.circuit.record_failure(cause)
        self._reschedule()

    @asynccontextmanager
    async def connection(
        self, pool: AsyncConnectionPool[WatchedConnection], timeout_seconds: float | None = None
    ) -> AsyncIterator[WatchedConnection]:
        """Acquires a connection until the block ends. Raises Unreachable and PoolExhausted."""
        if self.circuit.open_seconds >= FIRST_ACQUIRE_SECONDS and not self.circuit.allow_request():
            raise Unreachable(self._reason() or UNAVAILABLE)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(None) as acquire_timeout:
                    self._acquiring.add(acquire_timeout)
                    try:
                        acquire_timeout.reschedule(self._deadline())
                        acquired = await stack.enter_async_context(pool.connection(timeout_seconds))
                    finally:
                        self._acquiring.discard(acquire_timeout)
            except (TimeoutError, PoolTimeout):
                if self._in_use and not self.circuit.is_open:
                    raise PoolExhausted from None
                raise Unreachable(self._reason() or UNAVAILABLE) from None
            self._in_use += 1
            stack.callback(self._released)
            yield acquired
            self.circuit.record_success()

    def _released(self) -> None:
        self._in_use -= 1
        self._reschedule()

    def _reschedule(self) -> None:
        deadline = self._deadline()
        for acquire_timeout in self._acquiring:
            if not acquire_timeout.expired():
                acquire_timeout.reschedule(deadline)

    def _deadline(self) -> float | None:
        """Returns when acquiring expires, by the event loop's clock; None: the pool's own timeout applies."""
        if not self.circuit.is_open:
            return None
        now = asyncio.get_running_loop().time()
        if self._reason() is not None:
            return now
        return now + max(FIRST_ACQUIRE_SECONDS - self.circuit.open_seconds, PROBE_ACQUIRE_SECONDS)


class WatchedConnection(AsyncConnection[DictRow]):
    """A connection that is closed when the server does not reply in time."""

    gate: ConnectionGate | None = None

    @classmethod
    async def connect(  # type: ignore[override]  # the pool passes its kwargs by name
        cls, conninfo: str = "", *, gate: ConnectionGate | None = None, **named: Any
    ) -> Self:
        """Connects, and reports the result to `gate`. Raises psycopg.Error."""
        try:
            made = await super().connect(conninfo, **named)
        except (Error, OSError) as cause:
            if gate is not None:
                gate.connect_failed(cause)
            raise
        made.gate = gate
        if gate is not None:
            gate.connected()
        return made

    async def wait(
        self, gen: Any, interval: float = 0.1, timeout: float | None = None,  # noqa: ASYNC109 - the driver's
    ) -> Any:
        """Waits as the driver does, but closes the connection at the gate's limit.

        The circuit opens only if the server does not accept a cancel request, either.
        """
        if timeout is not None or self.gate is None:
            return await super().wait(gen, interval, timeout)
        statements = 1 if self._pipeline is None else len(self._pipeline.result_queue)
        try:
            return await super().wait(gen, interval, self.gate.reply_limit(statements))
        except _WaitTimeout:
            try:
                await self._try_cancel()
            finally:
                self.pgconn.finish()
            raise

    async def cancel_safe(self, *, timeout: float = CANCEL_SECONDS) -> None:  # noqa: ASYNC109
        """Sends a cancel request, over a connection of its own. Without a reply, closes this connection."""
        try:
            await super().cancel_safe(timeout=min(timeout, CANCEL_SECONDS))
        except Error as cause:
            self.pgconn.finish()
            if self.gate is not None:
                self.gate.circuit.record_failure(f"no reply to a cancel request: {cause}")
            raise
