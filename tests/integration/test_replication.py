"""Reads on a replica with real streaming replication: lag, conflicts, loss of the replica, failover."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from typing import Any
from uuid import UUID

import pytest
from psycopg import sql

from agentcore.database import Database
from agentcore.errors import AgentCoreError
from agentcore.memory.params.memories import DeleteParams, GetParams
from agentcore.replication import FLOOR_MISSING, LastWriteLsns
from agentcore.runtime import Runtime, open_runtime
from benchmarks.replicated_servers import Replication, replication
from tests.fixtures.embedded_parts import eventually, until
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

FERRY = "The ferry to Skye leaves at 7:15."
CALLERS = 8
RETRY_SECONDS = 0.05


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, services: Services) -> Iterator[Replication]:
    with replication(services.home.with_name(f"{services.home.name}-replication")) as made:
        yield made


def settings_of(services: Services, cluster: Replication, **more: Any) -> Any:
    return settings_for(
        services, **{"database_url": cluster.primary.url(), "database_read_url": cluster.replica.url(), **more}
    )


@pytest.fixture(scope="module")
async def process(services: Services, cluster: Replication) -> AsyncIterator[Runtime]:
    async with open_runtime(settings_of(services, cluster)) as running:
        await Agent(running).found("the first read of the service is one of the primary")
        yield running


@pytest.fixture
async def paused(cluster: Replication) -> AsyncIterator[Replication]:
    """The replica receives all writes and replays none."""
    await cluster.caught_up()
    cluster.replica.execute("SELECT pg_wal_replay_pause()")
    await eventually(lambda: cluster.replica.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])
    yield cluster
    cluster.replica.execute("SELECT pg_wal_replay_resume()")


async def test_a_replica_answers_what_it_has_replayed(process: Runtime, cluster: Replication) -> None:
    agent = Agent(process)
    await agent.stored_id(FERRY)
    await cluster.caught_up()
    await agent.found("ferry to Skye")
    fallbacks = process.database.fallbacks.total()
    before = process.database.statistics()["read"].get("requests_num", 0)
    assert await agent.found("ferry to Skye") == [FERRY]
    assert process.database.statistics()["read"]["requests_num"] > before
    assert process.database.fallbacks.total() == fallbacks


async def test_a_caller_reads_its_own_writes_while_the_replica_lags(process: Runtime, paused: Replication) -> None:
    agent = Agent(process)
    behind = process.database.fallbacks["behind"]
    memory_id = await agent.stored_id(FERRY)
    assert await agent.found("ferry to Skye") == [FERRY]
    assert process.database.fallbacks["behind"] > behind
    await agent.memory.delete(DeleteParams(memory_ids=[memory_id]))
    assert await agent.found("ferry to Skye") == []


async def test_another_process_reads_the_write_too(services: Services, process: Runtime, paused: Replication) -> None:
    async with open_runtime(settings_of(services, paused)) as other:
        writer = Agent(process)
        await writer.stored_id(FERRY)
        reader = Agent(other, writer.agent_id)
        assert await reader.found("ferry to Skye") == [FERRY]
        assert other.database.fallbacks["behind"] > 0


async def test_a_write_whose_position_is_unknown_succeeds_and_is_read_from_the_primary(
    process: Runtime, paused: Replication
) -> None:
    paused.primary.execute("CREATE SCHEMA broken")
    paused.primary.execute("GRANT USAGE ON SCHEMA broken TO PUBLIC")
    paused.primary.execute("CREATE FUNCTION broken.pg_current_wal_flush_lsn() RETURNS int LANGUAGE sql RETURN 1 / 0")
    lsns = LastWriteLsns(process.redis)
    database = Database(paused.primary.url(), read_url=paused.replica.url(), pool_size=1, last_writes=lsns)
    await database.open()
    try:
        await lsns.set_floor(_at(1))
        async with database.transaction("one agent") as connection:
            await connection.execute("INSERT INTO completed_tasks VALUES ('one agent', 'task', now())")
            await connection.execute("SET search_path = broken, pg_catalog, public")
        async with database.write.connection() as connection:
            await connection.execute("RESET search_path")
        assert await lsns.required_lsn("one agent") == FLOOR_MISSING
        count = sql.SQL("SELECT count(*) AS count FROM completed_tasks WHERE agent_id = 'one agent'")
        for _ in range(2):
            assert await database.fetch("one agent", [(count, {})]) == [[{"count": 1}]]
    finally:
        await database.close()
    assert (database.fallbacks["unknown"], database.fallbacks["behind"]) == (1, 1)


async def test_without_redis_the_primary_answers(services: Services, process: Runtime, paused: Replication) -> None:
    nowhere = settings_of(services, paused, redis_url="redis://127.0.0.1:1/0", redis_timeout_seconds=0.5)
    async with open_runtime(nowhere) as other:
        writer = Agent(process)
        await writer.stored_id(FERRY)
        assert await Agent(other, writer.agent_id).found("ferry to Skye") == [FERRY]
        assert other.database.fallbacks["unknown"] > 0


async def test_agents_that_wrote_nothing_stay_on_the_replica(process: Runtime, paused: Replication) -> None:
    quiet = Agent(process)
    fallbacks = process.database.fallbacks.total()
    assert await quiet.found("ferry to Skye") == []
    assert process.database.fallbacks.total() == fallbacks


async def test_counts_of_uses_do_not_send_reads_to_the_primary(process: Runtime, cluster: Replication) -> None:
    agent = Agent(process)
    await agent.stored_id(FERRY)
    await cluster.caught_up()
    await agent.found("ferry to Skye")
    required = await LastWriteLsns(process.redis).required_lsn(agent.agent_id)
    assert await process.parts.accesses.flush(process.parts.storage) >= 1
    assert await LastWriteLsns(process.redis).required_lsn(agent.agent_id) == required


async def test_a_read_that_replay_stops_is_answered_by_the_primary(process: Runtime, cluster: Replication) -> None:
    cluster.primary.execute("CREATE TABLE in_the_way AS SELECT 1 AS number")
    cluster.primary.execute("GRANT SELECT ON in_the_way TO PUBLIC")
    await cluster.caught_up()
    conflicts = process.database.fallbacks["conflict"]
    slow = sql.SQL(
        "SELECT number, pg_sleep_for(CASE WHEN pg_is_in_recovery() THEN '60 s' ELSE '0 s' END::interval) "
        "FROM in_the_way"
    )
    reading = asyncio.create_task(process.database.fetch("agent-of-the-conflict", [(slow, {})]))
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    await eventually(lambda: cluster.replica.execute(sleeping) == [(1,)])
    await asyncio.to_thread(cluster.primary.execute, "ALTER TABLE in_the_way ADD COLUMN word text")
    [[row]] = await reading
    assert row["number"] == 1
    assert process.database.fallbacks["conflict"] == conflicts + 1


async def test_the_lag_is_reported(process: Runtime, paused: Replication) -> None:
    await Agent(process).stored_id(FERRY)
    assert (await process.readiness())["postgresql_read"]["lag_bytes"] > 0


def _at(lsn: int) -> Callable[[], Awaitable[int]]:
    async def read() -> int:
        return lsn

    return read


async def test_positions_are_the_largest_of_all_processes(process: Runtime) -> None:
    one, other = LastWriteLsns(process.redis), LastWriteLsns(process.redis)
    one.cluster = other.cluster = "a cluster of this test"
    assert await one.required_lsn("some agent") == FLOOR_MISSING
    await one.set_floor(_at(1_000))
    await one.record("some agent", 3_000)
    await other.record("some agent", 2_000)
    assert await other.required_lsn("some agent") == 3_000
    assert await other.required_lsn("another agent") == 1_000


async def test_a_position_that_redis_refused_is_published_with_the_next_call(process: Runtime) -> None:
    writer, reader = LastWriteLsns(process.redis), LastWriteLsns(process.redis)
    writer.cluster = reader.cluster = "another cluster of this test"
    await writer.set_floor(_at(1_000))
    assert process.redis is not None
    await process.redis.config_set("min-replicas-to-write", 1)
    try:
        await writer.record("some agent", 2_000)
        assert await writer.required_lsn("some agent") is None
    finally:
        await process.redis.config_set("min-replicas-to-write", 0)
    assert await reader.required_lsn("some agent") == 1_000
    await writer.record("a third agent", 1_500)
    assert await reader.required_lsn("some agent") == 2_000


async def test_after_redis_lost_the_positions_earlier_writes_are_still_read(
    services: Services, process: Runtime, paused: Replication
) -> None:
    async with open_runtime(settings_of(services, paused)) as other:
        writer = Agent(process)
        await writer.stored_id(FERRY)
        assert process.redis is not None
        assert await process.redis.delete(*[key async for key in process.redis.scan_iter(match="memory:positions:*")])
        reader = Agent(other, writer.agent_id)
        assert await reader.found("ferry to Skye") == [FERRY]
        assert await reader.found("ferry to Skye") == [FERRY]
        assert {*other.database.fallbacks} == {"unknown", "behind"}


async def test_a_server_that_is_no_replica_of_the_primary_is_not_read(services: Services, cluster: Replication) -> None:
    async with open_runtime(settings_of(services, cluster, database_read_url=services.database_url)) as running:
        agent = Agent(running)
        await agent.stored_id(FERRY)
        assert await agent.found("ferry to Skye") == [FERRY]
        assert (await running.readiness())["postgresql_read"]["problem"].startswith("It is not a replica")


async def test_a_replica_that_hangs_is_replaced_by_the_primary(process: Runtime, cluster: Replication) -> None:
    agent = Agent(process)
    await agent.stored_id(FERRY)
    await cluster.caught_up()
    processes = cluster.replica.processes()
    assert processes
    unreachable = process.database.fallbacks["unreachable"]
    for each in processes:
        each.suspend()
    try:
        assert await agent.found("ferry to Skye") == [FERRY]
        assert process.database.fallbacks["unreachable"] > unreachable
    finally:
        for each in processes:
            each.resume()


async def test_a_lost_replica_is_replaced_by_the_primary_and_used_again(
    services: Services, cluster: Replication
) -> None:
    agent_id = "agent-of-the-lost-replica"
    async with open_runtime(settings_of(services, cluster)) as running:
        agent = Agent(running, agent_id)
        await agent.stored_id(FERRY)
        await asyncio.to_thread(cluster.replica.stop, "immediate")
        assert await agent.found("ferry to Skye") == [FERRY]
        assert running.database.fallbacks["unreachable"] > 0
        async with open_runtime(settings_of(services, cluster)) as started_meanwhile:
            assert await Agent(started_meanwhile, agent_id).found("ferry to Skye") == [FERRY]
        await asyncio.to_thread(cluster.replica.start)
        await cluster.caught_up()

        async def uses_the_replica() -> bool:
            fallbacks = running.database.fallbacks.total()
            assert await agent.found("ferry to Skye") == [FERRY]
            return running.database.fallbacks.total() == fallbacks

        await until(uses_the_replica)


class Caller:
    """Stores notes one after the other; remembers those that were acknowledged."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.acknowledged: list[UUID] = []
        self.failures: set[str] = set()

    async def store(self, stop: asyncio.Event) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                self.acknowledged.append(await self.agent.stored_id(f"Note {number} of {self.agent.agent_id}."))
            except AgentCoreError as failure:
                self.failures.add(type(failure).__name__)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), RETRY_SECONDS)


