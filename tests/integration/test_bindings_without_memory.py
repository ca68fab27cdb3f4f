"""Every framework binding over an unreachable memory that fails open: reads are empty, with one warning."""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypedDict

import httpx
import pytest
from agents import Agent as SdkAgent
from agents import Model, ModelResponse, RunConfig, Runner, Usage
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import InMemorySessionService
from google.genai import types
from langgraph.store.base import GetOp, Op, PutOp, SearchOp
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent
from agentcore.agents.prefetch import with_memory
from agentcore.agents.session_memory import RetrieveOptions, SessionMessage
from agentcore.agents.session_memory.vector import VectorSessionMemory
from agentcore.client import MemoryClient
from agentcore.errors import AuthenticationFailed, DependencyUnavailable, TooLarge
from agentcore.integrations.google_adk import AgentCoreMemoryService
from agentcore.integrations.langchain import MemoryRetriever, memory_tools
from agentcore.integrations.langgraph import AgentCoreStore
from agentcore.integrations.openai_agents import AgentCoreSession
from agentcore.limits import MAX_BATCH_ITEMS
from agentcore.memory.api import MemoryApi
from agentcore.runtime import Runtime
from agentcore.server import create_app
from tests.fixtures.memory import Agent
from tests.fixtures.memory_faces import token_of
from tests.fixtures.unreached import NOBODY

QUESTION = "What is the budget for the Hawaii trip?"
ASKED: list[Any] = [{"role": "user", "content": QUESTION}]
MINE = ("memories", "ada")
Use = Callable[[MemoryApi], Awaitable[Any]]


class Owner(TypedDict):
    app_name: str
    user_id: str


USER: Owner = {"app_name": "app", "user_id": "ada"}


class Echo(MemoryEnabledAgent):
    """Answers with its prompt, which without memory is the query."""

    async def process_query(self, query: str, task_id: str) -> str:
        return self.prompt(query)


async def the_agents_prompt(memory: MemoryApi) -> str:
    return await Echo(memory).run(QUESTION, remember=False)


async def found_by_adk(memory: MemoryApi) -> Any:
    return (await AgentCoreMemoryService(memory).search_memory(**USER, query=QUESTION)).memories


async def an_adk_session(memory: MemoryApi) -> None:
    sessions = InMemorySessionService()
    session = await sessions.create_session(**USER)
    await sessions.append_event(session, Event(author="user", content=types.UserContent(QUESTION)))
    await AgentCoreMemoryService(memory).add_session_to_memory(session)


