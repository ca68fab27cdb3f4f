"""Consolidation concurrent with supersession of its summary and of an episode: no call is aborted."""

from __future__ import annotations

from uuid import UUID

from agentcore.memory.params.agent_settings import ConsolidateParams
from tests.fixtures.gate import gate
from tests.fixtures.memory import Agent
from tests.integration.test_consolidating import BOILER, FOURTH, told

# Blocks a consolidation after it locked its episodes, when it writes the new summary's history.
HISTORIES = "LOCK TABLE memory_history IN SHARE MODE"


async def _held_as_by_a_store(agent: Agent, *memory_ids: UUID) -> set[UUID]:
    """Takes the locks that a store takes on memories it may supersede."""
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        return await transaction.existing(memory_ids, memory_ids)


async def test_a_summary_is_replaced_before_a_store_that_may_supersede_it_and_a_younger_episode(agent: Agent) -> None:
    await told(agent, *BOILER)
    [first] = (await agent.memory.consolidate(ConsolidateParams())).clusters
    [younger] = await told(agent, FOURTH)
    assert first.memory_id is not None and first.memory_id < younger
    async with gate(agent) as opened:
        await opened.hold(HISTORIES)
        done, held = await opened.through(
            agent.memory.consolidate(ConsolidateParams()),
            opened.after_the_first(_held_as_by_a_store(agent, first.memory_id, younger)),
        )
    assert held == {first.memory_id, younger}
    assert [each.replaces for each in getattr(done, "clusters", [])] == [first.memory_id], done
