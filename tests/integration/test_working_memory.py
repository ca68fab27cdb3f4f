"""Working memory: recording which Redis contains copies does not delay calls."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.memories import GetContextParams
from agentcore.memory.working import WorkingMemory
from tests.fixtures.memory import Agent


async def _recall(agent: Agent) -> None:
    await agent.memory.get_context(GetContextParams(query="notes", task_id="trip"))


async def test_calls_do_not_queue_for_the_owners_connections_to_record_a_redis(agent: Agent) -> None:
    runtime = agent.runtime
    asked: list[UUID] = []

    async def record(redis_id: UUID, for_seconds: int) -> None:
        asked.append(redis_id)
        await runtime.parts.storage.record_redis(redis_id, for_seconds)

    working = WorkingMemory(runtime.redis, ttl_seconds=60, budget_tokens=100, record=record)
    there = Agent(runtime, agent.agent_id)
    there.memory = MemoryManager(replace(runtime.parts, working=working), Caller(agent.agent_id))
    await there.stored_id("Ada keeps bees on the roof.", task_id="trip")
    working._recorded = None
    asked.clear()
    async with runtime.database.owner_transaction(), runtime.database.owner_transaction():  # all of the pool
        for _ in range(3):
            await _recall(there)
    assert (len(asked), await working.held(agent.agent_id)) == (1, {})
    working._recorded = None  # as after RETRY_SECONDS
    await _recall(there)
    assert await working.held(agent.agent_id)
