"""The OpenAI Agents SDK's session over a running memory, and its agent at a scripted model server."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agents import Agent as SdkAgent
from agents import ModelSettings, OpenAIChatCompletionsModel, RunConfig, Runner, SessionSettings
from agents.memory import Session
from openai import AsyncOpenAI

from agentcore.agents.scope import MemoryScope
from agentcore.agents.tools import ALL_TOOLS, TOOLS, MemoryTools
from agentcore.errors import TooLarge
from agentcore.integrations.openai_agents import AgentCoreSession, memory_tools
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.memories import CountParams, RetrieveParams, StoreParams
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent
from tests.fixtures.memory_faces import FACES
from tests.fixtures.scripted_http import Received, Reply, scripted_http

PARROTS = "I love African Grey parrots"
ITEMS: list[Any] = [
    {"role": "user", "content": PARROTS},
    {"role": "user", "content": "yes"},
    {"role": "user", "content": "yes"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this? \x00 \ud800"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"},
        ],
    },
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "A bird."}],
        "encrypted_content": None,
    },
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1.0}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "A parrot"},
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "A parrot.", "annotations": [], "logprobs": []}],
    },
]


@pytest.fixture(params=("manager", "HTTP client"))
async def memory(request: pytest.FixtureRequest, runtime: Runtime) -> AsyncIterator[MemoryApi]:
    """The memory of a unique agent, in-process and at a service."""
    async with FACES[request.param](runtime, f"agent-{uuid.uuid4()}") as face:
        yield face


@pytest.fixture
def session(memory: MemoryApi) -> AgentCoreSession:
    return AgentCoreSession("monday", memory)


@pytest.mark.shows("issue6-5-OpenAI-Agents")
async def test_items_come_back_to_the_letter_and_in_their_order(memory: MemoryApi, session: AgentCoreSession) -> None:
    assert isinstance(session, Session)
    assert await session.get_items() == []
    await session.add_items(ITEMS[:5])
    await session.add_items(ITEMS[5:])
    again = await AgentCoreSession("monday", memory).get_items()
    assert again == ITEMS
    assert [list(item) for item in again] == [list(item) for item in ITEMS]
    assert await AgentCoreSession("tuesday", memory).get_items() == []


async def test_a_limit_gives_the_last_items_in_their_order(memory: MemoryApi, session: AgentCoreSession) -> None:
    await session.add_items([])
    await session.add_items(ITEMS)
    assert await session.get_items(limit=3) == ITEMS[-3:]
    assert await session.get_items(limit=100) == ITEMS
    assert await session.get_items(limit=0) == []
    two = AgentCoreSession("monday", memory, session_settings=SessionSettings(limit=2))
    assert await two.get_items() == ITEMS[-2:]
    assert await two.get_items(limit=4) == ITEMS[-4:]


@pytest.mark.shows("issue6-5-OpenAI-Agents")
async def test_items_are_popped_from_the_end_until_there_is_none(session: AgentCoreSession) -> None:
    await session.add_items(ITEMS)
    assert [await session.pop_item() for _ in ITEMS] == ITEMS[::-1]
    assert await session.pop_item() is None
    await session.add_items(ITEMS[:1])
    assert await session.get_items() == ITEMS[:1]


@pytest.mark.shows("issue6-5-replica")
async def test_a_session_goes_on_from_what_was_just_added_where_a_replica_lags(lagging: Agent) -> None:
    session = AgentCoreSession("monday", lagging.memory)
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS
    assert await session.pop_item() == ITEMS[-1]
    assert await session.get_items(limit=1) == [ITEMS[-2]]


async def test_more_than_a_page_of_items_keeps_its_order(session: AgentCoreSession) -> None:
    items: list[Any] = [{"role": "user", "content": f"line {n}"} for n in range(1_205)]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(limit=1_100) == items[-1_100:]
    await session.clear_session()
    assert await session.get_items() == []


async def test_clearing_leaves_other_sessions_and_what_the_tools_saved(
    memory: MemoryApi, session: AgentCoreSession
) -> None:
    other = AgentCoreSession("tuesday", memory)
    await session.add_items(ITEMS)
    await other.add_items(ITEMS[:2])
    await memory.store(StoreParams(content="Ada likes parrots.", session_id="monday"))
    await session.clear_session()
    assert await session.get_items() == []
    assert await other.get_items() == ITEMS[:2]
    assert (await memory.count(CountParams(session_id="monday"))).count == 1


async def test_a_changed_fact_leaves_the_session_whole(session: AgentCoreSession) -> None:
    talk: list[Any] = [{"role": "user", "content": f"My budget is {n},000 dollars."} for n in (3, 4, 3)]
    await session.add_items(talk)
    assert await session.get_items() == talk


@pytest.mark.shows("issue6-5-owner")
async def test_sessions_of_one_id_do_not_meet_beyond_their_scope(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    sessions = [
        AgentCoreSession("monday", agent.memory, MemoryScope(user_id="ada")),
        AgentCoreSession("monday", agent.memory, MemoryScope(user_id="bo")),
        AgentCoreSession("monday", agent.memory, MemoryScope(user_id="ada", namespace="app")),
        AgentCoreSession("monday", new_agent().memory, MemoryScope(user_id="ada")),
    ]
    for number, each in enumerate(sessions[1:], 1):
        await each.add_items([{"role": "user", "content": f"number {number}"}])
    assert [len(await each.get_items()) for each in sessions[1:]] == [1, 1, 1]
    await sessions[1].clear_session()
    assert await sessions[1].pop_item() is None
    assert [len(await each.get_items()) for each in sessions[2:]] == [1, 1]


async def test_messages_are_found_from_elsewhere_and_calls_are_not(
    memory: MemoryApi, session: AgentCoreSession
) -> None:
    await session.add_items(ITEMS)
    found = (await memory.retrieve(RetrieveParams(query="African Grey parrots", min_fit=0.0, k=20))).memories
    assert found[0].content == PARROTS
    assert {each.speaker for each in found} <= {"user", "assistant", "tool"}
    assert [each.content for each in found if "look(" in each.content or "A bird" in each.content] == []


async def test_what_cannot_be_kept_is_an_error(agent: Agent) -> None:
    async with FACES["HTTP client"](agent.runtime, agent.agent_id) as memory:
        session = AgentCoreSession("monday", memory)
        with pytest.raises(TooLarge):
            await session.add_items([{"role": "user", "content": "x" * 40_000_000}])
        assert await session.get_items() == []


def model_of(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def chat_reply(message: dict[str, Any]) -> Reply:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return Reply({"id": "c-1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]})


def scripted(request: Received) -> Reply:
    """A scripted model: saves statements, recalls on questions, and answers with the result."""
    last = request.json["messages"][-1]
    if last["role"] == "tool":
        answer = json.loads(last["content"])
        told = [each["content"] for each in answer.get("memories", ())]
        return chat_reply({"content": told[0] if told else "Saved."})
    asks = last["content"].endswith("?")
    name, argument = ("recall_memory", "query") if asks else ("save_memory", "content")
    function = {"name": name, "arguments": json.dumps({argument: last["content"]})}
    return chat_reply(
        {"content": None, "tool_calls": [{"id": f"call-{uuid.uuid4()}", "type": "function", "function": function}]}
    )


@pytest.mark.shows("issue6-5-OpenAI-Agents")
async def test_an_agent_of_the_sdk_goes_on_with_its_session_and_recalls_in_the_next(memory: MemoryApi) -> None:
    async with scripted_http(scripted) as service, model_of(service.url) as client:
        agent = SdkAgent(
            name="helper",
            tools=[*memory_tools(memory)],
            model_settings=ModelSettings(),
            model=OpenAIChatCompletionsModel(model="scripted", openai_client=client),
        )

        async def said(words: str, session: str) -> str:
            done = await Runner.run(
                agent, words, session=AgentCoreSession(session, memory), run_config=RunConfig(tracing_disabled=True)
            )
            return str(done.final_output)

        assert await said(PARROTS, "monday") == "Saved."
        assert await said("Which African Grey parrots do I love?", "tuesday") == PARROTS
        await said("My bicycle is blue.", "monday")
    sent = [message.get("content") for message in service.received[-1].json["messages"]]
    assert sent[0] == PARROTS
    assert "Saved." in sent
    assert sent.count("My bicycle is blue.") == 1
    offered = {tool["function"]["name"]: tool["function"] for tool in service.received[0].json["tools"]}
    assert {name: (each["description"], each["parameters"]) for name, each in offered.items()} == {
        tool.name: (tool.description, tool.parameters) for tool in TOOLS if tool.name in offered
    }


@pytest.mark.shows("issue6-5-OpenAI-Agents")
async def test_recall_does_not_answer_with_the_very_question_that_the_sdk_has_just_stored(memory: MemoryApi) -> None:
    answers: list[dict[str, Any]] = []

    def kept(request: Received) -> Reply:
        last = request.json["messages"][-1]
        if last["role"] == "tool":
            answers.append(json.loads(last["content"]))
        return scripted(request)

    async with scripted_http(kept) as service, model_of(service.url) as client:
        agent = SdkAgent(
            name="helper",
            tools=[*memory_tools(memory, tools=["recall_memory"])],
            model=OpenAIChatCompletionsModel(model="scripted", openai_client=client),
        )
        question = "Which African Grey parrots do I love?"
        # The question asked earlier in another conversation must not count as an answer.
        for session in ("monday", "tuesday", "tuesday"):
            await Runner.run(
                agent, question, session=AgentCoreSession(session, memory), run_config=RunConfig(tracing_disabled=True)
            )
            found = [each["content"] for each in answers[-1].get("memories", ())]
            assert {*found} <= {"Saved."}, found
        stored = await AgentCoreSession("monday", memory).get_items()
        assert stored[0] == {"role": "user", "content": question}
        await memory.store(StoreParams(content=PARROTS))
        await Runner.run(
            agent, question, session=AgentCoreSession("friday", memory), run_config=RunConfig(tracing_disabled=True)
        )
        found = [each["content"] for each in answers[-1]["memories"]]
        assert found[0] == PARROTS
        assert question not in found


@pytest.mark.shows("issue6-3-one-definition", "issue6-shows-tools-frameworks")
async def test_one_definition_gives_the_same_function_tools(agent: Agent) -> None:
    definitions = MemoryTools(agent.memory, tools=ALL_TOOLS).definitions
    tools = memory_tools(agent.memory, tools=ALL_TOOLS)
    assert [(tool.name, tool.description, tool.params_json_schema) for tool in tools] == [
        (each.name, each.description, each.parameters) for each in definitions
    ]
