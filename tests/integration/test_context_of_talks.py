"""Contexts during a conversation: the request stored first, earlier questions, extracted facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.memories import GetContextParams, GetContextResult
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.runtime import open_runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

NOISE = [
    "The bakery on the corner closes at noon.",
    "Lena learns the cello with Mr. Brandt.",
    "The tram to the harbour is line four.",
]


async def context(agent: Agent, query: str, **values: object) -> GetContextResult:
    return await agent.memory.get_context(GetContextParams.model_validate({"query": query, **values}))


def task_section(result: GetContextResult) -> str:
    """Returns the section "Current Task Context", or an empty text."""
    _, _, rest = result.context.partition("## Current Task Context")
    return rest.partition("\n## ")[0]


@pytest.mark.shows("AC-3")
async def test_a_request_stored_before_its_context_is_asked_for_hides_nothing(agent: Agent) -> None:
    for each in NOISE:
        await agent.stored_id(each)
    wanted = await agent.stored_id("Tolliver sells gaskets, at least 200 of them.", session_id="old")
    query = "Order the gaskets that we need."
    before = await context(agent, query, task_id="order")
    request = await agent.stored_id(f"{query} ", task_id="order", session_id="new", speaker="Ada")
    after = await context(agent, "order the gaskets that we need", task_id="order")
    assert wanted in before.memory_ids
    assert set(after.memory_ids) == {*before.memory_ids, request}
    assert query in task_section(after)
    # One more memory in the store changes the word weights slightly.
    assert after.receipt.fit == pytest.approx(before.receipt.fit, abs=0.05)
    assert {each.reason: each.count for each in after.receipt.dropped}["the_query_itself"] == 1


async def test_a_turn_of_no_task_said_just_now_is_the_query_and_what_nobody_said_is_a_memory(agent: Agent) -> None:
    query = "Which gaskets does Tolliver sell?"
    turn = await agent.stored_id(query, session_id="new", speaker="Ada")
    older = await agent.stored_id(f"{query[:-1]}, Mr. Abbot?", session_id="old", speaker="Ada")
    result = await context(agent, query)
    assert turn not in result.memory_ids
    assert older in result.memory_ids
    note = await agent.stored_id("Tolliver sells gaskets.")
    assert note in (await context(agent, "Tolliver sells gaskets.")).memory_ids


async def test_retrieve_gives_back_what_says_the_query_itself(agent: Agent) -> None:
    query = "Which gaskets does Tolliver sell?"
    await agent.stored_id(query, task_id="order", session_id="new", speaker="Ada")
    assert await agent.found(query) == [query]


async def test_what_was_asked_before_in_the_task_completes_a_vague_query(agent: Agent) -> None:
    await agent.stored_id("File the costs of the studio in Porto.", task_id="tax", speaker="Ada")
    await agent.stored_id("Filed.", task_id="tax", speaker="assistant")
    query = "And how far is it?"
    followed = await context(agent, query, task_id="tax")
    assert followed.receipt.searched["completed_from_history"]
    assert "completed_from_history" not in (await context(agent, query)).receipt.searched
    clear = await context(agent, "Which bakery closes at noon on Sundays?", task_id="tax")
    assert "completed_from_history" not in clear.receipt.searched


async def test_the_history_that_a_caller_gives_stands_before_the_tasks_own(agent: Agent) -> None:
    await agent.stored_id("File the costs of the studio in Porto.", task_id="tax", speaker="Ada")
    given = [{"role": "user", "content": "Zanzibar"}]
    harbour = await agent.stored_id("The ferry to Zanzibar takes two hours.")
    result = await context(agent, "And how far is it?", task_id="tax", history=given, explain=True)
    assert result.memories is not None
    assert result.memories[0].memory_id == harbour


async def test_in_a_task_the_room_is_filled_and_without_one_little_fit_gets_little(services: Services) -> None:
    cut_offs = CutOffs(min_fit=0.0, least_share=0.9, full_fit=1.0)
    async with open_runtime(settings_for(services)) as runtime:
        parts = replace(runtime.parts, policy=replace(runtime.parts.policy, context_cut_offs=cut_offs))
        agent = Agent(runtime)
        agent.memory = MemoryManager(parts, Caller(agent.agent_id))
        for each in NOISE:
            await agent.stored_id(each)
        outside = await context(agent, "Which line goes to the harbour?")
        inside = await context(agent, "Which line goes to the harbour?", task_id="way")
    assert outside.receipt.searched["room_share"] < 1
    assert len(outside.memory_ids) < len(inside.memory_ids) == len(NOISE)
    assert "room_share" not in inside.receipt.searched


async def test_a_fact_read_from_a_memory_stands_back_beside_it(agent: Agent) -> None:
    said = "I moved from Bristol to Ghent in 2021, and my sister Maren helped me."
    parent = await agent.stored_id(said, speaker="Ada")
    told = {"memory_type": "semantic", "parent_memory_id": parent}
    fact = await agent.stored_id("The user moved to Ghent in 2021.", tags=["fact"], **told)
    note = await agent.stored_id("Whoever moved to Ghent must register.", **told)
    result = await context(agent, "Who moved to Ghent in 2021?")
    assert set(result.memory_ids) == {parent, note}
    assert [(each.memory_id, each.reason) for each in result.left_out] == [(fact, "told_by_parent")]
