"""Which memories go: strategies turn memories, a policy and a time into decisions. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.params.memories import DEFAULT_SHARE
from agentcore.memory.scoring import frequency, recency, remembered, retention

HALF_LIFE_DAYS = 30.0
# A used memory may be worth exactly what a younger, unused one is, but not to the last bit: what differs by
# less is equal, or a dry run and the prune after it would name the two in another order.
WORTH_DIGITS = 12


@dataclass(frozen=True)
class Prunable:
    """What a strategy knows of a memory."""

    memory_id: UUID
    version: int
    timestamp: datetime
    relevance_score: float
    pinned: bool
    access_count: int
    last_accessed: datetime | None


@dataclass(frozen=True)
class PruningPolicy:
    """How far a layer is cut back. `capacity` 0: unlimited. An int `target` is a count, a float a share.

    `default_share` goes where there is no target and the capacity is not exceeded.
    """

    strategy: str = "least_relevant"
    capacity: int = 0
    target: int | float | None = None
    default_share: float = DEFAULT_SHARE


Strategy = Callable[[Prunable, datetime], Any]
STRATEGIES: dict[str, Strategy] = {}


def strategy(key: Strategy) -> Strategy:
    """Register a strategy by its function's name: the memories with the smallest key go first."""
    STRATEGIES[key.__name__] = key
    return key


@strategy
def least_relevant(memory: Prunable, now: datetime) -> Any:
    """The lowest worth first: importance, recency and use together."""
    often = frequency(memory.access_count, memory.last_accessed, now, HALF_LIFE_DAYS)
    worth = retention(memory.relevance_score, often, recency(memory.timestamp, now, HALF_LIFE_DAYS))
    return round(worth, WORTH_DIGITS)


@strategy
def oldest_first(memory: Prunable, now: datetime) -> Any:
    """The earliest timestamp first."""
    return memory.timestamp


@strategy
def frequency_based(memory: Prunable, now: datetime) -> Any:
    """The least used first, then the longest unused."""
    return memory.access_count, memory.last_accessed or memory.timestamp


@strategy
def retention_curve(memory: Prunable, now: datetime) -> Any:
    """The most forgotten first, by exp(-t / S): time unused against a stability that use adds to."""
    return remembered(memory.last_accessed or memory.timestamp, memory.access_count, now)


def decide(memories: Sequence[Prunable], policy: PruningPolicy, now: datetime) -> list[Prunable]:
    """The memories that go, in the order they go; never a pinned one."""
    key = STRATEGIES[policy.strategy]
    free = [memory for memory in memories if not memory.pinned]
    free.sort(key=lambda memory: (key(memory, now), memory.timestamp, memory.memory_id))
    return free[: _how_many(len(memories), policy)]


def _how_many(size: int, policy: PruningPolicy) -> int:
    if isinstance(policy.target, float):
        return math.floor(size * policy.target)
    if policy.target is not None:
        return policy.target
    if policy.capacity and size > policy.capacity:
        return size - policy.capacity
    return math.floor(size * policy.default_share)
