"""google-adk's memory service over a running memory, with ADK's runner and a scripted model."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, TypedDict, Unpack

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.load_memory_tool import load_memory_tool
from google.genai import types
from pydantic import PrivateAttr
from starlette.types import ASGIApp

from agentcore.agents.tools import TOOLS, USUAL_TOOLS
from agentcore.client import MemoryClient
from agentcore.errors import Conflict
from agentcore.integrations import google_adk
from agentcore.integrations.google_adk import AgentCoreMemoryService, memory_tools
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import ListParams
from agentcore.runtime import Runtime
from agentcore.server import create_app
from tests.fixtures.memory import Agent
from tests.fixtures.memory_faces import FACES, token_of

PARROTS = "I love African Grey parrots"
BICYCLE = "The blue bicycle needs a new chain"


class Owner(TypedDict):
    app_name: str
    user_id: str


class OtherOwner(TypedDict, total=False):
    """Replaces a part of ADA."""

    app_name: str
    user_id: str


ADA: Owner = {"app_name": "shop", "user_id": "ada"}


@pytest.fixture(params=("manager", "HTTP client"))
async def memory(request: pytest.FixtureRequest, runtime: Runtime) -> AsyncIterator[MemoryApi]:
    """The memory of a unique agent, in-process and at a service."""
    async with FACES[request.param](runtime, f"agent-{uuid.uuid4()}") as face:
        yield face


@pytest.fixture
def service(memory: MemoryApi) -> AgentCoreMemoryService:
    return AgentCoreMemoryService(memory)


class Scripted(BaseLlm):
    """Returns scripted replies in order and records the requests."""

    model: str = "scripted"
    _replies: list[types.Part] = PrivateAttr(default_factory=list)
    _asked: list[LlmRequest] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *replies: types.Part) -> Scripted:
        scripted = cls()
        scripted._replies = list(replies)
        return scripted

    @property
    def asked(self) -> list[LlmRequest]:
        return self._asked

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        copied = [each.model_copy(deep=True) for each in llm_request.contents]
        self._asked.append(llm_request.model_copy(update={"contents": copied}))
        yield LlmResponse(content=types.Content(role="model", parts=[self._replies.pop(0)]))


def text(said: str) -> types.Part:
    return types.Part(text=said)


def call(tool: str, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=tool, args=arguments))


def event(said: str, event_id: str = "", *, author: str = "user", at: float = 1_767_261_600.0, **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    return Event(
        id=event_id or uuid.uuid4().hex,
        author=author,
        timestamp=at,
        content=types.Content(role=role, parts=[text(said)]),
        **more,
    )


def session(*events: Event, session_id: str = "monday", **owner: Unpack[OtherOwner]) -> Session:
    return Session(id=session_id, events=list(events), **(ADA | owner))


async def kept(memory: MemoryApi) -> list[MemoryRecord]:
    """Returns all memories, oldest first."""
    return (await memory.list(ListParams(descending=False))).memories


async def found(service: BaseMemoryService, query: str, **owner: Unpack[OtherOwner]) -> list[str]:
    response = await service.search_memory(**(ADA | owner), query=query)
    return [entry.content.parts[0].text or "" for entry in response.memories if entry.content.parts]


async def conversation(agent: LlmAgent, service: BaseMemoryService, said: str) -> tuple[str, Session]:
    """Runs one message in a session; returns the last reply and the session."""
    sessions = InMemorySessionService()
    runner = Runner(app_name="shop", agent=agent, session_service=sessions, memory_service=service)
    own = await sessions.create_session(**ADA)
    answer = ""
    async for each in runner.run_async(user_id="ada", session_id=own.id, new_message=types.UserContent(said)):
        answer = (each.content.parts[0].text if each.content and each.content.parts else None) or answer
    ended = await sessions.get_session(**ADA, session_id=own.id)
    assert ended is not None
    return answer, ended


@pytest.mark.shows("issue6-5-google-adk")
async def test_what_one_session_of_a_runner_said_the_model_loads_in_the_next(service: AgentCoreMemoryService) -> None:
    _, first = await conversation(LlmAgent(name="helper", model=Scripted.of(text("Noted."))), service, PARROTS)
    await service.add_session_to_memory(first)
    model = Scripted.of(call("load_memory", query="African Grey parrots"), text("African Grey parrots."))
    answer, _ = await conversation(
        LlmAgent(name="helper", model=model, tools=[load_memory_tool]), service, "What bird did I like?"
    )
    assert answer == "African Grey parrots."
    loaded = model.asked[1].contents[-1].model_dump_json()
    assert PARROTS in loaded


@pytest.mark.shows("issue6-5-google-adk")
async def test_a_session_added_again_adds_what_is_new_alone(memory: MemoryApi, service: AgentCoreMemoryService) -> None:
    first, second = event(PARROTS, "e1"), event(BICYCLE, "e2", at=1_767_261_660.0)
    await service.add_session_to_memory(session(first))
    before = await kept(memory)
    await service.add_session_to_memory(session(first, second))
    await service.add_session_to_memory(session(first, second))
    await service.add_events_to_memory(**ADA, session_id="monday", events=[second], custom_metadata={"other": 1})
    after = await kept(memory)
    assert after[0] == before[0]
    assert [(record.content, record.external_id) for record in after] == [(PARROTS, "e1"), (BICYCLE, "e2")]


@pytest.mark.shows("issue6-5-google-adk")
async def test_a_session_added_again_after_its_keys_are_forgotten_adds_nothing(agent: Agent) -> None:
    talk = session(
        event("My budget is 3,000 dollars.", "e1"), event("My budget is 4,500 dollars.", "e2", at=1_767_261_660.0)
    )
    await AgentCoreMemoryService(agent.memory).add_session_to_memory(talk)
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        await connection.execute("DELETE FROM idempotency_keys WHERE agent_id = %s", (agent.agent_id,))
    await AgentCoreMemoryService(agent.memory).add_session_to_memory(talk)
    assert [record.external_id for record in await kept(agent.memory)] == ["e1", "e2"]


class Recorded(httpx.ASGITransport):
    """The service of an application, recording its requests."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.asked.append((body["method"], body["params"]))
        return await super().handle_async_request(request)


