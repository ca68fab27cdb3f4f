"""Conformance of every session memory of the table, on real services."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from pydantic import ValidationError
from redis.asyncio import Redis

from agentcore.agents.session_memory import (
    CAPABILITIES,
    SESSION_MEMORIES,
    RetrieveOptions,
    SessionListing,
    SessionMemory,
    SessionMessage,
    SessionParts,
    TimeRange,
    open_session_memory,
)
from agentcore.errors import InvalidParams
from agentcore.memory.api import Caller
from agentcore.runtime import Runtime
from tests.fixtures.services import Services
from tests.fixtures.session_memories import HOSTILE, MORNING, NO_IDS, TALK, contents, embedder, opened, talk


@pytest.fixture(params=list(SESSION_MEMORIES))
async def memory(request: pytest.FixtureRequest, runtime: Runtime, services: Services) -> AsyncIterator[SessionMemory]:
    """Each implementation, with a unique agent."""
    async with opened(request.param, runtime, services, f"agent-{uuid.uuid4()}") as memory:
        yield memory


@pytest.mark.shows("issue6-4-interface")
def test_every_implementation_keeps_to_the_interface_and_to_the_seeds_words(runtime: Runtime) -> None:
    assert set(SESSION_MEMORIES) == {"in_memory", "in_memory_vector", "redis", "vector", "hierarchical"}
    parts = SessionParts(runtime.manager_for(Caller("nobody")), Redis(), "nobody", embedder())
    for name in SESSION_MEMORIES:
        made = open_session_memory(name, parts)
        assert isinstance(made, SessionMemory)
        told = made.capabilities()
        assert len(set(told)) == len(told)
        assert set(told) <= set(CAPABILITIES)
        # The capabilities that this suite tests.
        assert {"basic_retrieval", "summarization", "importance_weighting", "time_travel"} <= set(told)


@pytest.mark.shows("issue6-4-interface")
async def test_messages_come_back_whole_the_newest_first(memory: SessionMemory) -> None:
    stored = await memory.store(
        "monday",
        SessionMessage(
            role="tool",
            name="weather",
            content="It rains in Ghent.",
            timestamp=MORNING,
            metadata={"role": "nested", "depth": [1, {"two": None}]},
        ),
        {"importance": 0.8, "tags": ["weather", "ghent"], "source": "radio"},
    )
    assert (stored.importance, stored.tags) == (0.8, ["weather", "ghent"])
    assert stored.metadata == {"role": "nested", "depth": [1, {"two": None}], "source": "radio"}
    assert stored.message_id
    assert await memory.retrieve("monday") == [stored]
    later = await memory.store("monday", SessionMessage(content="And now the sun shines."))
    assert later.timestamp is not None
    assert await memory.retrieve("monday") == [later, stored]


async def test_a_message_of_no_told_importance_has_that_of_its_role(memory: SessionMemory) -> None:
    for role in ("system", "user", "Assistant", "tool", "agent"):
        await memory.store("monday", SessionMessage(role=role, content=f"This is what the {role} says."))
    found = {each.role: each.importance for each in await memory.retrieve("monday")}
    assert found == {"system": 0.3, "user": 0.5, "Assistant": 0.4, "tool": 0.3, "agent": 0.4}


async def test_ten_messages_come_back_unless_a_limit_is_given(memory: SessionMemory) -> None:
    for number in range(10):
        await memory.store("monday", SessionMessage(content=f"Note number {number} of the day."))
    assert await contents(memory) == [f"Note number {number} of the day." for number in reversed(range(10))]
    assert len(await contents(memory, options=RetrieveOptions(limit=3))) == 3
    await memory.store("monday", SessionMessage(content="One more note."))
    assert len(await contents(memory)) == 10


async def test_messages_of_one_time_stand_in_the_order_of_storing(memory: SessionMemory) -> None:
    for number in range(6):
        await memory.store(
            "monday",
            SessionMessage(content=f"Line {number} of the log.", timestamp=MORNING),
            {"importance": 0.9 if number % 2 else 0.1},
        )
    assert await contents(memory) == [f"Line {number} of the log." for number in reversed(range(6))]


async def test_the_same_words_again_are_another_message_and_the_same_id_is_not(memory: SessionMemory) -> None:
    for _ in range(2):
        await memory.store("monday", SessionMessage(content="Hello!", timestamp=MORNING))
    assert await contents(memory) == ["Hello!", "Hello!"]
    for content in ("The first words.", "The first words.", "Other words."):
        await memory.store("monday", SessionMessage(content=content, message_id="m|1:0"))
    assert await memory.session_count("monday") == 3
    assert (await contents(memory))[0] == "The first words."
    await memory.store("tuesday", SessionMessage(content="The first words.", message_id="m|1:0"))
    assert await memory.session_count("tuesday") == 1


@pytest.mark.shows("issue6-4-interface", "issue6-4-known")
async def test_a_known_id_answers_the_message_that_is_held(memory: SessionMemory) -> None:
    first = await memory.store(
        "monday",
        SessionMessage(content="The first words.", message_id="m|1:0", timestamp=MORNING),
        {"importance": 0.9, "tags": ["red"]},
    )
    await memory.store("monday", SessionMessage(content="Some others.", timestamp=MORNING))
    again = await memory.store("monday", SessionMessage(content="Other words.", message_id="m|1:0"))
    same = await memory.store("monday", first)
    assert (again, same) == (first, first)
    assert await contents(memory) == ["Some others.", "The first words."]


@pytest.mark.shows("issue6-4-interface")
async def test_a_range_of_time_gives_the_talk_as_it_stood_then(memory: SessionMemory) -> None:
    await talk(memory)
    third = MORNING + timedelta(minutes=2)
    until = RetrieveOptions(time_range=TimeRange(end=third))
    assert await contents(memory, options=until) == [TALK[1][1], TALK[0][1]]
    since = RetrieveOptions(time_range=TimeRange(start=third, end=third + timedelta(minutes=2)))
    assert await contents(memory, options=since) == [TALK[3][1], TALK[2][1]]
    asked = RetrieveOptions(query="warehouse", time_range=TimeRange(start=third + timedelta(minutes=1)))
    assert (await contents(memory, options=asked))[0] == TALK[3][1]
    assert TALK[2][1] not in await contents(memory, options=asked)


@pytest.mark.shows("issue6-4-interface")
async def test_importance_and_tags_say_which_messages_are_meant(memory: SessionMemory) -> None:
    for number, tags in enumerate([["red"], ["green"], ["red", "blue"], []]):
        await memory.store(
            "monday",
            SessionMessage(content=f"Ball number {number} rolls."),
            {"importance": 0.7 + number / 10, "tags": tags},
        )
    important = RetrieveOptions(importance_threshold=0.8)
    assert await contents(memory, options=important) == [f"Ball number {n} rolls." for n in (3, 2, 1)]
    tagged = RetrieveOptions(tags=["blue", "green"], limit=1)
    assert await contents(memory, options=tagged) == ["Ball number 2 rolls."]
    both = RetrieveOptions(tags=["red"], importance_threshold=0.75, query="ball rolls")
    assert await contents(memory, options=both) == ["Ball number 2 rolls."]


@pytest.mark.shows("issue6-4-interface")
async def test_a_query_finds_what_fits_best_with_scores_that_fall(memory: SessionMemory) -> None:
    await talk(memory)
    found = await memory.retrieve_with_scores("monday", "insurance claim number of the warehouse")
    assert found[0].message.content == TALK[3][1]
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    first = await contents(memory, options=RetrieveOptions(query="who plays the cello?", limit=1))
    assert first == [TALK[4][1]]
    limited = await memory.retrieve_with_scores("monday", "warehouse", RetrieveOptions(limit=1))
    assert len(limited) == 1


@pytest.mark.shows("issue6-4-interface")
async def test_a_query_that_fits_nothing_finds_nothing(memory: SessionMemory) -> None:
    for place, (role, content) in enumerate(TALK):
        await memory.store(
            "monday",
            SessionMessage(role=role, content=content, timestamp=MORNING + timedelta(minutes=place)),
            {"importance": 0.9},
        )
    for query in ("quark gluon plasma", "volcano eruptions"):
        assert await memory.retrieve_with_scores("monday", query) == []
        assert await contents(memory, options=RetrieveOptions(query=query)) == []


@pytest.mark.shows("issue6-4-interface")
async def test_a_cleared_session_is_gone_and_no_other(memory: SessionMemory) -> None:
    await talk(memory, "monday")
    await talk(memory, "tuesday")
    assert await memory.clear("monday") == len(TALK)
    assert await memory.clear("monday") == 0
    assert await contents(memory, "monday") == []
    assert await memory.session_count("monday") == 0
    assert await memory.retrieve_with_scores("monday", "warehouse") == []
    assert await memory.session_count("tuesday") == len(TALK)


@pytest.mark.shows("issue6-4-interface")
async def test_what_is_held_is_counted(memory: SessionMemory) -> None:
    assert (await memory.usage()).messages == 0
    await talk(memory, "monday")
    await memory.store("tuesday", SessionMessage(content="A quiet day."))
    assert await memory.session_count("monday") == len(TALK)
    assert (await memory.summarize("monday")).message_count == len(TALK)
    usage = await memory.usage()
    assert usage.messages == len(TALK) + 1
    assert usage.sessions in (2, None)
    assert usage.limits


async def listed(memory: SessionMemory, limit: int) -> list[SessionListing]:
    """Lists all sessions in pages of `limit`."""
    found: list[SessionListing] = []
    while page := await memory.sessions(limit, found[-1] if found else None):
        assert len(page) <= limit
        found += page
    return found


@pytest.mark.shows("issue6-4-sessions")
async def test_sessions_are_listed_by_their_newest_messages(memory: SessionMemory) -> None:
    assert await memory.sessions() == []
    for place, session_id in enumerate(["b", "a", "c", "b"]):
        await memory.store(
            session_id,
            SessionMessage(content=f"Note {place} of the week.", timestamp=MORNING + timedelta(minutes=place)),
        )
    # A message older than the others does not move its session to the front, though it is stored last.
    await memory.store("a", SessionMessage(content="Long ago.", timestamp=MORNING - timedelta(days=1)))
    expected = [("b", 2, 3), ("c", 1, 2), ("a", 2, 1)]
    for limit in (1, 2, 3, 50):
        found = await listed(memory, limit)
        assert [(each.session_id, each.message_count, each.newest) for each in found] == [
            (name, count, MORNING + timedelta(minutes=place)) for name, count, place in expected
        ]
    await memory.clear("c")
    assert [each.session_id for each in await memory.sessions()] == ["b", "a"]


@pytest.mark.shows("issue6-4-sessions")
async def test_sessions_of_one_time_and_of_any_id_are_listed_once(memory: SessionMemory) -> None:
    for session_id in HOSTILE:
        for content in ("Here.", "And here."):
            await memory.store(session_id, SessionMessage(content=content, timestamp=MORNING), {"importance": 0.9})
    for limit in (1, 7, 200):
        found = await listed(memory, limit)
        assert [each.session_id for each in found] == sorted(HOSTILE, reverse=True)
        assert {(each.message_count, each.newest) for each in found} == {(2, MORNING)}


@pytest.mark.parametrize("limit", [0, 201])
async def test_a_list_of_no_or_too_many_sessions_is_refused(memory: SessionMemory, limit: int) -> None:
    with pytest.raises(InvalidParams, match="limit"):
        await memory.sessions(limit)


async def test_what_cannot_be_meant_is_refused(memory: SessionMemory) -> None:
    with pytest.raises(ValidationError, match="limit"):
        await memory.retrieve_with_scores("monday", "word", RetrieveOptions(limit=201))
    for session_id in NO_IDS:
        for call in (memory.session_count(session_id), memory.retrieve_with_scores(session_id, "word")):
            with pytest.raises(InvalidParams, match="session_id"):
                await call


@pytest.mark.parametrize("name", list(SESSION_MEMORIES))
@pytest.mark.shows("issue6-4-ids")
async def test_two_agents_with_the_same_sessions_never_meet(name: str, runtime: Runtime, services: Services) -> None:
    agents = f"a:{uuid.uuid4()}"
    async with (
        opened(name, runtime, services, agents) as ours,
        opened(name, runtime, services, f"{agents}:b") as theirs,
    ):
        await talk(ours, "b:monday")
        await theirs.store("monday", SessionMessage(content="Only ours."))
        assert await contents(theirs, "monday") == ["Only ours."]
        assert await theirs.clear("b:monday") == 0
        assert await ours.session_count("b:monday") == len(TALK)
        assert (await theirs.usage()).messages == 1
        assert [each.session_id for each in await theirs.sessions()] == ["monday"]
