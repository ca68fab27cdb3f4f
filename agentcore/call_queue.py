"""Limits concurrent calls: queues the rest, agents taking turns, and rejects calls that would wait too long."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from agentcore.errors import RateLimited

# Mean time between two completed calls: its first estimate, and the weight of the latest one (EWMA).
FIRST_INTERVAL_SECONDS, SMOOTHING = 0.02, 0.05
MIN_RETRY_AFTER_SECONDS = 0.1


class _Queued(NamedTuple):
    granted: asyncio.Future[None]
    since: float


class CallQueue:
    """Runs up to `max_running` calls at once; agents with queued calls take turns (round robin).

    One agent has at most three quarters of the slots, rounded up, so that its slow calls do not block the others.
    A call is rejected if others are queued and it would probably wait for more than `max_wait_seconds`, or the
    first queued call of its agent has waited so long.
    """

    def __init__(self, max_running: int, max_wait_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_running = max_running
        self._max_per_agent = max_running - max_running // 4
        self._max_wait_seconds = max_wait_seconds
        self._clock = clock
        self._running: Counter[str] = Counter()
        # The queued calls of each agent that has any; the agent whose turn it is is first.
        self._queued: OrderedDict[str, deque[_Queued]] = OrderedDict()
        # Measured only while calls are queued.
        self._interval = FIRST_INTERVAL_SECONDS
        self._last_completion = 0.0

    def __len__(self) -> int:
        """Returns the number of queued calls."""
        return sum(map(len, self._queued.values()))

    @asynccontextmanager
    async def slot(self, agent_id: str) -> AsyncIterator[None]:
        """Waits for a slot and holds it until the block ends. Raises RateLimited."""
        if self._can_start(agent_id):
            self._running[agent_id] += 1
        else:
            self._refuse_long_waits(agent_id)
            await self._wait_for_turn(agent_id)
        try:
            yield
        finally:
            self._release(agent_id)

    def _can_start(self, agent_id: str) -> bool:
        return self._running.total() < self._max_running and self._running[agent_id] < self._max_per_agent

    def _refuse_long_waits(self, agent_id: str) -> None:
        if not self._queued:
            return
        calls = self._queued.get(agent_id)
        waited = self._clock() - calls[0].since if calls else 0.0
        expected = max(waited, self._position(agent_id) * self._interval)
        if expected > self._max_wait_seconds:
            raise RateLimited(
                "The service is overloaded: try again.",
                data={"retry_after_seconds": round(max(MIN_RETRY_AFTER_SECONDS, expected), 3)},
            )

    def _position(self, agent_id: str) -> int:
        """Returns the position that a new call of this agent has in the order of the turns, from 1."""
        own = len(self._queued.get(agent_id, ())) + 1
        others = (len(calls) for each, calls in self._queued.items() if each != agent_id)
        return own + sum(min(own, count) for count in others)

    async def _wait_for_turn(self, agent_id: str) -> None:
        now = self._clock()
        if not self._queued:
            self._last_completion = now
        call = _Queued(asyncio.get_running_loop().create_future(), now)
        self._queued.setdefault(agent_id, deque()).append(call)
        try:
            await call.granted
        except asyncio.CancelledError:
            if call.granted.cancelled():
                self._remove(agent_id, call)
            else:  # granted just before the cancellation
                self._release(agent_id)
            raise

    def _remove(self, agent_id: str, call: _Queued) -> None:
        calls = self._queued.get(agent_id, deque())
        if call in calls:
            calls.remove(call)
            if not calls:
                del self._queued[agent_id]

    def _release(self, agent_id: str) -> None:
        if self._queued:
            now = self._clock()
            # Limited: one stall must not reject calls for long afterwards.
            latest = min(now - self._last_completion, self._max_wait_seconds)
            self._interval += SMOOTHING * (latest - self._interval)
            self._last_completion = now
        self._running[agent_id] -= 1
        if not self._running[agent_id]:
            del self._running[agent_id]
        # At most one agent is at its limit and skipped.
        while (turn := next(filter(self._can_start, self._queued), None)) is not None:
            self._grant_next(turn)

    def _grant_next(self, agent_id: str) -> None:
        """Starts the agent's first queued call and puts the agent last; drops the call if its task was cancelled."""
        calls = self._queued.pop(agent_id)
        granted = calls.popleft().granted
        if granted.done():
            if calls:
                self._queued[agent_id] = calls
                self._queued.move_to_end(agent_id, last=False)
            return
        self._running[agent_id] += 1
        granted.set_result(None)
        if calls:
            self._queued[agent_id] = calls
