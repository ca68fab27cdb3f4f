"""Background work: late vectors, expiry, folding, leader election, the index keeper."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest
from psycopg import sql

from agentcore.database import query
from agentcore.errors import DependencyUnavailable
from agentcore.maintenance import index_keeper, rounds
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.maintenance.rounds import Maintenance, embed_pending, leadership
from agentcore.memory.api import Caller
from agentcore.memory.embeddings import Vectors
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.memories import CountParams, DeleteParams, StatsParams, StoreBatchParams, StoreParams
from agentcore.memory.rows.vector_index import IndexPolicy
from agentcore.memory.vector_store import PgVectorStore
from agentcore.runtime import open_runtime
from tests.fixtures.databases import migrated_database
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.picky_embedder import picky_memory
from tests.fixtures.services import Services


class Away:
    """The hashing embedder while its host is unreachable."""

    dimensions, distinguishes_queries, batch_size, parallel_requests = 64, False, 8, 1

    def __init__(self, model: str) -> None:
        self.model = model

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def embed(self, texts: Sequence[str], kind: str) -> Vectors:
        raise DependencyUnavailable("gone")


async def test_a_redis_whose_working_memory_has_expired_is_forgotten(agent: Agent) -> None:
    storage, expired, current = agent.runtime.parts.storage, uuid4(), uuid4()
    await storage.record_redis(expired, 0)
    await storage.record_redis(current, 60)
    await agent.runtime.maintenance.round()
    async with agent.runtime.database.owner_transaction() as connection:
        rows = await (await connection.execute("SELECT redis_id FROM redis_instances")).fetchall()
        await connection.execute("DELETE FROM redis_instances WHERE redis_id = %s", [current])
    recorded = {row["redis_id"] for row in rows}
    assert current in recorded
    assert expired not in recorded


@pytest.mark.shows("issue2-9-degraded")
async def test_what_could_not_be_embedded_is_stored_and_embedded_later(agent: Agent) -> None:
    parts = agent.runtime.parts
    assert parts.embedder is not None
    without = MemoryManager(replace(parts, embedder=Away(parts.embedder.model)), Caller(agent.agent_id))
    result = await without.store(StoreParams(content="The lighthouse keeper retired in May."))
    assert result.success
    assert result.receipt is not None
    assert "embedded later" in result.receipt.degraded[0]
    assert (await agent.memory.stats(StatsParams())).layers[MemoryType.EPISODIC].waiting_for_embedding == 1
    done = await agent.runtime.maintenance.round()
    assert done["embed"] >= 1
    assert (await agent.memory.stats(StatsParams())).layers[MemoryType.EPISODIC].waiting_for_embedding == 0
    assert result.memory_id is not None
    assert (await agent.get(result.memory_id)).embedding_model == parts.embedder.model


@pytest.mark.shows("issue2-12-worker")
async def test_expired_memories_are_invisible_at_once_and_swept_later(agent: Agent) -> None:
    memory_id = await agent.stored_id("The parking code is 4711.", ttl_seconds=100)
    pinned = await agent.stored_id("The safe code is 1147.", ttl_seconds=100, pinned=True)
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET expires_at = now() - interval '10 minutes' WHERE agent_id = %s", (agent.agent_id,)
        )
    assert await agent.found("parking code") == ["The safe code is 1147."]
    assert (await agent.memory.count(CountParams())).count == 1
    await agent.runtime.maintenance.round()
    async with agent.runtime.database.owner_transaction() as connection:
        rows = await (
            await connection.execute("SELECT memory_id FROM memories WHERE agent_id = %s", (agent.agent_id,))
        ).fetchall()
    assert [row["memory_id"] for row in rows] == [pinned]
    assert memory_id != pinned


async def test_folding_changes_no_figure(agent: Agent) -> None:
    for number in range(3):
        await agent.stored_id(f"The heron stood by pond {number}.")
    keys = [7]
    before = await agent.runtime.parts.vectors.statistics(agent.agent_id, keys)
    await agent.runtime.maintenance.round()
    after = await agent.runtime.parts.vectors.statistics(agent.agent_id, keys)
    assert before == after
    assert after.memory_count == 3
    async with agent.runtime.database.owner_transaction() as connection:
        left = await (
            await connection.execute(
                "SELECT count(*) AS count FROM lexical_deltas WHERE agent_id = %s", (agent.agent_id,)
            )
        ).fetchone()
    assert left is not None
    assert left["count"] == 0


async def lexical_rows(agent: Agent, table: str) -> int:
    statement = sql.SQL("SELECT count(*) AS count FROM {} WHERE agent_id = %s").format(sql.Identifier(table))
    async with agent.runtime.database.owner_transaction() as connection:
        [row] = await (await connection.execute(statement, (agent.agent_id,))).fetchall()
    return int(row["count"])


async def test_one_fold_leaves_no_delta_of_any_agent(
    agent: Agent, new_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "DELTAS_A_FOLD", 2)
    monkeypatch.setattr(rounds, "AGENTS_A_TURN", 1)
    other = new_agent()
    for number in range(5):
        await agent.stored_id(f"The heron stood by pond {number}.")
        await other.stored_id(f"The stork stood by pond {number}.")
    assert await rounds.fold_deltas(agent.runtime.database) >= 10
    assert await lexical_rows(agent, "lexical_deltas") == await lexical_rows(other, "lexical_deltas") == 0
    statistics = await agent.runtime.parts.vectors.statistics(agent.agent_id, [])
    assert statistics.memory_count == 5


async def test_a_busy_agent_takes_turns_with_the_others(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    late = new_agent()
    for number in range(3):
        await agent.stored_id(f"The heron stood by pond {number}.")
    await late.stored_id("The stork stood by the pond.")
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(query("agents_with_deltas"), {"limit": 100_000})
        waiting = [row["agent_id"] for row in await cursor.fetchall()]
    assert waiting.index(agent.agent_id) < waiting.index(late.agent_id)
    assert waiting.count(agent.agent_id) == 1


async def test_counts_of_nothing_are_forgotten(agent: Agent) -> None:
    kept = await agent.stored_id("The heron stood by the pond.")
    gone = await agent.stored_id("The heron flew to the lighthouse.")
    await rounds.fold_deltas(agent.runtime.database)
    before = await lexical_rows(agent, "lexical_terms")
    await agent.memory.delete(DeleteParams(memory_ids=[gone]))
    await rounds.fold_deltas(agent.runtime.database)
    assert 0 < await lexical_rows(agent, "lexical_terms") < before
    await agent.memory.delete(DeleteParams(memory_ids=[kept]))
    await rounds.fold_deltas(agent.runtime.database)
    assert await lexical_rows(agent, "lexical_terms") == await lexical_rows(agent, "lexical_totals") == 0


async def models_of(agent: Agent) -> dict[str, str | None]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT content, embedding_model FROM memories WHERE agent_id = %s", (agent.agent_id,)
        )
        return {row["content"]: row["embedding_model"] for row in await cursor.fetchall()}


async def test_a_refused_memory_is_set_aside_and_those_behind_it_get_their_vectors(agent: Agent) -> None:
    picky, _ = picky_memory(agent)
    without = MemoryManager(replace(agent.runtime.parts, embedder=Away(picky.model)), Caller(agent.agent_id))
    contents = ["The forbidden city is large.", "The heron is grey.", "The stork is white."]
    await without.store_batch(StoreBatchParams(items=[StoreParams(content=each) for each in contents]))
    picky.forbidden = ""
    with pytest.raises(DependencyUnavailable):
        await embed_pending(agent.runtime.database, picky)
    assert set((await models_of(agent)).values()) == {None}  # an outage: no text is to blame
    picky.forbidden = "forbidden"
    assert await embed_pending(agent.runtime.database, picky) >= 3
    refused = f"refused:{picky.model}"
    assert await models_of(agent) == dict(zip(contents, (refused, picky.model, picky.model), strict=True))
    picky.requests = 0
    await embed_pending(agent.runtime.database, picky)
    assert picky.requests == 0


async def test_only_one_process_leads(agent: Agent) -> None:
    async with leadership(agent.runtime.database) as first, leadership(agent.runtime.database) as second:
        assert first is not None
        assert second is None
    async with leadership(agent.runtime.database) as again:
        assert again is not None


async def test_a_stopped_maintenance_ends(agent: Agent) -> None:
    maintenance = Maintenance(agent.runtime.database, agent.runtime.parts, agent.runtime.jobs.queue, 0.01)
    running = asyncio.gather(maintenance.flush_accesses(), maintenance.lead())
    maintenance.stop()
    await asyncio.wait_for(running, 10)
    assert running.done()


@pytest.mark.shows("issue2-7-vectors")
async def test_a_partition_gets_its_index_once_it_has_rows_and_the_search_uses_it(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_keeper, "MIN_ROWS", 400)
    items = [StoreParams(content=f"Reading {n} of sensor {n % 13} was {n * 31 % 977}.") for n in range(500)]
    # A database without other rows, and one connection, so that row counts are flushed before ANALYZE; counts
    # flushed later would be added twice.
    with migrated_database(services) as own:
        settings = settings_for(services, database_url=own.url, database_pool_size=1)
        async with open_runtime(settings) as runtime:
            agent, parts, database = Agent(runtime), runtime.parts, runtime.database
            await agent.memory.store_batch(StoreBatchParams(items=items))
            async with database.write.connection() as connection:
                await connection.execute("SELECT pg_stat_force_next_flush()")
            async with database.owner_transaction() as connection:
                await connection.execute("ANALYZE memories")
            keeper = IndexKeeper(database, parts.vector_model, 64, IndexPolicy())
            assert await keeper.round() == 1
            assert await keeper.round() == 0
            assert isinstance(parts.vectors, PgVectorStore)
            parts = replace(parts, vectors=replace_limit(parts.vectors))
            memory = MemoryManager(parts, Caller(agent.agent_id))
            indexed = await memory.retrieve_memories("Reading 77 of sensor 12", k=1)
            exact = await agent.memory.retrieve_memories("Reading 77 of sensor 12", k=1)
    assert indexed[0].memory_id == exact[0].memory_id


def replace_limit(vectors: PgVectorStore) -> PgVectorStore:
    store = vectors.__class__.__new__(vectors.__class__)
    store.__dict__.update(vectors.__dict__)
    store._limits = replace(store._limits, exact_search_limit=0)
    return store
