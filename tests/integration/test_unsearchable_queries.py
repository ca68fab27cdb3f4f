"""Invalid queries are reduced to their valid part, or find no memory, in every framework; none raises."""

from __future__ import annotations

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


@pytest.mark.parametrize("query", [*PARTLY, *BLANK])
async def test_adk_searches_what_can_be_searched(agent: Agent, query: str) -> None:
    await agent.store(HAWAII, namespace="app", user_id="ada")
    service = AgentCoreMemoryService(agent.memory)
    found = await service.search_memory(app_name="app", user_id="ada", query=query)
    texts = [each.content.parts and each.content.parts[0].text for each in found.memories]
    assert texts == ([HAWAII] if query in PARTLY else [])


@pytest.mark.parametrize("query", [*PARTLY, *BLANK])
async def test_langchain_searches_what_can_be_searched(agent: Agent, query: str) -> None:
    await agent.store(HAWAII)
    found = await MemoryRetriever(memory=agent.memory).ainvoke(query)
    assert [each.page_content for each in found] == ([HAWAII] if query in PARTLY else [])


@pytest.mark.parametrize("query", [*PARTLY, *BLANK])
async def test_langgraph_searches_what_can_be_searched_and_gives_the_rest_without_a_score(
    agent: Agent, query: str
) -> None:
    store = AgentCoreStore(agent.memory)
    await store.aput(("trips",), "hawaii", {"data": HAWAII})
    [item] = await store.asearch(("trips",), query=query)
    assert (item.score is not None) == (query in PARTLY)


@pytest.mark.parametrize("query", [*PARTLY, *BLANK])
async def test_a_chat_begins_with_what_can_be_searched(agent: Agent, query: str) -> None:
    await agent.store(HAWAII)
    chat = await with_memory(agent.memory, [{"role": "user", "content": query}])
    assert (HAWAII in str(chat)) == (query in PARTLY)


async def test_a_tool_says_what_is_wrong_with_such_a_query(agent: Agent) -> None:
    tools = MemoryTools(agent.memory, tools=ALL_TOOLS)
    for query in BLANK:
        assert (await tools.answer("recall_memory", {"query": query})).failed