async def test_of_a_session_added_again_only_what_is_new_is_looked_up_and_sent(runtime: Runtime) -> None:
    asked = Recorded(create_app(runtime))
    token = token_of(runtime, f"agent-{uuid.uuid4()}")
    talk = [
        event(f"Parcel {number * 7919} lies in locker {number}.", f"e{number}", at=1_767_261_600 + number)
        for number in range(4)
    ]
    async with MemoryClient("http://memory.test", token, transport=asked) as memory:
        service = AgentCoreMemoryService(memory)
        for count in (2, 2, 4):
            await service.add_session_to_memory(session(*talk[:count]))
        stored = await kept(memory)
    assert [record.external_id for record in stored] == ["e0", "e1", "e2", "e3"]
    told = [
        (params["after"], None) if method == "memory.list" else (None, len(params["items"]))
        for method, params in asked.asked[:-1]
    ]
    assert told == [("2026-01-01T10:00:00Z", None), (None, 2), ("2026-01-01T10:00:02Z", None), (None, 2)]


async def test_of_many_sessions_the_one_idle_longest_is_forgotten_first(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(google_adk, "MOST_SESSIONS", 2)
    asked = Recorded(create_app(runtime))
    talks = {
        day: session(event(f"Parcel {place} lies in locker {place}.", f"{day}-1"), session_id=day)
        for place, day in enumerate(("monday", "tuesday", "wednesday"), 1)
    }
    async with MemoryClient(
        "http://memory.test", token_of(runtime, f"agent-{uuid.uuid4()}"), transport=asked
    ) as memory:
        service = AgentCoreMemoryService(memory)
        for day in ("monday", "tuesday", "monday", "wednesday", "monday", "tuesday"):
            await service.add_session_to_memory(talks[day])
    looked_up = [params["session_id"] for method, params in asked.asked if method == "memory.list"]
    assert looked_up == ["monday", "tuesday", "wednesday", "tuesday"]


@pytest.mark.shows("issue6-5-replica")
async def test_what_was_just_kept_is_known_and_can_be_deleted_where_a_replica_lags(lagging: Agent) -> None:
    monday = session(event(PARROTS))
    for service in (AgentCoreMemoryService(lagging.memory), AgentCoreMemoryService(lagging.memory)):
        await service.add_session_to_memory(monday)
        async with lagging.runtime.database.transaction(lagging.agent_id) as connection:
            await connection.execute("DELETE FROM idempotency_keys WHERE agent_id = %s", (lagging.agent_id,))
    [record] = (await lagging.memory.list(ListParams(consistent=True))).memories
    await service.delete_memory(**ADA, memory_id=str(record.memory_id))
    assert (await lagging.memory.list(ListParams(consistent=True))).memories == []


async def test_an_event_keeps_who_when_where_and_whose(memory: MemoryApi, service: AgentCoreMemoryService) -> None:
    await service.add_session_to_memory(session(event(PARROTS, "e1"), event("Noted, parrots.", author="helper")))
    said, answered = sorted(await kept(memory), key=lambda record: record.external_id != "e1")
    assert (said.namespace, said.user_id, said.session_id, said.speaker) == ("shop", "ada", "monday", "user")
    assert said.timestamp == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert answered.speaker == "assistant"
    assert answered.relevance_score == pytest.approx(0.4)
    response = await service.search_memory(**ADA, query="parrots")
    entries = {entry.id: entry for entry in response.memories}
    entry = entries[str(answered.memory_id)]
    assert (entry.author, entry.content.role, entry.timestamp) == ("helper", "model", "2026-01-01T10:00:00+00:00")
    assert entries[str(said.memory_id)].author == "user"


async def test_what_says_nothing_or_is_not_whole_is_not_kept(
    memory: MemoryApi, service: AgentCoreMemoryService
) -> None:
    thought = types.Content(role="model", parts=[types.Part(text="They may be a bird lover.", thought=True)])
    called = types.Content(role="model", parts=[call("load_memory", query="parrots")])
    await service.add_session_to_memory(
        session(
            event("I love Afr", partial=True),
            Event(author="helper", content=thought),
            Event(author="helper"),
            Event(author="helper", content=called),
            event("   "),
            event("Hi!"),
            event(f"{PARROTS}\x00"),
        )
    )
    assert [record.content for record in await kept(memory)] == [PARROTS]


async def test_events_alone_are_kept_with_what_custom_metadata_says(
    memory: MemoryApi, service: AgentCoreMemoryService
) -> None:
    await service.add_events_to_memory(
        **ADA,
        events=[event(PARROTS)],
        custom_metadata={"ttl_seconds": 600, "importance": 0.9, "tags": ["birds"], "channel": "phone"},
    )
    [record] = await kept(memory)
    assert record.expires_at is not None
    assert (record.session_id, record.tags) == (None, ["birds"])
    assert record.relevance_score == pytest.approx(0.9)
    [entry] = (await service.search_memory(**ADA, query="parrots")).memories
    assert entry.custom_metadata == {"channel": "phone"}


@pytest.mark.shows("issue6-5-google-adk")
async def test_facts_are_kept_as_they_are_given_once_for_each_id(
    memory: MemoryApi, service: AgentCoreMemoryService
) -> None:
    fact = MemoryEntry(
        id="f1",
        author="crm",
        timestamp="2026-03-04T05:06:07+00:00",
        content=types.Content(parts=[text(PARROTS)]),
        custom_metadata={"source": "crm"},
    )
    loose = MemoryEntry(content=types.Content(parts=[text(BICYCLE)]), timestamp="last week")
    await service.add_memory(**ADA, memories=[fact, loose, MemoryEntry(content=types.Content(parts=[]))])
    await service.add_memory(**ADA, memories=[fact, loose])
    told, other = await kept(memory)
    assert (told.content, told.memory_type.value, told.external_id, told.speaker) == (PARROTS, "semantic", "f1", "crm")
    assert (told.timestamp, other.content) == (datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC), BICYCLE)
    with pytest.raises(Conflict):
        await service.add_memory(
            **ADA, memories=[fact.model_copy(update={"content": types.Content(parts=[text("I love cats")])})]
        )


