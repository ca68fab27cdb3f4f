"""LangChain's retriever and tools over a running memory, async and sync."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from agentcore.agents.open_memory import open_memory
from agentcore.agents.openai_tools import chat_tools
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tools import ALL_TOOLS, MemoryTools
from agentcore.errors import InvalidParams
from agentcore.integrations.langchain import MemoryRetriever, memory_tools
from agentcore.integrations.own_loop import memory_in_thread
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.memories import StoreParams
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.memory_faces import FACES
from tests.fixtures.services import Services

PARROTS = "I love African Grey parrots"
TEA = "Green tea tastes best in the morning"


@pytest.fixture(params=("manager", "HTTP client"))
async def memory(request: pytest.FixtureRequest, runtime: Runtime) -> AsyncIterator[MemoryApi]:
    """The memory of a unique agent, in-process and at a service."""
    async with FACES[request.param](runtime, f"agent-{uuid.uuid4()}") as face:
        yield face


async def kept(memory: MemoryApi, content: str, **values: Any) -> str:
    return str((await memory.store(StoreParams(content=content, **values))).memory_id)


@pytest.mark.shows("issue6-5-LangChain")
async def test_documents_are_the_memories_that_fit_with_what_is_known_of_them(memory: MemoryApi) -> None:
    memory_id = await kept(
        memory,
        PARROTS,
        speaker="Ada",
        tags=["birds"],
        metadata={"source": "chat"},
        timestamp="2026-03-04T05:06:07Z",
        session_id="monday",
    )
    [document] = await MemoryRetriever(memory=memory).ainvoke("African Grey parrots")
    assert (document.id, document.page_content) == (memory_id, PARROTS)
    told = document.metadata
    assert (told["memory_id"], told["source"], told["speaker"], told["tags"]) == (memory_id, "chat", "Ada", ["birds"])
    assert (told["memory_type"], told["timestamp"], told["session_id"]) == (
        "episodic",
        "2026-03-04T05:06:07Z",
        "monday",
    )
    assert 0 < told["score"] <= 1
    assert json.loads(json.dumps(told)) == told


async def test_k_filters_and_an_empty_query_are_kept_to(memory: MemoryApi) -> None:
    for number in range(5):
        await kept(
            memory,
            f"African Grey parrot number {number} lives in cage {number * 7}.",
            tags=["even" if number % 2 == 0 else "odd"],
        )
    query = "African Grey parrot"
    assert len(await MemoryRetriever(memory=memory, k=2).ainvoke(query)) == 2
    odd = await MemoryRetriever(memory=memory, k=10, filters={"tags": ["odd"]}).ainvoke(query)
    assert {document.metadata["tags"][0] for document in odd} == {"odd"}
    assert await MemoryRetriever(memory=memory).ainvoke("  ") == []
    with pytest.raises((InvalidParams, ValueError), match="colour"):
        await MemoryRetriever(memory=memory, filters={"colour": "red"}).ainvoke(query)


@pytest.mark.shows("issue6-5-owner")
async def test_a_scope_goes_before_filters_and_agents_do_not_meet(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    for user in ("ada", "bo"):
        await agent.store(f"{PARROTS}, says {user}", user_id=user)
    own = MemoryRetriever(memory=agent.memory, scope=MemoryScope(user_id="ada"), filters={"user_id": "bo"})
    assert [each.page_content for each in await own.ainvoke("parrots")] == [f"{PARROTS}, says ada"]
    assert await MemoryRetriever(memory=new_agent().memory).ainvoke("parrots") == []


async def test_a_retriever_is_a_part_of_a_chain_and_tells_nothing_of_its_memory(memory: MemoryApi) -> None:
    await kept(memory, PARROTS)
    retriever = MemoryRetriever(memory=memory)
    chain = retriever | RunnableLambda(lambda documents: documents[0].page_content)
    assert await chain.abatch(["parrots", "African Grey parrots"]) == [PARROTS, PARROTS]
    assert "memory" not in retriever.model_dump()
    assert "token" not in repr(retriever).lower()


@pytest.mark.shows("issue6-3-one-definition", "issue6-shows-tools-frameworks")
async def test_one_definition_gives_the_same_tools(agent: Agent) -> None:
    definitions = MemoryTools(agent.memory, tools=ALL_TOOLS).definitions
    tools = memory_tools(agent.memory, tools=ALL_TOOLS)
    assert [convert_to_openai_tool(tool) for tool in tools] == chat_tools(definitions)


async def test_calls_of_a_model_are_answered_by_the_tools(memory: MemoryApi) -> None:
    tools = {tool.name: tool for tool in memory_tools(memory, MemoryScope(user_id="ada"))}
    saved = await tools["save_memory"].ainvoke(call("save_memory", content=PARROTS, tags=["birds"]))
    assert isinstance(saved, ToolMessage)
    assert (saved.tool_call_id, json.loads(str(saved.content))["status"]) == ("call-1", "stored")
    recalled = await tools["recall_memory"].ainvoke({"query": "African Grey parrots"})
    assert json.loads(recalled)["memories"][0]["content"] == PARROTS
    refused = await tools["recall_memory"].ainvoke({"query": "parrots", "user_id": "bo"})
    assert "user_id is not a known field" in json.loads(refused)["error"]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": "call-1", "type": "tool_call"}


async def test_in_a_thread_nothing_needs_to_be_awaited(memory: MemoryApi) -> None:
    await kept(memory, PARROTS)
    retriever, [recall] = MemoryRetriever(memory=memory), memory_tools(memory, tools=("recall_memory",))
    documents = await asyncio.to_thread(retriever.invoke, "African Grey parrots")
    assert [document.page_content for document in documents] == [PARROTS]
    assert PARROTS in await asyncio.to_thread(recall.invoke, {"query": "African Grey parrots"})
    for waiting in (lambda: retriever.invoke("parrots"), lambda: recall.invoke({"query": "parrots"})):
        with pytest.raises(RuntimeError, match="async form"):
            waiting()


@pytest.mark.shows("issue6-5-LangChain")
async def test_a_thread_that_the_memorys_loop_waits_for_does_not_wait_for_it(memory: MemoryApi) -> None:
    retriever, [recall] = MemoryRetriever(memory=memory), memory_tools(memory, tools=("recall_memory",))

    def both(query: str) -> list[Any]:
        """Runs sync work in threads while the loop's thread blocks, as LangChain does."""
        with ThreadPoolExecutor() as threads:
            return [
                each.exception()
                for each in (
                    threads.submit(retriever.batch, [query, query]),
                    threads.submit(recall.invoke, {"query": query}),
                )
            ]

    refusals = both("African Grey parrots")
    assert [type(each) for each in refusals] == [RuntimeError, RuntimeError]
    assert all("async form" in str(each) for each in refusals)
    assert await retriever.abatch(["parrots"]) == [[]]


