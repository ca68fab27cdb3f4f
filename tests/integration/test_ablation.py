"""Ablation: switching off each part changes answers on a small set, or the part is reported as unused."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator

import pytest

from agentcore.runtime import open_runtime
from benchmarks.ablated_parts import AGAIN, CHOICES, FROM_BELOW, PRODUCT
from benchmarks.ablation import ablated, idle, report, sets, uncounted, unused
from benchmarks.service import SECRET, Service
from tests.fixtures.memory import settings_for
from tests.fixtures.services import Services

QUICK = Namespace(eval=None, life=[], questions=9, retrievals=3)


@pytest.fixture
async def service(services: Services) -> AsyncIterator[Service]:
    async with open_runtime(settings_for(services, jwt_secret_key=SECRET)) as runtime:
        yield uncounted(Service(runtime))


async def test_every_part_changes_an_answer_or_is_reported(service: Service) -> None:
    found = await ablated(service, sets(QUICK)["small"], list(CHOICES))
    changing = {name for name, row in found["adds"].items() if row["answers changed"]}
    below = {part.name for part in FROM_BELOW}
    assert {*changing, *idle(found), *unused(found), *below, AGAIN} == {*CHOICES}
    assert not changing & {*idle(found), *unused(found)}
    assert {"weight similarity", "weight words", "everyday words"} <= changing
    # The set is stored with `force`, names no task and has no history; "told once" acts in contexts only.
    assert {"rejection", "told once"} <= {*unused(found)}
    assert AGAIN not in changing
    assert list(found["from below"]) == [part.name for part in FROM_BELOW]
    assert "| from below, per cent |" in "\n".join(report("small", found))


async def test_a_stream_is_asked_between_its_stores_with_and_without_what_acts_when_storing(service: Service) -> None:
    quick = Namespace(**{**vars(QUICK), "questions": None, "retrievals": 40})
    found = await ablated(service, sets(quick)["plain wording"], ["statements", "settling"])
    adds = found["adds"]["statements"]
    assert found["questions"] == {"contradictory": 40, "current": 40}
    assert adds["answers changed"] > 0
    assert adds["contradictory"][0] < 0
    assert found["adds"]["settling"]["calls"] > 0


async def test_a_life_is_asked_by_both_methods(service: Service) -> None:
    options = Namespace(**{**vars(QUICK), "life": ["developer"], "questions": 4})
    found = await ablated(service, sets(options)["lives"], ["told once"])
    assert {"first", "off-topic silent, context"} <= found["product"].keys()
    assert found["adds"]["told once"]["calls"]
    assert PRODUCT not in found["adds"]
