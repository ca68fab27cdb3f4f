"""Long memories are searched in all of their text: by vectors of their passages, made in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from agentcore.config import Settings
from agentcore.database import Row
from agentcore.memory.language.passages import passages
from agentcore.memory.models import Interaction
from agentcore.memory.params.archive import EraseParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import DeleteParams, GetContextParams, PruneParams, RetrieveParams
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.memory import Agent

TOPICS = ("the roof of the barn", "a new fence", "the well pump", "hay for the winter", "the old tractor",
          "wild garlic in the wood", "the beehives", "a leaking gutter", "apple varieties", "the gravel road")
# It shares no word with QUERY: only its vector finds it.
FACT = "Our vet for the goats is called Dr. Amelie Sturm, she comes on Thursdays."
QUERY = "Which animal doctor looks after the herd?"


def long_text(*facts: str, before: int = 40) -> str:
    """Says that much about other things before the facts, and a little behind them."""
    told = [
        f"Note {number}: we talked about {TOPICS[number % len(TOPICS)]} and agreed to look at it again next month."
        for number in range(before)
    ]
    return "\n".join([*told, *facts, "That was all for today."])


@pytest.fixture
async def local(local_settings: Settings) -> AsyncIterator[Runtime]:
    async with open_runtime(local_settings) as running:
        yield running


@pytest.fixture
async def agent(local: Runtime) -> Agent:
    agent = Agent(local)
    for number in range(5):
        await agent.stored_id(f"On day {number} the weather was mild and nothing much happened on the farm.")
    return agent


async def work(agent: Agent) -> None:
    await agent.runtime.jobs.run_waiting()


async def rows(agent: Agent) -> Sequence[Row]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT * FROM memory_passages WHERE agent_id = %s ORDER BY memory_id, passage", (agent.agent_id,))
        return await cursor.fetchall()


async def pending(agent: Agent) -> set[UUID]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT memory_id FROM llm_queue WHERE agent_id = %s AND work = 'passages'", (agent.agent_id,))
        return {row["memory_id"] for row in await cursor.fetchall()}


async def best(agent: Agent, query: str = QUERY, **values: Any) -> tuple[UUID, float]:
    memories = (await agent.memory.retrieve(RetrieveParams(query=query, min_fit=0, **values))).memories
    first = max(memories, key=lambda each: each.similarity or 0.0)
    return first.memory_id, first.similarity or 0.0


async def test_a_long_text_is_found_by_its_end(agent: Agent) -> None:
    content = long_text(FACT)
    memory_id = await agent.stored_id(content)
    found, before = await best(agent)
    assert await pending(agent) == {memory_id}
    await work(agent)
    found, after = await best(agent)
    assert found == memory_id
    assert after > before + 0.1
    made = await rows(agent)
    cut = passages(content)
    assert [(row["passage"], row["start"], row["end"]) for row in made] == [
        (number, each.start, each.end) for number, each in enumerate(cut) if number]
    assert len(made) > 1
    assert await pending(agent) == set()