READS: dict[str, tuple[Use, Any]] = {
    "MemoryEnabledAgent": (the_agents_prompt, QUESTION),
    "with_memory": (lambda memory: with_memory(memory, ASKED), ASKED),
    "ADK's search": (found_by_adk, []),
    "ADK's session": (an_adk_session, None),
    "LangGraph's get": (lambda memory: AgentCoreStore(memory).aget(MINE, "bird"), None),
    "LangGraph's search": (lambda memory: AgentCoreStore(memory).asearch(MINE, query=QUESTION), []),
    "LangGraph's list": (lambda memory: AgentCoreStore(memory).asearch(MINE), []),
    "LangGraph's namespaces": (lambda memory: AgentCoreStore(memory).alist_namespaces(), []),
    "LangChain": (lambda memory: MemoryRetriever(memory=memory).ainvoke(QUESTION), []),
    "Agents SDK's items": (lambda memory: AgentCoreSession("monday", memory).get_items(), []),
    "Agents SDK's new items": (lambda memory: AgentCoreSession("monday", memory).add_items(ASKED), None),
    "session memory": (lambda memory: VectorSessionMemory(memory).retrieve("monday"), []),
    "session memory's search": (
        lambda memory: VectorSessionMemory(memory).retrieve("monday", RetrieveOptions(query=QUESTION)),
        [],
    ),
}
# Writes whose loss must raise, as no other store has the data.
WRITES: dict[str, Use] = {
    "LangGraph's put": lambda memory: AgentCoreStore(memory).aput(MINE, "bird", {"data": "parrot"}),
    "LangGraph's delete": lambda memory: AgentCoreStore(memory).adelete(MINE, "bird"),
    "ADK's events": lambda memory: AgentCoreMemoryService(memory).add_events_to_memory(
        **USER, events=[Event(author="user", content=types.UserContent(QUESTION))]
    ),
    "ADK's facts": lambda memory: AgentCoreMemoryService(memory).add_memory(
        **USER, memories=[MemoryEntry(content=types.UserContent(QUESTION))]
    ),
    "ADK's deletion": lambda memory: AgentCoreMemoryService(memory).delete_memory(**USER, memory_id=str(uuid.uuid4())),
    "Agents SDK's last item": lambda memory: AgentCoreSession("monday", memory).pop_item(),
    "Agents SDK's clearing": lambda memory: AgentCoreSession("monday", memory).clear_session(),
    "session memory's message": lambda memory: VectorSessionMemory(memory).store(
        "monday", SessionMessage(content=QUESTION)
    ),
    "session memory's clearing": lambda memory: VectorSessionMemory(memory).clear("monday"),
    "session memory's count": lambda memory: VectorSessionMemory(memory).session_count("monday"),
    "session memory's sessions": lambda memory: VectorSessionMemory(memory).sessions(),
}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    told = [
        record for record in caplog.records if record.name.startswith("agentcore.") and record.levelno > logging.INFO
    ]
    assert {record.levelno for record in told} <= {logging.WARNING}
    return [record.getMessage() for record in told]


@pytest.mark.parametrize("binding", READS)
@pytest.mark.shows("issue6-1-fail-open")
async def test_what_a_binding_reads_is_empty_with_one_warning(
    unreached: MemoryApi, binding: str, caplog: pytest.LogCaptureFixture
) -> None:
    read, empty = READS[binding]
    assert await read(unreached) == empty
    [warning] = warnings_of(caplog)
    assert "No service answers" in warning


@pytest.mark.parametrize("binding", READS.keys() - {"MemoryEnabledAgent", "with_memory"})
async def test_where_failing_open_is_not_wished_a_binding_raises(binding: str) -> None:
    async with MemoryClient(NOBODY, "t.o.k", max_attempts=1) as strict:
        with pytest.raises(DependencyUnavailable):
            await READS[binding][0](strict)


@pytest.mark.parametrize("binding", WRITES)
@pytest.mark.shows("issue6-1-fail-open")
async def test_what_a_binding_would_lose_raises(unreached: MemoryApi, binding: str) -> None:
    with pytest.raises(DependencyUnavailable):
        await WRITES[binding](unreached)


async def test_a_batch_of_reads_of_langgraph_is_empty_and_one_with_a_put_raises(unreached: MemoryApi) -> None:
    store = AgentCoreStore(unreached)
    reads: list[Op] = [GetOp(MINE, "bird"), SearchOp(MINE, query=QUESTION)]
    assert await store.abatch(reads) == [None, []]
    with pytest.raises(DependencyUnavailable):
        await store.abatch([*reads, PutOp(MINE, "bird", {"data": "parrot"})])


async def test_the_tools_of_a_model_say_that_memory_does_not_answer(unreached: MemoryApi) -> None:
    for tool in memory_tools(unreached, tools=["recall_memory", "prefetch_memory"]):
        asked = {"query": QUESTION} if tool.name == "recall_memory" else {"message": QUESTION}
        assert "Memory is not available at the moment" in await tool.ainvoke(asked)


async def seconds_of(use: Awaitable[Any]) -> float:
    began = asyncio.get_running_loop().time()
    await use
    return asyncio.get_running_loop().time() - began


