"""The index keeper over trouble: half-made indexes, and partitions that cannot be served."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agentcore import migration
from agentcore.database import query
from agentcore.maintenance import index_keeper
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.memory.params import StoreBatchParams, StoreParams
from agentcore.memory.vector_index import IndexPolicy
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.databases import OwnDatabase, own_database
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

DIMENSIONS = 64


@pytest.fixture
def own(services: Services) -> Iterator[OwnDatabase]:
    with own_database(services) as database:
        migration.upgrade(database.url)
        yield database


@pytest.fixture
async def filled(
    services: Services, own: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Runtime]:
    """Two partitions that are large enough for an index of their own."""
    monkeypatch.setattr(index_keeper, "MIN_ROWS", 40)
    async with open_runtime(settings_for(services, database_url=own.url)) as runtime:
        for agent_id in ("ada", "grace"):
            items = [StoreParams(content=f"Reading {n} of the sensor was {n * 31 % 977}.") for n in range(60)]
            await Agent(runtime, agent_id).memory.store_batch(StoreBatchParams(items=items))
        async with runtime.database.owner_transaction() as connection:
            await connection.execute("ANALYZE memories")
        yield runtime


async def partitions(runtime: Runtime) -> dict[str, list[dict[str, Any]]]:
    """The indexes of each filled partition."""
    async with runtime.database.owner_transaction() as connection:
        rows = await (await connection.execute(query("partition_sizes"))).fetchall()
    return {row["partition"]: row["indexes"] for row in rows if row["rows"]}


async def keep(runtime: Runtime) -> int:
    return await IndexKeeper(runtime.database, runtime.parts.vector_model, DIMENSIONS, IndexPolicy()).round()


async def test_an_index_whose_maker_was_stopped_before_the_comment_is_swept(filled: Runtime) -> None:
    first, second = sorted(await partitions(filled))
    async with filled.database.owner_autocommit() as connection:
        await connection.execute(
            f"CREATE INDEX ann_half_made ON {first} USING ivfflat "
            f"((embedding::halfvec({DIMENSIONS})) halfvec_cosine_ops) WITH (lists = 2)".encode())
    assert await keep(filled) == 2
    left = await partitions(filled)
    assert {name: len(indexes) for name, indexes in left.items()} == {first: 1, second: 1}
    assert all(index["comment"] for indexes in left.values() for index in indexes)
    assert await keep(filled) == 0


async def test_a_partition_that_fails_is_logged_and_the_next_is_served(
    filled: Runtime, own: OwnDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = sorted(await partitions(filled))
    own.as_administrator(f"ALTER TABLE {first} OWNER TO postgres")
    with caplog.at_level(logging.WARNING, "agentcore.maintenance"):
        assert await keep(filled) == 1
    left = await partitions(filled)
    assert (len(left[first]), len(left[second])) == (0, 1)
    assert [record.getMessage() for record in caplog.records] == [f"the vector index of {first} waits"]
    own.as_administrator(f"ALTER TABLE {first} OWNER TO agentcore")
    assert await keep(filled) == 1
