"""Facts extracted by a model expire with their source, and not earlier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.changes import HistoryParams
from agentcore.memory.params.memories import ListParams
from tests.fixtures.chat_model import Talking, talking
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services
from tests.integration.test_facts_follow import FACT, SAID, about, facts, reader, update
from tests.integration.test_layers import use


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services) as running:
        running.model.answers["fact_extraction"] = about({"Maren": FACT})
        yield running


async def time_is_up(talk: Talking, memory_id: UUID) -> None:
    """Sets the expiry one hour back and runs the sweep."""
    over = "UPDATE memories SET expires_at = now() - interval '1 hour' WHERE memory_id = %s"
    async with talk.runtime.database.owner_transaction() as connection:
        await connection.execute(over, [memory_id])
    await talk.runtime.maintenance.round()


@pytest.mark.shows("issue5-3-facts-end")
async def test_a_time_that_is_given_later_is_that_of_the_facts_too(talk: Talking) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID)
    await talk.work()
    await update(agent, said, ttl_seconds=600)
    [fact] = await facts(agent)
    assert fact.expires_at == (await agent.get(said)).expires_at is not None
    history = await agent.memory.history(HistoryParams(memory_id=fact.memory_id))
    assert [(each.operation, each.version) for each in history.changes] == [("update", 2)]
    await update(agent, said, ttl_seconds=None)
    assert [each.expires_at for each in await facts(agent)] == [None]
    await update(agent, said, ttl_seconds=900)
    await update(agent, said, pinned=True)
    assert [each.expires_at for each in await facts(agent)] == [None]


@pytest.mark.parametrize("made", [{"pinned": True}, {"content": "Maren is my sister."}, {"ttl_seconds": 9_000}])
@pytest.mark.shows("issue5-3-facts-end")
async def test_what_a_caller_made_of_a_fact_keeps_its_time(talk: Talking, made: dict[str, Any]) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID)
    await talk.work()
    [fact] = await facts(agent)
    await update(agent, fact.memory_id, **made)
    before = (await agent.get(fact.memory_id)).expires_at
    await update(agent, said, ttl_seconds=600)
    assert (await agent.get(fact.memory_id)).expires_at == before


@pytest.mark.shows("issue5-3-facts-end")
async def test_facts_go_with_a_memory_whose_time_is_up(talk: Talking) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID)
    kept = await agent.stored_id("What I noted of it.", memory_type="semantic", parent_memory_id=said)
    await talk.work()
    await time_is_up(talk, said)
    assert [each.memory_id for each in (await agent.memory.list(ListParams())).memories] == [kept]


@pytest.mark.parametrize("made", [{"pinned": True}, {"content": "Maren is my sister."}])
async def test_a_fact_that_is_its_callers_stays_when_its_memory_has_expired(
    talk: Talking, made: dict[str, Any]
) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID)
    await talk.work()
    [fact] = await facts(agent)
    await update(agent, fact.memory_id, **made)
    await time_is_up(talk, said)
    assert [each.memory_id for each in await facts(agent)] == [fact.memory_id]


async def extended(talk: Talking) -> tuple[Agent, UUID, MemoryRecord]:
    """A memory with an expiry, and its fact, whose use extended it beyond that."""
    agent = await reader(talk)
    rules = {"semantic": {"extend_after_uses": 1}}
    await agent.memory.configure(ConfigureParams.model_validate({"layers": rules}))
    said = await agent.stored_id(SAID, ttl_seconds=600)
    await talk.work()
    [fact] = await facts(agent)
    sooner = "UPDATE memories SET expires_at = now() + interval '1 minute' WHERE memory_id = %s"
    async with talk.runtime.database.owner_transaction() as connection:
        await connection.execute(sooner, [fact.memory_id])
    await use(agent, fact.memory_id, 1)
    [fact] = await facts(agent)
    history = await agent.memory.history(HistoryParams(memory_id=fact.memory_id))
    assert [each.operation for each in history.changes] == ["extend"]
    return agent, said, fact


async def test_a_fact_that_was_used_still_takes_over_the_time_of_its_memory(talk: Talking) -> None:
    agent, said, _ = await extended(talk)
    await update(agent, said, ttl_seconds=900)
    [fact] = await facts(agent)
    assert fact.expires_at == (await agent.get(said)).expires_at


async def test_a_fact_that_was_used_lives_on_when_its_memory_has_expired(talk: Talking) -> None:
    agent, said, fact = await extended(talk)
    await time_is_up(talk, said)
    assert await facts(agent) == [fact]
    await time_is_up(talk, fact.memory_id)
    assert await facts(agent) == []


@pytest.mark.parametrize("ttl_seconds", [9_000, None])
async def test_a_fact_with_a_time_of_its_callers_stays_when_its_memory_has_expired(
    talk: Talking, ttl_seconds: int | None
) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID, ttl_seconds=600)
    await talk.work()
    [fact] = await facts(agent)
    await update(agent, fact.memory_id, ttl_seconds=ttl_seconds)
    await time_is_up(talk, said)
    assert [each.memory_id for each in await facts(agent)] == [fact.memory_id]


async def test_facts_stay_whose_memory_was_given_more_time_before_the_sweep(talk: Talking) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID, ttl_seconds=600)
    await talk.work()
    await update(agent, said, ttl_seconds=6_000)
    async with talk.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        assert await transaction.delete_expired([said]) == []
    assert [each.content for each in await facts(agent)] == [FACT]


@pytest.mark.shows("issue5-3-facts-end")
async def test_a_pinned_memory_whose_time_is_up_has_facts_that_stay(talk: Talking) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID, ttl_seconds=3_600, pinned=True)
    await time_is_up(talk, said)
    await talk.work()
    [fact] = await facts(agent)
    assert fact.expires_at is None


@pytest.mark.parametrize("named", [True, False])
async def test_only_a_time_that_a_caller_named_is_told_of_where_a_fact_comes_from(talk: Talking, named: bool) -> None:
    agent = await reader(talk)
    layers = {} if named else {"layers": {"episodic": {"ttl_seconds": 600}}}
    await agent.memory.configure(ConfigureParams.model_validate({"extract_facts": True, **layers}))
    said = await agent.get(await agent.stored_id(SAID, **({"ttl_seconds": 600} if named else {})))
    await talk.work()
    [fact] = await facts(agent)
    assert ("ttl_seconds" in fact.provenance) == named == ("ttl_seconds" in said.provenance)
    assert fact.expires_at is not None
    assert said.expires_at is not None
    assert abs(fact.expires_at - said.expires_at) < timedelta(seconds=5)
