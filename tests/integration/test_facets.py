"""Counts of values: what they include, and the limit of memories that are read."""

from __future__ import annotations

from agentcore.memory.params.memories import FacetsParams
from tests.fixtures.memory import Agent, fill


async def test_only_the_newest_memories_are_counted(agent: Agent) -> None:
    await fill(agent, 5, user_id="ada")
    await agent.store("Ben was here later", user_id="ben")
    storage = agent.runtime.parts.storage
    rows = await storage.count_values(agent.agent_id, {}, ["user_id"], 3, 50)
    assert [(row["value"], row["count"], row["memories"]) for row in rows] == [("ada", 2, 3), ("ben", 1, 3)]


async def test_an_agent_without_memories_has_no_values(agent: Agent) -> None:
    counted = await agent.memory.facets(FacetsParams(fields=["user_id", "tags"]))
    assert counted.facets == {"user_id": [], "tags": []}
    assert (counted.memory_count, counted.complete) == (0, True)
