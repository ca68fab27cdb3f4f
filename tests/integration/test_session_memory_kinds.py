"""Features of single session memories: bounds, time to live, events, tiers, template."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from agentcore.agents.scope import MemoryScope
from agentcore.agents.session_memory import (
    RetrieveOptions,
    ScoredMessage,
    SessionMessage,
    SessionParts,
    SummarizeOptions,
    open_session_memory,
)
from agentcore.agents.session_memory.hierarchical import HierarchicalSessionMemory, HierarchyConfig
from agentcore.agents.session_memory.in_memory import InMemorySessionMemory
from agentcore.agents.session_memory.memory import DEFAULT_RETRIEVE
from agentcore.agents.session_memory.redis_memory import RedisSessionMemory
from agentcore.agents.session_memory.vector import EndlessSessionMemory, MemoryContextProvider, VectorSessionMemory
from agentcore.agents.working_template import WorkingTemplate
from agentcore.errors import ConfigurationError, DependencyUnavailable, InvalidParams
from agentcore.memory.contexts.fencing import NOTICE, OPENING
from agentcore.memory.params.memories import CountParams, ListParams
from agentcore.memory.params.sessions import ClearParams
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services

FIELDS = {"name": "what the user is called", "goal": "what they work towards", "open": "what is not decided"}


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
async def redis(services: Services) -> AsyncIterator[Redis]:
    async with Redis.from_url(services.agents_redis_url(), decode_responses=True) as client:
        yield client


def note(number: int) -> SessionMessage:
    return SessionMessage(content=f"Note number {number}.", message_id=f"n-{number}")


async def ids(
    memory: InMemorySessionMemory | RedisSessionMemory | HierarchicalSessionMemory, session_id: str = "s"
) -> list[str | None]:
    found = await memory.retrieve(session_id, RetrieveOptions(limit=1_000))
    return [each.message_id for each in found]


@pytest.mark.shows("issue6-4-kinds")
async def test_in_memory_what_was_used_least_recently_goes_first() -> None:
    memory = InMemorySessionMemory(max_messages=3)
    for number in range(3):
        await memory.store("s", note(number))
    await memory.retrieve("s", RetrieveOptions(query="number 0", limit=1))
    await memory.store("s", note(3))
    assert await ids(memory) == ["n-3", "n-2", "n-0"]


async def test_in_memory_the_session_asked_least_recently_goes_first() -> None:
    memory = InMemorySessionMemory(max_sessions=2)
    await memory.store("a", note(1))
    await memory.store("b", note(2))
    await memory.retrieve("a")
    await memory.store("c", note(3))
    assert [await memory.session_count(each) for each in "abc"] == [1, 0, 1]
    usage = await memory.usage()
    assert (usage.messages, usage.sessions, usage.limits["max_sessions"]) == (2, 2, 2)


async def test_in_memory_a_message_goes_when_its_time_is_over() -> None:
    clock = Clock()
    memory = InMemorySessionMemory(ttl_seconds=60, now=clock)
    await memory.store("s", note(0))
    clock.passes(59)
    await memory.store("s", note(1))
    clock.passes(1)
    assert await ids(memory) == ["n-1"]
    clock.passes(59)
    assert (await memory.usage()).sessions == 0


async def test_in_redis_a_session_holds_its_newest_and_forgets_the_ids_of_the_others(redis: Redis) -> None:
    memory = RedisSessionMemory(redis, str(uuid.uuid4()), max_messages=3)
    for number in range(5):
        await memory.store("s", note(number))
    assert await ids(memory) == ["n-4", "n-3", "n-2"]
    await memory.store("s", note(0))
    assert await ids(memory) == ["n-0", "n-4", "n-3"]


@pytest.mark.shows("issue6-4-kinds")
async def test_in_redis_a_session_lives_anew_from_each_message_on(redis: Redis) -> None:
    agent_id = str(uuid.uuid4())
    memory = RedisSessionMemory(redis, agent_id, ttl_seconds=500)
    await memory.store("s", note(0))
    keys = [f"agentcore:session:{agent_id}:s:{part}" for part in ("messages", "ids")]
    for key in keys:
        await redis.expire(key, 100)
    await memory.store("s", note(1))
    assert all([490 < await redis.ttl(key) <= 500 for key in keys])
    # An expired session is no longer listed.
    await redis.delete(*keys)
    assert (await memory.usage()).sessions == 0
    forever = RedisSessionMemory(redis, agent_id, ttl_seconds=0)
    await forever.store("t", note(2))
    assert await redis.ttl(f"agentcore:session:{agent_id}:t:messages") == -1


async def test_in_redis_a_long_session_is_read_in_pages_none_twice(redis: Redis) -> None:
    memory = RedisSessionMemory(redis, str(uuid.uuid4()))
    for number in range(450):
        await memory.store("s", note(number), {"tags": ["last"] if number == 0 else []})
    assert await ids(memory) == [f"n-{number}" for number in reversed(range(450))]
    [found] = await memory.retrieve("s", RetrieveOptions(tags=["last"]))
    assert found.message_id == "n-0"


@pytest.mark.shows("issue6-4-kinds")
async def test_in_redis_another_process_hears_what_happens(redis: Redis, services: Services) -> None:
    agent_id = str(uuid.uuid4())
    memory = RedisSessionMemory(redis, agent_id)
    async with Redis.from_url(services.agents_redis_url()) as other:
        listener = RedisSessionMemory(other, agent_id)
        async with listener.listening("s") as events, asyncio.timeout(30):
            assert isinstance(events, AsyncGenerator)
            async with aclosing(events):
                await memory.store("another", note(1))
                stored = await memory.store("s", note(2))
                await memory.store("s", note(2))
                await memory.clear("s")
                heard = [await anext(events), await anext(events)]
    assert [each.event for each in heard] == ["stored", "cleared"]
    assert heard[0].message == stored


async def test_redis_that_does_not_answer_is_an_error_of_ours() -> None:
    async with Redis(host="127.0.0.1", port=1, retry=Retry(NoBackoff(), 1)) as nobody:
        memory = RedisSessionMemory(nobody, "agent")
        for call in (memory.store("s", note(1)), memory.retrieve("s"), memory.clear("s"), memory.usage()):
            with pytest.raises(DependencyUnavailable):
                await call


async def test_vector_messages_are_the_agents_own_memories_with_a_time_to_live(agent: Agent) -> None:
    memory = VectorSessionMemory(agent.memory, ttl_seconds=3_600)
    await memory.store("a:b", SessionMessage(content="Hello there!", role="assistant"))
    [record] = (await agent.memory.list(ListParams())).memories
    assert (record.session_id, record.namespace, record.speaker) == ("a%3Ab", "session_messages", "assistant")
    assert record.expires_at is not None
    assert timedelta(minutes=59) < record.expires_at - record.created_at <= timedelta(minutes=60)
    # A memory of the session in another namespace is not a message.
    await agent.store("The agent's own note.", session_id="a%3Ab")
    assert await memory.session_count("a:b") == 1
    assert await memory.clear("a:b") == 1
    assert (await agent.memory.count(CountParams())).count == 1


@pytest.mark.shows("issue6-4-known")
async def test_vector_a_known_id_is_known_also_where_a_replica_lags(lagging: Agent) -> None:
    memory = VectorSessionMemory(lagging.memory)
    first = await memory.store("s", note(0))
    for _ in range(3):
        assert await memory.store("s", note(0)) == first
    assert (await lagging.memory.count(CountParams(consistent=True))).count == 1


@pytest.mark.shows("issue6-4-known")
async def test_vector_a_cleared_message_is_stored_once_each_time_also_at_the_same_time(agent: Agent) -> None:
    memory = VectorSessionMemory(agent.memory)
    for _ in range(3):
        stored = await asyncio.gather(*(memory.store("s", note(0)) for _ in range(4)))
        assert {each.timestamp for each in stored} == {stored[0].timestamp}
        assert await memory.clear("s") == 1
    assert await memory.session_count("s") == 0


@pytest.mark.shows("issue6-4-kinds")
async def test_hierarchical_tiers_keep_what_their_rules_say(agent: Agent) -> None:
    clock = Clock()
    lasting = VectorSessionMemory(agent.memory)
    memory = HierarchicalSessionMemory(
        lasting, HierarchyConfig(working_capacity=2, short_term_capacity=4, short_term_ttl_seconds=60), now=clock
    )
    for number in range(6):
        await memory.store("s", note(number), {"importance": 0.9 if number in (0, 5) else 0.2})
        clock.passes(1)
    # 0 is permanent, 1 is outside every tier; the others are in short-term memory, 5 is in all three.
    assert await ids(memory) == ["n-5", "n-4", "n-3", "n-2", "n-0"]
    assert await memory.session_count("s") == 5
    assert await lasting.session_count("s") == 2
    clock.passes(60)
    assert await ids(memory) == ["n-5", "n-4", "n-0"]
    assert await memory.session_count("s") == 3
    found = await memory.retrieve_with_scores("s", "note number 0")
    assert {each.message.message_id for each in found} == {"n-5", "n-4", "n-0"}
    assert await memory.clear("s") == 3
    assert await ids(memory) == []


async def test_hierarchical_takes_the_order_of_its_long_term_memory_and_not_its_scores() -> None:
    class Quiet(InMemorySessionMemory):
        """Scores a hundredth of the usual values."""

        async def retrieve_with_scores(
            self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
        ) -> list[ScoredMessage]:
            return [
                each.model_copy(update={"score": each.score / 100})
                for each in await super().retrieve_with_scores(session_id, query, options)
            ]

    answers = []
    for lasting in (InMemorySessionMemory(), Quiet()):
        memory = HierarchicalSessionMemory(lasting, HierarchyConfig(working_capacity=1, short_term_capacity=1))
        await memory.store("s", SessionMessage(content="The grey parrot of Ada sings."), {"importance": 0.9})
        await memory.store("s", SessionMessage(content="The parrot eats."), {"importance": 0.9})
        await memory.store("s", SessionMessage(content="Grey clouds over a parrot."), {"importance": 0.1})
        found = await memory.retrieve_with_scores("s", "Ada's grey parrot sings")
        answers.append([(each.message.content, each.score) for each in found])
    assert answers[0] == answers[1]
    assert {content for content, _ in answers[0][:2]} == {"The grey parrot of Ada sings.", "Grey clouds over a parrot."}
    assert [score for _, score in answers[0]] == sorted((score for _, score in answers[0]), reverse=True)


async def test_hierarchical_without_long_term_memory_forgets_also_the_important() -> None:
    memory = HierarchicalSessionMemory(
        config=HierarchyConfig(working_capacity=1, short_term_capacity=1, enable_long_term=False)
    )
    for number in range(2):
        await memory.store("s", note(number), {"importance": 1.0})
    assert await ids(memory) == ["n-1"]
    assert await memory.session_count("s") == 1
    assert "persistence" not in memory.capabilities()


def test_a_missing_part_and_an_unknown_name_are_told() -> None:
    for name, problem in (("redis", "Redis client"), ("vector", "MemoryApi"), ("etched", "etched")):
        with pytest.raises(ConfigurationError, match=problem):
            open_session_memory(name)
    with pytest.raises(ConfigurationError, match="agent_id"):
        open_session_memory("redis", SessionParts(redis=Redis()))


@pytest.mark.shows("issue5-3-instructions", "issue6-4-endless")
async def test_an_endless_session_comes_back_within_its_budget(agent: Agent) -> None:
    memory = EndlessSessionMemory(MemoryContextProvider(agent.memory, max_tokens=120))
    assert await memory.retrieve("s") == []
    for number in range(60):
        await memory.store(
            "s",
            SessionMessage(content=f"Parcel {number} was sent to warehouse {number * 7919} in Antwerp."),
            {"tags": ["sent"]},
        )
    await memory.store("other", SessionMessage(content="The cello needs new strings."))
    [context] = await memory.retrieve("s", RetrieveOptions(query="where was parcel 41 sent?"))
    assert str(41 * 7919) in context.content
    assert context.role == "memory"
    assert 0 < context.metadata["token_count"] <= 120
    assert await memory.retrieve("s")
    assert 0 < len((await memory.summarize("s", SummarizeOptions(max_length=200))).content) <= 200
    assert "cello" not in (await memory.retrieve("s", RetrieveOptions(query="cello strings")))[0].content
    across = EndlessSessionMemory(MemoryContextProvider(agent.memory, across_sessions=True))
    assert "cello" in (await across.retrieve("s", RetrieveOptions(query="cello strings")))[0].content
    await memory.clear("s")
    assert await memory.retrieve("s") == []
    assert set(memory.capabilities()) >= {"semantic_search", "persistence"}


@pytest.mark.parametrize(
    "filters", [{"tags": ["sent"]}, {"importance_threshold": 0.0}, {"time_range": {"start": "2026-05-01"}}]
)
async def test_a_compressed_session_refuses_what_it_cannot_choose_by(agent: Agent, filters: dict[str, Any]) -> None:
    memory = EndlessSessionMemory(MemoryContextProvider(agent.memory))
    with pytest.raises(InvalidParams, match="no time range, importance or tags"):
        await memory.retrieve("s", RetrieveOptions.model_validate(filters))


@pytest.mark.shows("issue6-4-template")
async def test_a_template_is_filled_in_kept_and_corrected(agent: Agent) -> None:
    scope = MemoryScope(user_id="ada", session_id="s:1")
    template = WorkingTemplate(agent.memory, FIELDS, scope)
    assert await template.values() == {}
    assert "(empty: what the user is called)" in await template.text()
    await template.fill({"goal": "a quiet office", "name": "Ada"})
    await template.fill({"goal": "a quiet office in Ghent", "open": "which street"})
    again = WorkingTemplate(agent.memory, FIELDS, scope)
    assert list((await again.values()).items()) == [
        ("name", "Ada"),
        ("goal", "a quiet office in Ghent"),
        ("open", "which street"),
    ]
    assert await again.fill({"open": None, "name": " "}) == {"goal": "a quiet office in Ghent"}
    assert (await agent.memory.count(CountParams())).count == 1
    assert (await again.prompt()).startswith(f"{OPENING}\n{NOTICE}\n- name: (empty")
    assert "- open: what is not decided" in again.instructions()
    await again.clear()
    await again.fill({"name": "Grace"})
    assert await template.values() == {"name": "Grace"}


async def test_a_template_of_another_version_keeps_the_fields_it_does_not_know(agent: Agent) -> None:
    old = {name: meaning for name, meaning in FIELDS.items() if name != "open"}
    new, former = WorkingTemplate(agent.memory, FIELDS), WorkingTemplate(agent.memory, old)
    await new.fill({"name": "Ada", "open": "which street"})
    assert await former.fill({"name": "Ada L."}) == {"name": "Ada L."} == await former.values()
    assert await new.values() == {"name": "Ada L.", "open": "which street"}
    await former.clear()
    assert await new.values() == {}


async def test_templates_of_other_scopes_are_others_and_go_with_their_session(agent: Agent) -> None:
    scopes = [
        MemoryScope(),
        MemoryScope(user_id="a"),
        MemoryScope(user_id="a", session_id="b"),
        MemoryScope(user_id="a/b"),
        MemoryScope(session_id="a"),
    ]
    templates = [WorkingTemplate(agent.memory, FIELDS, scope) for scope in scopes]
    for number, template in enumerate(templates):
        await template.fill({"name": f"Name {number}"})
    assert [await each.values() for each in templates] == [{"name": f"Name {n}"} for n in range(5)]
    await agent.memory.clear(ClearParams(session_id="b"))
    assert [bool(await each.values()) for each in templates] == [True, True, False, True, True]


@pytest.mark.shows("issue6-4-template")
async def test_what_several_fill_in_at_the_same_time_is_all_kept(agent: Agent) -> None:
    fields = {f"field {number}": "anything" for number in range(4)}
    templates = [WorkingTemplate(agent.memory, fields) for _ in fields]
    await asyncio.gather(
        *(template.fill({name: f"value of {name}"}) for template, name in zip(templates, fields, strict=True))
    )
    assert await templates[0].values() == {name: f"value of {name}" for name in fields}


@pytest.mark.parametrize("fields", [{}, {"": "nothing"}, {"a\x00": "b"}, {"a": " "}, {"a" * 65: "b"}])
async def test_fields_that_cannot_be_are_refused(agent: Agent, fields: dict[str, str]) -> None:
    with pytest.raises(InvalidParams, match="fields"):
        WorkingTemplate(agent.memory, fields)


async def test_what_the_template_does_not_have_is_refused(agent: Agent) -> None:
    template = WorkingTemplate(agent.memory, FIELDS)
    with pytest.raises(InvalidParams, match="no field 'age'"):
        await template.fill({"name": "Ada", "age": "36"})
    with pytest.raises(InvalidParams, match="longer than 2000"):
        await template.fill({"name": "x" * 2_001})
    assert await template.values() == {}
