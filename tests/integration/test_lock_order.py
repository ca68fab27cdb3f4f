"""Concurrent calls on the same memories: the second one blocks, and neither is aborted.

A third session locks what both need until both are blocked. Locks taken in different orders would
deadlock every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID

import pytest

from agentcore.errors import NotFound
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import EraseParams, RestoreParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import DeleteParams, GetParams, PruneParams
from tests.fixtures.gate import gate
from tests.fixtures.memory import Agent

TIES = "LOCK TABLE memory_links IN SHARE MODE"


async def _stored(agent: Agent, count: int) -> list[UUID]:
    said = [(f"Note {number} of the diary.", f"2026-01-0{number + 1}T00:00:00Z") for number in range(count)]
    return [await agent.stored_id(text, memory_type="semantic", timestamp=moment) for text, moment in said]


def _tie(one: UUID, other: UUID) -> UpdateParams:
    links = [{"target_id": str(other), "relation": "beside"}]
    return UpdateParams.model_validate({"memory_id": one, "updates": {"links": links}})


@pytest.mark.shows("issue4-shows-processes")
async def test_two_updates_that_tie_each_others_memory_are_both_made(agent: Agent) -> None:
    one, other = await _stored(agent, 2)
    async with gate(agent) as opened:
        await opened.hold(TIES)
        done = await opened.through(agent.memory.update(_tie(one, other)), agent.memory.update(_tie(other, one)))
    assert [getattr(each, "version", each) for each in done] == [2, 2]


@pytest.mark.parametrize("changed", [0, 1])
@pytest.mark.shows("issue4-shows-processes")
async def test_an_update_is_made_before_the_deletion_of_both_ends_of_its_tie(agent: Agent, changed: int) -> None:
    ids = await _stored(agent, 2)
    async with gate(agent) as opened:
        await opened.hold(TIES)
        updated, deleted = await opened.through(
            agent.memory.update(_tie(ids[changed], ids[1 - changed])),
            opened.after_the_first(agent.memory.delete(DeleteParams(memory_ids=ids))),
        )
    assert getattr(updated, "version", updated) == 2
    assert getattr(deleted, "deleted_count", deleted) == 2


@pytest.mark.shows("issue4-shows-processes")
async def test_of_a_restore_and_an_erasure_of_the_same_archived_memories_the_second_waits(agent: Agent) -> None:
    ids = await _stored(agent, 3)
    # A prune archives the lowest id first; a restore starts with the last archived one.
    prune = PruneParams(memory_layer=MemoryType.SEMANTIC, strategy="oldest_first", target=1)
    assert [(await agent.memory.prune(prune)).memory_ids for _ in ids] == [[each] for each in ids]
    async with gate(agent) as opened:
        await opened.hold_row("archived_memories", agent, ids[1])
        restored, erased = await opened.through(
            agent.memory.restore(RestoreParams(memory_ids=ids)), agent.memory.erase(EraseParams(all=True, confirm=True))
        )
    assert isinstance(restored, NotFound) or sorted(restored.memory_ids) == ids
    assert getattr(erased, "verified", erased) is True
    with pytest.raises(NotFound):
        await agent.memory.get(GetParams(memory_id=ids[0]))


async def test_flushes_side_by_side_count_each_access_once(new_agent: Callable[..., Agent]) -> None:
    agents = [new_agent(), new_agent()]
    accesses, storage = agents[0].runtime.parts.accesses, agents[0].runtime.parts.storage
    await accesses.flush(storage)
    noted = {agent: await agent.stored_id("The canoe is green.") for agent in agents}
    for agent, memory_id in noted.items():
        accesses.note(agent.agent_id, [memory_id], agent.runtime.parts.clock())
    flushed = await asyncio.gather(accesses.flush(storage), accesses.flush(storage))
    assert sum(flushed) == len(agents)
    assert [(await agent.get(each)).access_count for agent, each in noted.items()] == [1, 1]


async def test_what_holds_again_and_the_deletion_of_what_had_its_place_are_both_made(agent: Agent) -> None:
    old = await agent.stored_id("The port of the gateway is 8080.")
    new = await agent.store("The port of the gateway is 9090.")
    assert new.superseded == [old]
    assert new.memory_id is not None
    again = UpdateParams.model_validate({"memory_id": old, "updates": {"current": True}})
    async with gate(agent) as opened:
        await opened.hold(TIES)
        updated, deleted = await opened.through(
            agent.memory.update(again),
            opened.after_the_first(agent.memory.delete(DeleteParams(memory_ids=[new.memory_id]))),
        )
    assert getattr(updated, "version", updated) == 3
    assert getattr(deleted, "deleted_count", deleted) == 1
    assert (await agent.get(old)).superseded_by is None
