"""The index keeper."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import numpy as np
import pytest

from agentcore.maintenance import index_keeper
from agentcore.maintenance.index_keeper import IndexKeeper, IndexPlan, PartitionState, choose, disturbed, plan
from agentcore.memory.api import Caller
from agentcore.memory.lexical import Bm25, LexicalStatistics
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.memories import RetrieveParams, StoreBatchParams, StoreParams
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.rows import vector_index, vector_rows
from agentcore.memory.rows.vector_index import IndexPolicy, VectorIndex
from agentcore.memory.rows.vector_rows import ServingIndexes
from agentcore.memory.vector_store import PgVectorStore, SearchRequest
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.databases import OwnDatabase, migrated_database
from tests.fixtures.memory import Agent, searches, settings_for
from tests.fixtures.services import Services

DIMENSIONS = 64
INDEX = VectorIndex("ann_a", "ivfflat", "m", 200, 10_000, 1_000.0, 20, 0.96, 1_000.0, 10_000)


@pytest.fixture
def own(services: Services) -> Iterator[OwnDatabase]:
    with migrated_database(services) as database:
        yield database


@pytest.fixture
async def filled(services: Services, own: OwnDatabase, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    monkeypatch.setattr(index_keeper, "MIN_ROWS", 40)
    monkeypatch.setattr(index_keeper, "LIFE_SECONDS", 0.0)
    monkeypatch.setattr(index_keeper, "QUERIES", 20)
    monkeypatch.setattr(vector_index, "LEAST_ROWS_READ", 1)
    # With a single connection, row counts are flushed before the tables are analyzed.
    async with open_runtime(settings_for(services, database_url=own.url, database_pool_size=1)) as runtime:
        for agent_id in ("ada", "grace"):
            await fill(runtime, agent_id, 0, 60)
        yield runtime


async def fill(runtime: Runtime, agent_id: str, first: int, last: int) -> None:
    items = [
        StoreParams(
            content=f"Reading {n} of the sensor was {n * 31 % 977}.", tags=["rare"] if n % 20 == 7 else ["usual"]
        )
        for n in range(first, last)
    ]
    await Agent(runtime, agent_id).memory.store_batch(StoreBatchParams(items=items))
    async with runtime.database.write.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    async with runtime.database.owner_transaction() as connection:
        await connection.execute("ANALYZE memories")


def keeper(runtime: Runtime, policy: IndexPolicy | None = None) -> IndexKeeper:
    model = runtime.parts.vector_model
    return IndexKeeper(runtime.database, model, DIMENSIONS, policy or IndexPolicy("ivfflat"), exact_search_limit=0)


async def keep(runtime: Runtime, policy: IndexPolicy | None = None) -> int:
    return await keeper(runtime, policy).round()


async def partitions(runtime: Runtime) -> dict[str, PartitionState]:
    return {state.partition: state for state in await keeper(runtime).states() if state.rows}


def through_indexes(runtime: Runtime, agent_id: str) -> MemoryManager:
    vectors = PgVectorStore(runtime.database, DIMENSIONS, SearchLimits(exact_search_limit=0))
    return MemoryManager(replace(runtime.parts, vectors=vectors), Caller(agent_id))


@pytest.mark.parametrize(
    ("rows", "indexes", "build", "measured"),
    [
        (1_999, [], None, None),
        (2_000, [], True, None),
        (10_000, [], True, None),
        (12_499, [INDEX], None, None),
        (12_500, [INDEX], False, INDEX),
        (8_000, [INDEX], False, INDEX),
        (19_999, [INDEX], False, INDEX),
        (20_000, [INDEX], True, None),
        (12_000, [replace(INDEX, reach=100)], None, None),
        (11_999, [replace(INDEX, reach=101)], None, None),
        (12_000, [replace(INDEX, reach=101)], True, None),
        (10_000, [replace(INDEX, measured_rows=None)], False, replace(INDEX, measured_rows=None)),
        (10_000, [replace(INDEX, model="another")], True, None),
        (13_000, [replace(INDEX, kind="hnsw")], True, None),
    ],
)
def test_a_plan_follows_from_size_and_what_is_there(
    rows: int, indexes: list[VectorIndex], build: bool | None, measured: VectorIndex | None
) -> None:
    found = plan(PartitionState("p", rows, tuple(indexes), ()), "m", IndexPolicy("ivfflat"))
    assert (found.build if found else None) == build
    assert (found.measured if found else None) == measured


def test_a_graph_is_not_rebuilt_as_it_grows() -> None:
    graph = replace(INDEX, kind="hnsw", measured_rows=90_000)
    assert plan(PartitionState("p", 100_000, (graph,), ()), "m", IndexPolicy("hnsw")) is None


def test_of_two_indexes_left_behind_the_older_is_dropped_and_those_of_other_models_stay() -> None:
    older, other = replace(INDEX, name="ann_b", built_at=500.0), replace(INDEX, name="ann_c", model="another")
    found = plan(PartitionState("p", 10_000, (INDEX, older, other), ("ann_half",)), "m", IndexPolicy("ivfflat"))
    assert found == IndexPlan(("ann_half",), replaced=(older,))


@pytest.mark.parametrize("start", [1, 10, 16, 17, 64, 1_000])
async def test_the_least_reach_that_is_enough_is_chosen_wherever_the_search_begins(start: int) -> None:
    asked: list[int] = []

    async def recall_at(reach: int) -> tuple[float, bool]:
        asked.append(reach)
        return reach / 64, reach >= 16

    assert await choose([1, 2, 4, 8, 16, 32, 64], start, recall_at) == (16, 0.25)
    assert len(asked) == len(set(asked))


async def test_where_no_reach_is_enough_the_last_is_taken() -> None:
    async def recall_at(reach: int) -> tuple[float, bool]:
        return 0.5, False

    assert await choose([1, 2, 4], 2, recall_at) == (4, 0.5)


def test_a_disturbed_vector_is_near_its_origin_but_not_the_same() -> None:
    vector = np.random.default_rng(1).normal(size=384).astype(np.float32)
    other = disturbed(vector)
    cosine = float(vector @ other / np.linalg.norm(vector) / np.linalg.norm(other))
    assert 0.5 < cosine < 0.9


@pytest.mark.shows("NFR-2.2", "issue2-7-recall")
async def test_what_was_measured_is_remembered_and_the_search_goes_by_it(filled: Runtime) -> None:
    assert await keep(filled, IndexPolicy("ivfflat", recall=0.99)) == 2
    for state in (await partitions(filled)).values():
        [index] = state.indexes
        assert index.recall is not None
        # Equidistant neighbors may swap ranks, so 1.0 is not guaranteed at any search width.
        assert index.recall >= 0.99
        assert index.measured_rows == state.rows == 60
        assert index.reach <= index.shape
    await through_indexes(filled, "ada").retrieve(RetrieveParams(query="Reading 7", k=5))
    assert searches(filled.metrics) == {"indexed": 1}
    assert await keep(filled) == 0


async def test_a_lower_target_is_met_with_a_shorter_reach(filled: Runtime) -> None:
    await keep(filled, IndexPolicy("ivfflat", recall=0.999))
    far = {name: state.indexes[0].reach for name, state in (await partitions(filled)).items()}
    for state in (await partitions(filled)).values():
        todo = index_keeper.tune_plan(state, filled.parts.vector_model)
        assert todo is not None
        near = keeper(filled, IndexPolicy("ivfflat", recall=0.5))
        async with near.alone() as connection:
            assert connection is not None
            await near.carry_out(connection, state, todo)
    for name, state in (await partitions(filled)).items():
        assert state.indexes[0].reach < far[name]
        assert 0.5 <= (state.indexes[0].recall or 0) < 1


async def test_exact_searches_that_would_take_too_long_leave_the_first_reach(
    filled: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_keeper, "EXACT_SEARCH_SECONDS", 0.0)
    assert await keep(filled) == 2
    for state in (await partitions(filled)).values():
        assert (state.indexes[0].recall, state.indexes[0].measured_rows) == (None, 60)
    assert await keep(filled) == 0


@pytest.mark.shows("issue2-7-recall")
async def test_a_partition_that_has_grown_is_measured_again(filled: Runtime) -> None:
    policy = IndexPolicy("ivfflat", recall=0.5)
    await keep(filled, policy)
    names = {name: state.indexes[0].name for name, state in (await partitions(filled)).items()}
    await fill(filled, "ada", 60, 90)
    assert await keep(filled, policy) == 1
    grown = [state for state in (await partitions(filled)).values() if state.rows == 90]
    assert [(state.indexes[0].measured_rows, state.indexes[0].built_rows) for state in grown] == [(90, 60)]
    assert {state.partition: state.indexes[0].name for state in grown}.items() <= names.items()


@pytest.mark.shows("issue2-7-recall")
async def test_a_partition_that_has_doubled_gets_a_new_index_while_searches_go_on(filled: Runtime) -> None:
    await keep(filled)
    await fill(filled, "ada", 60, 130)
    memory = through_indexes(filled, "ada")
    rebuilding = asyncio.create_task(keep(filled))
    answers = []
    while not rebuilding.done():
        answers.append(await memory.retrieve(RetrieveParams(query="Reading 7 of the sensor", k=60)))
    assert await rebuilding == 1
    assert {answer.receipt.candidates["vector"] for answer in answers} == {60}
    assert searches(filled.metrics) == {"indexed": len(answers)}
    [grown] = [state for state in (await partitions(filled)).values() if state.rows == 130]
    assert [index.built_rows for index in grown.indexes] == [130]


@pytest.mark.shows("issue2-7-recall")
async def test_another_kind_is_built_beside_the_old_which_then_goes(filled: Runtime) -> None:
    await keep(filled)
    for policy in (IndexPolicy("hnsw"), IndexPolicy("ivfflat")):
        assert await keep(filled, policy) == 2
        for state in (await partitions(filled)).values():
            assert [index.kind for index in state.indexes] == [policy.kind]
        result = await through_indexes(filled, "ada").retrieve(RetrieveParams(query="Reading 7", k=60))
        assert result.receipt.candidates["vector"] == 60


async def test_while_another_process_works_on_the_indexes_nothing_is_swept_or_built(filled: Runtime) -> None:
    async with keeper(filled).alone() as connection:
        assert connection is not None
        assert await keep(filled) == 0
    assert await keep(filled) == 2


@pytest.mark.parametrize("kind", ["ivfflat", "hnsw"])
@pytest.mark.shows("issue2-7-recall")
async def test_a_filter_finds_all_it_should(filled: Runtime, kind: str) -> None:
    await fill(filled, "ada", 60, 600)
    await keep(filled, IndexPolicy(kind=kind, recall=0.5))  # type: ignore[arg-type]
    memory = through_indexes(filled, "ada")
    rare = await memory.retrieve(RetrieveParams(query="quite unrelated", k=60, tags=["rare"]))
    assert rare.receipt.candidates["vector"] == len(rare.memories) == 30
    usual = await memory.retrieve(RetrieveParams(query="quite unrelated", k=60, tags=["usual"]))
    assert usual.receipt.candidates["vector"] == 60


async def test_without_any_index_a_large_agent_is_searched_exactly(filled: Runtime) -> None:
    vector = np.ones(DIMENSIONS, dtype=np.float32)
    statistics = LexicalStatistics(60, 1.0, {})
    request = SearchRequest({}, vector[None], filled.parts.vector_model, Bm25([], statistics))
    vectors = PgVectorStore(filled.database, DIMENSIONS, SearchLimits(exact_search_limit=0))
    found = await vectors.search("ada", request)
    assert (found.mode, found.counts["vector"]) == ("exact", 60)
    assert await vectors.measured_recall("ada", vector, filled.parts.vector_model, 50) == 1.0


async def test_what_serves_an_agent_is_remembered_for_a_moment_and_for_so_many_agents(
    filled: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(filled)
    known, model = ServingIndexes(filled.database), filled.parts.vector_model
    served = await known.of("ada", model)
    assert served is not None
    async with filled.database.owner_autocommit() as connection:
        for state in (await partitions(filled)).values():
            await index_keeper.drop(connection, [index.name for index in state.indexes])
    assert await known.of("ada", model) == served
    monkeypatch.setattr(vector_rows, "MAX_AGENTS", 1)
    assert await known.of("grace", model) is None
    assert await known.of("ada", model) is None


async def test_an_index_whose_maker_was_stopped_before_the_comment_is_swept(filled: Runtime) -> None:
    first, second = sorted(await partitions(filled))
    async with filled.database.owner_autocommit() as connection:
        await connection.execute(
            f"CREATE INDEX ann_half_made ON {first} USING ivfflat "
            f"((embedding::halfvec({DIMENSIONS})) halfvec_cosine_ops) WITH (lists = 2)".encode()
        )
    assert (await partitions(filled))[first].half_made == ("ann_half_made",)
    assert await keep(filled) == 2
    left = await partitions(filled)
    assert {name: len(state.indexes) for name, state in left.items()} == {first: 1, second: 1}
    assert not any(state.half_made for state in left.values())
    assert await keep(filled) == 0


async def test_a_partition_that_fails_is_logged_and_the_next_is_served(
    filled: Runtime, own: OwnDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = sorted(await partitions(filled))
    own.as_administrator(f"ALTER TABLE {first} OWNER TO postgres")
    with caplog.at_level(logging.WARNING, "agentcore.maintenance"):
        assert await keep(filled) == 1
    left = await partitions(filled)
    assert (len(left[first].indexes), len(left[second].indexes)) == (0, 1)
    assert [record.getMessage() for record in caplog.records] == [f"the vector index of {first} waits"]
    own.as_administrator(f"ALTER TABLE {first} OWNER TO agentcore")
    assert await keep(filled) == 1
