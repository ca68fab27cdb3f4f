"""Long memories are searched in full, by passage vectors computed in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from agentcore.config import Settings
from agentcore.database import Row
from agentcore.errors import DependencyUnavailable
from agentcore.maintenance import index_keeper
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.maintenance.rounds import enqueue_llm_work
from agentcore.memory.api import Caller
from agentcore.memory.embeddings import Embedder, EmbeddingKind, Vectors
from agentcore.memory.language.passages import passages
from agentcore.memory.lexical import Bm25
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import Interaction, MemoryType
from agentcore.memory.params.archived import EraseParams, RestoreParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import DeleteParams, GetContextParams, PruneParams, RetrieveParams, StoreParams
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.rows import vector_index
from agentcore.memory.rows.vector_index import IndexPolicy
from agentcore.memory.vector_store import PASSAGES, PgVectorStore, SearchRequest
from agentcore.memory.writing import document_vectors
from agentcore.memory.writing.document_vectors import embed_pending_passages
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.databases import OwnDatabase, migrated_database
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.picky_embedder import picky_memory
from tests.fixtures.services import Services

TOPICS = (
    "the roof of the barn",
    "a new fence",
    "the well pump",
    "hay for the winter",
    "the old tractor",
    "wild garlic in the wood",
    "the beehives",
    "a leaking gutter",
    "apple varieties",
    "the gravel road",
)
# Query and fact share no word: only a vector finds the fact.
FACT = "Our vet for the goats is called Dr. Amelie Sturm, she comes on Thursdays."
QUERY = "Which animal doctor looks after the herd?"


def long_text(*facts: str, before: int = 200, behind: int = 1) -> str:
    """Returns a text with this many other sentences before and after the facts."""
    told = [
        f"Note {number}: we talked about {TOPICS[number % len(TOPICS)]} and will look at it again in May."
        for number in range(before + behind)
    ]
    return "\n".join([*told[:before], *facts, *told[before:]])


@pytest.fixture(scope="module")
def own(services: Services) -> Iterator[OwnDatabase]:
    with migrated_database(services) as database:
        yield database


@pytest.fixture
async def farm(services: Services, own: OwnDatabase) -> AsyncIterator[Runtime]:
    """A service with the hashing embedder, whose vectors cover the first 8,000 characters."""
    async with open_runtime(settings_for(services, database_url=own.url)) as runtime:
        yield runtime


@pytest.fixture
def agent(farm: Runtime) -> Agent:
    return Agent(farm)


async def work(agent: Agent) -> None:
    await agent.runtime.jobs.run_pending()


async def selected(agent: Agent, statement: str, *values: Any) -> Sequence[Row]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(statement.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def rows(agent: Agent) -> Sequence[Row]:
    statement = "SELECT * FROM memory_passages WHERE agent_id = %s ORDER BY 2, 4, 3"
    return await selected(agent, statement, agent.agent_id)


async def pending(agent: Agent) -> set[UUID]:
    statement = "SELECT memory_id FROM llm_queue WHERE agent_id = %s AND work = 'passages'"
    return {row["memory_id"] for row in await selected(agent, statement, agent.agent_id)}


async def forget_jobs(agent: Agent) -> None:
    await selected(agent, "DELETE FROM procrastinate_jobs")


async def similarity(
    agent: Agent, memory_id: UUID, query: str = FACT, memory: MemoryManager | None = None, **values: Any
) -> float | None:
    """Returns the similarity of the memory in a search, or None if it is missing."""
    memory = memory or agent.memory
    found = (await memory.retrieve(RetrieveParams(query=query, min_fit=0, **values))).memories
    return next((each.similarity for each in found if each.memory_id == memory_id), None)


async def assert_whole(agent: Agent, memory_id: UUID, content: str) -> None:
    """Asserts a vector for each passage after the first, and no pending work."""
    made = [row for row in await rows(agent) if row["memory_id"] == memory_id]
    cut = passages(content)
    assert [(row["passage"], row["start"], row["end"]) for row in made] == [
        (number, each.start, each.end) for number, each in enumerate(cut) if number
    ]
    assert all(row["embedding"] is not None for row in made)
    assert memory_id not in await pending(agent)


# --- storing and searching ----------------------------------------------------------------------------------


async def test_a_long_text_is_found_by_its_end_once_the_job_has_run(agent: Agent) -> None:
    content = long_text(FACT)
    memory_id = await agent.stored_id(content)
    assert await rows(agent) == []
    assert await pending(agent) == {memory_id}
    before = await similarity(agent, memory_id) or 0.0
    await work(agent)
    await assert_whole(agent, memory_id, content)
    assert (await similarity(agent, memory_id) or 0.0) > before + 0.1


async def test_a_long_answer_of_an_interaction_is_cut_at_its_lines(agent: Agent) -> None:
    given = Interaction(query="What happened on the farm?", response=long_text(FACT))
    stored = await agent.memory.store(StoreParams(interaction=given))
    assert stored.memory_id is not None
    await work(agent)
    content = (await agent.get(stored.memory_id)).content
    await assert_whole(agent, stored.memory_id, content)
    assert all(content[row["end"] - 1] == "\n" for row in (await rows(agent))[:-1])


async def test_a_short_memory_costs_nothing(agent: Agent) -> None:
    await agent.stored_id(FACT)
    assert await pending(agent) == set()
    await work(agent)
    assert await rows(agent) == []
    statistics = await agent.runtime.parts.vectors.statistics(agent.agent_id, [])
    assert not statistics.has_passages


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        ({"namespace": "a"}, {"namespace": "b"}),
        ({"user_id": "ada"}, {"user_id": "bo"}),
        ({"timestamp": "2026-05-01T00:00:00Z"}, {"as_of": "2026-04-01T00:00:00Z"}),
        ({"tags": ["farm"]}, {"tags": ["home"]}),
    ],
)
async def test_passages_are_searched_under_the_conditions_of_their_memory(
    agent: Agent, values: Mapping[str, Any], asked: Mapping[str, Any]
) -> None:
    memory_id = await agent.stored_id(long_text(FACT), **values)
    await work(agent)
    assert await similarity(agent, memory_id) is not None
    assert await similarity(agent, memory_id, **asked) is None


async def test_a_caller_bound_to_users_finds_and_sees_passages_of_these_users_alone(agent: Agent) -> None:
    memory_id = await agent.stored_id(long_text(FACT), user_id="ada")
    await work(agent)
    for user, finds in (("ada", True), ("bo", False)):
        memory = agent.runtime.manager_for(Caller(agent.agent_id, users=frozenset({user})))
        assert (await similarity(agent, memory_id, memory=memory) is not None) == finds
        async with agent.runtime.database.bound_to([user]).transaction(agent.agent_id) as connection:
            cursor = await connection.execute("SELECT passage FROM memory_passages")
            assert bool(await cursor.fetchall()) == finds


async def test_a_passage_that_a_superseded_memory_contains_is_found_in_historical_queries_alone(agent: Agent) -> None:
    newer = await agent.stored_id("The farm was sold.", timestamp="2026-04-01")
    memory_id = await agent.stored_id(
        long_text(FACT), timestamp="2026-01-05", superseded_by=newer, valid_to="2026-04-01"
    )
    await work(agent)
    assert await similarity(agent, memory_id) is None
    assert await similarity(agent, memory_id, "Who was our vet for the goats in February 2026?") is not None


async def test_a_query_of_several_questions_finds_passages_for_each(agent: Agent) -> None:
    other = "The key of the tool shed is under the third flower pot from the left."
    memory_id = await agent.stored_id(long_text(FACT, before=300))
    other_id = await agent.stored_id(long_text(other, before=300))
    await work(agent)
    query = "Who is our vet for the goats called? And where is the key of the tool shed?"
    result = await agent.memory.retrieve(RetrieveParams(query=query, min_fit=0))
    assert {each.memory_id for each in result.memories} >= {memory_id, other_id}


async def test_the_signals_of_abstention_compare_the_passage_that_matched(agent: Agent) -> None:
    memory_id = await agent.stored_id(long_text(FACT))
    await work(agent)
    [vector] = await agent.runtime.parts.embedder.embed([FACT], "query")  # type: ignore[union-attr]
    store = agent.runtime.parts.vectors
    request = await search_request(agent, vector)
    found = await store.search(agent.agent_id, request)
    [candidate] = found.candidates
    nearest = max(await rows(agent), key=lambda row: float(row["embedding"].to_numpy() @ vector))
    assert candidate.passage == (nearest["start"], nearest["end"])
    assert np.allclose(found.near_vectors[memory_id], nearest["embedding"].to_numpy())


async def search_request(agent: Agent, vector: Any) -> SearchRequest:
    statistics = await agent.runtime.parts.vectors.statistics(agent.agent_id, [])
    model = agent.runtime.parts.vector_model
    return SearchRequest({}, vector[None], model, Bm25([], statistics))


# --- changes ------------------------------------------------------------------------------------------------


async def test_an_update_of_the_text_replaces_the_passages(agent: Agent) -> None:
    memory_id = await agent.stored_id(long_text(FACT))
    await work(agent)
    before = await similarity(agent, memory_id) or 0.0
    content = long_text("The shed is red.", before=250)
    await agent.memory.update(UpdateParams(memory_id=memory_id, updates={"content": content}))
    assert await rows(agent) == []
    await work(agent)
    await assert_whole(agent, memory_id, content)
    assert (await similarity(agent, memory_id) or 0.0) < before - 0.1
    await agent.memory.update(UpdateParams(memory_id=memory_id, updates={"content": "It is short now."}))
    await work(agent)
    assert (await rows(agent), await pending(agent)) == ([], set())


async def test_an_update_of_anything_else_keeps_them(agent: Agent) -> None:
    memory_id = await agent.stored_id(long_text(FACT))
    await work(agent)
    before = await rows(agent)
    await agent.memory.update(UpdateParams(memory_id=memory_id, updates={"tags": ["farm"]}))
    assert (await rows(agent), await pending(agent)) == (before, set())


async def test_a_deletion_takes_passages_and_pending_work_with_it(agent: Agent) -> None:
    ids = [await agent.stored_id(long_text(f"Fact {number}.")) for number in range(2)]
    await work(agent)
    ids.append(await agent.stored_id(long_text("One more.")))
    assert await pending(agent) == {ids[2]}
    await agent.memory.delete(DeleteParams(memory_ids=ids[1:]))
    assert {row["memory_id"] for row in await rows(agent)} == {ids[0]}
    assert await pending(agent) == set()


async def test_what_is_erased_has_no_passages_left(agent: Agent) -> None:
    await agent.stored_id(long_text(FACT))
    await work(agent)
    count = len(await rows(agent))
    erased = await agent.memory.erase(EraseParams(all=True, confirm=True))
    assert erased.verified
    assert erased.erased[PASSAGES] == count
    assert await rows(agent) == []


async def test_a_memory_back_from_the_archive_has_its_passages_again(agent: Agent) -> None:
    content = long_text(FACT)
    memory_id = await agent.stored_id(content)
    await work(agent)
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1))
    assert await rows(agent) == []
    await agent.memory.restore(RestoreParams(memory_ids=[memory_id]))
    assert await pending(agent) == {memory_id}
    await work(agent)
    await assert_whole(agent, memory_id, content)


# --- failures -----------------------------------------------------------------------------------------------


class Interrupting:
    """Delegates to another embedder; runs a function before its second call."""

    distinguishes_queries, batch_size, parallel_requests = False, 8, 1

    def __init__(self, inner: Embedder, meanwhile: Any) -> None:
        self.model, self.dimensions = inner.model, inner.dimensions
        self._inner, self._meanwhile, self.calls = inner, meanwhile, 0

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        self.calls += 1
        if self.calls == 2:
            await self._meanwhile()
        return await self._inner.embed(texts, kind)


async def turn(agent: Agent, meanwhile: Any) -> bool:
    parts = agent.runtime.parts
    assert parts.embedder is not None
    embedder = Interrupting(parts.embedder, meanwhile)
    return await embed_pending_passages(replace(parts, embedder=embedder), Caller(agent.agent_id))


async def test_a_job_that_was_lost_is_enqueued_again(agent: Agent) -> None:
    content = long_text(FACT)
    memory_id = await agent.stored_id(content)
    await forget_jobs(agent)
    await work(agent)
    assert await rows(agent) == []
    await enqueue_llm_work(agent.runtime.database, agent.runtime.parts)
    await work(agent)
    await assert_whole(agent, memory_id, content)


async def test_what_an_interrupted_job_has_embedded_is_kept(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_vectors, "BATCH", 3)
    content = long_text(FACT)
    memory_id = await agent.stored_id(content)

    async def fail() -> None:
        raise DependencyUnavailable("The embedder is away.")

    with pytest.raises(DependencyUnavailable):
        await turn(agent, fail)
    assert [row["passage"] for row in await rows(agent)] == [1, 2, 3]
    assert await pending(agent) == {memory_id}
    first = await rows(agent)
    await work(agent)
    await assert_whole(agent, memory_id, content)
    assert [str(row) for row in (await rows(agent))[:3]] == [str(row) for row in first]


@pytest.mark.parametrize("updates", [{"content": long_text("The shed is red.", before=90)}, {"tags": ["x"]}])
async def test_no_passage_of_an_old_version_is_written(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, updates: dict[str, Any]
) -> None:
    monkeypatch.setattr(document_vectors, "BATCH", 3)
    memory_id = await agent.stored_id(long_text(FACT))

    async def update() -> None:
        await agent.memory.update(UpdateParams(memory_id=memory_id, updates=updates))

    await turn(agent, update)
    assert len(await rows(agent)) == (0 if "content" in updates else 3)
    assert await pending(agent) == {memory_id}
    await work(agent)
    await assert_whole(agent, memory_id, (await agent.get(memory_id)).content)


async def test_a_memory_that_is_deleted_meanwhile_does_no_harm(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_vectors, "BATCH", 3)
    memory_id = await agent.stored_id(long_text(FACT))

    async def delete() -> None:
        await agent.memory.delete(DeleteParams(memory_ids=[memory_id]))

    await turn(agent, delete)
    assert (await rows(agent), await pending(agent)) == ([], set())


async def test_a_passage_that_the_model_refuses_does_not_hold_up_the_others(agent: Agent) -> None:
    content = long_text("It is forbidden.")
    memory_id = await agent.stored_id(content)
    await forget_jobs(agent)
    picky, _ = picky_memory(agent)
    await embed_pending_passages(replace(agent.runtime.parts, embedder=picky), Caller(agent.agent_id))
    refused = [row for row in await rows(agent) if row["embedding"] is None]
    assert {row["embedding_model"] for row in refused} == {f"refused:{picky.model}"}
    assert 1 <= len(refused) <= 2
    assert len(await rows(agent)) == len(passages(content)) - 1
    assert await pending(agent) == set()
    assert await similarity(agent, memory_id) is not None


async def test_a_long_backlog_takes_turns_with_other_agents(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_vectors, "MOST_PASSAGES", 5)
    monkeypatch.setattr(document_vectors, "MEMORIES", 2)
    contents = {await agent.stored_id(text): text for text in map(long_text, "abc")}
    await embed_pending_passages(agent.runtime.parts, Caller(agent.agent_id))
    assert len(await rows(agent)) == 5
    while await pending(agent):
        await work(agent)
    for memory_id, content in contents.items():
        await assert_whole(agent, memory_id, content)


async def test_without_an_embedder_long_memories_stay_pending(agent: Agent) -> None:
    await agent.stored_id(long_text(FACT))
    parts = replace(agent.runtime.parts, embedder=None)
    assert not await embed_pending_passages(parts, Caller(agent.agent_id))
    await forget_jobs(agent)
    await enqueue_llm_work(agent.runtime.database, parts)
    assert await selected(agent, "SELECT FROM procrastinate_jobs") == []
    assert len(await pending(agent)) == 1


# --- contexts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_id", [None, "task"])
async def test_a_context_shortens_a_long_memory_to_the_passage_that_matched(agent: Agent, task_id: str | None) -> None:
    await agent.stored_id(long_text(FACT, behind=100), task_id=task_id)
    await work(agent)
    built = await agent.memory.get_context(GetContextParams(query=FACT, max_tokens=400, min_fit=0, task_id=task_id))
    assert "Amelie Sturm" in built.context
    assert "Note 199" in built.context
    assert built.shortened


# --- the local model ----------------------------------------------------------------------------------------


@pytest.fixture
async def local(local_settings: Settings) -> AsyncIterator[Runtime]:
    async with open_runtime(local_settings) as running:
        yield running


async def test_the_local_model_finds_a_fact_at_the_end_in_other_words(local: Runtime) -> None:
    agent = Agent(local)
    for number in range(5):
        await agent.stored_id(f"On day {number} the weather was mild and nothing happened on the farm.")
    memory_id = await agent.stored_id(long_text(FACT, before=40))
    before = await similarity(agent, memory_id, QUERY)
    await work(agent)
    after = await similarity(agent, memory_id, QUERY)
    assert (after or 0.0) > (before or 0.0) + 0.1
    built = await agent.memory.get_context(GetContextParams(query=QUERY, max_tokens=300, min_fit=0))
    assert "Amelie Sturm" in built.context


# --- indexes ------------------------------------------------------------------------------------------------


async def test_many_passages_are_searched_through_an_index_of_the_keeper(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("MIN_ROWS", 40), ("LIFE_SECONDS", 0.0), ("QUERIES", 20)):
        monkeypatch.setattr(index_keeper, name, value)
    monkeypatch.setattr(vector_index, "LEAST_ROWS_READ", 1)
    memory_id = await agent.stored_id(long_text(FACT))
    for number in range(4):
        await agent.stored_id(long_text(f"Number {number}.", before=200 + number))
    await work(agent)
    await selected(agent, "ANALYZE memory_passages")
    await selected(agent, "ANALYZE memories")
    runtime = agent.runtime
    keeper = IndexKeeper(runtime.database, runtime.parts.vector_model, 64, IndexPolicy(), exact_search_limit=0)
    assert await keeper.round() >= 1
    [own] = await selected(
        agent,
        "SELECT DISTINCT tableoid::regclass::text AS name FROM memory_passages WHERE agent_id = %s",
        agent.agent_id,
    )
    [state] = [each for each in await keeper.states() if each.partition == own["name"]]
    assert state.indexes[0].recall is not None
    assert state.indexes[0].recall >= 0.9
    vectors = PgVectorStore(runtime.database, 64, SearchLimits(exact_search_limit=20))
    memory = MemoryManager(replace(runtime.parts, vectors=vectors), Caller(agent.agent_id))
    exact = await similarity(agent, memory_id)
    assert await similarity(agent, memory_id, memory=memory) == pytest.approx(exact)
    assert await similarity(agent, memory_id, memory=memory, tags=["none"]) is None
    served = await vectors._indexes.of(agent.agent_id, runtime.parts.vector_model, PASSAGES, 20)
    assert served is not None
    few = await vectors._indexes.of("somebody else", runtime.parts.vector_model, PASSAGES, 20)
    assert few is None
