"""Prunes a layer, and deletes by ids or by filter, within a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agentcore.cancellation import run_to_completion
from agentcore.errors import AgentCoreError, Conflict, DependencyUnavailable
from agentcore.failpoints import failpoint
from agentcore.memory.api import Caller
from agentcore.memory.archival import Archive, archive_id, archive_memories, object_key
from agentcore.memory.consequences.following import relink_superseded
from agentcore.memory.consequences.pending_work import after_deletion
from agentcore.memory.params.agent_settings import rules_of
from agentcore.memory.params.memories import DEFAULT_SHARE, DeleteParams, PruneParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.pruning import Prunable, PruningPolicy, decide
from agentcore.memory.rows.archive_rows import Tombstone
from agentcore.memory.storage import DELETE_CHUNK, MemoryTransaction

# Shorter than REQUEST_TIMEOUT, so that the caller gets a partial result instead of a timeout.
WRITE_DEADLINE_SECONDS = 25.0


class Deadline:
    """Checks whether there is time for another chunk as slow as the slowest so far."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._started = self._chunk_started = self._clock()
        self._longest_seconds = 0.0
        self._chunks = 0

    def leaves_time(self) -> bool:
        """Call it before each chunk."""
        now = self._clock()
        if self._chunks:
            self._longest_seconds = max(self._longest_seconds, now - self._chunk_started)
        self._chunks += 1
        self._chunk_started = now
        spent = now - self._started + self._longest_seconds
        return self._chunks == 1 or spent < WRITE_DEADLINE_SECONDS

    def seconds_left(self) -> float:
        return self._started + WRITE_DEADLINE_SECONDS - self._clock()


PRUNE_CHUNK = 200
# Counting an access locks a row briefly: rows skipped because of that are retried.
PRUNE_ATTEMPTS = 2
_SCOPE = ("task_id", "session_id", "user_id", "namespace", "tags")
_CHOSEN_BY = ("memory_id", "version", "memory_type", "timestamp", *_SCOPE)


@dataclass
class Removed:
    memory_ids: list[UUID] = field(default_factory=list)
    complete: bool = True


@dataclass
class Deleted:
    """`reinstated`: memories that are current again."""

    count: int = 0
    reinstated: set[UUID] = field(default_factory=set)
    complete: bool = False


