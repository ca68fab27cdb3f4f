"""Erasures that are torn at a fault point: whatever is left, the same call must bring to nothing."""

from __future__ import annotations

import time
from uuid import UUID

from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.erase_params import EraseParams
from agentcore.memory.inventory import ARCHIVE
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params import ListParams, PruneParams, StoreBatchParams, StoreParams
from benchmarks.crash.records import records
from benchmarks.crash.torn import Remains, Tearing

USERS = ("ada", "ben")


class Erasing(Tearing):
    """Trials of erasing a user of an agent, then all of it."""

    async def trial(self, point: str) -> Remains:
        """Fill, kill at the point, do it again, judge; of a user first, then of the agent."""
        agent_id = f"torn-{time.time_ns()}"
        memory = MemoryManager(self._place.parts, Caller(agent_id))
        await self._fill_for(memory)
        kept = await self._of(memory, "ben")
        survived = await self._kill(point, agent_id, _erase_ada, 1)
        again = await memory.erase(EraseParams(user_id="ada", confirm=True))
        lost = len(kept - await self._of(memory, "ben"))
        unfinished = int(not again.verified) + len(await self._of(memory, "ada"))
        survived += await self._kill(point, agent_id, _erase_all, 1)
        again = await memory.erase(EraseParams(all=True, confirm=True))
        there = await records(self._place.database_url, agent_id)
        copies = await self._place.archive.keys(ARCHIVE.folder(agent_id))
        unfinished += int(not again.verified) + len(there) + len(copies)
        return Remains(lost=lost, unfinished=unfinished, survived=survived)

    async def _fill_for(self, memory: MemoryApi) -> None:
        """Memories of two users with what was made of them, a part of each in the archive."""
        for layer in (MemoryType.SEMANTIC, MemoryType.EPISODIC):
            for user_id in USERS:
                items = [StoreParams(content=f"{layer.value} note {number} of {user_id}.", user_id=user_id,
                                     memory_type=layer, task_id="task") for number in range(3)]
                results = (await memory.store_batch(StoreBatchParams(items=items))).results
                child = StoreParams(content=f"What {user_id}'s {layer.value} notes come to.",
                                    parent_memory_id=results[0].memory_id, memory_type=layer)
                await memory.store(child)
            if layer is MemoryType.SEMANTIC:
                await memory.prune(PruneParams(memory_layer=layer, strategy="oldest_first", target=1.0))

    async def _of(self, memory: MemoryApi, user_id: str) -> set[UUID]:
        page = await memory.list(ListParams(user_id=user_id, limit=100))
        return {record.memory_id for record in page.memories}


async def _erase_ada(memory: MemoryApi) -> None:
    await memory.erase(EraseParams(user_id="ada", confirm=True))


async def _erase_all(memory: MemoryApi) -> None:
    await memory.erase(EraseParams(all=True, confirm=True))
