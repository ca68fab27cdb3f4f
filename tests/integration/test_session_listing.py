"""Session lists and counts with a memory's own implementation: in Redis, at the service, in tiers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from agentcore.agents.session_memory import SessionListing, SessionMemory, SessionMessage
from agentcore.agents.session_memory.hierarchical import HierarchicalSessionMemory, HierarchyConfig
from agentcore.agents.session_memory.in_memory import InMemorySessionMemory
from agentcore.agents.session_memory.redis_memory import RedisSessionMemory
from agentcore.agents.session_memory.vector import VectorSessionMemory
from agentcore.errors import ConfigurationError, DependencyUnavailable
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services

MORNING = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture
async def redis(services: Services) -> AsyncIterator[Redis]:
    async with Redis.from_url(services.agents_redis_url(), decode_responses=True) as client:
        yield client


def note(minute: int) -> SessionMessage:
    return SessionMessage(content=f"Note of minute {minute}.", timestamp=MORNING + timedelta(minutes=minute))


async def listed(memory: SessionMemory, limit: int) -> list[SessionListing]:
    """Lists all sessions in pages of `limit`."""
    found: list[SessionListing] = []
    while page := await memory.sessions(limit, found[-1] if found else None):
        found += page
    return found


async def test_in_redis_more_sessions_of_one_time_than_a_page_are_listed_once(redis: Redis) -> None:
    memory = RedisSessionMemory(redis, str(uuid.uuid4()))
    names = [f"{number:03}" for number in range(450)]
    for name in names:
        await memory.store(name, note(0 if name < "430" else 1))
    assert [each.session_id for each in await listed(memory, 200)] == names[::-1]


async def test_in_redis_a_session_that_is_over_is_not_listed_and_leaves_the_indexes(redis: Redis) -> None:
    agent_id = str(uuid.uuid4())
    memory = RedisSessionMemory(redis, agent_id, ttl_seconds=500)
    for name in ("old", "new"):
        await memory.store(name, note(0))
    place = f"agentcore:session:{agent_id}"
    await redis.delete(f"{place}:old:messages", f"{place}:old:ids")
    assert [each.session_id for each in await memory.sessions()] == ["new"]
    await redis.zadd(f"{place}::sessions", {"old": 1})
    await memory.store("new", note(1))
    assert await redis.zrange(f"{place}::sessions", 0, -1) == ["new"]
    assert await redis.zrange(f"{place}::newest", 0, -1) == ["new"]


async def test_in_redis_a_session_begun_anew_stands_where_its_new_messages_put_it(redis: Redis) -> None:
    agent_id = str(uuid.uuid4())
    memory = RedisSessionMemory(redis, agent_id)
    await memory.store("s", note(60))
    await redis.delete(f"agentcore:session:{agent_id}:s:messages", f"agentcore:session:{agent_id}:s:ids")
    await memory.store("s", note(1))
    await memory.store("t", note(2))
    assert [(each.session_id, each.newest) for each in await memory.sessions()] == [
        ("t", MORNING + timedelta(minutes=2)),
        ("s", MORNING + timedelta(minutes=1)),
    ]


async def test_redis_by_its_url_is_closed_at_the_end(redis: Redis, services: Services) -> None:
    agent_id = str(uuid.uuid4())

    async def is_connected() -> bool:
        return agent_id in {client["name"] for client in await redis.client_list()}

    url = f"{services.agents_redis_url()}&client_name={agent_id}"
    async with RedisSessionMemory.from_url(url, agent_id, max_messages=2, ttl_seconds=60) as memory:
        for minute in range(3):
            await memory.store("s", note(minute))
        assert (await memory.usage()).limits == {"max_messages": 2, "ttl_seconds": 60}
        assert await memory.session_count("s") == 2
        assert await is_connected()
    async with asyncio.timeout(30):
        while await is_connected():
            pass
    with pytest.raises(ConfigurationError, match="Redis"):
        async with RedisSessionMemory.from_url("no url", agent_id):
            pass
    async with RedisSessionMemory.from_url("redis://127.0.0.1:1", agent_id) as nobody:
        with pytest.raises(DependencyUnavailable):
            await nobody.sessions()


@pytest.mark.shows("issue6-4-sessions")
async def test_sessions_that_speak_in_turns_are_listed_once_by_the_service(agent: Agent) -> None:
    memory = VectorSessionMemory(agent.memory)
    for minute in range(12):
        await memory.store("abc"[minute % 3], note(minute))
    # Other entries in the namespace are no sessions.
    await agent.store("A note of another.", namespace="session_messages")
    await agent.store("And one more.", namespace="session_messages", session_id="not encoded: so")
    for limit in (1, 2, 3):
        assert [(each.session_id, each.message_count) for each in await listed(memory, limit)] == [
            ("c", 4),
            ("b", 4),
            ("a", 4),
        ]


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.shows("issue6-4-sessions")
async def test_hierarchical_lists_each_session_once_whatever_tier_has_it(agent: Agent, limit: int) -> None:
    lasting = VectorSessionMemory(agent.memory)
    config = HierarchyConfig(working_capacity=1, short_term_capacity=1)
    before = HierarchicalSessionMemory(lasting, config)
    await before.store("lasting", note(30), {"importance": 0.9})
    memory = HierarchicalSessionMemory(lasting, config)
    # The newest message of "turned" is in long-term memory only, that of "spoken" in short-term memory only.
    await memory.store("turned", note(50), {"importance": 0.9})
    await memory.store("turned", note(10), {"importance": 0.1})
    await memory.store("spoken", note(5), {"importance": 0.9})
    await memory.store("spoken", note(40), {"importance": 0.1})
    await memory.store("near", note(20), {"importance": 0.1})
    assert [(each.session_id, each.message_count, each.newest) for each in await listed(memory, limit)] == [
        (name, count, MORNING + timedelta(minutes=minute))
        for name, count, minute in (("turned", 2, 50), ("spoken", 2, 40), ("lasting", 1, 30), ("near", 1, 20))
    ]


@pytest.mark.shows("issue6-4-sessions")
async def test_hierarchical_counts_each_message_once_and_each_tier_by_itself() -> None:
    memory = HierarchicalSessionMemory(
        InMemorySessionMemory(), HierarchyConfig(working_capacity=1, short_term_capacity=2)
    )
    for minute in range(4):
        await memory.store("s", note(minute), {"importance": 0.9 if minute in (0, 3) else 0.1})
    await memory.store("t", note(9))
    usage = await memory.usage()
    # 0 is permanent, 1 is gone, 2 is in short-term memory, 3 in all tiers.
    assert (usage.messages, usage.sessions) == (4, 2)
    assert {name: (tier.messages, tier.sessions) for name, tier in usage.tiers.items()} == {
        "working": (2, 2),
        "short_term": (3, 2),
        "long_term": (2, 1),
    }
    assert usage.limits["working_capacity"] == usage.tiers["working"].limits["max_messages"] == 1
    assert usage.messages == sum([await memory.session_count(each) for each in ("s", "t")])


async def test_hierarchical_does_not_count_sessions_where_long_term_memory_cannot(agent: Agent) -> None:
    memory = HierarchicalSessionMemory(VectorSessionMemory(agent.memory))
    await memory.store("s", note(0), {"importance": 0.9})
    usage = await memory.usage()
    assert (usage.messages, usage.sessions, usage.tiers["working"].sessions) == (1, None, 1)
    alone = HierarchicalSessionMemory(config=HierarchyConfig(enable_long_term=False))
    await alone.store("s", note(0), {"importance": 0.9})
    usage = await alone.usage()
    assert (usage.messages, usage.sessions, set(usage.tiers)) == (1, 1, {"working", "short_term"})


async def test_listing_and_counting_are_no_use_of_a_session_and_reading_is() -> None:
    memory = InMemorySessionMemory(max_sessions=3)
    for place, name in enumerate("abc"):
        await memory.store(name, note(place))
    # Here the least recently used session is listed last.
    tiers = HierarchicalSessionMemory(memory, HierarchyConfig(working_capacity=1))
    await tiers.sessions()
    await tiers.usage()
    await tiers.session_count("a")
    assert [each.session_id for each in await memory.sessions()] == ["c", "b", "a"]
    await memory.store("d", note(3))
    await memory.summarize("b")
    await memory.store("e", note(4))
    assert [each.session_id for each in await memory.sessions()] == ["e", "d", "b"]
