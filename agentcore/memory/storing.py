"""Storing, as a story: draft, embed, one transaction, working memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable, InvalidParams, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.intake import Draft, Source, draft, is_same, is_timed
from agentcore.memory.params import StoreParams, StoreResult
from agentcore.memory.parts import MemoryParts
from agentcore.memory.storage import MemoryTransaction, NewMemory, Row, mint_memory_id
from agentcore.memory.working import WorkingEntry

THREAD_ABOVE_ITEMS, THREAD_ABOVE_CHARS = 4, 20_000
NOT_EMBEDDED = "embedding: the embedder does not answer; the memory is kept and embedded later"


class Storing:
    """One call's stores: items in, results in the same order out, all in one transaction."""

    def __init__(self, parts: MemoryParts, caller: Caller, items: Sequence[StoreParams]) -> None:
        self._parts = parts
        self._caller = caller
        self._items = items
        self._results: list[StoreResult | None] = [None] * len(items)
        self._stored: list[NewMemory] = []
        self._reinforced: list[UUID] = []
        self.degraded: list[str] = []

    async def run(self) -> list[StoreResult]:
        """Store what is worth it. Raises InvalidParams, NotFound (a linked memory), DependencyUnavailable."""
        drafts = await self._drafts()
        worthy = [index for index, each in enumerate(drafts) if each.reason is None]
        for index, each in enumerate(drafts):
            if each.reason is not None:
                self._results[index] = StoreResult(
                    success=False, memory_id=None, status="rejected", reason=each.reason
                )
        await self._answer_known_keys(drafts, worthy)
        fresh = [index for index in worthy if self._results[index] is None]
        await self._embed([drafts[index] for index in fresh])
        await self._write(drafts, fresh)
        await self._remember_tasks()
        if self._reinforced:
            self._parts.accesses.note(self._caller.agent_id, self._reinforced, self._parts.clock())
        return [result for result in self._results if result is not None]

    async def _drafts(self) -> list[Draft]:
        source = Source(
            self._caller.agent_id, self._caller.token_id, self._caller.trace_id, self._caller.a2a_context
        )

        def make() -> list[Draft]:
            return [
                draft(
                    item,
                    source,
                    now=self._parts.clock(),
                    count_tokens=self._parts.count_tokens,
                    working_ttl_seconds=self._parts.working.ttl_seconds,
                )
                for item in self._items
            ]

        for item in self._items:
            self._check_vector(item)
        return await asyncio.to_thread(make) if self._is_long_work() else make()

    def _is_long_work(self) -> bool:
        """Whether deriving the fields would hold up the event loop."""
        chars = sum(len(item.content or "") for item in self._items)
        chars += sum(
            len(item.interaction.query or "") + len(item.interaction.response or "")
            for item in self._items
            if item.interaction is not None
        )
        return len(self._items) > THREAD_ABOVE_ITEMS or chars > THREAD_ABOVE_CHARS

    def _check_vector(self, item: StoreParams) -> None:
        dimensions = self._parts.policy.embedding_dimensions
        if item.embedding is not None and len(item.embedding) != dimensions:
            raise InvalidParams(
                f"embedding has {len(item.embedding)} dimensions, this service stores {dimensions}",
                data={"field": "embedding"},
            )

    async def _answer_known_keys(self, drafts: Sequence[Draft], worthy: Sequence[int]) -> None:
        """Known keys need no embedding: a resumed import passes over what it has stored at full speed."""
        keys = {
            each.params.idempotency_key: index
            for index, each in enumerate(drafts)
            if index in set(worthy) and each.params.idempotency_key is not None
        }
        if not keys:
            return
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            known = await transaction.known_keys(list(keys))
        for index in worthy:
            row = known.get(drafts[index].params.idempotency_key or "")
            if row is not None:
                self._results[index] = self._answer_of_key(drafts[index], row)

    def _answer_of_key(self, each: Draft, row: Mapping[str, Any]) -> StoreResult:
        if bytes(row["request_digest"]) == each.digest:
            return StoreResult(success=True, memory_id=row["memory_id"], status="existing")
        message = "this idempotency_key was used for another request"
        if len(self._items) == 1:
            raise Conflict(message, data={"field": "idempotency_key"})
        return StoreResult(success=False, memory_id=None, status="rejected", reason=f"conflict: {message}")

    async def _embed(self, drafts: Sequence[Draft]) -> None:
        embedder = self._parts.embedder
        waiting = [each for each in drafts if each.columns["embedding"] is None]
        for each in drafts:
            each.columns["embedding_model"] = self._parts.vector_model
        if embedder is None or not waiting:
            return
        try:
            vectors = await embedder.embed([each.embedding_text for each in waiting], "document")
        except DependencyUnavailable:
            self.degraded.append(NOT_EMBEDDED)
            return
        for each, vector in zip(waiting, vectors, strict=True):
            each.columns["embedding"] = vector

    async def _write(self, drafts: Sequence[Draft], fresh: Sequence[int]) -> None:
        if not fresh:
            return
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await _check_targets(transaction, [drafts[index] for index in fresh])
            memories = {index: _new_memory(drafts[index]) for index in fresh}
            taken = await transaction.claim_keys(
                list(
                    {memory.idempotency_key: memory for memory in reversed(list(memories.values()))}.values()
                ),
                self._parts.policy.idempotency_ttl_seconds,
            )
            same = await transaction.same_texts(
                drafts[index].columns["content_hash"] for index in fresh if not drafts[index].params.force
            )
            claimed: dict[str, tuple[NewMemory, UUID]] = {}
            for index in fresh:
                await self._place(transaction, index, drafts[index], memories[index], taken, same, claimed)
            await transaction.insert(self._stored)

    async def _place(
        self,
        transaction: MemoryTransaction,
        index: int,
        each: Draft,
        memory: NewMemory,
        taken: Mapping[str, Row],
        same: list[Row],
        claimed: dict[str, tuple[NewMemory, UUID]],
    ) -> None:
        """Decide what one item becomes: an earlier key's memory, the same words again, or a new memory."""
        key = memory.idempotency_key
        if key is not None and key in taken:
            self._results[index] = self._answer_of_key(each, taken[key])
            return
        if key is not None and key in claimed:
            first, memory_id = claimed[key]
            row = {"request_digest": first.request_digest, "memory_id": memory_id}
            self._results[index] = self._answer_of_key(each, row)
            return
        twin = None if each.params.force else _twin(each, same)
        if twin is None:
            self._stored.append(memory)
            same.append({**memory.columns, "memory_id": memory.memory_id})
            self._results[index] = StoreResult(success=True, memory_id=memory.memory_id, status="stored")
        else:
            self._reinforced.append(twin)
            self._results[index] = StoreResult(success=True, memory_id=twin, status="reinforced")
        if key is not None:
            claimed[key] = memory, twin or memory.memory_id
            if twin is not None:
                await transaction.point_key(key, twin)

    async def _remember_tasks(self) -> None:
        tasks: dict[str, list[NewMemory]] = {}
        for memory in self._stored:
            if memory.columns["task_id"] is not None:
                tasks.setdefault(memory.columns["task_id"], []).append(memory)
        for task_id, memories in tasks.items():
            newest_first = sorted(memories, key=lambda memory: memory.columns["timestamp"], reverse=True)
            await self._parts.working.add(
                self._caller.agent_id, task_id, [_entry(each) for each in newest_first]
            )


def _twin(each: Draft, same: Sequence[Mapping[str, Any]]) -> UUID | None:
    digest, timed = each.columns["content_hash"], is_timed(each.params)
    for row in same:
        if bytes(row["content_hash"]) == digest and is_same(row, each.columns, timed=timed):
            found: UUID = row["memory_id"]
            return found
    return None


def _new_memory(each: Draft) -> NewMemory:
    params = each.params
    return NewMemory(
        mint_memory_id(), each.columns, params.links, params.idempotency_key, each.digest, params.force
    )


async def _check_targets(transaction: MemoryTransaction, drafts: Sequence[Draft]) -> None:
    wanted = {link.target_id for each in drafts for link in each.params.links}
    wanted |= {each.params.parent_memory_id for each in drafts if each.params.parent_memory_id is not None}
    missing = wanted - await transaction.existing(wanted)
    if missing:
        raise NotFound(data={"memory_id": str(min(missing))})


def _entry(memory: NewMemory) -> WorkingEntry:
    columns = memory.columns
    return WorkingEntry(
        memory.memory_id,
        columns["memory_type"],
        columns["content"],
        columns["timestamp"],
        columns["speaker"],
        columns["token_count"],
        1,
    )
