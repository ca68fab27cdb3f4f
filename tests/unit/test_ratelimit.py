"""The rate limit per agent and minute: an evenly refilled bucket, removed once it is full."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore import admission
from agentcore.admission import RateLimit
from agentcore.errors import RateLimited, TooLarge
from agentcore.memory.api import METHODS
from agentcore.memory.jsonrpc import cost_of, memory_methods

BY_NAME = {each.name: each for each in memory_methods()}


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def wait_of(limit: RateLimit, agent_id: str, calls: int) -> float:
    with pytest.raises(RateLimited) as caught:
        limit.admit(agent_id, calls)
    return float(caught.value.data["retry_after_seconds"])


def test_a_minutes_calls_may_come_at_once_and_then_one_waits_as_long_as_it_says() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    limit.admit("ada", 60)
    assert wait_of(limit, "ada", 1) == 1.0
    assert wait_of(limit, "ada", 30) == 30.0
    clock.now += 29.5
    assert wait_of(limit, "ada", 30) == 0.5
    clock.now += 0.5
    limit.admit("ada", 30)
    assert wait_of(limit, "ada", 1) == 1.0


def test_what_is_refused_takes_nothing() -> None:
    limit = RateLimit(10, Clock())
    limit.admit("ada", 9)
    for _ in range(5):
        assert wait_of(limit, "ada", 2) == 6.0
    limit.admit("ada", 1)


def test_agents_do_not_share_a_bucket() -> None:
    limit = RateLimit(1, Clock())
    for agent_id in ("a", "b", "a:b", ""):
        limit.admit(agent_id, 1)
    assert wait_of(limit, "a", 1) == 60.0


@pytest.mark.parametrize("pause", [60.0, 90.0, 120.0, 100_000.0])
def test_a_bucket_is_full_again_after_a_minute_and_never_fuller(pause: float) -> None:
    clock = Clock()
    limit = RateLimit(10, clock)
    limit.admit("ada", 10)
    clock.now += pause
    limit.admit("ada", 10)
    assert wait_of(limit, "ada", 1) == 6.0


def test_an_empty_bucket_is_not_forgotten_before_it_is_full() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    clock.now += 59
    limit.admit("ada", 60)
    clock.now += 2  # the generation changes
    limit.admit("bob", 1)
    assert wait_of(limit, "ada", 10) == 8.0


def test_agents_that_left_take_no_memory() -> None:
    clock = Clock()
    limit = RateLimit(10, clock)
    for number in range(1_000):
        limit.admit(f"agent {number}", 1)
    for _ in range(3):
        clock.now += 61
        limit.admit("ada", 1)
    assert len(limit) == 1


def test_what_costs_more_than_a_minute_allows_is_never_admitted_and_told_what_to_do() -> None:
    with pytest.raises(TooLarge, match="costs 11 units, and an agent may spend 10 a minute") as caught:
        RateLimit(10).admit("ada", 11)
    assert caught.value.data == {"units": 11, "rate_units": 10}


@pytest.mark.parametrize(
    ("method", "params", "units"),
    [
        ("memory.count", {}, 21),
        ("memory.capabilities", {}, 1),
        ("unknown", {}, 1),
        ("memory.store", {"content": "a"}, 2),
        ("memory.store_batch", {"items": [{}] * 1_000}, 1_001),
        ("memory.store_batch", [[{}] * 9], 10),
        ("memory.retrieve", {"query": "a"}, 2),
        ("memory.retrieve", ["a", 200], 6),
        ("memory.list", {"limit": 1_000}, 21),
        ("memory.list", {"limit": 10**9}, 21),
        ("memory.delete", {"memory_ids": ["a"] * 100}, 23),
        ("memory.get_context", {"query": "a"}, 4),
        ("memory.prune", {}, 21),
        ("memory.list", {"limit": "many", "k": None, "items": "abc"}, 1),
        ("memory.list", {"limit": -5}, 1),
    ],
)
@pytest.mark.shows("A14-rate-limit")
def test_a_call_costs_what_it_embeds_and_reads(method: str, params: Any, units: int) -> None:
    assert cost_of(BY_NAME.get(method), params) == units


@pytest.mark.parametrize("name", ["k", "limit", "max_tokens"])
@pytest.mark.shows("A14-rate-limit")
def test_a_default_costs_what_it_costs_when_it_is_given(name: str) -> None:
    fields = {each.name: each.params.model_fields.get(name) for each in METHODS}
    defaults = {method: field.default for method, field in fields.items() if field is not None}
    assert {method: cost_of(BY_NAME.get(method), {}) for method in defaults} == {
        method: cost_of(BY_NAME.get(method), {name: default}) for method, default in defaults.items()
    }


def test_zero_means_unlimited() -> None:
    limit = RateLimit(0)
    limit.admit("ada", 1_000_000)
    assert len(limit) == 0


def test_refunded_units_may_be_spent_again() -> None:
    limit = RateLimit(2, Clock())
    limit.admit("ada", 2)
    limit.refund("ada", 1)
    limit.admit("ada", 1)
    assert wait_of(limit, "ada", 1) == 30.0
    limit.refund("ada", 5)
    limit.admit("ada", 2)
    limit.refund("ben", 1)
    assert wait_of(limit, "ada", 1) == 30.0
    assert len(limit) == 1


def test_the_number_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_BUCKETS", 3)
    limit = RateLimit(1, Clock())
    for agent_id in ("ada", "ben", "carla", "dmitri"):
        limit.admit(agent_id, 1)
    assert len(limit) == 3
    limit.admit("ada", 1)
    assert wait_of(limit, "dmitri", 1) == 60.0
