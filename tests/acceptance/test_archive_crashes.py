"""Kills `agentcore serve` at the fault points of prune, restore and erase.

Runs a few kills chosen by CRASH_SEED; `make bench ARGS=archive_crashes` runs 200 of each kind.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest

from agentcore.runtime import Runtime
from benchmarks.crash.erased import Erasing
from benchmarks.crash.nursery import Nursery, nursery
from benchmarks.crash.torn import Place, Remains, Tearing, points
from tests.fixtures.services import Services

SEED = int(os.environ.get("CRASH_SEED", time.time_ns() % 1_000_000))
IN_A_DIRECTORY = {
    kind: [each for each in points(kind) if each != "archive.put"] for kind in ("prune", "archive", "restore")
}


@pytest.fixture(scope="module")
def forking() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture
def place(runtime: Runtime, services: Services) -> Place:
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    assert runtime.parts.archive is not None
    return Place(
        runtime.parts,
        runtime.parts.archive,
        services.database_url,
        {
            "DATABASE_URL": services.database_url,
            "REDIS_URL": services.redis_url,
            "AGENTCORE_HOME": str(services.home),
            "EMBEDDING_MODEL": "hashing",
            "EMBEDDING_DIMENSIONS": "64",
            "JWT_SECRET_KEY": secret.get_secret_value(),
            "MAINTENANCE_IN_SERVER": "false",
            "LOG_LEVEL": "ERROR",
        },
    )


@pytest.mark.shows("issue4-shows-crashes")
async def test_wherever_a_prune_or_a_restore_is_killed_nothing_is_lost_and_a_repeat_completes(
    place: Place, forking: Nursery
) -> None:
    chance = random.Random(SEED)
    tearing = Tearing(place, forking, chance)
    chosen = [each for kind, of_kind in IN_A_DIRECTORY.items() for each in chance.sample(of_kind, 2)]
    found = {each: await tearing.trial(each) for each in chosen}
    assert found == {each: Remains() for each in chosen}, f"CRASH_SEED={SEED}"


@pytest.mark.shows("issue4-8-crashes")
async def test_wherever_an_erasure_is_killed_the_same_call_leaves_nothing_and_takes_nobody_elses(
    place: Place, forking: Nursery
) -> None:
    chance = random.Random(SEED)
    tearing, chosen = Erasing(place, forking, chance), chance.sample(points("erase"), 2)
    found = {each: await tearing.trial(each) for each in chosen}
    assert found == {each: Remains() for each in chosen}, f"CRASH_SEED={SEED}"


@pytest.mark.shows("issue4-8-crashes")
async def test_the_verdict_sees_an_erasure_that_takes_sources_before_what_was_made_of_them(
    place: Place, forking: Nursery
) -> None:
    erasing = Erasing(place, forking, random.Random(SEED), telling="sources first")
    assert (await erasing.trial("erase.committed", which=3)).unfinished > 0


@pytest.mark.shows("issue4-shows-crashes")
async def test_the_verdict_sees_a_prune_that_archives_after_it_deletes(place: Place, forking: Nursery) -> None:
    tearing = Tearing(place, forking, random.Random(SEED), telling="archive after delete")
    assert (await tearing.trial("prune.committed")).lost > 0
