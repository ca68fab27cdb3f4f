"""The memory tools in OpenAI's own client, in both formats, against a scripted server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import AsyncOpenAI

from agentcore.agents.openai_tools import chat_answers, chat_tools, response_answers, response_tools
from agentcore.agents.tools import MemoryTools
from tests.fixtures.memory import Agent
from tests.fixtures.scripted_http import Reply, scripted_http

PARROTS = "I love African Grey parrots."


def model_of(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def chat_reply(message: dict[str, Any]) -> Reply:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return Reply({"id": "c-1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]})


def chat_call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def response_reply(*output: dict[str, Any]) -> Reply:
    return Reply(
        {
            "id": "r-1",
            "object": "response",
            "created_at": 1,
            "model": "scripted",
            "status": "completed",
            "output": list(output),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
    )


async def test_a_chat_model_calls_the_tools_and_reads_their_answers(agent: Agent) -> None:
    tools = MemoryTools(agent.memory)
    messages: list[Any] = [{"role": "user", "content": f"{PARROTS} Keep that in mind."}]
    async with scripted_http(lambda request: chat_reply({"content": "I will."})) as service:
        service.script.append(
            chat_reply(
                {
                    "content": None,
                    "tool_calls": [
                        chat_call(1, "save_memory", {"content": PARROTS}),
                        chat_call(2, "weather", {"city": "Ghent"}),
                    ],
                }
            )
        )
        async with model_of(service.url) as model:
            said = (
                (
                    await model.chat.completions.create(
                        model="scripted", messages=messages, tools=chat_tools(tools.definitions)
                    )
                )
                .choices[0]
                .message
            )
            answers = await chat_answers(tools, said.tool_calls or [])
            messages += [said, *answers]
            done = await model.chat.completions.create(model="scripted", messages=messages)
    assert [answer["tool_call_id"] for answer in answers] == ["call-1"]
    assert json.loads(answers[0]["content"])["status"] == "stored"
    assert done.choices[0].message.content == "I will."
    sent = [tool["function"]["parameters"] for tool in service.received[0].json["tools"]]
    assert sent == [tool.parameters for tool in tools.definitions]
    assert service.received[1].json["messages"][-1]["content"] == answers[0]["content"]
    assert await agent.found("parrots") == [PARROTS]


async def test_a_responses_model_calls_them_in_its_own_form(agent: Agent) -> None:
    await agent.store(PARROTS)
    tools = MemoryTools(agent.memory, tools=("recall_memory",))
    call = {
        "type": "function_call",
        "id": "f-1",
        "call_id": "call-1",
        "name": "recall_memory",
        "status": "completed",
        "arguments": json.dumps({"query": "Which parrots do I love?"}),
    }
    async with scripted_http(lambda request: response_reply()) as service:
        service.script.append(response_reply(call, {**call, "call_id": "call-2", "name": "weather"}))
        async with model_of(service.url) as model:
            said = await model.responses.create(
                model="scripted", input="What bird do I like?", tools=response_tools(tools.definitions)
            )
            answers = await response_answers(tools, said.output)
            await model.responses.create(model="scripted", input=answers)
    [answer] = answers
    assert (answer["type"], answer["call_id"]) == ("function_call_output", "call-1")
    assert json.loads(answer["output"])["memories"][0]["content"] == PARROTS
    [tool] = service.received[0].json["tools"]
    assert (tool["name"], tool["strict"]) == ("recall_memory", False)
    assert tool["parameters"] == tools.definitions[0].parameters
    assert service.received[1].json["input"] == [answer]


async def test_a_reply_that_calls_nothing_needs_no_answers(agent: Agent) -> None:
    assert await chat_answers(MemoryTools(agent.memory), None) == []


async def test_calls_as_plain_objects_are_answered_too(agent: Agent) -> None:
    tools = MemoryTools(agent.memory)
    [answer] = await chat_answers(tools, [chat_call(1, "recall_memory", {"query": "tea"})])
    assert "note" in json.loads(answer["content"])
    [failed] = await chat_answers(
        tools, [{"id": "call-2", "function": {"name": "recall_memory", "arguments": "{broken"}}]
    )
    assert "not JSON" in json.loads(failed["content"])["error"]


@pytest.mark.shows("issue6-3-strict")
async def test_what_strict_mode_makes_a_model_say_null_for_is_left_out(agent: Agent) -> None:
    tools = MemoryTools(agent.memory)
    said = [("save_memory", {"content": PARROTS}), ("recall_memory", {"query": "parrots"})]
    for number, (tool, given) in enumerate(said):
        [described] = [
            each["function"] for each in chat_tools(tools.definitions, strict=True) if each["function"]["name"] == tool
        ]
        arguments = {**dict.fromkeys(described["parameters"]["required"]), **given}
        [answer] = await chat_answers(tools, [chat_call(number, tool, arguments)])
        assert "error" not in json.loads(answer["content"])
    assert json.loads(answer["content"])["memories"][0]["content"] == PARROTS
