"""LangGraph's store over a running memory: our extensions, and a graph that uses it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime as GraphRuntime
from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from agentcore.agents.scope import MemoryScope
from agentcore.agents.tools import MemoryTools
from agentcore.integrations.langgraph import AgentCoreStore
from agentcore.integrations.langgraph_items import MAX_NAMESPACE_DEPTH, METADATA_KEY, session_of, tag_of
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.changes import HistoryParams
from agentcore.memory.params.memories import CountParams, ListParams, StoreParams
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent
from tests.fixtures.memory_faces import FACES

USER = ("users", "ada")


@pytest.fixture
async def store(agent: Agent) -> AgentCoreStore:
    """A store on the test's event loop."""
    return AgentCoreStore(agent.memory)


async def record_of(agent: Agent) -> MemoryRecord:
    [record] = (await agent.memory.list(ListParams())).memories
    return record


async def age(agent: Agent, seconds: float) -> None:
    """Shifts the agent's memories into the past by this many seconds."""
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        await connection.execute(
            "UPDATE memories SET expires_at = expires_at - make_interval(secs => %s) WHERE agent_id = %s",
            (seconds, agent.agent_id),
        )


async def expires_at(agent: Agent) -> datetime:
    record = await record_of(agent)
    assert record.expires_at is not None
    return record.expires_at


class Talk(TypedDict):
    said: str
    answer: str


@pytest.mark.shows("issue6-5-LangGraph")
async def test_nodes_with_and_without_await_use_the_store_of_their_graph(agent: Agent) -> None:
    async def keep(state: Talk, runtime: GraphRuntime[None]) -> dict[str, str]:
        assert runtime.store is not None
        await runtime.store.aput(USER, "bird", {"data": state["said"]})
        return {}

    def answer(state: Talk, runtime: GraphRuntime[None]) -> dict[str, str]:
        assert runtime.store is not None
        [found] = runtime.store.search(USER, query="parrots")
        return {"answer": found.value["data"]}

    graph: Any = StateGraph(Talk)
    graph.add_node(keep).add_node(answer).add_edge(START, "keep").add_edge("keep", "answer")
    compiled = graph.compile(store=AgentCoreStore(agent.memory))
    state = await compiled.ainvoke({"said": "I love African Grey parrots"})
    assert state["answer"] == "I love African Grey parrots"


async def test_an_item_is_a_memory_that_the_agents_own_searches_find(agent: Agent, store: AgentCoreStore) -> None:
    await store.aput(USER, "bird", {"data": "I love African Grey parrots"})
    assert await agent.found("African Grey parrots") == ["data: I love African Grey parrots"]
    record = await record_of(agent)
    assert (record.pinned, record.expires_at, record.memory_type.value) == (True, None, "semantic")


async def test_earlier_values_stay_in_the_history(agent: Agent, store: AgentCoreStore) -> None:
    await store.aput(USER, "prefs", {"theme": "dark"})
    await store.aput(USER, "prefs", {"theme": "light"})
    record = await record_of(agent)
    [change] = (await agent.memory.history(HistoryParams(memory_id=record.memory_id))).changes
    assert (change.operation, change.version) == ("update", 2)
    assert change.before is not None
    assert change.before["content"] == "theme: dark"


@pytest.mark.shows("issue6-5-LangGraph")
async def test_a_time_to_live_is_in_minutes_and_a_read_renews_it(agent: Agent, store: AgentCoreStore) -> None:
    await store.aput(USER, "code", {"code": 4711}, ttl=10)
    record = await record_of(agent)
    assert record.expires_at is not None
    assert 600 <= (record.expires_at - record.created_at).total_seconds() < 640
    assert not record.pinned
    await store.aget(USER, "code")
    assert await expires_at(agent) == record.expires_at, "too early to be worth a write"
    for read in (store.aget(USER, "code"), store.asearch(USER, query="code"), store.asearch(USER)):
        await age(agent, 60)
        await read
        assert await expires_at(agent) > record.expires_at
    await age(agent, 60)
    before = await expires_at(agent)
    await store.aget(USER, "code", refresh_ttl=False)
    await store.asearch(USER, refresh_ttl=False)
    assert await expires_at(agent) == before


async def test_a_read_that_renews_leaves_the_item_its_version_and_its_history_alone(
    agent: Agent, store: AgentCoreStore
) -> None:
    await store.aput(USER, "code", {"code": 4711}, ttl=10)
    found = []
    for _ in range(5):
        await age(agent, 60)
        found.append(await store.aget(USER, "code"))
    assert found == [found[0]] * 5
    record = await record_of(agent)
    history = await agent.memory.history(HistoryParams(memory_id=record.memory_id))
    assert (record.version, history.changes) == (1, [])


