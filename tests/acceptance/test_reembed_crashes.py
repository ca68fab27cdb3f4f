"""Kills `agentcore reembed` at its fault points, on a separate database.

Runs a few kills chosen by CRASH_SEED; `make bench ARGS=reembed_crashes` runs 200.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from agentcore import model_watch
from agentcore.runtime import open_runtime
from benchmarks.crash.nursery import Nursery, nursery
from benchmarks.crash.reembedded import Reembedding
from benchmarks.crash.torn import Place, Remains, points
from tests.fixtures.databases import migrated_database
from tests.fixtures.memory import settings_for
from tests.fixtures.services import Services

SEED = int(os.environ.get("CRASH_SEED", time.time_ns() % 1_000_000))
KILLS = 4


@pytest.fixture(scope="module")
def forking() -> Iterator[Nursery]:
    """Starts the process that forks the commands."""
    with nursery() as made:
        yield made


@pytest.fixture
async def trials(
    services: Services, forking: Nursery, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Reembedding]:
    """Runs trials with the test's variant, by default with the correct code."""
    monkeypatch.setattr(model_watch, "WATCH_SECONDS", 0.02)
    telling = getattr(request, "param", "in a hurry")
    with migrated_database(services) as own:
        async with open_runtime(settings_for(services, database_url=own.url)) as runtime:
            assert runtime.parts.archive is not None
            secret = runtime.settings.jwt_secret_key
            assert secret is not None
            place = Place(
                runtime.parts,
                runtime.parts.archive,
                own.url,
                {
                    "DATABASE_URL": own.url,
                    "REDIS_URL": services.redis_url,
                    "AGENTCORE_HOME": str(services.home),
                    "LOG_LEVEL": "ERROR",
                    "JWT_SECRET_KEY": secret.get_secret_value(),
                },
            )
            made = Reembedding(runtime, place, forking, random.Random(SEED), telling=telling)
            await made.fill()
            yield made


@pytest.mark.shows("issue4-10.2")
async def test_wherever_it_is_killed_the_next_process_ends_with_every_vector_the_right_one(trials: Reembedding) -> None:
    chosen = random.Random(SEED).sample(points("reembed"), KILLS)
    found = {each: await trials.trial(each) for each in chosen}
    assert found == {each: Remains() for each in chosen}, f"CRASH_SEED={SEED}"


@pytest.mark.parametrize("trials", ["named before moved"], indirect=True)
@pytest.mark.shows("issue4-10.2")
async def test_the_verdict_sees_a_vector_that_is_named_before_it_is_moved(trials: Reembedding) -> None:
    assert (await trials.trial("reembed.moved", which=1)).altered > 0