async def test_a_session_of_the_agents_sdk_waits_once_for_its_new_items_and_its_old_ones() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unanswering:
        url = f"http://127.0.0.1:{unanswering.getsockname()[1]}"
        async with MemoryClient(url, "t.o.k", fail_open=True, timeout_seconds=1) as silent:
            session = AgentCoreSession("monday", silent)
            assert await seconds_of(session.add_items(ASKED)) < 1.7
            assert await seconds_of(session.get_items()) < 1.7
            assert await session.get_items() == ASKED


# --- outage and recovery ------------------------------------------------------------------------------------


class Line(httpx.AsyncBaseTransport):
    """A connection to the in-process service that can fail.

    `cut`: no connection. `silent`: responses are lost. `lost`: calls of this method fail. `hung`: calls of
    this method get no response, others take `slow` seconds. `refused`: tokens are rejected.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._service = httpx.ASGITransport(create_app(runtime))
        self.cut = self.silent = self.refused = False
        self.lost = self.hung = "none"
        self.slow = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.cut or self.lost.encode() in request.content:
            raise httpx.ConnectError("the line is cut")
        await self._hold(request)
        if self.refused:
            request.headers["Authorization"] = "Bearer t.o.k"
        answer = await self._service.handle_async_request(request)
        if self.silent:
            raise httpx.ReadError("the answer is lost")
        return answer

    async def _hold(self, request: httpx.Request) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None if self.hung.encode() in request.content else self.slow):
                await asyncio.Event().wait()


@pytest.fixture
def line(runtime: Runtime) -> Line:
    return Line(runtime)


@pytest.fixture
async def remote(runtime: Runtime, agent: Agent, line: Line) -> AsyncIterator[MemoryApi]:
    """The agent's memory over the line, failing open."""
    async with MemoryClient(
        "http://in-process",
        token_of(runtime, agent.agent_id),
        transport=line,
        fail_open=True,
        max_attempts=1,
        timeout_seconds=120,
    ) as memory:
        yield memory


def said(*lines: str) -> list[Any]:
    return [{"role": "user", "content": line} for line in lines]


@pytest.mark.shows("issue6-1-fail-open")
async def test_items_of_a_session_wait_while_memory_is_away_and_are_kept_once_in_their_order(
    line: Line, remote: MemoryApi
) -> None:
    session = AgentCoreSession("monday", remote)
    await session.add_items(said("one"))
    line.silent = True
    await session.add_items(said("two", "three"))  # stored, but not acknowledged
    line.silent, line.cut = False, True
    await session.add_items(said("four"))
    assert await session.get_items() == said("two", "three", "four")
    assert await session.get_items(limit=1) == said("four")
    line.cut = False
    assert await session.get_items() == said("one", "two", "three", "four")
    assert await AgentCoreSession("monday", remote).get_items() == said("one", "two", "three", "four")
    line.cut = True
    await session.add_items(said("five"))
    line.cut = False
    assert await session.pop_item() == said("five")[0]
    line.cut = True
    await session.add_items(said("six"))
    line.cut = False
    await session.clear_session()
    assert await session.get_items() == []


async def test_what_memory_refuses_waits_for_nothing(remote: MemoryApi) -> None:
    session = AgentCoreSession("monday", remote)
    with pytest.raises(TooLarge):
        await session.add_items(said("x" * 9_000_000))
    await session.add_items(said("one"))
    assert await session.get_items() == said("one")


async def test_where_only_writing_fails_the_stored_items_are_given_and_those_that_wait_behind_them(
    line: Line, remote: MemoryApi
) -> None:
    session = AgentCoreSession("monday", remote)
    await session.add_items(said("one"))
    line.silent = True
    await session.add_items(said("two"))  # stored, but not acknowledged
    line.silent, line.lost = False, "memory.store_batch"
    await session.add_items(said("three"))
    assert await session.get_items() == said("one", "two", "three")
    assert await session.get_items(limit=2) == said("two", "three")


