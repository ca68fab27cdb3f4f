"""Contradicting memories in one result: the newer one is returned and names the one it replaces."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from agentcore.memory.models import MemorySummary, Receipt
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import GetContextParams, RetrieveParams
from tests.fixtures.memory import Agent, counted

OLD = "The owner of Atlas is Carla."
NEW = "Bruno took over Atlas."
QUERY = "Who is the owner of Atlas?"


async def search(agent: Agent, **values: Any) -> tuple[list[MemorySummary], Receipt]:
    result = await agent.memory.retrieve(RetrieveParams.model_validate({"query": QUERY, **values}))
    return result.memories, result.receipt


async def both_stand(agent: Agent) -> tuple[UUID, UUID]:
    """Returns the newer and the older fact; an expiring memory never supersedes a permanent one."""
    newer = await agent.stored_id(NEW, timestamp="2026-03-01", ttl_seconds=86_400)
    return newer, await agent.stored_id(OLD, timestamp="2026-01-01")


@pytest.mark.shows("NFR-3.2", "issue4-2-contradictions")
async def test_an_older_fact_whose_place_was_not_taken_is_left_out_and_counted(agent: Agent) -> None:
    newer, older = await both_stand(agent)
    memories, receipt = await search(agent)
    assert {each.memory_id: each.instead_of for each in memories} == {newer: [older]}
    assert counted(receipt) == {"contradicted_by_newer": 1}


async def test_what_is_left_out_makes_room_for_the_next_best(agent: Agent) -> None:
    await both_stand(agent)
    other = await agent.stored_id("The garden needs water.", timestamp="2026-02-01")
    memories, receipt = await search(agent, k=2)
    assert other in {each.memory_id for each in memories}
    assert len(memories) == 2
    assert counted(receipt) == {"contradicted_by_newer": 1}


@pytest.mark.shows("issue4-2-contradictions")
async def test_who_wants_both_gets_both(agent: Agent) -> None:
    newer, older = await both_stand(agent)
    for values in ({"distinct": False}, {"query": "Who was the owner of Atlas?"}):
        memories, receipt = await search(agent, **values)
        assert {each.memory_id for each in memories} == {newer, older}
        assert counted(receipt) == {}


async def test_a_pinned_memory_and_one_that_was_confirmed_since_stay(agent: Agent) -> None:
    newer, older = await both_stand(agent)
    pinned = await agent.stored_id("The owner of Atlas is Dario.", timestamp="2025-12-30", pinned=True)
    confirmed = {"memory_id": older, "updates": {"tags": ["true"]}}
    await agent.memory.update(UpdateParams.model_validate(confirmed))
    memories, _ = await search(agent)
    assert {each.memory_id for each in memories} == {newer, older, pinned}


async def test_what_was_stored_to_stand_beside_another_does_so_in_answers(agent: Agent) -> None:
    older = await agent.stored_id(OLD, timestamp="2026-01-01")
    newer = await agent.stored_id(NEW, timestamp="2026-03-01", supersede=False)
    memories, _ = await search(agent)
    assert {each.memory_id for each in memories} == {newer, older}


async def test_another_user_s_fact_contradicts_nothing(agent: Agent) -> None:
    newer = await agent.stored_id(NEW, timestamp="2026-03-01", user_id="one")
    older = await agent.stored_id(OLD, timestamp="2026-01-01", user_id="two")
    memories, _ = await search(agent)
    assert {each.memory_id for each in memories} == {newer, older}


@pytest.mark.shows("AC-4")
async def test_a_context_holds_the_newer_alone(agent: Agent) -> None:
    newer, _ = await both_stand(agent)
    context = await agent.memory.get_context(GetContextParams.model_validate({"query": QUERY}))
    assert context.memory_ids == [newer]
    assert counted(context.receipt) == {"contradicted_by_newer": 1}
