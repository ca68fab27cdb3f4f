"""Summaries of deleted, archived or expired sources: what is deleted, kept or regenerated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentcore.maintenance.rounds import enqueue_llm_work
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.memories import DeleteParams, ListParams, PruneParams
from agentcore.memory.params.sessions import AddSessionParams
from tests.fixtures.chat_model import Talking, talking
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services
from tests.fixtures.stretches import (
    LINES,
    add,
    at,
    change,
    end,
    lines,
    messages,
    rules,
    summaries,
    summarised,
    told_in,
    waiting,
)

NEW = "The policy number of that warehouse is HX-9999."


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services) as running:
        running.model.answers["fact_judge"] = lambda document: {"verdict": "SUPERSEDE"}
        yield running


@pytest.mark.parametrize(
    "wishes",
    [
        {"trigger": "session_end"},
        {"trigger": "user_turns", "user_turns": 5},
        {"trigger": "inactivity", "inactivity_seconds": 3_600},
        {"trigger": "message_count", "message_count": 5},
    ],
)
@pytest.mark.shows("issue5-2-gone")
async def test_what_lost_its_summary_has_another_at_once_whatever_the_trigger(
    talk: Talking, wishes: dict[str, Any]
) -> None:
    agent = talk.agent()
    await summarised(agent, talk, 5, **wishes)
    going = (await messages(agent))[1]
    await agent.memory.delete(DeleteParams(memory_ids=[going.memory_id]))
    assert await summaries(agent) == []
    await add(agent, lines(6, 7))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.metadata["summarised_count"] == 4
    assert "HX-2210" not in summary.content
    assert await waiting(agent) == ["summary"]


async def test_what_lost_its_summary_and_its_job_is_found_by_the_round(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    await agent.memory.delete(DeleteParams(memory_ids=[(await messages(agent))[1].memory_id]))
    await talk.run("DELETE FROM procrastinate_jobs")
    assert await enqueue_llm_work(talk.runtime.database, talk.runtime.parts) >= 1
    await talk.work()
    assert len(await summaries(agent)) == 1


async def test_many_sessions_that_lost_their_summaries_all_have_another(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    for number in range(23):
        messages_of = [{**line, "message_id": f"{number}-{line['message_id']}"} for line in lines(0, 2)]
        await add(agent, messages_of, f"s{number}")
        await end(agent, f"s{number}")
    assert len(await summaries(agent)) == 23
    listed = await agent.memory.list(ListParams(memory_types=[MemoryType.EPISODIC], limit=100))
    going = [each.memory_id for each in listed.memories if each.content == LINES[0]]
    await agent.memory.delete(DeleteParams(memory_ids=going))
    await talk.work()
    made = await summaries(agent)
    assert [each.content for each in made] == [f"user: {LINES[1]}"] * 23


@pytest.mark.shows("issue5-2-gone")
async def test_two_deletions_from_one_session_at_once_leave_a_summary_of_the_rest(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk, 5)
    going = [each.memory_id for each in (await messages(agent))[:4]]
    await asyncio.gather(*(agent.memory.delete(DeleteParams(memory_ids=[each])) for each in going))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == f"user: {LINES[4]}"


async def test_words_of_a_message_that_was_superseded_go_from_the_history_when_it_is_deleted(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    old = await agent.stored_id("My phone number is 0151 223344.", session_id="s", timestamp=at(0))
    await add(agent, lines(1, 3))
    await end(agent)
    await agent.store("My phone number is 0170 998877.", session_id="t", timestamp=at(30))
    await talk.work()
    await agent.memory.delete(DeleteParams(memory_ids=[old]))
    await talk.work()
    statement = "SELECT FROM memory_history WHERE agent_id = %s AND before ->> 'content' LIKE '%%223344%%'"
    async with talk.runtime.database.owner_transaction() as connection:
        assert await (await connection.execute(statement, [agent.agent_id])).fetchall() == []
    assert len(await summaries(agent)) == 1


async def archive(agent: Agent, target: int) -> None:
    prune = PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=target)
    await agent.memory.prune(prune)


@pytest.mark.shows("issue5-2-gone")
async def test_what_a_summary_says_of_archived_messages_stays_when_another_is_changed(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    await archive(agent, 1)
    assert len(await messages(agent)) == 2
    await change(agent, (await messages(agent))[0].memory_id, content=NEW)
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == f"user: {LINES[0]}\nuser: {NEW}\nuser: {LINES[2]}"
    assert "not there any more" in summary.metadata["degraded"]


@pytest.mark.shows("issue5-2-gone")
async def test_a_models_words_of_archived_messages_stay_and_what_changed_stands_behind_them(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk, provider="llm")
    await archive(agent, 1)
    policy = (await messages(agent))[0]
    await change(agent, policy.memory_id, content=NEW)
    await talk.work()
    told = f"They spoke of this: {LINES[0]}"
    first = (await summaries(agent))[0].content.splitlines()
    assert (first[0], first[-1]) == (told, f"user: {NEW}")
    await change(agent, policy.memory_id, content="The policy number of that warehouse is HX-1111.")
    await talk.work()
    [summary] = await summaries(agent)
    changed = summary.content.splitlines()
    assert (changed[0], changed[-1]) == (told, "user: The policy number of that warehouse is HX-1111.")
    assert NEW not in summary.content
    assert len(told_in(talk)) == 1


@pytest.mark.shows("issue5-2-gone")
async def test_a_summary_outlives_expired_messages_and_keeps_what_it_says_of_them(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    first, policy, _ = await messages(agent)
    over = "UPDATE memories SET expires_at = now() - interval '1 hour' WHERE memory_id = %s"
    async with talk.runtime.database.owner_transaction() as connection:
        await connection.execute(over, [first.memory_id])
    await change(agent, policy.memory_id, content=NEW)
    await talk.work()
    await talk.runtime.maintenance.round()
    [summary] = await summaries(agent)
    assert "Antwerp" in summary.content
    assert "HX-9999" in summary.content


async def test_a_message_with_a_time_of_its_own_takes_its_words_out_of_summaries_when_it_expires(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, trigger="session_end")
    await add(agent, lines(0, 2))
    params = {"session_id": "s", "messages": lines(2, 3), "ttl_seconds": 60}
    await agent.memory.add_session(AddSessionParams.model_validate(params))
    await end(agent)
    await talk.work()
    assert "40,000" in (await summaries(agent))[0].content
    over = "UPDATE memories SET expires_at = now() - interval '1 hour' WHERE content = %s AND agent_id = %s"
    async with talk.runtime.database.owner_transaction() as connection:
        await connection.execute(over, [LINES[2], agent.agent_id])
    await talk.runtime.maintenance.round()
    await enqueue_llm_work(talk.runtime.database, talk.runtime.parts)
    await talk.work()
    [summary] = await summaries(agent)
    assert "40,000" not in summary.content
    assert "HX-2210" in summary.content


async def test_with_all_messages_archived_a_summary_stays_as_it_is(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    await archive(agent, 3)
    assert [each.content for each in await summaries(agent)] == [before.content]
    assert await waiting(agent) == []


@pytest.mark.shows("issue5-2-gone")
async def test_restored_messages_are_told_anew_with_what_was_changed_meanwhile(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    first = (await messages(agent))[0].memory_id
    await archive(agent, 1)
    await change(agent, (await messages(agent))[0].memory_id, content=NEW)
    await talk.work()
    await agent.memory.restore(RestoreParams(memory_ids=[first]))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == before.content.replace(LINES[1], NEW)
    assert "degraded" not in summary.metadata


async def test_for_a_summary_restored_as_it_was_no_model_is_asked(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk, provider="llm")
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1))
    await agent.memory.restore(RestoreParams(memory_ids=[before.memory_id]))
    await talk.work()
    [summary] = await summaries(agent)
    assert (summary.content, summary.version) == (before.content, 1)
    assert len(told_in(talk)) == 1
    assert await waiting(agent) == []


async def test_a_restored_summary_learns_what_was_changed_while_it_was_archived(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1))
    assert await summaries(agent) == []
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.work()
    await agent.memory.restore(RestoreParams(memory_ids=[before.memory_id]))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == before.content.replace(LINES[1], NEW)