async def test_nothing_acknowledged_is_lost_when_the_primary_dies_and_all_callers_go_on(services: Services) -> None:
    directory = services.home.with_name(f"{services.home.name}-failover")
    async with AsyncExitStack() as stack:
        pair = stack.enter_context(replication(directory))
        pair.commit_on_both()
        settings = settings_for(services, database_url=pair.url)
        running = await stack.enter_async_context(open_runtime(settings))
        callers = [Caller(Agent(running)) for _ in range(CALLERS)]
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as storing:
            for caller in callers:
                storing.create_task(caller.store(stop))
            try:
                await every(callers, 5)
                # From now on nothing reaches the replica, so nothing may be acknowledged.
                [receiver] = [each for each in pair.replica.processes() if "walreceiver" in " ".join(each.cmdline())]
                receiver.suspend()
                waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                await eventually(lambda: pair.primary.execute(waiting) == [(CALLERS,)])
                pair.primary.kill()
                receiver.resume()
                await asyncio.to_thread(pair.replica.promote)
                await every(callers, 1)
            finally:
                stop.set()
        for caller in callers:
            for memory_id in caller.acknowledged:
                assert (await caller.agent.memory.get(GetParams(memory_id=memory_id, consistent=True))).memory
        assert {name for caller in callers for name in caller.failures} <= {"Unreachable", "ReadOnlyDatabase"}


async def every(callers: list[Caller], count: int) -> None:
    """Waits until each caller has stored `count` more memories."""
    before = {caller: len(caller.acknowledged) for caller in callers}

    async def stored() -> bool:
        return all(len(caller.acknowledged) >= before[caller] + count for caller in callers)

    await until(stored)