class Pruning:
    """`capacity_only`: prunes only if the layer's capacity is exceeded."""

    def __init__(self, parts: MemoryParts, caller: Caller, params: PruneParams, *, capacity_only: bool = False) -> None:
        self._parts = parts
        self._caller = caller
        self._params = params
        self._layer = params.memory_layer.value
        self._default_share = 0.0 if capacity_only else DEFAULT_SHARE
        named = "strategy" in params.model_fields_set
        self._strategy = params.strategy if named else parts.policy.pruning_strategy

    async def run(self) -> Removed:
        """Raises Conflict (another prune of the layer is running), DependencyUnavailable."""
        deadline = Deadline()
        going = await self._select()
        failpoint("prune.decided")
        if self._params.dry_run:
            return Removed([each.memory_id for each in going])
        versions = {each.memory_id: each.version for each in going}
        removed = Removed()
        for _ in range(PRUNE_ATTEMPTS):
            gone = {*removed.memory_ids}
            left = {each: version for each, version in versions.items() if each not in gone}
            if not left or not removed.complete:
                break
            await self._remove(left, removed, deadline)
        return removed

    async def _remove(self, versions: Mapping[UUID, int], removed: Removed, deadline: Deadline) -> None:
        ids = list(versions)
        for start in range(0, len(ids), PRUNE_CHUNK):
            if not deadline.leaves_time():
                removed.complete = False
                return
            chunk = {each: versions[each] for each in ids[start : start + PRUNE_CHUNK]}
            gone = await run_to_completion(self._chunk(chunk))
            if gone is None and not removed.memory_ids:
                raise Conflict("another prune of this layer is running")
            if gone is None:
                removed.complete = False
                return
            removed.memory_ids += gone

    async def _select(self) -> list[Prunable]:
        rows = await self._parts.storage.prunable(self._caller.agent_id, self._layer)
        own = await self._parts.storage.own_rules(self._caller.agent_id)
        capacity = rules_of(self._parts.policy.layers, own)[self._params.memory_layer].capacity or 0
        policy = PruningPolicy(self._strategy, capacity, self._params.target, self._default_share)
        now = self._parts.clock()

        def choose() -> list[Prunable]:
            return decide([Prunable(**row) for row in rows], policy, now)

        return await asyncio.to_thread(choose)

    async def _chunk(self, versions: Mapping[UUID, int]) -> list[UUID] | None:
        """Returns the removed ids in order; None if another prune has locked the layer.

        Rows are locked from before their copy is written until they are deleted: a tombstone matches its copy.
        """
        place = None if self._parts.archive is None else await archive_id(self._parts.archive)
        if place is not None and not await self._recorded(versions, place):
            return None
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            if not await transaction.claim_layer(self._layer):
                return None
            held = await transaction.lock_prunable(versions)
            failpoint("prune.held")
            tombstones = await self._copied(transaction, held, place)
            rows = await transaction.delete_versions({each: versions[each] for each in held})
            failpoint("prune.deleted")
            gone = {row["memory_id"] for row in rows}
            await transaction.archived.write_tombstones(each for each in tombstones if each.memory_id in gone)
            failpoint("prune.buried")
        failpoint("prune.committed")
        await _forget_tasks(self._parts, self._caller, (row["task_id"] for row in rows))
        return [each for each in versions if each in gone]

    async def _recorded(self, versions: Mapping[UUID, int], place: UUID) -> bool:
        """Commits the archive id before any copy is written. False: the layer is locked."""
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            if not await transaction.claim_layer(self._layer):
                return False
            await transaction.archived.record_copies(await transaction.lock_prunable(versions), place)
        failpoint("prune.recorded")
        return True

    async def _copied(
        self, transaction: MemoryTransaction, held: Sequence[UUID], place: UUID | None
    ) -> list[Tombstone]:
        archive = self._parts.archive
        if archive is None or place is None:
            return []
        rows = await transaction.whole_rows(held)
        try:
            copies = await archive_memories(archive, self._caller.agent_id, rows)
            if await archive_id(archive) != place:
                raise DependencyUnavailable("The archive was replaced during the call: call again.")
        except AgentCoreError:
            await self._remove_copies(archive, transaction, held)
            raise
        return [
            Tombstone(
                **{name: row[name] for name in _CHOSEN_BY},
                users=row["provenance"].get("users", []),
                object_key=copy.object_key,
                sha256=copy.sha256,
                size_bytes=copy.size_bytes,
                reason=self._strategy,
                archive_id=place,
            )
            for row, copy in zip(rows, copies, strict=True)
        ]

    async def _remove_copies(self, archive: Archive, transaction: MemoryTransaction, held: Sequence[UUID]) -> None:
        with suppress(AgentCoreError):
            # Raises unless the locks are still held: without them another prune may own the copies.
            await transaction.archived.lock_existing(held)
            await archive.delete({object_key(self._caller.agent_id, each) for each in held})


async def delete(parts: MemoryParts, caller: Caller, params: DeleteParams) -> Deleted:
    deadline, deleted = Deadline(), Deleted()
    conditions, waiting = params.conditions(), list(params.memory_ids or ())
    while deadline.leaves_time():
        named, waiting = waiting[:DELETE_CHUNK], waiting[DELETE_CHUNK:]
        count = await _delete_chunk(parts, caller, named, conditions, deleted)
        over = not waiting if named else count < DELETE_CHUNK
        if over:
            if params.all:
                async with parts.storage.transaction(caller.agent_id) as transaction:
                    await transaction.jobs.forget()
            deleted.complete = True
            break
    return deleted


async def _delete_chunk(
    parts: MemoryParts, caller: Caller, memory_ids: Sequence[UUID], conditions: Mapping[str, Any], deleted: Deleted
) -> int:
    storage = parts.storage
    if parts.whole_storage is not None:
        # Summaries of several users are hidden from the caller: choose as the caller, delete as the agent.
        async with storage.transaction(caller.agent_id) as transaction:
            memory_ids = await transaction.chosen(memory_ids, conditions, DELETE_CHUNK)
        storage = parts.whole_storage
        if not memory_ids:
            return 0
    async with storage.transaction(caller.agent_id) as transaction:
        if memory_ids:
            rows = await transaction.delete(memory_ids)
        else:
            rows = await transaction.delete_matching(conditions, DELETE_CHUNK)
        changed = await relink_superseded(transaction, caller, rows)
        await after_deletion(transaction, parts, changed)
    deleted.count += len(rows)
    # The next chunk may delete memories that this one reinstated.
    deleted.reinstated |= {each.memory_id for each in changed if each.superseded_by is None}
    deleted.reinstated -= {row["memory_id"] for row in rows}
    tasks = [*(row["task_id"] for row in rows), *(each.task_id for each in changed)]
    await _forget_tasks(parts, caller, tasks)
    return len(rows)


async def _forget_tasks(parts: MemoryParts, caller: Caller, tasks: Iterable[str | None]) -> None:
    await parts.working.forget(caller.agent_id, sorted({each for each in tasks if each is not None}))
