"""Working memory and context: the task comes first, within the budget, with and without Redis."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from redis.asyncio import Redis

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import (
    CompleteTaskParams,
    DeleteParams,
    GetContextParams,
    GetContextResult,
    PruneParams,
    StoreBatchParams,
    StoreParams,
)
from agentcore.memory.working import MAX_ENTRIES, WorkingMemory
from tests.fixtures.memory import Agent


async def context(agent: Agent, query: str = "what are we doing", **values: object) -> GetContextResult:
    return await agent.memory.get_context(GetContextParams.model_validate({"query": query, **values}))


def redis_of(agent: Agent) -> Redis:
    assert agent.runtime.redis is not None
    return agent.runtime.redis


def key_of(agent: Agent, task_id: str) -> str:
    return f"memory:working:{agent.agent_id}:{task_id}"


def without_redis(agent: Agent, budget_tokens: int = 4_000) -> MemoryManager:
    """Returns the same memory without Redis, reading rows only."""
    gone = WorkingMemory(
        Redis.from_url("unix:///nonexistent/redis.sock"), ttl_seconds=3_600, budget_tokens=budget_tokens
    )
    return MemoryManager(replace(agent.runtime.parts, working=gone), Caller(agent.agent_id))


def task_section(result: GetContextResult) -> str:
    """Returns the section "Current Task Context", or an empty text."""
    _, _, rest = result.context.partition("## Current Task Context")
    return rest.partition("\n## ")[0]


@pytest.mark.shows("FR-3.1")
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
@pytest.mark.shows("issue2-11-context")
async def test_a_context_stays_inside_any_budget(agent: Agent, max_tokens: int) -> None:
    for number in range(30):
        await agent.store(f"Step {number}: measured {number * 13} units near the harbour wall.", task_id="t")
    result = await context(agent, "measured units", task_id="t", max_tokens=max_tokens)
    assert result.token_count <= max_tokens
    assert result.token_count == agent.runtime.parts.count_tokens(result.context)


@pytest.mark.shows("NFR-5.2")
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


@pytest.mark.shows("issue2-10-working")
async def test_without_redis_the_rows_answer_and_the_receipt_says_so(agent: Agent) -> None:
    await agent.stored_id("Drafted the first chapter.", task_id="book")
    result = await without_redis(agent).get_context(GetContextParams(query="chapter", task_id="book"))
    assert "## Current Task Context" in result.context
    assert any("Redis does not answer" in each for each in result.receipt.degraded)


@pytest.mark.shows("issue2-10-working")
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


@pytest.mark.parametrize(
    "malformed",
    [b"x", b"3|{", b"3|[]", b"3|\xff", b'3|{"content": "Marmot"}', b'3|{"memory_id": 5, "content": "Marmot"}'],
)
async def test_a_copy_with_a_malformed_entry_is_logged_and_made_anew(
    agent: Agent, malformed: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await agent.stored_id("Drafted the first chapter.", task_id="book")
    await context(agent, task_id="book")
    await redis_of(agent).lpush(key_of(agent, "book"), malformed)
    assert "first chapter" in task_section(await context(agent, task_id="book"))
    [line] = [each for each in caplog.records if "malformed" in each.getMessage()]
    assert key_of(agent, "book") in line.getMessage()
    assert "Marmot" not in caplog.text
    assert malformed not in await redis_of(agent).lrange(key_of(agent, "book"), 0, -1)


@pytest.mark.shows("issue2-10-working")
async def test_working_memory_is_bounded_by_its_token_budget(agent: Agent) -> None:
    small = WorkingMemory(redis_of(agent), ttl_seconds=3_600, budget_tokens=60)
    memory = MemoryManager(replace(agent.runtime.parts, working=small), Caller(agent.agent_id))
    for number in range(20):
        await agent.store(f"Step {number} took place in the workshop at noon.", task_id="w")
    first = await memory.get_context(GetContextParams(query="workshop", task_id="w"))
    await agent.store("The final step was the paint.", task_id="w")
    assert first.receipt.candidates["working"] < 8
    assert await redis_of(agent).llen(key_of(agent, "w")) < 20


async def test_a_memory_that_redis_missed_is_in_the_next_context(agent: Agent) -> None:
    await agent.stored_id("Drafted the first chapter.", task_id="book")
    await context(agent, task_id="book")
    await without_redis(agent).store(StoreParams(content="Drafted the second chapter.", task_id="book"))
    assert "second chapter" in task_section(await context(agent, task_id="book"))
    assert await redis_of(agent).llen(key_of(agent, "book")) == 2


async def test_a_copy_made_before_the_newest_memory_was_there_is_not_believed(agent: Agent) -> None:
    await agent.stored_id("Drafted the first chapter.", task_id="book")
    await agent.stored_id("Drafted the second chapter.", task_id="book")
    await context(agent, task_id="book")
    await redis_of(agent).lpop(key_of(agent, "book"))
    assert "second chapter" in task_section(await context(agent, task_id="book"))


async def test_the_budget_keeps_the_newest_by_time_in_whatever_order_they_came(agent: Agent) -> None:
    small = WorkingMemory(redis_of(agent), ttl_seconds=3_600, budget_tokens=60)
    memory = MemoryManager(replace(agent.runtime.parts, working=small), Caller(agent.agent_id))
    params = GetContextParams(query="workshop", task_id="w")
    for day in (8, 9, 7, 3, 5, 1, 2, 6, 4):
        await memory.store(
            StoreParams.model_validate(
                {
                    "content": f"Step {day} took place in the workshop at noon.",
                    "task_id": "w",
                    "timestamp": f"2026-01-0{day}T12:00:00Z",
                }
            )
        )
        from_the_copy = await memory.get_context(params)
        from_the_rows = await without_redis(agent, budget_tokens=60).get_context(params)
        assert task_section(from_the_copy) == task_section(from_the_rows)
    entries = await redis_of(agent).lrange(key_of(agent, "w"), 0, -1)
    held = b"".join(each for each in entries if isinstance(each, bytes))
    assert b"Step 9" in held
    assert b"Step 1 " not in held


async def test_a_copy_that_is_whole_is_used_and_not_made_again(agent: Agent) -> None:
    await agent.stored_id("Drafted the first chapter.", task_id="book")
    await context(agent, task_id="book")
    await agent.stored_id("Drafted the second chapter.", task_id="book")
    await redis_of(agent).expire(key_of(agent, "book"), 500)
    await context(agent, task_id="book")
    assert 400 < await redis_of(agent).ttl(key_of(agent, "book")) <= 500


async def test_a_copy_holds_as_many_memories_as_are_read_from_the_rows(agent: Agent) -> None:
    items = [StoreParams(content=f"Step {n} done.", task_id="w") for n in range(MAX_ENTRIES)]
    await agent.memory.store_batch(StoreBatchParams(items=items))
    await context(agent, task_id="w")
    await agent.stored_id("One step more.", task_id="w")
    assert await redis_of(agent).llen(key_of(agent, "w")) == MAX_ENTRIES
    result = await context(agent, task_id="w")
    assert result.receipt.candidates["working"] == MAX_ENTRIES
    assert "One step more" in task_section(result)


@pytest.mark.parametrize(
    "filters",
    [
        {"namespace": "beta"},
        {"user_id": "u2"},
        {"memory_types": ["semantic"]},
        {"session_id": "s2"},
        {"tags": ["food", "other"]},
        {"min_importance": 0.8},
        {"after": "2026-01-02T00:00:00Z"},
        {"namespace": "beta", "user_id": "u2", "memory_types": ["semantic"]},
    ],
    ids=lambda filters: "+".join(filters),
)
async def test_filters_hold_for_working_memory_too(agent: Agent, filters: dict[str, object]) -> None:
    await agent.stored_id(
        "Pears for the first customer.",
        task_id="fruit",
        namespace="alpha",
        user_id="u1",
        session_id="s1",
        tags=["shop"],
        timestamp="2026-01-01T10:00:00Z",
    )
    await agent.stored_id(
        "Pears ripen in autumn.",
        task_id="fruit",
        namespace="beta",
        user_id="u2",
        session_id="s2",
        tags=["food"],
        memory_type="semantic",
        importance=0.9,
        timestamp="2026-01-03T10:00:00Z",
    )
    for _ in ("from the rows", "from the copy"):
        narrowed = await context(agent, "pears", task_id="fruit", **filters)
        assert "ripen" in task_section(narrowed)
        assert "first customer" not in narrowed.context
        assert narrowed.receipt.candidates["working"] == 1
    assert "first customer" in task_section(await context(agent, "pears", task_id="fruit"))


async def test_a_task_as_of_a_time_holds_nothing_later(agent: Agent) -> None:
    await agent.stored_id("Poured the foundation.", task_id="house", timestamp="2026-01-01T10:00:00Z")
    await agent.stored_id("Raised the walls.", task_id="house", timestamp="2026-01-03T10:00:00Z")
    await context(agent, task_id="house")
    then = await context(agent, task_id="house", as_of="2026-01-02T00:00:00Z")
    assert "foundation" in task_section(then)
    assert "walls" not in then.context
    long_before = await context(agent, task_id="house", as_of="2020-01-01T00:00:00Z")
    assert long_before.context == ""


@pytest.mark.shows("NFR-2.3")
async def test_a_replica_that_lags_takes_nothing_from_a_task_nor_stops_a_change(lagging: Agent) -> None:
    memory_id = await lagging.stored_id("Drafted the first chapter.", task_id="book")
    for _ in ("from the rows", "from the copy"):
        assert "first chapter" in task_section(await context(lagging, task_id="book"))
    assert await redis_of(lagging).llen(key_of(lagging, "book")) == 1
    change = {"memory_id": memory_id, "updates": {"content": "Drafted the preface."}}
    assert (await lagging.memory.update(UpdateParams.model_validate(change))).version == 2
    going = await lagging.memory.prune(
        PruneParams.model_validate({"memory_layer": "episodic", "target": 1, "dry_run": True})
    )
    assert going.memory_ids == [memory_id]


async def test_access_is_counted_for_what_the_context_gives_of_the_task_too(agent: Agent) -> None:
    task = await agent.stored_id("Booked the hotel in Porto for the offsite.", task_id="trip")
    others = [
        await agent.stored_id(f"Offsite number {number} was held in Ghent, in house {number}.") for number in range(20)
    ]
    result = await context(agent, "offsite", task_id="trip", max_tokens=120)
    assert task in result.memory_ids
    assert 1 < len(result.memory_ids) < 8
    await agent.runtime.parts.accesses.flush(agent.runtime.parts.storage)
    counts = {each: (await agent.get(each)).access_count for each in [task, *others]}
    assert counts == {each: int(each in result.memory_ids) for each in [task, *others]}


async def test_long_memories_are_not_counted_over_and_over(agent: Agent) -> None:
    for number in range(3):
        await agent.stored_id(f"Log {number} of the turbine. " * 3_000, task_id="t" if number else None)
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return agent.runtime.parts.count_tokens(text)

    counting = MemoryManager(replace(agent.runtime.parts, count_tokens=count), Caller(agent.agent_id))
    result = await counting.get_context(GetContextParams(query="turbine", task_id="t"))
    assert result.token_count == agent.runtime.parts.count_tokens(result.context)
    assert sum(counted) < 20_000


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
