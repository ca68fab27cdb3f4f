"""Erasures killed at a fault point: the repeated call must remove all data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.archived import EraseParams, RestoreParams
from agentcore.memory.params.memories import (
    CompleteTaskParams,
    GetContextParams,
    ListParams,
    PruneParams,
    StoreBatchParams,
    StoreParams,
)
from agentcore.memory.params.sessions import EndSessionParams
from benchmarks.crash.shares import Shares, kept_places, shares
from benchmarks.crash.torn import Remains, Tearing

USERS = ("ada", "ben")
# Fault points that the erasure of a user, or of an agent, does not pass.
OF_AN_AGENT = {"erase.loose", "erase.emptied", "erase.cleared"}
OF_A_USER = {"erase.named"}
OF_ADA = EraseParams(user_id="ada", confirm=True)
OF_ALL = EraseParams(all=True, confirm=True)


class Erasing(Tearing):
    """Trials that erase a user of an agent, then the agent, next to another agent with the same texts."""

    async def trial(self, point: str, *, which: int = 1) -> Remains:
        """Fills, kills at the point, repeats and judges, for a user first and then for the agent."""
        agent_id, neighbour_id = (f"torn-{time.time_ns()}-{end}" for end in ("own", "other"))
        memory = MemoryManager(self._place.parts, Caller(agent_id))
        neighbour = MemoryManager(self._place.parts, Caller(neighbour_id))
        of_ada = await self._fill_for(memory)
        await self._fill_for(neighbour)
        # Counts the accesses of the calls above now rather than later.
        await self._place.parts.accesses.flush(self._place.parts.storage)
        others, kept = await self._shares(neighbour_id), await self._of(memory, "ben")
        found = Remains()
        if point not in OF_AN_AGENT:
            survived = await self._kill(f"{point}:{which}", agent_id, _erase_ada)
            again = await memory.erase(OF_ADA)
            lost = len(kept - await self._of(memory, "ben"))
            left = await self._left_of(agent_id, of_ada)
            found += Remains(lost=lost, unfinished=int(not again.verified) + left, survived=survived)
        survived = 0
        if point not in OF_A_USER:
            survived = await self._kill(point, agent_id, _erase_all)
        again = await memory.erase(OF_ALL)
        remains = await shares(self._place.environment, self._place.archive, agent_id)
        left = sum(map(len, remains.values()))
        touched = await self._shares(neighbour_id) != others
        found += Remains(unfinished=int(not again.verified) + left, survived=survived, altered=int(touched))
        await neighbour.erase(OF_ALL)
        return found

    async def _shares(self, agent_id: str) -> Shares:
        return kept_places(await shares(self._place.environment, self._place.archive, agent_id))

    async def _left_of(self, agent_id: str, memory_ids: Sequence[UUID]) -> int:
        """Counts the places that still contain these memories, including file names."""
        found = await shares(self._place.environment, self._place.archive, agent_id)
        # Idempotency keys outlive a user, so that a repeated store does not restore erased data.
        places = [share for name, share in found.items() if name != "idempotency_keys"]
        return sum(any(str(each) in entry for entry in share) for each in memory_ids for share in places)

    async def _fill_for(self, memory: MemoryApi) -> list[UUID]:
        """Stores memories of two users and derived ones in every place; returns the ids of ada's."""
        of_ada: list[UUID | None] = []
        for layer in (MemoryType.SEMANTIC, MemoryType.EPISODIC, MemoryType.WORKING):
            for user_id in USERS:
                made = await self._notes(memory, layer, user_id)
                of_ada += made if user_id == "ada" else []
            if layer is MemoryType.SEMANTIC:
                prune = PruneParams(memory_layer=layer, strategy="oldest_first", target=1.0)
                pruned = await memory.prune(prune)
                # Its copy remains, without a tombstone.
                await memory.restore(RestoreParams(memory_ids=pruned.memory_ids[:1]))
        for user_id in USERS:
            ended = await memory.end_session(EndSessionParams(session_id=f"talk of {user_id}"))
            of_ada += [ended.summary_id] if user_id == "ada" else []
            await memory.get_context(GetContextParams(query="Which notes?", task_id=f"task of {user_id}"))
        await memory.complete_task(CompleteTaskParams(task_id="another task"))
        await memory.configure(ConfigureParams(consolidate=True))
        return [each for each in of_ada if each is not None]

    async def _notes(self, memory: MemoryApi, layer: MemoryType, user_id: str) -> list[UUID | None]:
        items = [
            StoreParams(
                content=f"{layer.value} note {number} of {user_id} in the {layer.value} diary.",
                user_id=user_id,
                memory_type=layer,
                task_id=f"task of {user_id}",
                session_id=f"talk of {user_id}",
                idempotency_key=f"{layer} {user_id} {number}",
            )
            for number in range(3)
        ]
        results = (await memory.store_batch(StoreBatchParams(items=items))).results
        child = StoreParams(
            content=f"What {user_id}'s {layer.value} notes come to.",
            parent_memory_id=results[0].memory_id,
            memory_type=layer,
        )
        return [each.memory_id for each in (*results, await memory.store(child))]

    async def _of(self, memory: MemoryApi, user_id: str) -> set[UUID]:
        page = await memory.list(ListParams(user_id=user_id, limit=100))
        return {record.memory_id for record in page.memories}


async def _erase_ada(memory: MemoryApi) -> None:
    await memory.erase(OF_ADA)


async def _erase_all(memory: MemoryApi) -> None:
    await memory.erase(OF_ALL)
