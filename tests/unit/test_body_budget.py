"""The byte budget of all request bodies: a share is reserved for small bodies and for other agents."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from agentcore.admission import BodyBudget
from agentcore.errors import RateLimited
from agentcore.rpc import LARGE_BODY_BYTES

LIMIT = 64 * LARGE_BODY_BYTES
LARGEST = LIMIT // 4


def take(budget: BodyBudget, bodies: ExitStack, agent_id: str, *sizes: int) -> None:
    hold = bodies.enter_context(budget.share(agent_id))
    for size in sizes:
        hold(size)


def test_one_largest_body_of_an_agent_fits_and_no_second_one() -> None:
    budget = BodyBudget(LIMIT)
    with ExitStack() as bodies:
        take(budget, bodies, "ada", LARGEST // 2, LARGEST)
        with pytest.raises(RateLimited) as caught:
            take(budget, bodies, "ada", LARGE_BODY_BYTES, LARGE_BODY_BYTES + 1)
        assert caught.value.data == {"retry_after_seconds": 1.0, "max_bodies_bytes": LIMIT}
        take(budget, bodies, "ada", LARGE_BODY_BYTES)


@pytest.mark.shows("issue13-bodies")
def test_large_bodies_of_many_agents_leave_half_to_small_ones() -> None:
    budget = BodyBudget(LIMIT)
    with ExitStack() as bodies:
        for agent_id in ("ada", "bob"):
            take(budget, bodies, agent_id, LARGEST)
        with pytest.raises(RateLimited):
            take(budget, bodies, "cleo", LARGE_BODY_BYTES + 1)
        for agent_id in ("cleo", "dan"):
            for _ in range(LARGEST // LARGE_BODY_BYTES):
                take(budget, bodies, agent_id, LARGE_BODY_BYTES)
        assert len(budget) == LIMIT
        with pytest.raises(RateLimited):
            take(budget, bodies, "eve", 1)


@pytest.mark.shows("issue13-bodies")
def test_small_bodies_of_one_agent_leave_half_to_others() -> None:
    budget = BodyBudget(LIMIT)
    with ExitStack() as bodies:
        for _ in range(LIMIT // 2 // LARGE_BODY_BYTES):
            take(budget, bodies, "ada", LARGE_BODY_BYTES)
        with pytest.raises(RateLimited):
            take(budget, bodies, "ada", 1)
        take(budget, bodies, "bob", LARGEST)


def test_what_has_ended_or_was_refused_holds_nothing() -> None:
    budget = BodyBudget(LIMIT)
    with ExitStack() as bodies:
        take(budget, bodies, "ada", LARGEST)
        with pytest.raises(RateLimited), ExitStack() as refused:
            take(budget, refused, "ada", 1_000, LARGEST)
        assert len(budget) == LARGEST
    assert len(budget) == 0
    assert vars(budget)["_held"] == {}
