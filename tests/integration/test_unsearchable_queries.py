"""Invalid queries are reduced to their valid part, or find no memory, in every framework; none raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from agentcore.agents.prefetch import with_memory
from agentcore.agents.tools import ALL_TOOLS, MemoryTools
from agentcore.integrations.google_adk import AgentCoreMemoryService
from agentcore.integrations.langchain import MemoryRetriever
from agentcore.integrations.langgraph import AgentCoreStore
from tests.fixtures.memory import Agent

HAWAII = "The budget for the Hawaii trip is 10,000 dollars."
BLANK = ["", " \n", "\x00", " \x00 "]
PARTLY = [
    "the budget\x00 for the Hawaii trip",
    "the budget for the Hawaii trip \ud83d",
    "the budget for the Hawaii trip" + " " * 40_000 + "?",
]


async def found_by_adk(agent: Agent, query: str) -> bool:
    service = AgentCoreMemoryService(agent.memory)
    return bool((await service.search_memory(app_name="app", user_id="ada", query=query)).memories)


async def found_by_langchain(agent: Agent, query: str) -> bool:
    return bool(await MemoryRetriever(memory=agent.memory).ainvoke(query))


async def found_by_langgraph(agent: Agent, query: str) -> bool:
    store = AgentCoreStore(agent.memory)
    await store.aput(("trips",), "hawaii", {"data": HAWAII})
    [item] = await store.asearch(("trips",), query=query)
    return item.score is not None


async def found_for_a_chat(agent: Agent, query: str) -> bool:
    return HAWAII in str(await with_memory(agent.memory, [{"role": "user", "content": query}]))


@pytest.mark.parametrize("query", [*PARTLY, *BLANK])
@pytest.mark.parametrize("found", [found_by_adk, found_by_langchain, found_by_langgraph, found_for_a_chat])
async def test_every_framework_searches_what_can_be_searched(
    agent: Agent, found: Callable[[Agent, str], Awaitable[bool]], query: str
) -> None:
    await agent.store(HAWAII, namespace="app", user_id="ada")
    assert await found(agent, query) == (query in PARTLY)


async def test_a_tool_says_what_is_wrong_with_such_a_query(agent: Agent) -> None:
    tools = MemoryTools(agent.memory, tools=ALL_TOOLS)
    for query in BLANK:
        assert (await tools.answer("recall_memory", {"query": query})).failed
