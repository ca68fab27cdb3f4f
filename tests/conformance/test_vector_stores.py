"""Every vector store beside PostgreSQL: its adapter, and a memory that searches with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from agentcore import model_watch
from agentcore.assembly import make_embedder, make_vector_store
from agentcore.cli import maintenance
from agentcore.database import query
from agentcore.doctor.examination import examine
from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.maintenance import reembedding
from agentcore.maintenance.reembedding import Reembedding
from agentcore.memory import external_vectors, vector_store
from agentcore.memory.api import Caller
from agentcore.memory.external_vectors import (
    ExternalVectors,
    Point,
    PointFilter,
    VectorStore,
    VectorStoreOptions,
    collection_of,
    microseconds,
)
from agentcore.memory.forgetting import removing
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.archived import EraseParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import DeleteParams, RetrieveParams
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.rows.vector_index import IndexPolicy
from agentcore.memory.rows.vector_rows import KnownModel, model_in_force
from agentcore.memory.vector_store import PgVectorStore
from agentcore.providers.memory_vectors import MemoryVectors
from agentcore.providers.milvus_vectors import MilvusVectors
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.databases import OwnDatabase, migrated_database
from tests.fixtures.memory import Agent, fill, searches, settings_for
from tests.fixtures.services import Services
from tests.fixtures.vector_stores import MOVABLE, MovableVectors, drop

OLD, NEW = "hashing/words-trigrams@64", "hashing/words-trigrams@96"
COLLECTION = collection_of(OLD, 4)
DAY = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = "the reading of meter 17"
NAMES = ("memory", "qdrant", "milvus")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a search is too short on a machine whose cores are all busy."""
    monkeypatch.setattr(external_vectors, "SEARCH_SECONDS", 60.0)


