"""Queues calls when too many run: fair between agents, and with a bounded waiting time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agentcore.errors import RateLimited

# Weight of the last interval between two ended calls in the mean interval.
SMOOTHING = 0.05
MIN_RETRY_SECONDS = 0.1


class CallQueue:
    """Runs up to `max_running` calls at once; the next free slot goes to the agent served longest ago.

    One agent has at most three quarters of the slots, so that its slow calls do not block the others. A call is
    rejected at once if its expected waiting time exceeds `max_wait_seconds`.
    """

    def __init__(self, max_running: int, max_wait_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_running = max_running
        self._max_of_agent = max_running - max_running // 4
        self._max_wait_seconds = max_wait_seconds
        self._clock = clock
        self._running: Counter[str] = Counter()
        # The queued calls of each agent that has any; the agent to serve next is first.
        self._queued: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        # While calls are queued: mean seconds between two ended calls, and when the last one ended.
        self._interval = 0.0
        self._ended_at = 0.0

    def __len__(self) -> int:
        """Returns the number of queued calls."""
        return sum(map(len, self._queued.values()))

    @asynccontextmanager
    async def slot(self, agent_id: str) -> AsyncIterator[None]:
        """Waits for a slot and holds it until the block ends. Raises RateLimited."""
        if self._has_slot(agent_id):
            self._running[agent_id] += 1
        else:
            await self._queue(agent_id)
        try:
            yield
        finally:
            self._release(agent_id)

    def _has_slot(self, agent_id: str) -> bool:
        return self._running.total() < self._max_running and self._running[agent_id] < self._max_of_agent

    async def _queue(self, agent_id: str) -> None:
        expected = self._calls_before(agent_id) * self._interval
        if expected > self._max_wait_seconds:
            raise RateLimited(
                "The service is overloaded: try again.",
                data={"retry_after_seconds": round(max(MIN_RETRY_SECONDS, expected), 3)},
            )
        if not self._queued:
            self._ended_at = self._clock()
        turn = asyncio.get_running_loop().create_future()
        self._queued.setdefault(agent_id, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release(agent_id)
            raise

    def _calls_before(self, agent_id: str) -> int:
        """Returns how many queued calls are served before a new one of this agent, itself included."""
        own = len(self._queued.get(agent_id, ())) + 1
        others = (len(calls) for each, calls in self._queued.items() if each != agent_id)
        return own + sum(min(own, count) for count in others)

    def _release(self, agent_id: str) -> None:
        if self._queued:
            now = self._clock()
            self._interval += SMOOTHING * (now - self._ended_at - self._interval)
            self._ended_at = now
        self._running[agent_id] -= 1
        if not self._running[agent_id]:
            del self._running[agent_id]
        while (queued := next(filter(self._has_slot, self._queued), None)) is not None:
            self._start_next(queued)

    def _start_next(self, agent_id: str) -> None:
        """Starts the agent's first queued call, unless its client is gone, and puts the agent last."""
        calls = self._queued.pop(agent_id)
        turn = calls.popleft()
        if calls:
            self._queued[agent_id] = calls
        if not turn.done():
            self._running[agent_id] += 1
            turn.set_result(None)
