"""Contexts of long tasks: the newest notes in full, important ones kept, all within the task section."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import GetContextParams, GetContextResult
from agentcore.memory.working import WorkingMemory
from tests.fixtures.memory import Agent

VAGUE = "And what now?"


async def context(agent: Agent, query: str, **values: object) -> GetContextResult:
    return await agent.memory.get_context(GetContextParams.model_validate({"query": query, **values}))


def section(result: GetContextResult, title: str) -> str:
    _, _, rest = result.context.partition(f"## {title}")
    return rest.partition("\n## ")[0]


async def steps(agent: Agent, count: int, **values: object) -> list[UUID]:
    """Stores task notes of about 40 tokens, one minute apart."""
    return [
        await agent.stored_id(
            f"Step {number}: went to house {number} and looked at the pump. It ran hot, so the valve was "
            f"opened, the filter was rinsed, and the pressure was read again at the end of the visit.",
            task_id="pumps",
            timestamp=f"2026-05-01T09:{number:02}:00Z",
            **values,
        )
        for number in range(count)
    ]


@pytest.mark.shows("FR-3.3", "issue5-2-window")
async def test_a_vague_query_gives_the_newest_notes_in_full_and_older_ones_shortened(agent: Agent) -> None:
    ids = await steps(agent, 12)
    result = await context(agent, VAGUE, task_id="pumps", max_tokens=300)
    in_full = [each for each in result.memory_ids if each not in result.shortened]
    assert in_full == ids[-len(in_full) :]
    assert len(in_full) >= 3
    assert result.shortened
    assert all(ids.index(each) < ids.index(in_full[0]) for each in result.shortened)
    assert result.token_count > 250


@pytest.mark.shows("issue5-2-window")
async def test_a_pinned_note_stands_in_full_among_many_newer_ones(agent: Agent) -> None:
    ids = await steps(agent, 30)
    before = await context(agent, VAGUE, task_id="pumps", max_tokens=300)
    assert ids[0] not in before.memory_ids
    await agent.memory.update(UpdateParams.model_validate({"memory_id": ids[0], "updates": {"pinned": True}}))
    for _ in ("from the rows", "from the copy"):
        result = await context(agent, VAGUE, task_id="pumps", max_tokens=300)
        assert ids[0] in result.memory_ids
        assert ids[0] not in result.shortened
        assert ids[-1] in result.memory_ids


async def test_an_important_note_stands_before_a_trivial_newer_one(agent: Agent) -> None:
    [important] = await steps(agent, 1, importance=0.95)
    trivial = [
        await agent.stored_id(
            f"Chatter {number}: the coffee in house {number} was neither good nor bad, and nobody minded, "
            "so we went on talking about the weather until the kettle was empty again.",
            task_id="pumps",
            importance=0.1,
        )
        for number in range(20)
    ]
    result = await context(agent, VAGUE, task_id="pumps", max_tokens=250)
    assert important in set(result.memory_ids) - set(result.shortened)
    assert trivial[-1] in result.memory_ids
    assert trivial[0] not in result.memory_ids


async def test_what_a_clear_query_asks_for_stands_in_full_however_old(agent: Agent) -> None:
    answer = await agent.stored_id(
        "Tolliver quoted 410 euros for the brass gasket.", task_id="pumps", timestamp="2026-04-30T09:00:00Z"
    )
    await steps(agent, 20)
    result = await context(agent, "What did Tolliver quote for the brass gasket?", task_id="pumps", max_tokens=250)
    assert answer in set(result.memory_ids) - set(result.shortened)


@pytest.mark.shows("FR-3.1")
async def test_all_that_is_of_the_task_stands_in_its_section(agent: Agent) -> None:
    small = WorkingMemory(agent.runtime.redis, ttl_seconds=3_600, budget_tokens=200)
    agent.memory = MemoryManager(replace(agent.runtime.parts, working=small), Caller(agent.agent_id))
    await steps(agent, 20, session_id="visits")
    await agent.stored_id("Last year the pump of house 7 was looked at, too.", session_id="old")
    for _ in ("from the rows", "from the copy"):
        result = await context(agent, "pump of house", task_id="pumps", max_tokens=4_000)
        assert result.receipt.candidates["working"] < 8
        told = section(result, "Current Task Context")
        assert [number for number in range(20) if f"Step {number}:" in told] == list(range(20))
        places = [told.index(f"Step {number}:") for number in range(20)]
        assert places == sorted(places)
        assert "Step" not in section(result, "Relevant Past Interactions")
        assert "Last year" in section(result, "Relevant Past Interactions")
