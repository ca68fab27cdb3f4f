"""A working template filled by a model: one tool in every binding, agent turns, a lagging replica."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools.tool_context import ToolContext
from jsonschema import Draft202012Validator

from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent
from agentcore.agents.openai_tools import chat_tools
from agentcore.agents.scope import AgentSettings, MemoryScope
from agentcore.agents.tools import ALL_TOOLS, FILL_TEMPLATE, USUAL_TOOLS, MemoryTools
from agentcore.agents.working_template import WorkingTemplate
from agentcore.errors import InvalidParams
from agentcore.integrations import google_adk, langchain, openai_agents
from agentcore.integrations.mcp import memory_server
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.memories import CountParams, ListParams, ListResult
from tests.fixtures.memory import Agent

FIELDS = {"name": "what the user is called", "goal": "what the user is after"}


def tools_of(memory: MemoryApi) -> MemoryTools:
    return MemoryTools(memory, template=WorkingTemplate(memory, FIELDS))


@pytest.mark.shows("issue6-4-template-tool")
async def test_a_model_fills_the_template_in_and_corrects_it(agent: Agent) -> None:
    tools = tools_of(agent.memory)
    filled = json.loads(await tools.call(FILL_TEMPLATE, {"fields": {"name": "Ada", "goal": "an office"}}))
    assert filled == {"status": "filled in", "fields": {"name": "Ada", "goal": "an office"}}
    await tools.call(FILL_TEMPLATE, '{"fields": {"goal": "", "name": "Ada L."}}')
    assert await WorkingTemplate(agent.memory, FIELDS).values() == {"name": "Ada L."}


@pytest.mark.parametrize("arguments", [{}, {"fields": {}}, {"fields": {"age": "36"}}, {"fields": {"name": 3}}])
async def test_what_the_template_does_not_have_the_model_is_told(agent: Agent, arguments: dict[str, Any]) -> None:
    answer = await tools_of(agent.memory).answer(FILL_TEMPLATE, arguments)
    assert answer.failed
    assert (await agent.memory.count(CountParams())).count == 0


async def test_the_tool_is_there_with_a_template_alone_and_names_its_fields(agent: Agent) -> None:
    assert not MemoryTools(agent.memory).has(FILL_TEMPLATE)
    tools = tools_of(agent.memory)
    assert [tool.name for tool in tools.definitions] == [*USUAL_TOOLS, FILL_TEMPLATE]
    *_, filling = tools.definitions
    assert filling.description.endswith("name: what the user is called; goal: what the user is after.")
    assert not filling.reads_only
    schema = dict(filling.parameters)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate({"fields": {"name": "Ada"}})
    told = [[each.name, each.description, each.parameters] for each in tools.definitions]
    assert len(json.dumps(told)) < 2_000 * 4


@pytest.mark.shows("issue6-4-template-tool")
async def test_every_binding_has_the_tool_with_the_same_schema(agent: Agent) -> None:
    template = WorkingTemplate(agent.memory, FIELDS)
    [*_, wanted] = tools_of(agent.memory).definitions
    schema = dict(wanted.parameters)
    [*_, in_openai] = chat_tools(tools_of(agent.memory).definitions)
    [*_, in_agents] = openai_agents.memory_tools(agent.memory, template=template)
    [*_, in_langchain] = langchain.memory_tools(agent.memory, template=template)
    [*_, in_adk] = google_adk.memory_tools(agent.memory, template=FIELDS)
    declared = in_adk._get_declaration()
    assert declared is not None
    assert in_openai["function"] == {"name": wanted.name, "description": wanted.description, "parameters": schema}
    assert (in_agents.name, in_agents.params_json_schema) == (wanted.name, schema)
    assert (in_langchain.name, in_langchain.args_schema) == (wanted.name, schema)
    assert (declared.name, declared.parameters_json_schema) == (wanted.name, schema)
    assert await in_langchain.ainvoke({"fields": {"name": "Ada"}})
    assert await template.values() == {"name": "Ada"}
    assert memory_server(agent.memory, template=template)


async def test_in_adk_each_user_of_an_app_has_a_template_of_their_own(agent: Agent) -> None:
    sessions = InMemorySessionService()
    [filling] = google_adk.memory_tools(agent.memory, tools=(), template=FIELDS)
    for user in ("ada", "bob", "ada"):
        session = await sessions.create_session(app_name="trips", user_id=user)
        asked = ToolContext(
            InvocationContext(
                session_service=sessions, session=session, invocation_id="i", agent=LlmAgent(name="helper")
            )
        )
        answer = json.loads(await filling.run_async(args={"fields": {"name": user.title()}}, tool_context=asked))
        assert answer["fields"] == {"name": user.title()}
    assert (await agent.memory.count(CountParams())).count == 2
    scope = MemoryScope(namespace="trips", user_id="bob")
    assert await WorkingTemplate(agent.memory, FIELDS, scope).values() == {"name": "Bob"}


@pytest.mark.shows("issue6-4-template-tool")
async def test_an_agent_keeps_its_template_from_one_conversation_to_the_next(agent: Agent) -> None:
    settings = AgentSettings(template=FIELDS, scope=MemoryScope(user_id="ada"), remember=False)

    class Keeping(MemoryEnabledAgent):
        async def process_query(self, query: str, task_id: str) -> str:
            seen = self.prompt(query)
            await self.tools().call(FILL_TEMPLATE, {"fields": {"name": query}})
            return seen

    first, second = Keeping(agent.memory, settings), Keeping(agent.memory, settings)
    assert "- name: (empty: what the user is called)" in await first.run("Ada")
    seen = await second.run("Grace")
    assert "- name: Ada\n" in seen
    assert seen.endswith("\n\nGrace")
    assert "- name: what the user is called" in second.instructions
    assert FILL_TEMPLATE in second.instructions
    assert await second.run("Barbara", recall=False) == "Barbara"
    stranger = settings.model_copy(update={"scope": MemoryScope(user_id="bob")})
    assert "- name: (empty" in await Keeping(agent.memory, stranger).run("Bob")
    with pytest.raises(InvalidParams, match="fields"):
        Keeping(agent.memory, AgentSettings(template={}))


class Lagging:
    """A memory whose next lists come from a replica without any data."""

    def __init__(self, memory: MemoryApi, lists: int) -> None:
        self._memory = memory
        self.lists = lists

    async def list(self, params: ListParams) -> ListResult:
        self.lists -= 1
        if self.lists >= 0:
            return await self._memory.list(params.model_copy(update={"namespace": f"nothing-{uuid4()}"}))
        return await self._memory.list(params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


@pytest.mark.shows("issue6-4-template-tool")
async def test_a_template_is_one_memory_where_what_is_read_lags_behind(agent: Agent) -> None:
    lagging = [Lagging(agent.memory, lists) for lists in (1, 4)]
    ada, grace = (WorkingTemplate(each, FIELDS) for each in lagging)  # type: ignore[arg-type]
    await ada.fill({"name": "Ada"})
    await grace.fill({"goal": "an office"})
    assert await ada.values() == {"name": "Ada", "goal": "an office"}
    assert (await agent.memory.count(CountParams())).count == 1


async def test_a_template_that_was_cleared_is_begun_anew_where_what_is_read_lags_behind(agent: Agent) -> None:
    for name in ("Ada", "Grace", "Barbara"):
        template = WorkingTemplate(Lagging(agent.memory, 1), FIELDS)  # type: ignore[arg-type]
        await template.fill({"name": name})
        assert await template.values() == {"name": name}
        await template.clear()
    assert (await agent.memory.count(CountParams())).count == 0


async def test_the_memory_of_a_template_carries_its_scope(agent: Agent) -> None:
    scope = MemoryScope(user_id="ada", session_id="s", task_id="t", namespace="trips")
    await WorkingTemplate(agent.memory, FIELDS, scope).fill({"name": "Ada"})
    [record] = (await agent.memory.list(ListParams())).memories
    assert (record.user_id, record.session_id, record.task_id) == ("ada", "s", "t")
    assert record.namespace != "trips"
    assert record.metadata == {"fields": {"name": "Ada"}}


@pytest.mark.shows("issue6-4-template-tool")
async def test_a_template_is_found_by_no_search_and_by_no_other_tool(agent: Agent) -> None:
    template = WorkingTemplate(agent.memory, FIELDS)
    await template.fill({"name": "Ada"})
    [record] = (await agent.memory.list(ListParams())).memories
    tools = MemoryTools(agent.memory, tools=ALL_TOOLS)
    named = str(record.memory_id)
    for name, arguments in (
        ("update_memory", {"memory_id": named, "content": "Another name."}),
        ("forget_memory", {"memory_ids": [named]}),
        ("memory_session", {"memory_id": named}),
    ):
        answer = await tools.answer(name, arguments)
        assert (answer.failed, "There is no such memory" in answer.text) == (True, True), name
    for name in ("recall_memory", "forget_memory"):
        assert "Nothing in memory" in await tools.call(name, {"query": "Ada"})
    assert "Ada" not in await agent.memory.get_relevant_context("Which name is Ada's?")
    assert await template.values() == {"name": "Ada"}


async def test_what_was_said_around_a_memory_of_a_task_shows_no_template(agent: Agent) -> None:
    scope = MemoryScope(task_id="trip")
    tools = MemoryTools(agent.memory, scope, tools=ALL_TOOLS)
    first = await agent.store("The flight to Lihue leaves at nine.", task_id="trip")
    await WorkingTemplate(agent.memory, FIELDS, scope).fill({"name": "Ada"})
    await agent.store("The hotel in Poipu has a pool.", task_id="trip")
    around = json.loads(await tools.call("memory_session", {"memory_id": str(first.memory_id)}))
    assert [each["content"] for each in around["memories"]] == [
        "The flight to Lihue leaves at nine.",
        "The hotel in Poipu has a pool.",
    ]
