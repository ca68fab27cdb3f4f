"""Re-embedding: searches, stores and changes meanwhile, and interruption at any point."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentcore import model_watch
from agentcore.assembly import make_embedder
from agentcore.doctor.examination import examine
from agentcore.errors import Conflict
from agentcore.maintenance import index_keeper, reembedding
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.maintenance.reembedding import Reembedding
from agentcore.maintenance.rounds import embed_pending
from agentcore.memory.api import Caller
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import DeleteParams, PruneParams, RetrieveParams
from agentcore.memory.rows import vector_index
from agentcore.memory.rows.vector_index import IndexPolicy
from agentcore.memory.rows.vector_rows import KnownModel, model_in_force
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.databases import OwnDatabase, migrated_database
from tests.fixtures.memory import Agent, fill, searches, settings_for
from tests.fixtures.services import Services

OLD, NEW = "hashing/words-trigrams@64", "hashing/words-trigrams@96"
COUNT = 60


class Stopped(Exception): ...


@pytest.fixture
def own(services: Services) -> Iterator[OwnDatabase]:
    with migrated_database(services) as database:
        yield database


@pytest.fixture
async def ada(services: Services, own: OwnDatabase, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Agent]:
    monkeypatch.setattr(index_keeper, "MIN_ROWS", 40)
    monkeypatch.setattr(reembedding, "MIN_ROWS", 40)
    monkeypatch.setattr(reembedding, "ROWS_A_BATCH", 20)
    monkeypatch.setattr(reembedding, "MOVED_A_BATCH", 20)
    monkeypatch.setattr(reembedding, "SETTLE_SECONDS", 0.2)
    monkeypatch.setattr(model_watch, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(vector_index, "LEAST_ROWS_READ", 1)
    monkeypatch.setattr(reembedding, "LIFE_SECONDS", 0.1)
    monkeypatch.setattr(index_keeper, "QUERIES", 10)
    async with serving(services, own) as runtime:
        agent = Agent(runtime, "ada")
        await fill(agent, COUNT)
        async with runtime.database.owner_transaction() as connection:
            await connection.execute("ANALYZE memories")
        await keeper(runtime, OLD, 64).round()
        yield agent


@asynccontextmanager
async def serving(services: Services, own: OwnDatabase, **settings: Any) -> AsyncIterator[Runtime]:
    # Agents of any size are searched through the index.
    values = {"database_url": own.url, "exact_search_limit": 0, **settings}
    async with open_runtime(settings_for(services, **values)) as runtime:
        yield runtime


def keeper(runtime: Runtime, model: str, dimensions: int) -> IndexKeeper:
    return IndexKeeper(runtime.database, model, dimensions, IndexPolicy(), exact_search_limit=0)


def towards(
    agent: Agent,
    dimensions: int,
    tell: reembedding.Tell = lambda step, done, total: None,
    policy: IndexPolicy | None = None,
) -> Reembedding:
    settings = agent.runtime.settings.model_copy(update={"embedding_dimensions": dimensions})
    embedder = make_embedder(settings)
    assert embedder is not None
    target = KnownModel(embedder.model, "hashing", None, dimensions, "filling")
    database = agent.runtime.database
    return Reembedding(database, embedder, target, policy or IndexPolicy(), exact_search_limit=0, tell=tell)


async def rows(agent: Agent) -> list[dict[str, Any]]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT memory_id, content, embedding, embedding_model, next_embedding_model, "
            "vector_dims(embedding) AS length FROM memories ORDER BY memory_id"
        )
        return await cursor.fetchall()


async def found(agent: Agent) -> tuple[str, str, list[str]]:
    """Returns the top hit, the vector search mode, and the degradations."""
    fresh = Agent(agent.runtime, agent.agent_id)
    result = await fresh.memory.retrieve(RetrieveParams(query="Note 17: the reading of meter 17", k=3))
    return result.memories[0].content[:8], result.receipt.searched["vectors"], result.receipt.degraded


async def followed(agent: Agent, model: str = NEW) -> None:
    async with asyncio.timeout(30):
        while agent.runtime.parts.vector_model != model or agent.runtime.parts.vectors_moving:
            await model_in_force(agent.runtime.database)


@pytest.mark.shows("issue4-10.1")
async def test_all_memories_have_the_new_vectors_and_the_running_service_uses_them(ada: Agent) -> None:
    await towards(ada, 96).run()
    await followed(ada)
    stored = await rows(ada)
    assert {(row["embedding_model"], row["next_embedding_model"], row["length"]) for row in stored} == {(NEW, None, 96)}
    assert len(stored) == COUNT
    assert await found(ada) == ("Note 17:", "nearest", [])
    assert searches(ada.runtime.metrics) == {"indexed": 1}
    [state] = [each for each in await keeper(ada.runtime, NEW, 96).states() if each.indexes]
    assert [index.model for index in state.indexes] == [NEW]
    assert state.indexes[0].recall is not None


async def test_passages_of_long_memories_are_embedded_anew_and_searched_at_every_step(ada: Agent) -> None:
    text = "\n".join(f"Line {number} of the log tells of pump {number * 7}." for number in range(600))
    memory_id = await ada.stored_id(text)
    await ada.runtime.jobs.run_pending()
    query = RetrieveParams(query="Line 590 of the log tells of pump 4130.", k=3)
    similarities: list[asyncio.Future[float | None]] = []

    async def similarity() -> float | None:
        result = await Agent(ada.runtime, ada.agent_id).memory.retrieve(query)
        return next((each.similarity for each in result.memories if each.memory_id == memory_id), None)

    def tell(step: str, done: int, total: int) -> None:
        similarities.append(asyncio.ensure_future(similarity()))

    async def passages() -> dict[str, int]:
        async with ada.runtime.database.owner_transaction() as connection:
            cursor = await connection.execute(
                "SELECT embedding_model, count(*) AS count FROM memory_passages GROUP BY 1"
            )
            return {row["embedding_model"]: row["count"] for row in await cursor.fetchall()}

    before, [(model, count)] = await similarity(), (await passages()).items()
    assert model == OLD
    assert (await towards(ada, 96).extent()).passages_to_embed == count
    await towards(ada, 96, tell).run()
    await followed(ada)
    assert await passages() == {NEW: count}
    assert (await towards(ada, 96).extent()).passages_to_embed == 0
    least = min((before or 0.0), (await similarity()) or 0.0) - 0.05
    assert all((each or 0.0) >= least for each in await asyncio.gather(*similarities))


@pytest.mark.shows("issue4-10.1")
async def test_searches_go_through_an_index_at_every_step(ada: Agent) -> None:
    steps: dict[str, int] = {}
    asked: list[Any] = []

    def tell(step: str, done: int, total: int) -> None:
        if step not in steps:
            steps[step] = done
            asked.append(asyncio.ensure_future(found(ada)))

    await towards(ada, 96, tell).run()
    answers = [await each for each in asked]
    assert {"embedding", "switched", "waiting for running processes", "moving"} <= set(steps)
    assert answers == [("Note 17:", "nearest", [])] * len(steps)
    assert searches(ada.runtime.metrics) == {"indexed": len(steps)}


async def test_a_graph_is_built_after_the_move_and_lists_serve_meanwhile(ada: Agent) -> None:
    def stop(step: str, done: int, total: int) -> None:
        if step == "switched":
            raise Stopped

    async def kinds() -> dict[str, str]:
        states = await keeper(ada.runtime, NEW, 96).states()
        return {index.model: index.kind for state in states for index in state.indexes}

    policy = IndexPolicy("hnsw")
    with pytest.raises(Stopped):
        await towards(ada, 96, stop, policy).run()
    assert (await kinds())[f"moving:{NEW}"] == "ivfflat"
    await towards(ada, 96, policy=policy).run()
    assert await kinds() == {NEW: "hnsw"}


@pytest.mark.parametrize("last", ["embedding", "building an index", "switched", "moving", "compared"])
@pytest.mark.shows("issue4-10.2")
async def test_stopped_at_any_step_the_next_run_goes_on(ada: Agent, last: str) -> None:
    def stop(step: str, done: int, total: int) -> None:
        if last in step and (last != "embedding" or done >= 40) and (last != "moving" or done >= 20):
            raise Stopped

    with pytest.raises(Stopped):
        await towards(ada, 96, stop).run()
    assert (await found(ada))[0] == "Note 17:"
    again: list[tuple[str, int]] = []
    await towards(ada, 96, lambda step, done, total: again.append((step, done))).run()
    await followed(ada)
    stored = await rows(ada)
    assert {(row["embedding_model"], row["next_embedding_model"]) for row in stored} == {(NEW, None)}
    assert len(stored) == COUNT
    if last == "embedding":
        # Two batches of three were embedded before.
        assert [done for step, done in again if step == "embedding"] == [COUNT]
    assert await found(ada) == ("Note 17:", "nearest", [])


@pytest.mark.shows("issue4-10.1")
async def test_what_is_stored_changed_and_deleted_meanwhile_is_right(ada: Agent) -> None:
    first, second = [row["memory_id"] for row in await rows(ada)][:2]
    steps: list[str] = []
    done: list[Any] = []

    one_at_a_time = asyncio.Lock()

    async def meanwhile(step: str) -> None:
        async with one_at_a_time:
            agent = Agent(ada.runtime, "ada")
            changed = {"content": f"Changed at {step}."}
            await agent.memory.update(UpdateParams(memory_id=first, updates=changed))
            await agent.store(f"Stored at {step}.")
            await agent.memory.delete(DeleteParams(memory_ids=[second]))

    def tell(step: str, count: int, total: int) -> None:
        if step not in steps and ":" not in step:
            steps.append(step)
            done.append(asyncio.ensure_future(meanwhile(step)))

    await towards(ada, 96, tell).run()
    await asyncio.gather(*done)
    await followed(ada)
    await towards(ada, 96).run()
    stored = await rows(ada)
    embedder = towards(ada, 96)._embedder
    assert {row["embedding_model"] for row in stored} == {NEW}
    assert second not in {row["memory_id"] for row in stored}
    said = {row["content"] for row in stored}
    assert {f"Stored at {step}." for step in steps} <= said
    for row in stored:
        [vector] = await embedder.embed([row["content"]], "document")
        assert abs(float(vector @ row["embedding"].to_numpy()) - 1.0) < 0.01, row["content"]


async def test_what_was_archived_before_the_switch_is_embedded_again_when_it_comes_back(ada: Agent) -> None:
    pruned = await ada.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=COUNT - 5))
    await towards(ada, 96).run()
    await followed(ada)
    memory = Agent(ada.runtime, "ada").memory
    back = await memory.restore(RestoreParams(all=True))
    assert set(back.waiting_for_embedding_ids) == set(pruned.memory_ids)
    assert [each.partition(":")[0] for each in back.receipt.degraded] == ["embedding"]
    by_words = await Agent(ada.runtime, "ada").found("Note 17: the reading of meter 17", k=10)
    assert "Note 17:" in {content[:8] for content in by_words}
    embedder = ada.runtime.parts.embedder
    assert embedder is not None
    assert await embed_pending(ada.runtime.database, embedder) == COUNT - 5
    assert {(row["embedding_model"], row["length"]) for row in await rows(ada)} == {(NEW, 96)}
    assert (await found(ada))[0] == "Note 17:"
    await memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=3))
    again = await memory.restore(RestoreParams(all=True))
    assert (again.restored_count, again.waiting_for_embedding_ids, again.receipt.degraded) == (3, [], [])


async def test_only_one_process_embeds_anew(ada: Agent) -> None:
    async with towards(ada, 96)._alone():
        with pytest.raises(Conflict, match="another process"):
            await towards(ada, 96).run()


async def test_another_model_waits_until_the_move_is_over(ada: Agent) -> None:
    def stop(step: str, done: int, total: int) -> None:
        if step == "switched":
            raise Stopped

    with pytest.raises(Stopped):
        await towards(ada, 96, stop).run()
    with pytest.raises(Conflict, match="agentcore reembed --model hashing --dimensions 96"):
        await towards(ada, 128).run()


async def test_another_model_may_take_the_place_of_one_that_was_never_switched_to(ada: Agent) -> None:
    def stop(step: str, done: int, total: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        await towards(ada, 96, stop).run()
    await towards(ada, 128).run()
    stored = await rows(ada)
    assert {(row["next_embedding_model"], row["length"]) for row in stored} == {(None, 128)}


@pytest.mark.shows("issue4-10.3")
async def test_a_service_with_the_old_settings_starts_with_the_model_in_force(
    services: Services, own: OwnDatabase, ada: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    await towards(ada, 96).run()
    async with serving(services, own) as runtime:
        assert runtime.parts.vector_model == NEW
        assert await found(Agent(runtime, "ada")) == ("Note 17:", "nearest", [])
        assert searches(runtime.metrics) == {"indexed": 1}
    assert "Set EMBEDDING_MODEL=hashing EMBEDDING_DIMENSIONS=96" in caplog.text


@pytest.mark.shows("issue4-10.3")
async def test_a_service_that_cannot_make_the_model_searches_by_words_and_says_what_to_do(ada: Agent) -> None:
    async with ada.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "INSERT INTO embedding_models (model, provider, dimensions, stage) "
            "VALUES ('elsewhere', 'nobody:Knows', 96, 'settled')"
        )
    await followed(ada, "elsewhere")
    best, mode, degraded = await found(ada)
    assert (best, mode) == ("Note 17:", "words")
    assert "start again" in degraded[0]
    state = (await ada.runtime.readiness())["embedder"]
    assert not state["ok"]
    assert "EMBEDDING_MODEL=nobody:Knows EMBEDDING_DIMENSIONS=96" in state["problem"]
    known = await model_in_force(ada.runtime.database)
    assert known is not None and known.model == "elsewhere"


async def test_an_estimate_changes_nothing(ada: Agent) -> None:
    before = await rows(ada)
    extent = await towards(ada, 96).extent()
    assert (extent.to_embed, extent.to_move, extent.memories) == (COUNT, 0, COUNT)
    assert await towards(ada, 96).seconds_a_memory() > 0
    assert await rows(ada) == before
    assert await model_in_force(ada.runtime.database) is None


async def test_vectors_of_a_removed_local_model_are_reported_and_the_service_starts(
    services: Services, own: OwnDatabase, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    cache, text = tmp_path_factory.mktemp("models"), "I love African Grey parrots."
    local = {"embedding_model": "local", "embedding_dimensions": 384, "agentcore_cache": cache}
    async with serving(services, own, **local) as runtime:
        await Agent(runtime, "ada").store(text)
        async with runtime.database.owner_transaction() as connection:
            await connection.execute("UPDATE memories SET embedding_model = 'local/all-MiniLM-L6-v2'")
    async with serving(services, own, **local) as runtime:
        assert runtime.parts.vector_model == "local/multilingual-e5-small-adapted"
        result = await runtime.manager_for(Caller("ada")).retrieve(RetrieveParams(query="parrots"))
        assert [memory.content for memory in result.memories] == [text]
    assert "they are found by words alone" in caplog.text
    settings = settings_for(services, database_url=own.url, **local)
    [check] = [each for each in await examine(settings) if each.name == "embeddings"]
    assert not check.ok
    assert "agentcore reembed --model local" in check.fix