@pytest.mark.shows("issue6-5-LangGraph-workers")
async def test_a_read_that_renews_takes_nothing_from_a_put_at_the_same_time(
    agent: Agent, store: AgentCoreStore
) -> None:
    for number in range(40):
        await store.aput(USER, "code", {"code": "old"}, ttl=10)
        await age(agent, 60)
        await asyncio.gather(
            store.aget(USER, "code"),
            store.asearch(USER, query="code"),
            store.aput(USER, "code", {"code": number}, ttl=None),
        )
        item = await store.aget(USER, "code")
        assert item is not None
        assert item.value == {"code": number}
        assert (await record_of(agent)).expires_at is None


@pytest.mark.shows("issue6-5-LangGraph-workers")
async def test_stores_that_put_one_new_key_at_the_same_time_make_one_item_of_it(agent: Agent, runtime: Runtime) -> None:
    async with AsyncExitStack() as clients:
        remote = [await clients.enter_async_context(FACES["HTTP client"](runtime, agent.agent_id)) for _ in range(3)]
        stores = [AgentCoreStore(memory) for memory in remote]
        for number in range(10):
            key = f"k-{number}"
            await asyncio.gather(*(each.aput(USER, key, {"by": place}) for place, each in enumerate(stores)))
            held = await agent.memory.list(ListParams(session_id=session_of(USER, key)))
            assert len(held.memories) == 1
            got = [await each.aget(USER, key) for each in stores]
            assert got == [got[0]] * 3
    assert len(await AgentCoreStore(agent.memory).asearch(USER, limit=50)) == 10


@pytest.mark.shows("issue6-5-LangGraph-workers")
async def test_of_an_item_in_two_memories_the_newer_value_is_read_and_a_put_leaves_one(
    agent: Agent, store: AgentCoreStore
) -> None:
    """As after two interrupted workers or a repeated import."""
    await store.aput(USER, "theme", {"is": "dark"})
    first = await record_of(agent)
    await store.aput(USER, "theme", {"is": "light"})
    await agent.memory.store(
        StoreParams(
            content="is: dark",
            session_id=session_of(USER, "theme"),
            tags=first.tags,
            metadata=first.metadata,
            timestamp=first.timestamp - timedelta(days=1),
        )
    )
    item = await store.aget(USER, "theme")
    assert item is not None
    assert item.value == {"is": "light"}
    assert [found.value for found in await store.asearch(USER)] == [{"is": "light"}]
    await store.aput(USER, "theme", {"is": "grey"})
    assert (await record_of(agent)).memory_id == first.memory_id
    assert [found.value for found in await store.asearch(USER)] == [{"is": "grey"}]


@pytest.mark.shows("issue6-5-replica")
async def test_a_put_is_decided_and_an_item_got_on_what_was_just_put_where_a_replica_lags(lagging: Agent) -> None:
    store = AgentCoreStore(lagging.memory)
    for number in (1, 2):
        await store.aput(USER, "k", {"n": number})
        item = await store.aget(USER, "k")
        assert item is not None
        assert item.value == {"n": number}
    assert (await lagging.memory.count(CountParams(consistent=True))).count == 1
    await store.adelete(USER, "k")
    assert await store.aget(USER, "k") is None


async def test_what_has_expired_is_not_there_and_a_put_without_a_time_to_live_ends_it(
    agent: Agent, store: AgentCoreStore
) -> None:
    await store.aput(USER, "gone", {"n": 1}, ttl=10)
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        await connection.execute(
            "UPDATE memories SET expires_at = now() - interval '1 second' WHERE agent_id = %s", (agent.agent_id,)
        )
    assert await store.aget(USER, "gone") is None
    assert await store.asearch(()) == []
    assert await store.alist_namespaces() == []
    await store.aput(USER, "stays", {"n": 1}, ttl=10)
    await store.aput(USER, "stays", {"n": 2})
    record = await record_of(agent)
    assert (record.expires_at, record.pinned) == (None, True)


async def test_the_stores_own_configuration_of_ttl_holds(agent: Agent) -> None:
    store = AgentCoreStore(agent.memory, ttl={"default_ttl": 0.001, "refresh_on_read": False})
    await store.aput(USER, "code", {"code": 4711})
    before = await expires_at(agent)
    await store.aget(USER, "code")
    assert await expires_at(agent) == before
    await store.aput(USER, "code", {"code": 4711}, ttl=None)
    assert (await record_of(agent)).expires_at is None


async def test_fields_say_what_is_searched_where_a_put_does_not(agent: Agent) -> None:
    store = AgentCoreStore(agent.memory, fields=["title"])
    await store.aput(USER, "talk", {"title": "African Grey parrots", "secret": "bicycle"})
    assert (await record_of(agent)).content == "African Grey parrots"
    await store.aput(USER, "talk", {"secret": "bicycle"})
    assert (await record_of(agent)).content == "(not searched)"
    assert [found.score for found in await store.asearch(USER, query="bicycle")] == [None]


