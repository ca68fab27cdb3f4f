"""Pruning strategies: order, count and exemptions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.pruning import STRATEGIES, Prunable, PruningPolicy, decide

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def memory(
    number: int, *, age_days: float = 1, importance: float = 0.5, pinned: bool = False, accesses: int = 0
) -> Prunable:
    used = NOW if accesses else None
    return Prunable(UUID(int=number), 1, NOW - timedelta(days=age_days), importance, pinned, accesses, used)


def going(memories: list[Prunable], **policy: object) -> list[int]:
    return [each.memory_id.int for each in decide(memories, PruningPolicy(**policy), NOW)]  # type: ignore[arg-type]


@pytest.mark.shows("FR-5.2")
def test_least_relevant_takes_the_lowest_worth_first() -> None:
    memories = [memory(1, importance=0.9), memory(2, importance=0.1), memory(3, importance=0.1, accesses=90)]
    assert going(memories, target=3) == [2, 3, 1]


def test_memories_of_equal_worth_go_in_the_same_order_whenever_it_is_asked() -> None:
    # One month older but fully used equals unused: the half-life is a month.
    unused = Prunable(UUID(int=1), 1, NOW, 0.0, False, 0, None)
    older = NOW - timedelta(days=30)
    used = Prunable(UUID(int=2), 1, older, 0.0, False, 109, older)
    policy = PruningPolicy("least_relevant", target=2)
    moments = [NOW + timedelta(days=174, milliseconds=ms) for ms in range(2_000)]
    orders = {tuple(each.memory_id.int for each in decide([unused, used], policy, now)) for now in moments}
    assert orders == {(2, 1)}


@pytest.mark.shows("FR-5.2")
def test_oldest_first_takes_the_earliest() -> None:
    assert going([memory(1, age_days=1), memory(2, age_days=9)], strategy="oldest_first", target=1) == [2]


@pytest.mark.shows("FR-5.2")
def test_frequency_based_takes_the_least_used() -> None:
    memories = [memory(1, accesses=5), memory(2, accesses=1), memory(3)]
    assert going(memories, strategy="frequency_based", target=2) == [3, 2]


@pytest.mark.shows("issue4-5-curve")
def test_the_retention_curve_takes_what_is_most_forgotten() -> None:
    # exp(-t / S): exp(-2) unused for 2 days, exp(-1) used 9 times and idle for 10; old memories are not all
    # 0.
    memories = [
        memory(1, age_days=2),
        Prunable(UUID(int=2), 1, NOW - timedelta(days=90), 0.5, False, 9, NOW - timedelta(days=10)),
        memory(3, age_days=4_000),
        Prunable(UUID(int=4), 1, NOW - timedelta(days=8_000), 0.5, False, 1, NOW - timedelta(days=7_900)),
        memory(5, age_days=-1),
    ]
    assert going(memories, strategy="retention_curve", target=5) == [3, 4, 1, 2, 5]


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        ({}, 4),
        ({"capacity": 15}, 5),
        ({"capacity": 30}, 4),
        ({"target": 3}, 3),
        ({"target": 0.5}, 10),
        ({"target": 1}, 1),
        ({"target": 1.0}, 20),
        ({"target": 99}, 20),
    ],
)
@pytest.mark.shows("FR-5.1")
def test_how_many_go(policy: dict[str, float], count: int) -> None:
    assert len(going([memory(number) for number in range(20)], **policy)) == count


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_pinned_memory_never_goes(strategy: str) -> None:
    memories = [memory(1, pinned=True, importance=0, age_days=900), memory(2)]
    assert going(memories, strategy=strategy, target=99) == [2]