@pytest.fixture(params=NAMES)
def chosen(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Returns the settings of a store."""
    path = str(tmp_path / "vectors.db")
    return {"vector_store": request.param, "vector_store_url": None if request.param == "memory" else path}


@pytest.fixture
def store(services: Services, chosen: dict[str, Any]) -> Iterator[VectorStore]:
    made = make_vector_store(settings_for(services, **chosen))
    assert made is not None
    yield made
    made.close()


@pytest.fixture
def own(services: Services) -> Iterator[OwnDatabase]:
    with migrated_database(services) as database:
        yield database


@asynccontextmanager
async def serving(services: Services, own: OwnDatabase, **settings: Any) -> AsyncIterator[Runtime]:
    """Agents of any size are searched through the store."""
    values = {"database_url": own.url, "exact_search_limit": 0, **settings}
    async with open_runtime(settings_for(services, **values)) as runtime:
        yield runtime


@pytest.fixture
async def ada(services: Services, own: OwnDatabase, chosen: dict[str, Any]) -> AsyncIterator[Agent]:
    async with serving(services, own, **chosen) as runtime:
        await runtime.maintenance.drain_outbox()
        yield Agent(runtime, "ada")


def external(agent: Agent) -> ExternalVectors:
    found = agent.runtime.parts.vectors.external
    assert found is not None
    return found


async def pending(agent: Agent) -> int:
    [row] = await agent.runtime.database.owner_rows(query("count_vector_changes"))
    return int(row["changes"])


async def held(agent: Agent, user_id: str | None = None) -> int:
    return await external(agent).count(PointFilter(agent.agent_id, None if user_id is None else (user_id,)))


def by_postgresql(agent: Agent) -> MemoryManager:
    vectors = PgVectorStore(agent.runtime.database, 64, SearchLimits())
    return MemoryManager(replace(agent.runtime.parts, vectors=vectors), Caller(agent.agent_id))


def point(number: int, agent_id: str = "ada", user_id: str | None = None, **fields: Any) -> Point:
    """The smaller the number, the nearer to (1, 0, 0, 0)."""
    vector = np.array([1.0, number / 10, 0, 0], np.float32)
    values = {"session_id": None, "memory_type": "episodic", "at": microseconds(DAY) + number, **fields}
    return Point(UUID(int=number), vector, agent_id, user_id, **values)


def nearest(store: VectorStore, where: PointFilter, limit: int = 10) -> list[int]:
    [ids] = store.search(COLLECTION, [np.array([1, 0, 0, 0], np.float32)], where, limit)
    return [each.int for each in ids]


def test_an_adapter_searches_the_points_that_match_nearest_first(store: VectorStore) -> None:
    assert nearest(store, PointFilter("ada")) == []
    store.upsert(
        COLLECTION,
        [
            point(4, user_id="u1", session_id="s1"),
            point(3, user_id='u"2', memory_type="semantic"),
            point(2),
            point(1, agent_id="bo"),
        ],
    )
    assert nearest(store, PointFilter("ada")) == [2, 3, 4]
    assert nearest(store, PointFilter("ada"), limit=2) == [2, 3]
    assert nearest(store, PointFilter("bo")) == [1]
    assert nearest(store, PointFilter("ada", user_ids=("u1",))) == [4]
    assert nearest(store, PointFilter("ada", user_ids=('u"2', None))) == [2, 3]
    assert nearest(store, PointFilter("ada", user_ids=(None,))) == [2]
    assert nearest(store, PointFilter("ada", session_id="s1")) == [4]
    assert nearest(store, PointFilter("ada", memory_types=("semantic", "working"))) == [3]
    start = microseconds(DAY)
    assert nearest(store, PointFilter("ada", after=start + 3)) == [3, 4]
    assert nearest(store, PointFilter("ada", after=start + 2, before=start + 4)) == [2, 3]
    several = store.search(COLLECTION, [point(2).vector, point(40).vector], PointFilter("ada"), 1)
    assert [[each.int for each in ids] for ids in several] == [[2], [4]]


def test_an_adapter_replaces_deletes_counts_and_erases_at_once(store: VectorStore) -> None:
    assert list(store.collections()) == []
    assert store.count(PointFilter("ada")) == 0
    store.upsert(COLLECTION, [point(number, user_id="u1" if number % 2 else None) for number in range(1, 8)])
    other = collection_of(NEW, 4)
    store.upsert(other, [point(1, user_id="u1")])
    assert set(store.collections()) == {COLLECTION, other}
    assert store.count(PointFilter("ada")) == 8
    assert store.count(PointFilter("ada", user_ids=("u1",))) == 5
    store.upsert(COLLECTION, [point(1, user_id="u2")._replace(vector=point(9).vector)])
    assert nearest(store, PointFilter("ada"), limit=1) == [2]
    assert store.count(PointFilter("ada")) == 8
    store.delete(COLLECTION, [UUID(int=2), UUID(int=99)])
    assert 2 not in nearest(store, PointFilter("ada"))
    store.erase(PointFilter("ada", user_ids=("u1",)))
    assert store.count(PointFilter("ada", user_ids=("u1",))) == 0
    assert sorted(nearest(store, PointFilter("ada"))) == [1, 4, 6]
    store.erase(PointFilter("ada"))
    assert store.count(PointFilter("ada")) == 0


def test_an_adapter_tells_a_refusal_from_an_absence(store: VectorStore) -> None:
    assert not store.is_refusal(ConnectionError("no route"))
    store.upsert(COLLECTION, [point(1)])
    assert store.count(None) == 1
    drop(store, COLLECTION)
    assert nearest(store, PointFilter("ada")) == []
    store.upsert(COLLECTION, [point(2)])
    assert nearest(store, PointFilter("ada")) == [2]
    if not isinstance(store, MemoryVectors):
        with pytest.raises(store.failures) as caught:
            store.upsert(COLLECTION, [point(3)._replace(vector=np.ones(3, np.float32))])
        assert store.is_refusal(caught.value)


def test_an_interrupted_creation_is_completed(tmp_path: Path) -> None:
    store = MilvusVectors(VectorStoreOptions(str(tmp_path / "vectors.db"), None))
    store._create(COLLECTION, 4)
    assert store._client.list_indexes(COLLECTION) == []
    store.upsert(COLLECTION, [point(1)])
    assert store._client.list_indexes(COLLECTION) == ["vector"]
    assert nearest(store, PointFilter("ada")) == [1]
    store.close()


def test_an_adapter_lists_its_points_in_pages_in_the_order_of_ids(store: VectorStore) -> None:
    store.upsert(COLLECTION, [point(number, agent_id=f"é{number}" * 80) for number in (5, 1, 4, 2, 3)])
    first = store.ids(COLLECTION, None, 2)
    assert first == [("é1" * 80, UUID(int=1)), ("é2" * 80, UUID(int=2))]
    assert [each.int for _, each in store.ids(COLLECTION, first[-1][1], 10)] == [3, 4, 5]
    assert store.ids(COLLECTION, UUID(int=5), 10) == []


@pytest.mark.shows("NFR-2.3", "FR-2.2")
async def test_a_search_returns_what_postgresql_returns_for_every_filter(ada: Agent) -> None:
    bo = Agent(ada.runtime, "bo")
    await fill(bo, 30)
    await fill(ada, 40, user_id="u1", session_id="s1")
    await fill(ada, 20, user_id="u2", memory_type="semantic", force=True)
    await fill(ada, 10, tags=["rare"], namespace="n", force=True)
    assert await external(ada).drain() == 100
    kinds: list[dict[str, Any]] = [
        {},
        {"user_id": "u1"},
        {"user_id": ["u1", "u2"]},
        {"session_id": "s1"},
        {"memory_types": ["semantic"]},
        {"after": DAY + timedelta(minutes=5), "before": DAY + timedelta(minutes=12)},
        {"tags": ["rare"]},
        {"namespace": "n", "user_id": "u2"},
    ]
    for filters in kinds:
        params = RetrieveParams(query=QUERY, k=50, distinct=False, **filters)
        ours, theirs = await ada.memory.retrieve(params), await by_postgresql(ada).retrieve(params)
        assert [each.memory_id for each in ours.memories] == [each.memory_id for each in theirs.memories], filters
        assert ours.receipt.degraded == []
    assert searches(ada.runtime.metrics)["external"] >= len(kinds) - 2


async def test_stores_updates_and_deletes_are_visible_before_they_are_passed_on(ada: Agent) -> None:
    first, second = await ada.stored_id("The boiler is inspected on Monday."), await ada.stored_id("Cats sleep a lot.")
    assert "The boiler is inspected on Monday." in await ada.found("When is the boiler inspected?")
    assert await pending(ada) == 2
    await ada.runtime.maintenance.drain_outbox()
    assert (await pending(ada), await held(ada)) == (0, 2)
    await ada.memory.delete(DeleteParams(memory_ids=[first]))
    await ada.memory.update(UpdateParams.model_validate({"memory_id": second, "updates": {"content": "A lamp glows."}}))
    assert await ada.found("When is the boiler inspected?", min_fit=0) == ["A lamp glows."]
    assert await held(ada) == 2
    await ada.runtime.maintenance.drain_outbox()
    assert (await pending(ada), await held(ada)) == (0, 1)
    assert set(searches(ada.runtime.metrics)) == {"external"}


async def test_changes_of_other_columns_are_not_passed_on(ada: Agent) -> None:
    memory_id = await ada.stored_id("The boiler is inspected on Monday.")
    await ada.runtime.maintenance.drain_outbox()
    await ada.memory.update(UpdateParams.model_validate({"memory_id": memory_id, "updates": {"tags": ["heating"]}}))
    assert await pending(ada) == 0


@pytest.mark.parametrize("whose", [{"user_id": "u1"}, {"all": True}])
async def test_erasing_proves_that_the_store_has_nothing_left(ada: Agent, whose: dict[str, Any]) -> None:
    await fill(ada, 10, user_id="u1")
    await fill(ada, 5, user_id="u2", force=True)
    await ada.runtime.maintenance.drain_outbox()
    # One that is deleted in PostgreSQL only.
    [gone] = await fill(ada, 1, user_id="u1", force=True)
    await ada.runtime.maintenance.drain_outbox()
    await ada.memory.delete(DeleteParams(memory_ids=[gone]))
    erased = await ada.memory.erase(EraseParams(confirm=True, **whose))
    assert erased.verified
    assert erased.erased["vector store"] == (11 if "user_id" in whose else 16)
    assert await held(ada, "u1") == 0
    assert await held(ada) == (5 if "user_id" in whose else 0)
    assert await pending(ada) == 0


async def test_an_erasure_that_has_no_time_for_the_store_is_continued(
    ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(ada, 3)
    await ada.runtime.maintenance.drain_outbox()
    with monkeypatch.context() as late:
        late.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
        first = await ada.memory.erase(EraseParams(all=True, confirm=True))
    assert (first.complete, first.verified, await held(ada)) == (False, False, 3)
    second = await ada.memory.erase(EraseParams(all=True, confirm=True, continues=first.signed_receipt))
    assert (second.complete, second.verified, await held(ada)) == (True, True, 0)


async def test_a_rebuild_restores_what_is_missing_and_removes_what_is_unknown(ada: Agent) -> None:
    await fill(ada, 12)
    await ada.runtime.maintenance.drain_outbox()
    assert await pending(ada) == 0
    inner = external(ada)._store
    collection = collection_of(OLD, 64)
    kept = inner.ids(collection, None, 100)
    unknown = Point(uuid4(), np.ones(64, np.float32), "ada", None, None, "episodic", 0)
    await external(ada)._call(inner.delete, collection, [each for _, each in kept[:5]])
    await external(ada)._call(inner.upsert, collection, [unknown])
    steps: list[tuple[str, int, int]] = []
    done = await external(ada).rebuild(lambda *step: steps.append(step))
    assert done == {"passed_on": 12, "removed": 1}
    assert ("filling", 12, 12) in steps
    assert await external(ada)._call(inner.ids, collection, None, 100) == kept


async def test_an_interrupted_rebuild_resumes(ada: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_vectors, "BATCH_SIZE", 5)
    await fill(ada, 12)
    await ada.runtime.maintenance.drain_outbox()

    def stop(step: str, done: int, total: int) -> None:
        raise KeyError(step)

    with pytest.raises(KeyError):
        await external(ada).rebuild(stop)
    assert await pending(ada) == 7
    assert (await external(ada).rebuild(lambda *step: None))["passed_on"] == 7


async def test_re_embedding_fills_a_collection_of_the_new_model(ada: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "SETTLE_SECONDS", 0.2)
    monkeypatch.setattr(model_watch, "WATCH_SECONDS", 0.02)
    await fill(ada, 30)
    await ada.runtime.maintenance.drain_outbox()
    embedder = make_embedder(ada.runtime.settings.model_copy(update={"embedding_dimensions": 96}))
    assert embedder is not None
    target = KnownModel(embedder.model, "hashing", None, 96, "filling")
    await Reembedding(ada.runtime.database, embedder, target, IndexPolicy(), exact_search_limit=0).run()
    async with asyncio.timeout(30):
        while ada.runtime.parts.vector_model != NEW or ada.runtime.parts.vectors_moving:
            await model_in_force(ada.runtime.database)
    fresh = Agent(ada.runtime, "ada")
    assert (await fresh.found("Note 17: " + QUERY))[0].startswith("Note 17:")
    await ada.runtime.maintenance.drain_outbox()
    assert await held(ada) == 30
    inner = external(ada)._store
    assert len(await external(ada)._call(inner.ids, collection_of(NEW, 96), None, 100)) == 30
    assert (await fresh.found("Note 17: " + QUERY))[0].startswith("Note 17:")
    assert set(searches(ada.runtime.metrics)) == {"external"}


async def test_a_token_of_a_user_finds_that_users_memories(ada: Agent) -> None:
    await fill(ada, 30, user_id="u1")
    await fill(ada, 5, user_id="u2", force=True)
    await ada.runtime.maintenance.drain_outbox()
    bound = ada.runtime.manager_for(Caller("ada", users=frozenset({"u2"})))
    found = await bound.retrieve(RetrieveParams(query=QUERY, k=50, distinct=False, min_fit=0))
    assert {each.user_id for each in found.memories} == {"u2"}
    assert len(found.memories) == 5


async def test_a_store_that_is_far_behind_is_not_asked(ada: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_vectors, "MAX_PENDING", 9)
    await fill(ada, 10)
    assert (await ada.found("Note 7: the reading of meter 7"))[0].startswith("Note 7:")
    await ada.runtime.maintenance.drain_outbox()
    assert (await ada.found("Note 7: the reading of meter 7"))[0].startswith("Note 7:")
    assert searches(ada.runtime.metrics) == {"exact": 1, "external": 1}


async def test_a_large_agent_is_searched_by_the_store_and_by_words_while_changes_are_pending(
    ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_vectors, "MAX_PENDING", 2)
    monkeypatch.setattr(vector_store, "MAX_EXACT_FALLBACK", 10)
    await fill(ada, 20)
    await ada.runtime.maintenance.drain_outbox()
    await fill(ada, 5, user_id="u1", session_id="new", force=True)
    query = RetrieveParams(query="Note 17: the reading of meter 17")
    result = await ada.memory.retrieve(query)
    assert result.memories[0].content.startswith("Note 17:")
    assert external_vectors.PARTLY_OUTDATED in result.receipt.degraded
    assert searches(ada.runtime.metrics) == {"external": 1}
    await ada.runtime.maintenance.drain_outbox()
    assert (await ada.memory.retrieve(query)).receipt.degraded == []


async def test_a_large_agent_is_searched_by_words_until_the_store_is_filled(
    services: Services, own: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "MAX_EXACT_FALLBACK", 10)
    async with serving(services, own) as runtime:
        await fill(Agent(runtime, "ada"), 20)
    async with serving(services, own, vector_store="memory") as runtime:
        result = await Agent(runtime, "ada").memory.retrieve(RetrieveParams(query="Note 7: the reading of meter 7"))
        assert result.memories[0].content.startswith("Note 7:")
        assert external_vectors.OUTDATED + vector_store.BY_WORDS in result.receipt.degraded
        assert searches(runtime.metrics) == {"words": 1}


async def test_a_dropped_collection_is_empty_and_a_rebuild_fills_it(ada: Agent) -> None:
    await fill(ada, 6)
    await ada.runtime.maintenance.drain_outbox()
    assert len(await ada.found(QUERY, min_fit=0)) == 5
    await external(ada)._call(drop, external(ada)._store, collection_of(OLD, 64))
    result = await ada.memory.retrieve(RetrieveParams(query=QUERY, min_fit=0))
    assert result.receipt.degraded == []
    assert not external(ada).circuit.is_open
    assert (await external(ada).rebuild(lambda *step: None))["passed_on"] == 6
    assert await held(ada) == 6


async def test_what_is_stored_during_an_erasure_remains_in_the_store(ada: Agent) -> None:
    # As if they were stored, and passed on, after the rows of the user were deleted.
    await fill(ada, 3, user_id="u1")
    await ada.runtime.maintenance.drain_outbox()
    assert await external(ada).erase(PointFilter("ada", ("u1",))) == 3
    assert (await held(ada), await pending(ada)) == (0, 3)
    await ada.runtime.maintenance.drain_outbox()
    assert await held(ada, "u1") == 3


async def test_an_upsert_is_split_by_its_size(moving: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_vectors, "MAX_FLOATS", 3 * 64)
    monkeypatch.setattr(MovableVectors, "most_points", 3)
    await fill(moving, 7)
    assert await moving.runtime.maintenance.drain_outbox() == 7
    assert await held(moving) == 7


async def test_too_few_candidates_of_the_store_are_completed_by_postgresql(ada: Agent) -> None:
    # No field of the payload names the tag, and 300 memories without it are nearer.
    for start in range(0, 300, 100):
        await fill(ada, 100, session_id=f"s{start}", force=True)
    rare = await ada.stored_id("Snow fell in Ostend.", tags=["rare"], force=True)
    await ada.runtime.maintenance.drain_outbox()
    await ada.found(QUERY)
    assert searches(ada.runtime.metrics) == {"external": 1}
    result = await ada.memory.retrieve(RetrieveParams(query=QUERY, tags=["rare"], min_fit=0))
    assert [each.memory_id for each in result.memories] == [rare]
    assert searches(ada.runtime.metrics) == {"external": 1, "exact": 1}


async def test_words_find_a_memory_that_the_store_misses(ada: Agent) -> None:
    await fill(ada, 100)
    missed = await ada.stored_id("Snow fell in Ostend.")
    await ada.runtime.maintenance.drain_outbox()
    await external(ada)._call(external(ada)._store.delete, collection_of(OLD, 64), [missed])
    query = RetrieveParams(query="When has snow fallen in Ostend?", explain=True)
    found, exact = await ada.memory.retrieve(query), await by_postgresql(ada).retrieve(query)
    assert found.memories[0].memory_id == missed
    assert found.receipt.searched["signals"] == exact.receipt.searched["signals"]


async def test_the_way_back_ends_the_recording(services: Services, own: OwnDatabase) -> None:
    async with serving(services, own, vector_store="memory") as runtime:
        await runtime.maintenance.drain_outbox()
        await fill(Agent(runtime, "ada"), 3)
    async with serving(services, own) as runtime:
        ada = Agent(runtime, "ada")
        assert await pending(ada) == 3
        await runtime.maintenance.drain_outbox()
        await ada.store("The boiler is inspected on Monday.")
        assert await pending(ada) == 0
        assert (await ada.found("boiler inspection"))[0].startswith("The boiler")
        assert searches(runtime.metrics) == {"exact": 1}


async def test_another_store_is_not_asked_until_it_is_filled(services: Services, own: OwnDatabase) -> None:
    async with serving(services, own, vector_store="memory") as runtime:
        await runtime.maintenance.drain_outbox()
        await fill(Agent(runtime, "ada"), 3)
        await runtime.maintenance.drain_outbox()
    async with serving(services, own, vector_store="memory") as runtime:
        ada = Agent(runtime, "ada")
        assert len(await ada.found(QUERY, min_fit=0)) == 3
        await runtime.maintenance.drain_outbox()
        assert await held(ada) == 3
        assert len(await ada.found(QUERY, min_fit=0)) == 3
        assert searches(runtime.metrics) == {"exact": 1, "external": 1}


@pytest.fixture
async def moving(services: Services, own: OwnDatabase) -> AsyncIterator[Agent]:
    name = MOVABLE
    async with serving(services, own, vector_store=name, vector_store_url="third://party") as runtime:
        await runtime.maintenance.drain_outbox()
        yield Agent(runtime, "ada")
    MovableVectors.is_away = False


@pytest.mark.parametrize(
    ("most", "mode", "note"), [(50_000, "exact", vector_store.IN_POSTGRESQL), (10, "words", vector_store.BY_WORDS)]
)
async def test_without_the_store_searches_use_postgresql(
    moving: Agent, monkeypatch: pytest.MonkeyPatch, most: int, mode: str, note: str
) -> None:
    monkeypatch.setattr(vector_store, "MAX_EXACT_FALLBACK", most)
    await fill(moving, 20)
    await moving.runtime.maintenance.drain_outbox()
    MovableVectors.is_away = True
    for _ in range(2):
        result = await moving.memory.retrieve(RetrieveParams(query="Note 7: the reading of meter 7"))
        assert result.memories[0].content.startswith("Note 7:")
        assert external_vectors.UNAVAILABLE + note in result.receipt.degraded
    assert searches(moving.runtime.metrics) == {mode: 2}
    state = (await moving.runtime.readiness())["vector_store"]
    assert (state["ok"], state["required"], state["circuit"]) == (False, False, "open")
    assert b'agentcore_circuit_open{dependency="vector_store"} 1.0' in moving.runtime.metrics.exposition()


async def test_a_refusal_is_reported_and_delays_no_other_agent(moving: Agent, caplog: pytest.LogCaptureFixture) -> None:
    mallory = Agent(moving.runtime, "mallory")
    await fill(mallory, 3)
    await fill(moving, 4)
    assert await moving.runtime.maintenance.drain_outbox() is None
    assert (await held(moving), await held(mallory), await pending(moving)) == (4, 0, 3)
    assert "upsert refused: no space for mallory" in caplog.text
    assert moving.runtime.maintenance._failing["drain vector outbox"] == external_vectors.REFUSED
    result = await mallory.memory.retrieve(RetrieveParams(query="Note 1: the reading of meter 1"))
    assert result.memories[0].content.startswith("Note 1:")
    assert external_vectors.REFUSED + vector_store.IN_POSTGRESQL in result.receipt.degraded
    assert not external(moving).circuit.is_open
    await fill(mallory, 2, user_id="u1", force=True)
    erased = await mallory.memory.erase(EraseParams(user_id="u1", confirm=True))
    assert (erased.complete, erased.verified, await held(mallory, "u1")) == (True, True, 0)


async def test_changes_remain_enqueued_while_the_store_is_away(moving: Agent) -> None:
    MovableVectors.is_away = True
    await fill(moving, 4)
    assert await moving.runtime.maintenance.drain_outbox() is None
    assert await pending(moving) == 4
    MovableVectors.is_away = False
    assert (await moving.runtime.readiness())["vector_store"]["ok"]
    assert await moving.runtime.maintenance.drain_outbox() == 4
    assert await held(moving) == 4


async def test_an_erasure_without_the_store_fails_and_a_later_one_completes_it(moving: Agent) -> None:
    await fill(moving, 4)
    await moving.runtime.maintenance.drain_outbox()
    MovableVectors.is_away = True
    with pytest.raises(DependencyUnavailable, match="vector store"):
        await moving.memory.erase(EraseParams(all=True, confirm=True))
    MovableVectors.is_away = False
    assert (await moving.runtime.readiness())["vector_store"]["ok"]
    assert await held(moving) == 4
    assert (await moving.memory.erase(EraseParams(all=True, confirm=True))).verified
    assert await held(moving) == 0


async def test_a_store_of_one_process_is_not_rebuilt_from_another(
    own: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", own.url)
    monkeypatch.setenv("VECTOR_STORE", "memory")
    with pytest.raises(ConfigurationError, match="restart the service"):
        await maintenance._fill_vector_store()


@pytest.mark.parametrize("name", ["qdrant", "milvus"])
async def test_a_start_does_not_need_the_server(services: Services, own: OwnDatabase, name: str) -> None:
    nowhere = {"vector_store": name, "vector_store_url": "http://127.0.0.1:9"}
    async with serving(services, own, **nowhere) as runtime:
        state = (await runtime.readiness())["vector_store"]
        assert (state["ok"], state["kind"]) == (False, name)


@pytest.mark.parametrize("name", ["qdrant", "milvus"])
def test_a_server_without_an_address_is_refused(services: Services, name: str) -> None:
    with pytest.raises(ConfigurationError, match="VECTOR_STORE_URL"):
        make_vector_store(settings_for(services, vector_store=name))


def test_a_path_that_milvus_lite_does_not_open_is_refused(services: Services) -> None:
    with pytest.raises(ConfigurationError, match=r"NAME\.db"):
        make_vector_store(settings_for(services, vector_store="milvus", vector_store_url="vectors"))


async def test_doctor_reports_the_store(services: Services, own: OwnDatabase, moving: Agent) -> None:
    await fill(moving, 4)
    await moving.runtime.maintenance.drain_outbox()

    async def verdict(**settings: Any) -> tuple[bool | None, str]:
        [found] = [each for each in await examine(settings_for(services, **settings)) if each.name == "vector store"]
        return found.ok, found.found

    assert await verdict() == (True, "PostgreSQL with pgvector")
    assert await verdict(vector_store="memory") == (None, "VECTOR_STORE=memory, a store of one process")
    # Nothing was filled: this store is of another process.
    lost = {"vector_store": MOVABLE, "vector_store_url": "third://party"}
    assert await verdict(**lost, database_url=own.url) == (False, f"VECTOR_STORE={MOVABLE}, 0 vectors of about 4")
    ok, found = await verdict(vector_store="qdrant", vector_store_url="http://127.0.0.1:9")
    assert not ok
    assert found.startswith("qdrant does not answer")
