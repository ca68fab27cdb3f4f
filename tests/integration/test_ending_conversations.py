"""Ended conversations, by an agent and by each framework: what is kept and what is dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService
from google.genai import types

from agentcore.agents.ending import end_session
from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent
from agentcore.agents.open_memory import open_memory
from agentcore.agents.scope import AgentSettings, MemoryScope
from agentcore.agents.session_memory import SessionMessage
from agentcore.agents.session_memory.vector import VectorSessionMemory
from agentcore.errors import Conflict, NotAuthorised
from agentcore.integrations.google_adk import AgentCoreMemoryService
from agentcore.integrations.openai_agents import AgentCoreSession
from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.params.memories import ListParams
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent
from tests.fixtures.memory_faces import reading

FLOOD = "Our warehouse in Antwerp flooded on Friday, the claim is HX-2210."
QUESTION = "Which claim is it about the flooded warehouse in Antwerp?"
SUMMARY = "session_summary"


class Owner(TypedDict):
    app_name: str
    user_id: str


USER: Owner = {"app_name": "app", "user_id": "ada"}


class Noting(MemoryEnabledAgent):
    """Answers with its input; notes what follows "task", with the importance in the text."""

    async def process_query(self, query: str, task_id: str) -> str:
        if query.startswith("note "):
            await self.memory.note(query, task_id, importance=0.9 if "important" in query else None)
        return self.prompt(query)


async def records(agent: Agent, **filters: Any) -> list[MemoryRecord]:
    """Returns memories, oldest first."""
    return (await agent.memory.list(ListParams(descending=False, **filters))).memories


async def summaries(agent: Agent) -> list[MemoryRecord]:
    return await records(agent, tags=[SUMMARY])


@pytest.mark.shows("issue6-2-end")
async def test_the_end_of_the_block_ends_the_conversation_with_a_summary_that_the_next_one_reads(agent: Agent) -> None:
    async with Noting(agent.memory) as first:
        await first.run(FLOOD)
        assert await summaries(agent) == []
    [summary] = await summaries(agent)
    assert (summary.session_id, summary.memory_type) == (first.session_id, MemoryType.SEMANTIC)
    assert "HX-2210" in summary.content
    async with Noting(agent.memory) as second:
        assert "HX-2210" in await second.run(QUESTION)


async def test_an_agent_ends_its_conversation_and_ended_again_it_keeps_one_summary(agent: Agent) -> None:
    noting = Noting(agent.memory)
    await noting.run(FLOOD)
    ended, again = await noting.end(), await noting.end()
    assert ended is not None
    assert again is not None
    assert ended.summary_id == again.summary_id == (await summaries(agent))[0].memory_id
    assert "HX-2210" in ended.summary
    other = Noting(agent.memory)
    await other.run(FLOOD)
    unsummarised = await other.end(summarize=False)
    assert unsummarised is not None
    assert unsummarised.summary_id is None


@pytest.mark.parametrize("session_id", [None, "monday"])
@pytest.mark.shows("issue6-2-end")
async def test_notes_of_the_conversation_end_with_it_or_last_and_those_of_a_named_task_stay(
    agent: Agent, session_id: str | None
) -> None:
    noting = Noting(agent.memory, AgentSettings(scope=MemoryScope(session_id=session_id)))
    await noting.run("note the gate code is 4711")
    await noting.run("note an important thing: the dog's name is Bruno")
    await noting.run("note the flight leaves at nine", "trip")
    ended = await noting.end()
    assert ended is not None
    assert (ended.promoted_count, ended.ended_count) == (1, 1)
    [kept] = await records(agent, task_id="trip", memory_types=["working"])
    assert "flight" in kept.content
    lasting = [each.content for each in await records(agent, memory_types=["episodic"])]
    assert "note an important thing: the dog's name is Bruno" in lasting


async def test_a_conversation_whose_work_fails_is_ended_too(agent: Agent) -> None:
    with pytest.raises(LookupError, match="no such airport"):
        async with Noting(agent.memory) as noting:
            await noting.run(FLOOD)
            raise LookupError("no such airport")
    assert len(await summaries(agent)) == 1


async def test_an_agent_that_keeps_nothing_ends_nothing(runtime: Runtime, agent: Agent) -> None:
    async with reading(runtime, agent.agent_id) as memory:
        async with Noting(memory, AgentSettings(remember=False)) as silent:
            await silent.run(QUESTION)
        with pytest.raises(NotAuthorised):
            await silent.end()


async def test_a_refusal_to_end_is_raised_but_hides_no_other_error(
    runtime: Runtime, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(runtime, agent.agent_id) as memory:
        with pytest.raises(NotAuthorised):
            async with Noting(memory):
                pass
        with pytest.raises(LookupError):
            async with Noting(memory):
                raise LookupError
    assert "the conversation was not ended (-32104)" in caplog.text


@pytest.mark.shows("issue6-2-end")
async def test_where_memory_does_not_answer_a_conversation_ends_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opening = open_memory(url="http://127.0.0.1:9", token="t.o.k", fail_open=True, max_attempts=1, timeout_seconds=5)
    async with opening as nobody:
        async with Noting(nobody):
            pass
        assert await Noting(nobody).end() is None
        assert await AgentCoreSession("monday", nobody).end() is None
        session = await InMemorySessionService().create_session(**USER)
        assert await AgentCoreMemoryService(nobody).end_session(session) is None
    told = [record for record in caplog.records if record.name.startswith("agentcore.")]
    assert [record.levelno for record in told] == [logging.WARNING] * 4


@pytest.mark.shows("issue6-2-end")
async def test_a_session_of_the_agents_sdk_ends_with_a_summary_of_what_was_said(agent: Agent) -> None:
    session = AgentCoreSession("monday", agent.memory, MemoryScope(user_id="ada"))
    items: list[Any] = [
        {"role": "user", "content": FLOOD},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "id": "fc_1"},
        {"type": "function_call_output", "call_id": "c1", "output": "A claim"},
    ]
    await session.add_items(items)
    ended = await session.end()
    assert ended is not None
    [summary] = await summaries(agent)
    assert (ended.summary_id, summary.user_id, summary.session_id) == (summary.memory_id, "ada", "monday")
    assert "HX-2210" in summary.content
    assert summary.content == f"user: {FLOOD}"
    assert await session.get_items() == items


@pytest.mark.shows("issue6-2-end")
async def test_a_session_of_adk_ends_with_a_summary_for_its_user(agent: Agent) -> None:
    service, sessions = AgentCoreMemoryService(agent.memory), InMemorySessionService()
    session = await sessions.create_session(**USER)
    await sessions.append_event(session, Event(author="user", content=types.UserContent(FLOOD)))
    await service.add_session_to_memory(session)
    ended = await service.end_session(session)
    assert ended is not None
    [summary] = await summaries(agent)
    assert (summary.user_id, summary.namespace) == ("ada", "app")
    assert "HX-2210" in summary.content


@pytest.mark.shows("issue6-2-end")
async def test_a_session_that_two_users_share_by_its_name_is_not_told_to_either(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    ada, bob = (AgentCoreSession("monday", agent.memory, MemoryScope(user_id=user)) for user in ("ada", "bob"))
    await ada.add_items([{"role": "user", "content": FLOOD}])
    await bob.add_items([{"role": "user", "content": "My bicycle is blue."}])
    with pytest.raises(Conflict, match="'monday'"):
        await ada.end()
    settings = AgentSettings(scope=MemoryScope(user_id="bob", session_id="monday"))
    with pytest.raises(Conflict, match="ids of their own"):
        await Noting(agent.memory, settings).end()
    assert await summaries(agent) == []
    await new_agent().store(FLOOD, session_id="monday")
    await bob.clear_session()
    assert (await end_session(agent.memory, "monday", MemoryScope(user_id="ada"))).summary_id is not None


@pytest.mark.parametrize("whose", [{"namespace": "crm"}, {"user_id": "ada"}])
async def test_what_the_product_keeps_of_a_session_in_namespaces_of_its_own_is_nobody_elses(
    agent: Agent, whose: dict[str, str]
) -> None:
    settings = AgentSettings(scope=MemoryScope(session_id="s1", **whose), template={"name": "their name"})
    await VectorSessionMemory(agent.memory).store("s1", SessionMessage(content=FLOOD))
    async with Noting(agent.memory, settings) as noting:
        assert noting.template is not None
        await noting.template.fill({"name": "Ada"})
        await noting.run(FLOOD)
    assert len(await summaries(agent)) == 1
    assert await noting.template.values() == {"name": "Ada"}
    await agent.store("My bicycle is blue.", session_id="s1", user_id="bob", namespace="others")
    with pytest.raises(Conflict, match="'s1'"):
        await noting.end()