async def test_what_a_filter_cannot_compare_is_neither_more_nor_less(store: AgentCoreStore) -> None:
    await store.aput(USER, "a", {"n": "many"})
    await store.aput(USER, "b", {"n": 3})
    for operator in ("$gt", "$gte", "$lt", "$lte"):
        assert await store.asearch(USER, filter={"missing": {operator: 1}}) == []
    assert [item.key for item in await store.asearch(USER, filter={"n": {"$gt": 1}})] == ["b"]


@pytest.mark.shows("issue6-5-owner")
async def test_agents_and_users_of_a_scope_do_not_meet(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    stores: list[BaseStore] = [
        AgentCoreStore(agent.memory, MemoryScope(user_id="ada", namespace="app")),
        AgentCoreStore(agent.memory, MemoryScope(user_id="bo", namespace="app")),
        AgentCoreStore(agent.memory, MemoryScope(user_id="ada", namespace="other")),
        AgentCoreStore(new_agent().memory),
    ]
    for number, store in enumerate(stores):
        await store.aput(USER, "k", {"n": number})
    for number, store in enumerate(stores):
        item = await store.aget(USER, "k")
        assert item is not None
        assert item.value == {"n": number}
        assert [found.value for found in await store.asearch((), query="n")] == [{"n": number}]
        assert len(await store.alist_namespaces()) == 1
    await stores[0].adelete(USER, "k")
    assert [await store.aget(USER, "k") is None for store in stores] == [True, False, False, False]


async def test_memories_that_are_no_items_are_none(agent: Agent, store: AgentCoreStore) -> None:
    await agent.store("African Grey parrots")
    await agent.memory.store(StoreParams(content="Tea.", tags=["langgraph:/"], metadata={"langgraph": 1}))
    wrong = {"namespace": ["users"], "key": "k", "value": 1, "created_at": "", "updated_at": "", "ttl": 1}
    for text in ("no JSON", "[]", '{"key": "k"}', json.dumps(wrong)):
        await agent.memory.store(
            StoreParams(
                content=text,
                force=True,
                tags=[tag_of(())],
                session_id=session_of(USER, "k"),
                metadata={METADATA_KEY: text},
            )
        )
    assert await store.aget(USER, "k") is None
    assert await store.asearch((), query="African Grey parrots") == []
    assert await store.alist_namespaces() == []


async def test_an_item_that_a_model_forgets_is_gone_and_may_come_again(agent: Agent, store: AgentCoreStore) -> None:
    await store.aput(USER, "bird", {"data": "African Grey parrots"})
    tools, ids = MemoryTools(agent.memory), [str((await record_of(agent)).memory_id)]
    proposed = await tools.answer("forget_memory", {"memory_ids": ids})
    confirmation = proposed.text.partition('"confirmation":"')[2].partition('"')[0]
    await tools.answer("forget_memory", {"memory_ids": ids, "confirmation": confirmation})
    assert await store.aget(USER, "bird") is None
    await store.aput(USER, "bird", {"data": "Parrots"})
    assert await store.aget(USER, "bird") is not None


async def test_too_much_is_refused_by_name(store: AgentCoreStore) -> None:
    with pytest.raises(ValueError, match="31 is the most"):
        await store.aput(tuple("x" * (MAX_NAMESPACE_DEPTH + 1)), "k", {"n": 1})
    await store.aput(tuple("x" * MAX_NAMESPACE_DEPTH), "k", {"n": 1})
    with pytest.raises(TypeError):
        await store.aput(USER, "k", {"n": object()})


async def test_waiting_on_the_loop_it_stands_on_is_refused_with_what_to_do(store: AgentCoreStore) -> None:
    with pytest.raises(RuntimeError, match="async form"):
        store.get(USER, "k")


async def test_without_a_loop_waiting_is_refused_with_what_to_do(agent: Agent) -> None:
    store = await asyncio.to_thread(AgentCoreStore, agent.memory)
    with pytest.raises(RuntimeError, match="memory_in_thread"):
        store.get(USER, "k")


async def test_a_store_answers_in_another_loop_than_its_memorys(store: AgentCoreStore) -> None:
    await store.aput(USER, "k", {"n": 1})
    item = await asyncio.to_thread(lambda: asyncio.run(store.aget(USER, "k")))
    assert item is not None
    assert item.value == {"n": 1}


@pytest.mark.shows("issue6-5-LangGraph")
async def test_a_value_without_a_form_in_json_is_named_and_nothing_of_its_batch_is_put(agent: Agent) -> None:
    store = AgentCoreStore(agent.memory)
    puts = [PutOp(("ada",), "good", {"data": 1}), PutOp(("ada", "birds"), "bad", {"data": object()})]
    with pytest.raises(TypeError, match="'ada/birds/bad' has no form in JSON"):
        await store.abatch(puts)
    assert await store.asearch(("ada",)) == []
