"""Background jobs prune overfull layers down to the limit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from agentcore.maintenance.rounds import enqueue_missed
from agentcore.memory.archival import object_key
from agentcore.memory.forgetting import removing
from agentcore.memory.params.memories import CountParams, PruneParams, StatsParams, StoreBatchParams, StoreParams
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.memory import Agent, fill, settings_for
from tests.fixtures.services import Services
from tests.fixtures.serving import ROOT, clean_environment

CAPACITY = 50


@pytest.fixture
async def limited(services: Services) -> AsyncIterator[Runtime]:
    async with open_runtime(
        settings_for(services, memory_episodic_capacity=CAPACITY, memory_pruning_strategy="oldest_first")
    ) as running:
        async with running.database.owner_transaction() as connection:
            await connection.execute("DELETE FROM procrastinate_jobs")
        yield running


@pytest.fixture
def agent(limited: Runtime) -> Agent:
    return Agent(limited)


async def jobs_of(agent: Agent) -> list[Any]:
    return await agent.runtime.jobs.queue.page(agent_id=agent.agent_id)


async def run_jobs(runtime: Runtime) -> None:
    while {"waiting", "scheduled"} & {job["state"] for job in await runtime.jobs.queue.page()}:
        await make_due(runtime)
        await runtime.jobs.run_pending()


async def make_due(runtime: Runtime) -> None:
    async with runtime.database.owner_transaction() as connection:
        await connection.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo'")


async def count(agent: Agent, layer: str = "episodic") -> int:
    return (await agent.memory.count(CountParams(memory_types=[layer]))).count


@pytest.mark.shows("issue4-5-automatic")
async def test_a_thousand_stores_side_by_side_make_one_job_and_end_at_the_capacity(agent: Agent) -> None:
    async def store(part: int) -> None:
        for n in range(25):
            items = [StoreParams(content=f"Entry {part}-{n}-{each} of the diary.", force=True) for each in range(5)]
            await agent.memory.store_batch(StoreBatchParams(items=items))

    await asyncio.gather(*(store(part) for part in range(8)))
    assert await count(agent) == 1_000
    assert len(await jobs_of(agent)) == 1
    await run_jobs(agent.runtime)
    assert await count(agent) == CAPACITY
    assert await jobs_of(agent) == []
    stats = await agent.memory.stats(StatsParams())
    assert stats.archived == 1_000 - CAPACITY


async def test_a_layer_within_its_capacity_makes_no_job_and_none_takes_from_it(agent: Agent) -> None:
    await fill(agent, CAPACITY)
    assert await jobs_of(agent) == []
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        await transaction.jobs.enqueue("prune_layer", layer="episodic")
    await run_jobs(agent.runtime)
    assert await count(agent) == CAPACITY


@pytest.mark.shows("issue4-5-kept")
async def test_layers_without_a_capacity_and_working_memory_are_left_alone(agent: Agent) -> None:
    layers = ("semantic", "procedural", "working")
    for layer in layers:
        await fill(agent, CAPACITY + 5, memory_type=layer, force=True)
    assert await jobs_of(agent) == []
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        for layer in layers:
            await transaction.jobs.enqueue("prune_layer", layer=layer)
    await run_jobs(agent.runtime)
    assert [await count(agent, layer) for layer in layers] == [CAPACITY + 5] * 3


@pytest.mark.shows("FR-5.1", "B14")
async def test_every_layer_with_a_capacity_is_kept_to_its_own(services: Services) -> None:
    layers = {"working": {"capacity": 3}, "semantic": {"capacity": 5}, "procedural": {"capacity": 10}}
    async with open_runtime(settings_for(services, memory_layers=layers)) as running:
        agent = Agent(running)
        names = ("working", "semantic", "procedural", "episodic")
        for layer in names:
            await fill(agent, 15, memory_type=layer, force=True)
        await run_jobs(running)
        assert [await count(agent, layer) for layer in names] == [3, 5, 10, 15]
        stats = await agent.memory.stats(StatsParams())
        assert [stats.layers[layer].capacity for layer in stats.layers] == [3, 0, 5, 10]


@pytest.mark.shows("issue4-5-never-taken", "issue4-5-kept")
async def test_neither_pinned_memories_nor_only_copies_are_taken(agent: Agent) -> None:
    ids = await fill(agent, CAPACITY + 20)
    pinned, old, only_copy = ids[:3], ids[3], ids[4]
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET pinned = memory_id = ANY (%s), "
            "superseded_by = CASE WHEN memory_id = %s THEN %s END WHERE agent_id = %s",
            (pinned, old, only_copy, agent.agent_id),
        )
    await run_jobs(agent.runtime)
    left = await rows_of(agent)
    assert len(left) == CAPACITY
    assert {*pinned, only_copy} <= left
    assert old not in left
    assert left == {*pinned, only_copy, *ids[24:]}
    # The memory that it superseded is gone, so no supersession protects it from pruning.
    pruned = await agent.memory.prune(PruneParams(memory_layer="episodic", strategy="oldest_first", target=1))
    assert pruned.memory_ids == [only_copy]


async def rows_of(agent: Agent) -> set[UUID]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute("SELECT memory_id FROM memories WHERE agent_id = %s", (agent.agent_id,))
        return {row["memory_id"] for row in await cursor.fetchall()}


@pytest.mark.shows("issue4-5-automatic")
async def test_what_one_run_has_no_time_for_the_next_ones_do(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    await fill(agent, CAPACITY + removing.PRUNE_CHUNK + 30)
    await run_jobs(agent.runtime)
    assert await count(agent) == CAPACITY


async def test_a_job_that_meets_another_prune_comes_back_later(agent: Agent) -> None:
    await fill(agent, CAPACITY + 5)
    await make_due(agent.runtime)
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        assert await transaction.claim_layer("episodic")
        await agent.runtime.jobs.run_pending()
    [job] = await jobs_of(agent)
    assert (job["state"], job["failure"]) == ("scheduled", None)
    assert job["not_before"] > datetime.now(UTC) + timedelta(seconds=1)
    await run_jobs(agent.runtime)
    assert await count(agent) == CAPACITY


@pytest.mark.shows("issue4-5-automatic")
async def test_the_leader_finds_the_layers_that_no_store_saw(agent: Agent) -> None:
    await fill(agent, CAPACITY + 5)
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute("DELETE FROM procrastinate_jobs")
    within = Agent(agent.runtime)
    await fill(within, CAPACITY)
    # The previous round folded the totals; later rounds skip the check for a while.
    done = await agent.runtime.maintenance.round()
    assert done["prune"] >= 1
    assert "prune" not in await agent.runtime.maintenance.round()
    assert [job["ids"]["layer"] for job in await jobs_of(agent)] == ["episodic"]
    assert await jobs_of(within) == []
    await run_jobs(agent.runtime)
    assert await count(agent) == CAPACITY
    await enqueue_missed(agent.runtime.database, agent.runtime.parts)
    assert await jobs_of(agent) == []


@pytest.fixture
def worker_process(services: Services) -> Iterator[subprocess.Popen[str]]:
    environment = clean_environment(
        services.home,
        DATABASE_URL=services.database_url,
        REDIS_URL=services.redis_url,
        EMBEDDING_DIMENSIONS="64",
        JWT_SECRET_KEY="a secret of the tests, long enough for HS256",
        MEMORY_EPISODIC_CAPACITY=str(CAPACITY),
        MEMORY_PRUNING_STRATEGY="oldest_first",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "agentcore", "worker"],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.mark.shows("issue4-9-retries")
async def test_a_job_whose_worker_is_killed_in_the_middle_is_done_to_the_same_end(
    agent: Agent, services: Services, worker_process: subprocess.Popen[str]
) -> None:
    ids = await fill(agent, CAPACITY + removing.PRUNE_CHUNK + 20)
    async with await psycopg.AsyncConnection.connect(services.database_url) as blocker:
        # The prune of the second chunk blocks here: its copies are written, its rows not deleted.
        await blocker.execute(
            "INSERT INTO archived_memories (agent_id, memory_id, version, memory_type, object_key, sha256, "
            "size_bytes, reason, archive_id) "
            "VALUES (%s, %s, 1, 'episodic', 'none', '', 0, 'test', gen_random_uuid())",
            (agent.agent_id, ids[removing.PRUNE_CHUNK + 7]),
        )
        await _somebody_waits_for(blocker, agent.runtime)
        os.kill(worker_process.pid, signal.SIGKILL)
        worker_process.wait()
        await blocker.rollback()
    assert await rows_of(agent) == set(ids[removing.PRUNE_CHUNK :])
    # The leader may have enqueued the next prune meanwhile.
    assert "running" in {job["state"] for job in await jobs_of(agent)}
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
    assert (await agent.runtime.maintenance.round())["revive jobs"] >= 1
    assert "running" not in {job["state"] for job in await jobs_of(agent)}
    await run_jobs(agent.runtime)
    assert await rows_of(agent) == set(ids[-CAPACITY:])
    assert await jobs_of(agent) == []
    gone = ids[:-CAPACITY]
    archive = agent.runtime.home.archive
    assert [each for each in gone if not (archive / object_key(agent.agent_id, each)).is_file()] == []
    assert (await agent.memory.stats(StatsParams())).archived == len(gone)


async def _somebody_waits_for(blocker: psycopg.AsyncConnection[Any], runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        waiting = 0
        while not waiting:
            # Statistics are cached within a transaction.
            async with runtime.database.owner_transaction() as connection:
                cursor = await connection.execute(
                    "SELECT count(*) AS waiting FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
                    (blocker.info.backend_pid,),
                )
                waiting = (await cursor.fetchone() or {})["waiting"]
