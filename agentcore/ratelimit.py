"""Rate limit by cost: one token bucket per agent, in this process.

The `limits` library's memory storage sweeps every key on every hit: 2 ms at 10,000 agents.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from agentcore.errors import RateLimited, TooLarge

_PERIOD_SECONDS = 60.0


class RateLimit:
    """`units_per_minute` per agent, refilled continuously; 0: unlimited."""

    def __init__(self, units_per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(units_per_minute)
        self._clock = clock
        # agent -> (units left, when). After an idle period a bucket is full again, so a generation
        # of buckets of that age is dropped: memory use follows the number of active agents.
        self._recent: dict[str, tuple[float, float]] = {}
        self._older: dict[str, tuple[float, float]] = {}
        self._turned_at = clock()

    def __len__(self) -> int:
        """Returns the number of agents with a bucket."""
        return len(self._recent.keys() | self._older.keys())

    def admit(self, agent_id: str, units: int) -> None:
        """Deducts `units` from the agent's bucket, all or none.

        Raises RateLimited with the delay until they are admitted; TooLarge if they exceed the bucket.
        """
        if not self._capacity:
            return
        if units > self._capacity:
            limit = int(self._capacity)
            raise TooLarge(
                f"This request costs {units} units, and an agent may spend {limit} a minute: split it, or "
                "let the operator raise RATE_LIMIT_PER_MINUTE.", data={"units": units, "rate_units": limit})
        now = self._clock()
        self._turn(now)
        left, seen_at = self._recent.get(agent_id) or self._older.get(agent_id) or (self._capacity, now)
        left = min(self._capacity, left + (now - seen_at) * self._capacity / _PERIOD_SECONDS)
        if left < units:
            wait = (units - left) * _PERIOD_SECONDS / self._capacity
            raise RateLimited("Too many requests.", data={"retry_after_seconds": round(wait, 3)})
        self._recent[agent_id] = (left - units, now)

    def _turn(self, now: float) -> None:
        if now - self._turned_at >= _PERIOD_SECONDS:
            stale = now - self._turned_at >= 2 * _PERIOD_SECONDS
            self._older, self._recent = {} if stale else self._recent, {}
            self._turned_at = now