def test_a_loop_that_is_closed_is_said(services: Services) -> None:
    opening = open_memory(agent_id=f"agent-{uuid.uuid4()}", settings=settings_for(services))
    with memory_in_thread(opening) as (memory, loop):
        retriever = MemoryRetriever(memory=memory, loop=loop)
    with pytest.raises(RuntimeError, match="is closed"):
        retriever.invoke("parrots")
    with pytest.raises(RuntimeError, match="is closed"):
        asyncio.run(retriever.ainvoke("parrots"))


@pytest.mark.shows("issue6-5-LangChain")
def test_a_program_without_await_opens_its_memory_in_a_thread(services: Services) -> None:
    opening = open_memory(agent_id=f"agent-{uuid.uuid4()}", settings=settings_for(services))
    with memory_in_thread(opening) as (memory, loop):
        tools: dict[str, BaseTool] = {tool.name: tool for tool in memory_tools(memory, loop=loop)}
        tools["save_memory"].invoke({"content": PARROTS})
        tools["save_memory"].invoke({"content": TEA})
        retriever = MemoryRetriever(memory=memory, loop=loop)
        assert retriever.invoke("African Grey parrots")[0].page_content == PARROTS
        found = retriever.batch(["African Grey parrots", "green tea"])
        assert [documents[0].page_content for documents in found] == [PARROTS, TEA]
