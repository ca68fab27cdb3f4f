"""One caller exceeds each limit of a running service."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentcore.limits import LIMITS
from benchmarks.limits import AGENTS, ANSWERS, ELSEWHERE, GROWTH_MB, SETTINGS, exceed_all
from tests.fixtures.serving import Serving


@pytest.mark.shows("A2", "A3", "A7")
def test_each_request_beyond_a_limit_is_answered_and_does_not_enlarge_the_service(
    new_serving: Callable[..., Serving],
) -> None:
    """The delay of other callers is measured by the benchmark `limits`."""
    serving = new_serving(**SETTINGS)
    serving.start()
    serving.await_listening()
    _, seen = exceed_all(serving.url, serving.process.pid, {name: serving.token(name) for name in AGENTS})
    assert {each.limit: each.answer for each in seen if each.limit in ANSWERS} == ANSWERS
    assert [each for each in seen if each.growth_mb > GROWTH_MB] == []
    assert serving.stop() == 0


@pytest.mark.shows("issue13-limits-table")
def test_each_limit_of_the_table_is_exceeded() -> None:
    exceeded = {name for name in ANSWERS if not name.startswith("within")}
    assert exceeded | ELSEWHERE == {limit.name for limit in LIMITS}
