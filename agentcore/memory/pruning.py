"""Decides which memories to prune. Pure."""

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
# Equal worths may differ in the last bits. Rounding makes a dry run and the prune after it use one order.
WORTH_DIGITS = 12


@dataclass(frozen=True)
class Prunable:
    memory_id: UUID
    version: int
    timestamp: datetime
    relevance_score: float
    pinned: bool
    access_count: int
    last_accessed: datetime | None


@dataclass(frozen=True)
class PruningPolicy:
    """How many memories of a layer to prune; `target`: a count (int) or a share (float). `capacity` 0: unlimited.

    `default_share` applies without a target while the capacity is not exceeded.
    """

    strategy: str = "least_relevant"
    capacity: int = 0
    target: int | float | None = None
    default_share: float = DEFAULT_SHARE


Strategy = Callable[[Prunable, datetime], Any]
STRATEGIES: dict[str, Strategy] = {}


def strategy(key: Strategy) -> Strategy:
    """Registers a sort key as a strategy: memories with the smallest key are pruned first."""
    STRATEGIES[key.__name__] = key
    return key


@strategy
def least_relevant(memory: Prunable, now: datetime) -> Any:
    """Importance, recency and frequency of use combined."""
    often = frequency(memory.access_count, memory.last_accessed, now, HALF_LIFE_DAYS)
    worth = retention(memory.relevance_score, often, recency(memory.timestamp, now, HALF_LIFE_DAYS))
    return round(worth, WORTH_DIGITS)


@strategy
def oldest_first(memory: Prunable, now: datetime) -> Any:
    return memory.timestamp


@strategy
def frequency_based(memory: Prunable, now: datetime) -> Any:
    """Least used first, then the longest unused."""
    return memory.access_count, memory.last_accessed or memory.timestamp


@strategy
def retention_curve(memory: Prunable, now: datetime) -> Any:
    """By exp(-t / S): time unused over a stability that grows with use."""
    return remembered(memory.last_accessed or memory.timestamp, memory.access_count, now)


def decide(memories: Sequence[Prunable], policy: PruningPolicy, now: datetime) -> list[Prunable]:
    """Returns the memories to prune, in order; never a pinned one."""
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
