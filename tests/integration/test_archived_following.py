"""Archived facts and summaries whose sources were deleted, changed or superseded meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from agentcore.errors import Conflict, InvalidParams
from agentcore.memory.forgetting import removing, restoring
from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.params.archived import RestoreParams, RestoreResult
from agentcore.memory.params.memories import DeleteParams, PruneParams
from tests.fixtures.chat_model import Talking
from tests.fixtures.gate import gate
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services
from tests.fixtures.stretches import messages, rules, summaries, summarised
from tests.integration.test_facts_follow import LIKED, VIOLET, YELLOW, about, facts, holding, judged, reader, update


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with judged(services) as running:
        yield running


async def archive_semantic(agent: Agent) -> None:
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1_000))


async def archived_fact(talk: Talking, agent: Agent) -> tuple[UUID, MemoryRecord]:
    said = await agent.stored_id(YELLOW, user_id="rui", speaker="Rui")
    await talk.work()
    [fact] = await facts(agent)
    await archive_semantic(agent)
    assert await facts(agent) == []
    return said, fact


async def restore(agent: Agent, **chosen: Any) -> RestoreResult:
    return await agent.memory.restore(RestoreParams.model_validate(chosen))


@pytest.mark.shows("issue4-6-followed")
async def test_a_fact_whose_memory_was_deleted_stays_in_the_archive(talk: Talking) -> None:
    agent = await reader(talk)
    said, fact = await archived_fact(talk, agent)
    await agent.memory.delete(DeleteParams(memory_ids=[said]))
    with pytest.raises(Conflict) as refused:
        await restore(agent, memory_ids=[fact.memory_id])
    assert refused.value.data == {"memory_id": str(fact.memory_id), "made_of": str(said)}
    for dry_run in (True, False):
        result = await restore(agent, tags=["fact"], dry_run=dry_run)
        assert (result.memory_ids, result.refused_ids, result.complete) == ([], [fact.memory_id], True)
    assert await facts(agent) == []


async def test_a_fact_stays_in_the_archive_whose_memory_has_expired_before_any_sweep(talk: Talking) -> None:
    agent = await reader(talk)
    said, fact = await archived_fact(talk, agent)
    over = "UPDATE memories SET expires_at = now() WHERE memory_id = %s"
    async with talk.runtime.database.owner_transaction() as connection:
        await connection.execute(over, [said])
    assert (await restore(agent, all=True)).refused_ids == [fact.memory_id]


@pytest.mark.shows("issue4-6-followed")
async def test_what_is_refused_does_not_keep_the_rest_in_the_archive(talk: Talking) -> None:
    agent = await reader(talk)
    other = await agent.stored_id("Ada keeps the key of the cellar.", memory_type="semantic")
    await archive_semantic(agent)
    said, fact = await archived_fact(talk, agent)
    await agent.memory.delete(DeleteParams(memory_ids=[said]))
    result = await restore(agent, all=True, limit=1)
    assert (result.memory_ids, result.refused_ids) == ([other], [fact.memory_id])
    assert result.complete


async def refused_facts(talk: Talking, agent: Agent, count: int) -> list[UUID]:
    refused = []
    for _ in range(count):
        said, fact = await archived_fact(talk, agent)
        await agent.memory.delete(DeleteParams(memory_ids=[said]))
        refused.append(fact.memory_id)
    return refused[::-1]


async def test_a_restore_ends_in_time_and_its_cursor_leads_behind_what_it_refused(
    talk: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await reader(talk)
    others = [await agent.stored_id(f"Ada keeps key {n}.", memory_type="semantic") for n in (1, 2)]
    await archive_semantic(agent)
    refused = await refused_facts(talk, agent, 2)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    told = [await restore(agent, all=True, limit=1)]
    while told[-1].next_cursor is not None:
        told.append(await restore(agent, all=True, limit=1, cursor=told[-1].next_cursor))
    assert [each.refused_ids for each in told] == [refused[:1], refused[1:], [], []]
    assert [each.complete for each in told] == [False, False, False, True]
    assert [memory_id for each in told for memory_id in each.memory_ids] == others[::-1]
    assert (await restore(agent, all=True, limit=1)).refused_ids == refused[:1]


async def test_a_cursor_of_a_restore_is_one_that_a_restore_gave_and_stands_beside_no_ids(talk: Talking) -> None:
    agent = await reader(talk)
    with pytest.raises(InvalidParams, match="cursor"):
        await restore(agent, all=True, cursor="bm8=")
    with pytest.raises(ValidationError, match="cursor"):
        RestoreParams(memory_ids=[UUID(int=1)], cursor="bm8=")


async def test_what_is_told_of_refused_memories_has_an_end(talk: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await reader(talk)
    refused = await refused_facts(talk, agent, 2)
    monkeypatch.setattr(restoring, "MOST_REFUSED_TOLD", 1)
    result = await restore(agent, all=True, limit=1)
    assert (result.refused_ids, result.complete) == (refused[:1], True)


@pytest.mark.shows("issue4-6-followed")
async def test_a_fact_of_other_words_stays_in_the_archive_until_they_are_back(talk: Talking) -> None:
    agent = await reader(talk)
    said, fact = await archived_fact(talk, agent)
    await update(agent, said, content="My favourite colour is violet, or green.")
    await talk.work()
    with pytest.raises(Conflict):
        await restore(agent, memory_ids=[fact.memory_id])
    talk.model.answers["fact_extraction"] = about({})
    await update(agent, said, content=YELLOW)
    await talk.work()
    await restore(agent, memory_ids=[fact.memory_id])
    assert await holding(agent) == [LIKED]


@pytest.mark.shows("issue4-6-followed")
async def test_a_fact_comes_back_superseded_with_its_memory(talk: Talking) -> None:
    agent = await reader(talk)
    said, fact = await archived_fact(talk, agent)
    newer = await agent.store(VIOLET, user_id="rui", speaker="Rui")
    assert newer.superseded == [said]
    result = await restore(agent, memory_ids=[fact.memory_id])
    assert result.superseded_ids == [fact.memory_id]
    [back] = await facts(agent)
    assert (back.superseded_by, back.valid_to) == (newer.memory_id, (await agent.get(said)).valid_to)


async def test_a_fact_comes_back_superseded_though_the_store_began_before_it_was_archived(talk: Talking) -> None:
    agent = await reader(talk)
    other = await agent.stored_id("The bicycle stands behind the house.")
    said = await agent.stored_id(YELLOW, user_id="rui", speaker="Rui")
    await talk.work()
    [fact] = await facts(agent)
    links = [{"target_id": str(other), "relation": "beside"}]
    async with gate(agent) as opened:
        await opened.hold_row("memories", agent, other)
        storing = asyncio.ensure_future(agent.store(VIOLET, user_id="rui", speaker="Rui", links=links))
        await opened.until_waiting(1)
        await archive_semantic(agent)
        await opened.through()
        newer = await storing
    assert newer.superseded == [said]
    assert (await restore(agent, memory_ids=[fact.memory_id])).superseded_ids == [fact.memory_id]
    [back] = await facts(agent)
    assert back.superseded_by == newer.memory_id


async def test_a_fact_that_its_caller_pinned_comes_back_whatever_its_memory_says_now(talk: Talking) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(YELLOW, user_id="rui", speaker="Rui")
    await talk.work()
    [fact] = await facts(agent)
    await update(agent, fact.memory_id, content="Rui likes yellow most.")
    await archive_semantic(agent)
    await update(agent, said, content=VIOLET)
    await restore(agent, memory_ids=[fact.memory_id])
    assert await holding(agent) == ["Rui likes yellow most."]


async def test_a_fact_and_its_memory_come_back_together(talk: Talking) -> None:
    agent = await reader(talk)
    said, fact = await archived_fact(talk, agent)
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1_000))
    result = await restore(agent, all=True)
    assert {*result.memory_ids} == {said, fact.memory_id}
    assert result.refused_ids == result.superseded_ids == []


@pytest.mark.shows("issue4-6-followed")
async def test_a_summary_of_deleted_words_stays_in_the_archive(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, trigger="session_end")
    summary = await summarised(agent, talk)
    await archive_semantic(agent)
    gone = (await messages(agent))[1].memory_id
    await agent.memory.delete(DeleteParams(memory_ids=[gone]))
    await talk.work()
    with pytest.raises(Conflict) as refused:
        await restore(agent, memory_ids=[summary.memory_id])
    assert refused.value.data["made_of"] == str(gone)
    result = await restore(agent, all=True)
    assert (result.restored_count, result.refused_ids) == (0, [summary.memory_id])
    assert summary.memory_id not in [each.memory_id for each in await summaries(agent)]
