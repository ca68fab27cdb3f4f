"""Conformance that includes session memories which keep no verbatim messages, on real services."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from pydantic import ValidationError

from agentcore.agents.session_memory import (
    CAPABILITIES,
    SESSION_MEMORIES,
    BasicSessionMemory,
    RetrieveOptions,
    SessionMessage,
    SummarizeOptions,
)
from agentcore.errors import InvalidParams
from agentcore.runtime import Runtime
from tests.fixtures.services import Services
from tests.fixtures.session_memories import ENDLESS, HOSTILE, NO_IDS, TALK, contents, essential, talk

NAMES = [*SESSION_MEMORIES, ENDLESS]


@pytest.fixture(params=NAMES)
async def memory(
    request: pytest.FixtureRequest, runtime: Runtime, services: Services
) -> AsyncIterator[BasicSessionMemory]:
    """Each implementation, with a unique agent."""
    async with essential(request.param, runtime, services, f"agent-{uuid.uuid4()}") as memory:
        yield memory


async def said(memory: BasicSessionMemory, session_id: str, query: str | None = None) -> str:
    """Returns everything retrieved from a session as one text."""
    return "\n".join(await contents(memory, session_id, RetrieveOptions(query=query, limit=100)))


@pytest.mark.shows("issue6-4-endless")
async def test_what_is_said_comes_back_for_its_query(memory: BasicSessionMemory) -> None:
    assert isinstance(memory, BasicSessionMemory)
    assert {"basic_retrieval", "summarization"} <= set(memory.capabilities()) <= set(CAPABILITIES)
    assert await memory.retrieve("monday") == []
    kept = (await talk(memory))[0]
    assert (kept.content, kept.role, kept.importance) == (TALK[0][1], "user", 0.5)
    assert kept.message_id
    assert kept.timestamp is not None
    assert "HX-2210" in await said(memory, "monday", "insurance claim number of the warehouse")
    whole = await said(memory, "monday")
    assert any(content in whole for _, content in TALK)
    assert len(await memory.retrieve("monday", RetrieveOptions(limit=1))) == 1


@pytest.mark.shows("issue6-4-interface")
async def test_a_summary_keeps_to_its_length_and_to_what_was_said(memory: BasicSessionMemory) -> None:
    assert (await memory.summarize("monday")).content == ""
    await talk(memory)
    brief = await memory.summarize("monday", SummarizeOptions(max_length=80))
    assert (brief.role, brief.style) == ("memory", "brief")
    assert brief.message_count in (len(TALK), None)
    assert 0 < len(brief.content) <= 80
    assert any(brief.content.startswith(content) for _, content in TALK)
    detailed = await memory.summarize("monday", SummarizeOptions(style="detailed"))
    assert "assistant: The insurance claim for the warehouse is number HX-2210." in detailed.content
    assert len(detailed.content) <= 2_000
    # A message that is too short to stand alone is truncated rather than dropped.
    await memory.store("short", SessionMessage(content="Why not?"))
    assert (await memory.summarize("short", SummarizeOptions(max_length=3))).content == "Why"


@pytest.mark.shows("issue6-4-endless")
async def test_a_cleared_message_can_be_stored_again_under_its_id(memory: BasicSessionMemory) -> None:
    message = SessionMessage(content="The key lies under the mat.", message_id="m-1")
    await memory.store("monday", message)
    assert await memory.clear("monday") in (1, None)
    assert await said(memory, "monday") == ""
    for _ in range(2):
        await memory.store("monday", message)
    assert (await said(memory, "monday")).count("under the mat") == 1


@pytest.mark.shows("issue6-4-endless")
async def test_no_session_says_what_another_was_told(memory: BasicSessionMemory) -> None:
    words = {session_id: f"number {place:03}" for place, session_id in enumerate(HOSTILE)}
    for session_id, word in words.items():
        await memory.store(session_id, SessionMessage(content=f"The secret of this session is {word}."))
    await memory.clear("*")
    for session_id in HOSTILE:
        told = await said(memory, session_id, "What is the secret of this session?")
        assert [word for word in words.values() if word in told] == ([] if session_id == "*" else [words[session_id]])


async def test_what_cannot_be_stored_or_asked_is_refused(memory: BasicSessionMemory) -> None:
    for session_id in NO_IDS:
        for call in (
            memory.store(session_id, SessionMessage(content="A word.")),
            memory.retrieve(session_id),
            memory.summarize(session_id),
            memory.clear(session_id),
        ):
            with pytest.raises(InvalidParams, match="session_id"):
                await call
    with pytest.raises(ValidationError, match="importance"):
        await memory.store("monday", SessionMessage(content="A word."), {"importance": 2.0})
    assert await memory.retrieve("monday") == []


@pytest.mark.parametrize("name", NAMES)
async def test_an_agent_is_told_nothing_of_anothers_session_and_its_own_outlives_the_opener(
    name: str, runtime: Runtime, services: Services
) -> None:
    agent_id = f"agent-{uuid.uuid4()}"
    async with essential(name, runtime, services, agent_id) as first:
        await first.store("monday", SessionMessage(content="The bridge opens in May."), {"importance": 0.9})
        persistent = "persistence" in first.capabilities()
    async with essential(name, runtime, services, f"{agent_id}:b") as stranger:
        assert await stranger.retrieve("monday") == []
        await stranger.clear("monday")
    async with essential(name, runtime, services, agent_id) as second:
        assert ("The bridge opens in May." in await said(second, "monday")) == persistent
