"""Limits concurrent calls: queues the rest, agents taking turns, and rejects calls that would wait too long."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agentcore.errors import RateLimited

# First estimate of an agent's mean time between completed calls, and the weight of the latest one (EWMA).
FIRST_INTERVAL_SECONDS, SMOOTHING = 0.02, 0.2
MIN_RETRY_AFTER_SECONDS = 0.1


@dataclass
class _Waiting:
    """The queued calls of one agent, and its mean time between completed calls since the first was queued."""

    last_completion: float
    interval: float = FIRST_INTERVAL_SECONDS
    calls: deque[asyncio.Future[None]] = field(default_factory=deque)


class CallQueue:
    """Runs up to `max_running` calls at once, three quarters for one agent; agents take turns (round robin).

    A call is queued for at most `max_wait_seconds`, and rejected at once if it would probably be queued longer.
    """

    def __init__(self, max_running: int, max_wait_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_running = max_running
        self._max_per_agent = max_running - max_running // 4
        self._max_wait_seconds = max_wait_seconds
        self._clock = clock
        self._running: Counter[str] = Counter()
        # Agents with queued calls; the one whose turn it is is first.
        self._queued: OrderedDict[str, _Waiting] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(each.calls) for each in self._queued.values())

    def reject_long_waits(self, agent_id: str) -> None:
        """Raises RateLimited if a new call of this agent would probably be queued for too long."""
        waiting = self._queued.get(agent_id)
        if waiting is not None:
            expected = (len(waiting.calls) + 1) * waiting.interval
            if expected > self._max_wait_seconds:
                raise self._overloaded()

    @asynccontextmanager
    async def slot(self, agent_id: str) -> AsyncIterator[None]:
        """Waits for a slot and occupies it. Raises RateLimited."""
        if self._can_start(agent_id):
            self._running[agent_id] += 1
        else:
            self.reject_long_waits(agent_id)
            await self._wait_for_turn(agent_id)
        try:
            yield
        finally:
            self._release(agent_id)

    def _can_start(self, agent_id: str) -> bool:
        return self._running.total() < self._max_running and self._running[agent_id] < self._max_per_agent

    async def _wait_for_turn(self, agent_id: str) -> None:
        if agent_id not in self._queued:
            self._queued[agent_id] = _Waiting(self._clock())
        granted = asyncio.get_running_loop().create_future()
        self._queued[agent_id].calls.append(granted)
        try:
            async with asyncio.timeout(self._max_wait_seconds):
                await granted
        except (TimeoutError, asyncio.CancelledError) as cause:
            if granted.cancelled():
                self._remove(agent_id, granted)
            else:  # granted just before
                self._release(agent_id)
            if isinstance(cause, TimeoutError):
                raise self._overloaded() from cause
            raise

    def _remove(self, agent_id: str, granted: asyncio.Future[None]) -> None:
        waiting = self._queued.get(agent_id)
        if waiting is not None and granted in waiting.calls:
            waiting.calls.remove(granted)
            if not waiting.calls:
                del self._queued[agent_id]

    def _release(self, agent_id: str) -> None:
        waiting = self._queued.get(agent_id)
        if waiting is not None:
            now = self._clock()
            waiting.interval += SMOOTHING * (now - waiting.last_completion - waiting.interval)
            waiting.last_completion = now
        self._running[agent_id] -= 1
        if not self._running[agent_id]:
            del self._running[agent_id]
        while self._running.total() < self._max_running:
            # At most one agent is at its limit and skipped.
            turn = next(filter(self._can_start, self._queued), None)
            if turn is None:
                break
            self._grant_next(turn)

    def _grant_next(self, agent_id: str) -> None:
        """Starts the agent's first queued call, unless its task was cancelled, and puts the agent last."""
        waiting = self._queued[agent_id]
        granted = waiting.calls.popleft()
        if not granted.done():
            self._running[agent_id] += 1
            granted.set_result(None)
            self._queued.move_to_end(agent_id)
        if not waiting.calls:
            del self._queued[agent_id]

    def _overloaded(self) -> RateLimited:
        # By then all calls that are queued now have left the queue.
        seconds = max(MIN_RETRY_AFTER_SECONDS, self._max_wait_seconds)
        return RateLimited("The service is overloaded: try again.", data={"retry_after_seconds": seconds})
