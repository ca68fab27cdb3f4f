"""One caller exceeds each limit of a running service while another polls its health."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentcore.limits import LIMITS
from benchmarks.limits import AGENTS, ANSWERS, DELAY_MS, ELSEWHERE, GROWTH_MB, SETTINGS, exceed_all
from tests.fixtures.serving import Serving

# A machine is quiet if /healthz answers within this time without load; then the strict bound applies.
QUIET_MS = 50.0
# On a busy machine a delay counts only if the service itself used that much CPU time in every attempt.
ATTEMPTS, BUSY_MS = 3, 4 * DELAY_MS


@pytest.mark.shows("A2", "A3", "A7")
def test_no_request_beyond_a_limit_delays_or_enlarges_the_service(new_serving: Callable[..., Serving]) -> None:
    serving = new_serving(**SETTINGS)
    serving.start()
    serving.await_listening()
    harmful: list[set[str]] = []
    while len(harmful) < ATTEMPTS and (not harmful or harmful[-1]):
        names = {name: f"{name}-{len(harmful)}" for name in AGENTS}
        baseline_ms, seen = exceed_all(
            serving.url, serving.process.pid, {name: serving.token(own) for name, own in names.items()}
        )
        assert {each.limit: each.answer for each in seen if each.limit in ANSWERS} == ANSWERS
        assert [each for each in seen if each.growth_mb > GROWTH_MB] == []
        is_quiet = baseline_ms < QUIET_MS
        harmful.append(
            {each.limit for each in seen if (each.delay_ms > DELAY_MS if is_quiet else each.own_ms > BUSY_MS)}
        )
    assert set.intersection(*harmful) == set()
    assert serving.stop() == 0


@pytest.mark.shows("issue13-limits-table")
def test_each_limit_of_the_table_is_exceeded() -> None:
    exceeded = {name for name in ANSWERS if not name.startswith("within")}
    assert exceeded | ELSEWHERE == {limit.name for limit in LIMITS}