async def test_items_wait_also_for_a_token_that_is_accepted(line: Line, remote: MemoryApi) -> None:
    session = AgentCoreSession("monday", remote)
    line.cut = True
    await session.add_items(said("one"))
    line.cut, line.refused = False, True
    with pytest.raises(AuthenticationFailed):
        await session.add_items(said("two"))
    line.refused = False
    assert await session.get_items() == said("one", "two")


async def test_of_items_only_those_that_memory_never_takes_are_left_out(remote: MemoryApi) -> None:
    session = AgentCoreSession("monday", remote)
    many = said(*(f"line {number}" for number in range(MAX_BATCH_ITEMS + 1)))
    with pytest.raises(TooLarge):
        await session.add_items([*said("x" * 9_000_000), *many])
    assert await session.get_items() == many


async def test_a_session_of_adk_is_kept_by_the_next_call(line: Line, remote: MemoryApi) -> None:
    sessions, service = InMemorySessionService(), AgentCoreMemoryService(remote)
    session = await sessions.create_session(**USER)
    fact = "The budget for the Hawaii trip is 10,000 dollars."
    await sessions.append_event(session, Event(author="user", content=types.UserContent(fact)))
    line.cut = True
    await service.add_session_to_memory(session)
    line.cut = False
    assert (await service.search_memory(**USER, query=QUESTION)).memories == []
    await service.add_session_to_memory(session)
    [entry] = (await service.search_memory(**USER, query=QUESTION)).memories
    assert entry.content.parts is not None
    assert entry.content.parts[0].text == fact


async def test_an_item_that_is_found_but_cannot_be_renewed_is_given(
    line: Line, remote: MemoryApi, caplog: pytest.LogCaptureFixture
) -> None:
    store = AgentCoreStore(remote)
    await store.aput(MINE, "bird", {"data": "parrot"}, ttl=10)
    line.lost = "memory.update"
    [found] = await store.asearch(MINE, query="parrot", refresh_ttl=True)
    assert found.value == {"data": "parrot"}
    [warning] = warnings_of(caplog)
    assert warning.startswith("a renewal in LangGraph's store goes without memory")


async def test_a_search_and_its_renewal_have_one_patience(runtime: Runtime, agent: Agent, line: Line) -> None:
    async with MemoryClient(
        "http://in-process", token_of(runtime, agent.agent_id), transport=line, fail_open=True, timeout_seconds=2
    ) as memory:
        store = AgentCoreStore(memory)
        await store.aput(MINE, "bird", {"data": "parrot"}, ttl=10)
        line.hung, line.slow = "memory.update", 0.5
        assert await seconds_of(store.asearch(MINE, query="parrot", refresh_ttl=True)) < 2.8


async def test_a_search_whose_second_call_is_lost_is_empty(line: Line, remote: MemoryApi) -> None:
    store = AgentCoreStore(remote)
    await store.aput(MINE, "bird", {"data": "parrot"})
    line.lost = "memory.list"
    assert await store.asearch(MINE, query="parrot") == []
    line.lost = "none"
    assert len(await store.asearch(MINE, query="parrot")) == 1


class Deaf(Model):
    """A model that never calls tools."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        part = ResponseOutputText(type="output_text", text="Noted.", annotations=[])
        message = ResponseOutputMessage(type="message", id="m-1", role="assistant", status="completed", content=[part])
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@pytest.mark.shows("issue6-1-fail-open")
async def test_a_run_of_the_agents_sdk_goes_on_without_memory(
    unreached: MemoryApi, caplog: pytest.LogCaptureFixture
) -> None:
    session = AgentCoreSession("monday", unreached)
    for words in ("Hello there, I am Ada.", QUESTION):
        done = await Runner.run(
            SdkAgent(name="helper", model=Deaf()), words, session=session, run_config=RunConfig(tracing_disabled=True)
        )
        assert done.final_output == "Noted."
    assert len(await session.get_items()) == 4
    assert any("its new items wait" in warning for warning in warnings_of(caplog))