@pytest.mark.shows("issue6-5-owner")
async def test_apps_users_and_agents_do_not_meet(
    memory: MemoryApi, service: AgentCoreMemoryService, new_agent: Callable[..., Agent]
) -> None:
    others: list[OtherOwner] = [{"user_id": "bo"}, {"app_name": "bank"}]
    owners: list[OtherOwner] = [{}, *others]
    for owner in owners:
        await service.add_session_to_memory(session(event(f"{PARROTS} {owner}", "e1"), **owner))
    assert len(await kept(memory)) == 3
    for owner in owners:
        assert await found(service, "African Grey parrots", **owner) == [f"{PARROTS} {owner}"]
    assert await found(AgentCoreMemoryService(new_agent().memory), "African Grey parrots") == []
    [entry] = (await service.search_memory(**ADA, query="parrots")).memories
    for owner in others:
        await service.delete_memory(**(ADA | owner), memory_id=entry.id)
    assert await found(service, "African Grey parrots") == [f"{PARROTS} {{}}"]


@pytest.mark.shows("issue6-5-google-adk")
async def test_what_is_deleted_does_not_come_back_with_its_session(service: AgentCoreMemoryService) -> None:
    talk = session(event(PARROTS, "e1"), event(BICYCLE, "e2"))
    await service.add_session_to_memory(talk)
    entry, *_ = (await service.search_memory(**ADA, query="African Grey parrots")).memories
    await service.delete_memory(**ADA, memory_id=entry.id)
    for nobodys in (None, "", "no id", str(uuid.uuid4())):
        await service.delete_memory(**ADA, memory_id=nobodys)
    await service.add_session_to_memory(talk)
    assert await found(service, f"{PARROTS}. {BICYCLE}.") == [BICYCLE]


