"""Working memory and context: the task first, inside the budget, with Redis or without."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from redis.asyncio import Redis

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params import (
    CompleteTaskParams,
    ContextParams,
    ContextResult,
    DeleteParams,
    UpdateParams,
)
from agentcore.memory.working import WorkingMemory
from tests.fixtures.memory import Agent


async def context(agent: Agent, query: str = "what are we doing", **values: object) -> ContextResult:
    return await agent.memory.get_context(ContextParams.model_validate({"query": query, **values}))


def redis_of(agent: Agent) -> Redis:
    assert agent.runtime.redis is not None
    return agent.runtime.redis


def key_of(agent: Agent, task_id: str) -> str:
    return f"memory:working:{agent.agent_id}:{task_id}"


async def test_the_three_sections_hold_what_belongs_there_with_an_exact_count(agent: Agent) -> None:
    await agent.stored_id("Booked the hotel in Porto for the offsite.", task_id="trip")
    await agent.stored_id("Last year the offsite was in Ghent.", session_id="old")
    await agent.stored_id("The offsite budget is 12,000 euros.", memory_type="semantic")
    result = await context(agent, "offsite", task_id="trip")
    current, past = result.context.index("## Current Task Context"), result.context.index("## Relevant Past")
    knowledge = result.context.index("## Relevant Knowledge")
    assert current < result.context.index("Booked the hotel") < past
    assert past < result.context.index("Ghent") < knowledge < result.context.index("12,000")
    assert result.token_count == agent.runtime.parts.count_tokens(result.context)
    assert len(result.memory_ids) == 3
    assert result.context.count("Booked the hotel") == 1
    assert result.receipt.candidates["working"] == 1


@pytest.mark.parametrize("max_tokens", [1, 20, 60, 150, 1_000])
async def test_a_context_stays_inside_any_budget(agent: Agent, max_tokens: int) -> None:
    for number in range(30):
        await agent.store(f"Step {number}: measured {number * 13} units near the harbour wall.", task_id="t")
    result = await context(agent, "measured units", task_id="t", max_tokens=max_tokens)
    assert result.token_count <= max_tokens
    assert result.token_count == agent.runtime.parts.count_tokens(result.context)


async def test_the_copy_in_redis_has_the_time_to_live_and_survives_losing_redis(agent: Agent) -> None:
    await agent.stored_id("Drafted the first chapter.", task_id="book")
    first = await context(agent, task_id="book")
    ttl = await redis_of(agent).ttl(key_of(agent, "book"))
    assert 3_500 < ttl <= 3_600
    await agent.stored_id("Drafted the second chapter.", task_id="book")
    assert await redis_of(agent).llen(key_of(agent, "book")) == 2
    await redis_of(agent).delete(key_of(agent, "book"))
    again = await context(agent, task_id="book")
    assert "first chapter" in first.context
    assert "second chapter" in again.context


async def test_without_redis_the_rows_answer_and_the_receipt_says_so(agent: Agent) -> None:
    await agent.stored_id("Drafted the first chapter.", task_id="book")
    gone = WorkingMemory(
        Redis.from_url("unix:///nonexistent/redis.sock"), ttl_seconds=3_600, budget_tokens=4_000
    )
    degraded = MemoryManager(replace(agent.runtime.parts, working=gone), Caller(agent.agent_id))
    result = await degraded.get_context(ContextParams(query="chapter", task_id="book"))
    assert "## Current Task Context" in result.context
    assert any("Redis does not answer" in each for each in result.receipt.degraded)


async def test_a_completed_task_has_no_working_memory_and_keeps_its_memories(agent: Agent) -> None:
    await agent.stored_id("Called the supplier about the pump.", task_id="pump")
    await agent.stored_id("Scratch: ring back at four.", task_id="pump", memory_type="working")
    await context(agent, task_id="pump")
    done = await agent.memory.complete_task(CompleteTaskParams(task_id="pump"))
    assert done.cleared_count == 2
    assert await redis_of(agent).exists(key_of(agent, "pump")) == 0
    result = await context(agent, "supplier pump", task_id="pump")
    assert "## Current Task Context" not in result.context
    assert "Called the supplier" in result.context
    assert "Scratch" not in result.context
    await agent.stored_id("Reopened: the pump leaks again.", task_id="pump")
    reopened = await context(agent, "pump", task_id="pump")
    current = reopened.context.split("## Current Task Context")[1].split("##")[0]
    assert "leaks again" in current
    assert "supplier" not in current


async def test_a_stale_copy_is_found_out(agent: Agent) -> None:
    kept = await agent.stored_id("The client wants blue.", task_id="logo")
    gone = await agent.stored_id("The client wants red.", task_id="logo")
    await context(agent, task_id="logo")
    stale = await redis_of(agent).lrange(key_of(agent, "logo"), 0, -1)
    await agent.memory.delete(DeleteParams(memory_ids=[gone]))
    await agent.memory.update(
        UpdateParams.model_validate({"memory_id": kept, "updates": {"content": "The client wants green."}})
    )
    await redis_of(agent).rpush(key_of(agent, "logo"), *stale)
    result = await context(agent, "client", task_id="logo")
    assert "green" in result.context
    assert "red" not in result.context
    assert "blue" not in result.context


async def test_working_memory_is_bounded_by_its_token_budget(agent: Agent) -> None:
    small = WorkingMemory(redis_of(agent), ttl_seconds=3_600, budget_tokens=60)
    memory = MemoryManager(replace(agent.runtime.parts, working=small), Caller(agent.agent_id))
    for number in range(20):
        await agent.store(f"Step {number} took place in the workshop at noon.", task_id="w")
    first = await memory.get_context(ContextParams(query="workshop", task_id="w"))
    await agent.store("The final step was the paint.", task_id="w")
    assert first.receipt.candidates["working"] < 8
    assert await redis_of(agent).llen(key_of(agent, "w")) < 20


async def test_filters_narrow_the_search_and_not_the_task(agent: Agent) -> None:
    await agent.stored_id("Task note about pears.", task_id="fruit")
    await agent.stored_id("Pears ripen in autumn.", memory_type="semantic", tags=["food"])
    await agent.stored_id("Pears were sold out.", memory_type="semantic", tags=["shop"])
    result = await context(agent, "pears", task_id="fruit", tags=["food"])
    assert "Task note" in result.context
    assert "ripen" in result.context
    assert "sold out" not in result.context


async def test_explain_gives_the_score_terms_of_what_is_used(agent: Agent) -> None:
    memory_id = await agent.stored_id("The offsite budget is 12,000 euros.")
    plain, explained = await context(agent, "offsite"), await context(agent, "offsite", explain=True)
    assert plain.memories is None
    assert explained.memories is not None
    [found] = explained.memories
    assert found.memory_id == memory_id
    assert found.terms is not None
    assert found.terms["words"].contribution > 0


async def test_no_memory_gives_an_empty_context(agent: Agent) -> None:
    result = await context(agent, task_id="nothing")
    assert (result.context, result.token_count, result.memory_ids) == ("", 0, [])


async def test_ids_stand_in_the_order_of_the_context(agent: Agent) -> None:
    contents: dict[UUID, str] = {}
    for number in (3, 1, 2):
        content = f"Visited the museum, day {number}."
        contents[await agent.stored_id(content, timestamp=f"2026-01-0{number}T10:00:00Z")] = content
    result = await context(agent, "museum")
    places = [result.context.index(contents[each]) for each in result.memory_ids]
    assert places == sorted(places)
