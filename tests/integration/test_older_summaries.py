"""Summaries of sessions as an older version left them, before sessions were told in stretches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from agentcore.memory.models import Link, MemoryType
from agentcore.memory.params.memories import DeleteParams, StoreParams
from tests.fixtures.chat_model import Talking, talking
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services
from tests.fixtures.stretches import add, end, lines, messages, summaries


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services) as running:
        yield running


async def as_an_older_version_kept_it(agent: Agent, *, named: bool) -> UUID:
    """A session's summary: of all there is, tied to the messages alone whose sentences it holds.

    `named`: its provenance says what it is, which the first version's did not.
    """
    said = await messages(agent)
    params = StoreParams(
        content=said[0].content, memory_type=MemoryType.SEMANTIC, session_id="s", tags=["session_summary"],
        timestamp=said[-1].timestamp, metadata={"summarised_count": len(said)}, force=True, supersede=False,
        links=[Link(target_id=said[0].memory_id, relation="summarises")])
    summary_id = (await agent.memory.store(params)).memory_id
    assert summary_id is not None
    if named:
        form = Jsonb({"form": "session", "max_tokens": 200})
        statement = "UPDATE memories SET provenance = provenance || %s WHERE memory_id = %s"
        async with agent.runtime.database.owner_transaction() as connection:
            await connection.execute(statement, [form, summary_id])
    return summary_id


@pytest.mark.parametrize("named", [True, False])
async def test_what_an_older_version_summarised_is_not_told_again(talk: Talking, named: bool) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 4))
    older = await as_an_older_version_kept_it(agent, named=named)
    ended = await end(agent)
    assert (ended.summary_id, [each.memory_id for each in await summaries(agent)]) == (older, [older])
    await add(agent, lines(4, 6))
    newer = (await end(agent)).summary_id
    [first, second] = await summaries(agent)
    assert (first.memory_id, second.memory_id) == (older, newer)
    assert second.metadata["summarised_count"] == 2
    await agent.memory.delete(DeleteParams(memory_ids=[older]))
    await end(agent)
    assert [each.metadata["summarised_count"] for each in await summaries(agent)] == [4, 2]