async def test_a_search_is_bounded_and_says_nothing_to_an_empty_query(memory: MemoryApi) -> None:
    service = AgentCoreMemoryService(memory, limit=2)
    talk = [event(f"African Grey parrot number {n} lives in cage {n * 7}.") for n in range(5)]
    await service.add_session_to_memory(session(*talk))
    assert len(await found(service, "African Grey parrot")) == 2
    assert await found(service, "  ") == []


@pytest.mark.shows("issue6-3-one-definition", "issue6-shows-tools-frameworks")
async def test_a_model_uses_the_tools_of_the_one_definition_for_its_own_user(
    memory: MemoryApi, service: AgentCoreMemoryService
) -> None:
    model = Scripted.of(call("save_memory", content=PARROTS), text("Saved."))
    tools = memory_tools(memory)
    agent = LlmAgent(name="helper", model=model, tools=tools)
    assert (await conversation(agent, service, "Remember my parrots"))[0] == "Saved."
    given = model.asked[0].config.tools
    assert given is not None
    assert isinstance(given[0], types.Tool)
    assert given[0].function_declarations is not None
    declared = {each.name: each for each in given[0].function_declarations}
    assert {name: (each.description, each.parameters_json_schema) for name, each in declared.items()} == {
        tool.name: (tool.description, tool.parameters) for tool in TOOLS if tool.name in USUAL_TOOLS
    }
    [record] = await kept(memory)
    assert (record.content, record.namespace, record.user_id) == (PARROTS, "shop", "ada")
    asking = Scripted.of(call("recall_memory", query="African Grey parrots"), text("Parrots."))
    await conversation(LlmAgent(name="helper", model=asking, tools=tools), service, "What bird?")
    parts = asking.asked[1].contents[-1].parts
    assert parts is not None
    answer = parts[0].function_response
    assert answer is not None
    assert answer.response is not None
    assert json.loads(answer.response["result"])["memories"][0]["content"] == PARROTS
