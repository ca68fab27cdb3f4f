"""How long a caller waits for a connection: while the pool is only busy, and briefly where nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from psycopg import AsyncConnection, Error
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool

from agentcore.errors import DependencyUnavailable

# From the first refusal: a server that is started again is back in less.
FIRST_PATIENCE_SECONDS = 1.5
# With each later call: enough for one attempt to connect.
LATER_PATIENCE_SECONDS = 0.5
# The pool's own attempts, begun anew by each call: given up soon, so that none is put off for long.
ATTEMPTS_SECONDS = 2.0
AWAY = "PostgreSQL does not answer."


class Reachability:
    """Whether the server took the last connection that one pool asked for, and who waits for the next."""

    def __init__(self, reason: Callable[[], str | None]) -> None:
        """`reason` may know why nobody answers, and that nobody will: then nobody waits."""
        self._reason = reason
        self._refused_since: float | None = None
        self._held = 0
        self._waiting: set[asyncio.Timeout] = set()

    def answered(self) -> None:
        """A connection was made."""
        self._refused_since = None
        self._tell()

    def refused(self) -> None:
        """A connection could not be made."""
        if self._refused_since is None:
            self._refused_since = asyncio.get_running_loop().time()
        self._tell()

    @asynccontextmanager
    async def connection(
        self, pool: AsyncConnectionPool[WatchedConnection], timeout_seconds: float | None = None
    ) -> AsyncIterator[WatchedConnection]:
        """One of the pool's, until the block ends. Raises DependencyUnavailable where nobody answers."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(None) as patience:
                    self._waiting.add(patience)
                    try:
                        patience.reschedule(self._deadline())
                        given = await stack.enter_async_context(pool.connection(timeout_seconds))
                    finally:
                        self._waiting.discard(patience)
            except TimeoutError:
                # The pool's logger has the driver's words.
                raise DependencyUnavailable(self._reason() or AWAY) from None
            self._held += 1
            stack.callback(self._returned)
            yield given

    def _returned(self) -> None:
        self._held -= 1
        self._tell()

    def _tell(self) -> None:
        deadline = self._deadline()
        for patience in self._waiting:
            if not patience.expired():
                patience.reschedule(deadline)

    def _deadline(self) -> float | None:
        """Until when to wait, by the event loop's clock; None: as long as the pool does.

        A connection in use may come back, whatever became of the last attempt.
        """
        if self._refused_since is None or self._held:
            return None
        now = asyncio.get_running_loop().time()
        if self._reason() is not None:
            return now
        return max(self._refused_since + FIRST_PATIENCE_SECONDS, now + LATER_PATIENCE_SECONDS)


class WatchedConnection(AsyncConnection[DictRow]):
    """A connection that says whether the server took it."""

    @classmethod
    async def connect(  # type: ignore[override]  # the pool gives what it was given, by name
        cls, conninfo: str = "", *, watch: Reachability | None = None, **named: Any
    ) -> Self:
        """As the driver does. Raises psycopg.Error."""
        try:
            made = await super().connect(conninfo, **named)
        except (Error, OSError):
            if watch is not None:
                watch.refused()
            raise
        if watch is not None:
            watch.answered()
        return made
