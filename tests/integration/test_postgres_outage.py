"""A stopped PostgreSQL: calls fail fast, wait for a busy server, and succeed once it is back."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from psycopg import sql

from agentcore import migration
from agentcore.agents.open_memory import open_memory
from agentcore.database import Database, Statement
from agentcore.embedded import EmbeddedParts, Home
from agentcore.errors import DependencyUnavailable
from tests.fixtures.embedded_parts import new_home
from tests.integration.test_open_memory import HAWAII, found, settings_of, stored

NUMBER: list[Statement] = [(sql.SQL("SELECT 7 AS seven"), {})]
# A call used to take 10 s. The bounds include a margin for a busy machine.
FIRST_SECONDS, LATER_SECONDS, BACK_SECONDS = 8.0, 5.0, 20.0


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with new_home() as made:
        yield made


@pytest.fixture
async def parts(home: Home) -> AsyncIterator[EmbeddedParts]:
    """A PostgreSQL that a test stops and starts."""
    async with EmbeddedParts(home, postgres=True, redis=False, log=logging.info) as started:
        assert started.urls.database_url is not None
        await asyncio.to_thread(migration.upgrade, started.urls.database_url)
        yield started


@pytest.fixture
async def database(parts: EmbeddedParts) -> AsyncIterator[Database]:
    made = Database(parts.urls.database_url or "", pool_size=1)
    await made.open()
    yield made
    await made.close()


async def seven(database: Database) -> object:
    [[row]] = await database.fetch("anyone", NUMBER)
    return row["seven"]


async def refused_in(database: Database) -> float:
    begun = time.monotonic()
    with pytest.raises(DependencyUnavailable, match="PostgreSQL does not answer"):
        await seven(database)
    return time.monotonic() - begun


async def test_a_caller_knows_soon_that_postgresql_is_away_and_is_served_once_it_is_back(
    parts: EmbeddedParts, database: Database
) -> None:
    assert await seven(database) == 7
    await parts.stop()
    assert await refused_in(database) < FIRST_SECONDS
    assert max([await refused_in(database) for _ in range(3)]) < LATER_SECONDS
    await parts.start()
    begun = time.monotonic()
    while True:
        try:
            assert await seven(database) == 7
            break
        except DependencyUnavailable:
            assert time.monotonic() - begun < BACK_SECONDS
    assert await seven(database) == 7


async def test_callers_who_wait_as_postgresql_goes_away_know_soon(parts: EmbeddedParts, database: Database) -> None:
    used, gone = asyncio.Event(), asyncio.Event()

    async def use() -> None:
        async with database.transaction("anyone") as connection:
            used.set()
            await gone.wait()
            await connection.execute("SELECT 7")

    using = asyncio.create_task(use())
    await used.wait()
    waiting = asyncio.create_task(refused_in(database))
    began = time.monotonic()
    await parts.stop()
    stopped_in = time.monotonic() - began
    gone.set()
    with pytest.raises(DependencyUnavailable):
        await using
    assert await waiting < stopped_in + FIRST_SECONDS


async def test_a_connection_that_is_only_in_use_is_waited_for(database: Database) -> None:
    async with database.transaction("anyone"):
        waiting = asyncio.create_task(seven(database))
        done, _ = await asyncio.wait({waiting}, timeout=FIRST_SECONDS)
        assert not done
    assert await waiting == 7


# --- second PostgreSQL of another program -------------------------------------------------------------------


async def test_a_memory_whose_parts_ended_with_another_program_says_so_at_once(home: Home) -> None:
    settings = settings_of(home)
    owner = AsyncExitStack()
    first = await owner.enter_async_context(open_memory(agent_id="ada", settings=settings))
    assert await stored(first)
    async with open_memory(agent_id="ada", settings=settings) as second:
        assert await found(second) == [HAWAII]
        await owner.aclose()
        begun = time.monotonic()
        with pytest.raises(DependencyUnavailable, match=r"has ended\. Open the memory again") as caught:
            await found(second)
        assert time.monotonic() - begun < LATER_SECONDS
        assert "PoolTimeout" not in "".join(traceback.format_exception(caught.value))
    async with open_memory(agent_id="ada", settings=settings) as again:
        assert await found(again) == [HAWAII]
