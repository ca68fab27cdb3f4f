"""Running an action for each of several items, and the failures that stop the rest."""

from __future__ import annotations

import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.memory.consequences.pending_work import BUSY, do_each

OF_ALL = DependencyUnavailable("The model does not answer.")
OF_ONE = [DependencyUnavailable(why, data={why: True}) for why in ("refused", "unreadable", BUSY)]


async def tried(*failures: DependencyUnavailable | None) -> tuple[list[int], DependencyUnavailable | None]:
    """Returns the items tried with these failures, and the error raised."""
    places: list[int] = []

    async def do(place: int) -> None:
        places.append(place)
        if failure := failures[place]:
            raise failure

    try:
        await do_each(range(len(failures)), do)
    except DependencyUnavailable as raised:
        return places, raised
    return places, None


async def test_what_does_not_fail_raises_nothing() -> None:
    assert await tried(None, None) == ([0, 1], None)


@pytest.mark.parametrize("failure", OF_ONE, ids=str)
async def test_what_fails_by_itself_is_raised_when_all_others_had_their_turn(failure: DependencyUnavailable) -> None:
    assert await tried(None, failure, None, *OF_ONE) == ([0, 1, 2, 3, 4, 5], failure)


async def test_what_would_fail_for_all_ends_it_and_the_first_failure_is_raised() -> None:
    assert await tried(None, OF_ALL, None) == ([0, 1], OF_ALL)
    assert await tried(OF_ONE[0], OF_ALL, None) == ([0, 1], OF_ONE[0])
