"""One caller goes beyond each limit of a running service, another one asks for its health."""

from __future__ import annotations

from collections.abc import Callable

from agentcore.limits import LIMITS
from benchmarks.limits import ANSWERS, DELAY_MS, ELSEWHERE, GROWTH_MB, SETTINGS, exceed_all
from tests.fixtures.serving import Serving

# Other processes keep the cores busy: what is shown strictly on an idle machine is shown by the benchmark.
BUSY = 20


def test_no_request_beyond_a_limit_delays_or_enlarges_the_service(
    new_serving: Callable[..., Serving]
) -> None:
    serving = new_serving(**SETTINGS)
    serving.start()
    serving.await_listening()
    baseline_ms, seen = exceed_all(serving.url, serving.process.pid, serving.token("greedy"))
    assert {each.limit: each.answer for each in seen if each.limit in ANSWERS} == ANSWERS
    bound_ms = max(DELAY_MS * 4, BUSY * baseline_ms)
    assert [each for each in seen if each.delay_ms > bound_ms or each.growth_mb > GROWTH_MB] == []
    assert serving.stop() == 0


def test_each_limit_of_the_table_is_exceeded() -> None:
    exceeded = {name for name in ANSWERS if not name.startswith("within")}
    assert exceeded | ELSEWHERE == {limit.name for limit in LIMITS}
