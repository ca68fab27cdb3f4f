"""The event time of a memory is stored next to it and follows its content."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest

from agentcore.memory.archival import object_key
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import PruneParams
from tests.fixtures.memory import Agent

SAID = "2023-06-14T15:30:00Z"


def day(month: int, number: int) -> datetime:
    return datetime(2023, month, number, tzinfo=UTC)


async def spoken_of(agent: Agent, content: str) -> tuple[datetime | None, datetime | None]:
    record = await agent.get(await agent.stored_id(content, timestamp=SAID))
    return record.event_from, record.event_to


@pytest.mark.shows("issue3-1-temporal")
async def test_a_memory_keeps_the_time_it_speaks_of(agent: Agent) -> None:
    assert await spoken_of(agent, "Yesterday we signed the lease.") == (day(6, 13), day(6, 14))
    assert await spoken_of(agent, "The wedding is on 1 July.") == (day(7, 1), day(7, 2))
    assert await spoken_of(agent, "I like my tea green.") == (None, None)


async def test_new_content_brings_its_own_time_relative_to_when_it_was_said(agent: Agent) -> None:
    memory_id = await agent.stored_id("Yesterday we signed the lease.", timestamp=SAID)
    for content, expected in (
        ("Last month we signed the lease.", (day(5, 1), day(6, 1))),
        ("We signed the lease.", (None, None)),
    ):
        await agent.memory.update(
            UpdateParams.model_validate({"memory_id": memory_id, "updates": {"content": content}})
        )
        record = await agent.get(memory_id)
        assert (record.event_from, record.event_to) == expected


async def test_a_change_of_something_else_leaves_the_time(agent: Agent) -> None:
    memory_id = await agent.stored_id("Yesterday we signed the lease.", timestamp=SAID)
    await agent.memory.update(UpdateParams.model_validate({"memory_id": memory_id, "updates": {"tags": ["home"]}}))
    record = await agent.get(memory_id)
    assert (record.event_from, record.event_to) == (day(6, 13), day(6, 14))


async def test_the_archives_copy_tells_the_time_too(agent: Agent) -> None:
    await agent.stored_id("Yesterday we signed the lease.", timestamp=SAID)
    pruned = await agent.memory.prune(PruneParams.model_validate({"memory_layer": "episodic", "target": 1.0}))
    kept = agent.runtime.home.archive / object_key(agent.agent_id, pruned.memory_ids[0])
    assert json.loads(gzip.decompress(kept.read_bytes()))["event_from"] == "2023-06-13T00:00:00+00:00"
