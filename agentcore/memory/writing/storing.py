"""The store use case: drafts and embeds, writes in one transaction, updates working memory."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from typing import Any
from uuid import UUID

from agentcore.errors import AgentCoreError, Conflict, InvalidParams, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import (
    enqueue_for_models,
    mark_summaries_stale,
    queue_relations,
    watch_capacity,
)
from agentcore.memory.consequences.supersession import Superseding
from agentcore.memory.intake import Draft, as_row, is_duplicate, is_long_work
from agentcore.memory.params.memories import RefusedItem, StoreParams, StoreResult, answer_to
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.storage import MemoryTransaction, NewMemory, mint_memory_id
from agentcore.memory.working import WorkingEntry
from agentcore.memory.writing.document_vectors import vector_columns

# Chunk of items: the first are embedded while the next are drafted.
DRAFTED_TOGETHER = 64


class Storing:
    """The stores of one call, in one transaction; `provenance` is added to that of every memory."""

    # Whether to enqueue the stored memories for language models.
    follows = True

    def __init__(
        self,
        parts: MemoryParts,
        caller: Caller,
        items: Sequence[StoreParams],
        *,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self._parts = parts
        self._caller = caller
        self._items = items if caller.users is None else [_with_own_key(each, caller.users) for each in items]
        self._provenance = provenance or {}
        self._results: list[StoreResult | None] = [
            answer_to(each) if isinstance(each, RefusedItem) else None for each in items
        ]
        self._stored: list[NewMemory] = []
        self._reinforced: list[UUID] = []
        self._superseding = Superseding(parts, caller)
        self.errors: dict[int, AgentCoreError] = {}
        self.degraded: list[str] = []

    async def run(self) -> list[StoreResult]:
        """Returns a result for each item, in order; `errors`: those of single items, by index.

        Raises DependencyUnavailable.
        """
        drafts = await self._embedded_drafts()
        await self._superseding.look_up(self._open(drafts).values())
        self.degraded += self._superseding.degraded
        opened = self._open(drafts)
        generation = None
        if any(each.params.task_id is not None for each in opened.values()):
            generation = await self._parts.working.generation(self._caller.agent_id)
        await self._write(opened)
        await self._superseding.forget_tasks()
        await self._remember_tasks(generation)
        if self._reinforced:
            self._parts.accesses.note(self._caller.agent_id, self._reinforced, self._parts.clock())
        return [result for result in self._results if result is not None]

    def _open(self, drafts: Mapping[int, Draft]) -> dict[int, Draft]:
        return {index: each for index, each in drafts.items() if self._results[index] is None}

    def _refuse(self, index: int, error: AgentCoreError) -> None:
        self.errors[index] = error
        missing = error.data.get("memory_id")
        reason = error.message if missing is None else f"{error.message.rstrip('.')}: {missing}"
        self._results[index] = _rejected(reason, int(error.code))

    async def _embedded_drafts(self) -> dict[int, Draft]:
        known = await self._known_keys()
        drafts: dict[int, Draft] = {}
        async with asyncio.TaskGroup() as embedding:
            for start in range(0, len(self._items), DRAFTED_TOGETHER):
                made = await self._drafts(range(start, len(self._items))[:DRAFTED_TOGETHER])
                for index, each in made.items():
                    self._answer_early(index, each, known.get(each.params.idempotency_key or ""))
                drafts |= made
                embedding.create_task(self._embed(list(self._open(made).values())))
        self.degraded = list(dict.fromkeys(self.degraded))
        return drafts

    async def _drafts(self, places: Sequence[int]) -> dict[int, Draft]:
        places = [place for place in places if self._results[place] is None]
        items = [self._items[place] for place in places]
        long = is_long_work(sum(map(_chars, items)), len(items))
        drafted = await asyncio.to_thread(self._make_drafts, items) if long else self._make_drafts(items)
        made = dict(zip(places, drafted, strict=True))
        for index, each in made.items():
            if isinstance(each, InvalidParams):
                self._refuse(index, each)
        return {index: each for index, each in made.items() if isinstance(each, Draft)}

    def _make_drafts(self, items: Sequence[StoreParams]) -> list[Draft | InvalidParams]:
        made: list[Draft | InvalidParams] = []
        for item in items:
            try:
                self._check_vector(item)
                each = self._parts.draft(item, self._caller)
            except InvalidParams as error:
                made.append(error)
            else:
                each.columns.provenance |= self._provenance
                made.append(each)
        return made

    def _check_vector(self, item: StoreParams) -> None:
        dimensions = self._parts.policy.embedding_dimensions
        if item.embedding is not None and len(item.embedding) != dimensions:
            raise InvalidParams(
                f"embedding has {len(item.embedding)} dimensions, this service stores {dimensions}",
                data={"field": "embedding"},
            )

    async def _known_keys(self) -> Mapping[str, Row]:
        keys = {each.idempotency_key for each in self._items} - {None}
        if not keys:
            return {}
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            return await transaction.known_keys([key for key in keys if key is not None])

    def _answer_early(self, index: int, each: Draft, earlier: Row | None) -> None:
        if each.rejection_reason is not None:
            self._results[index] = _rejected(each.rejection_reason)
        elif earlier is not None:
            self._answer_of_key(index, each, earlier)

    def _answer_of_key(self, index: int, each: Draft, row: Mapping[str, Any]) -> None:
        if bytes(row["request_digest"]) == each.digest:
            self._results[index] = StoreResult(success=True, memory_id=row["memory_id"], status="existing")
        else:
            message = "this idempotency_key was used for another request"
            self._refuse(
                index, Conflict(message, data={"field": "idempotency_key", "memory_id": str(row["memory_id"])})
            )

    async def _embed(self, drafts: Sequence[Draft]) -> None:
        waiting = [each for each in drafts if each.columns.vector.embedding is None]
        for each in drafts:
            each.columns.vector.embedding_model = self._parts.vector_model
        found, degraded = await vector_columns(self._parts, [each.derived.embedding_text for each in waiting])
        for each, vector in zip(waiting, found, strict=True):
            each.columns.vector = vector
        self.degraded += degraded

    async def _write(self, drafts: Mapping[int, Draft]) -> None:
        if not drafts:
            return
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await self._check_targets(transaction, drafts)
            drafts = self._open(drafts)
            memories = {index: _new_memory(each) for index, each in drafts.items()}
            # If two items have the same key, the first one claims it.
            claims = {memory.idempotency_key: memory for memory in reversed(list(memories.values()))}
            taken = await transaction.claim_keys(list(claims.values()), self._parts.policy.idempotency_ttl_seconds)
            same = await transaction.same_texts(
                each.columns.text.content_hash for each in drafts.values() if not each.params.force
            )
            claimed: dict[str, tuple[NewMemory, UUID]] = {}
            for index, each in drafts.items():
                await self._place(transaction, index, each, memories[index], taken, same, claimed)
            await self._insert(transaction, drafts, memories)

    async def _insert(
        self, transaction: MemoryTransaction, drafts: Mapping[int, Draft], memories: Mapping[int, NewMemory]
    ) -> None:
        new = {memory.memory_id for memory in self._stored}
        stored = {index: memory for index, memory in memories.items() if memory.memory_id in new}
        outcomes = self._superseding.decide([(drafts[index], memory) for index, memory in stored.items()])
        await transaction.insert(self._stored)
        missed = await self._superseding.write(transaction)
        for index, memory in stored.items():
            outcome, result = outcomes.get(memory.memory_id), self._results[index]
            if outcome is not None and result is not None:
                told = vars(outcome.without(missed, memory.memory_id))
                self._results[index] = result.model_copy(update=told)
        await mark_summaries_stale(transaction, self._superseding.taken)
        if self.follows:
            await enqueue_for_models(transaction, self._parts, self._stored)
            await queue_relations(transaction, self._parts, self._stored)
        layers = {memory.columns.memory_type for memory in self._stored}
        await watch_capacity(transaction, self._parts.capacities, layers, self._parts.clock())

    async def _check_targets(self, transaction: MemoryTransaction, drafts: Mapping[int, Draft]) -> None:
        wanted = {index: _targets(each.params) for index, each in drafts.items()}
        earlier, changing = self._superseding.candidates(), self._superseding.changing()
        existing = await transaction.existing(earlier.union(*wanted.values()), changing)
        for index, targets in wanted.items():
            missing = targets - existing
            if missing:
                self._refuse(index, NotFound(data={"memory_id": str(min(missing))}))

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
        key = memory.idempotency_key
        earlier = _earlier(key, taken, claimed)
        if earlier is not None:
            self._answer_of_key(index, each, earlier)
            return
        twin, flags = None if each.params.force else _twin(each, same), each.derived.flags
        if twin is None:
            self._stored.append(memory)
            same.append(as_row(memory.memory_id, each))
        else:
            self._reinforced.append(twin)
        self._results[index] = StoreResult(
            success=True,
            memory_id=twin or memory.memory_id,
            status="stored" if twin is None else "reinforced",
            flagged=bool(flags),
            flags=flags,
        )
        if key is not None:
            claimed[key] = memory, twin or memory.memory_id
            if twin is not None:
                await transaction.point_key(key, twin)

    async def _remember_tasks(self, generation: bytes | None) -> None:
        tasks: dict[str, list[NewMemory]] = {}
        for memory in self._stored:
            if memory.columns.task_id is not None:
                tasks.setdefault(memory.columns.task_id, []).append(memory)
        for task_id, memories in tasks.items():
            newest_first = sorted(memories, key=lambda memory: memory.columns.timestamp, reverse=True)
            await self._parts.working.add(
                self._caller.agent_id, task_id, [_entry(each) for each in newest_first], generation
            )


def _rejected(reason: str, code: int | None = None) -> StoreResult:
    return StoreResult(success=False, memory_id=None, status="rejected", reason=reason, code=code)


def _with_own_key(item: StoreParams, users: Set[str | None]) -> StoreParams:
    if item.idempotency_key is None:
        return item
    whose = json.dumps([sorted(users, key=str), item.idempotency_key])
    own = f"users:{hashlib.sha256(whose.encode()).hexdigest()}"
    return item.model_copy(update={"idempotency_key": own})


def _twin(each: Draft, same: Sequence[Row]) -> UUID | None:
    digest = each.columns.text.content_hash
    found = (row["memory_id"] for row in same if bytes(row["content_hash"]) == digest and is_duplicate(row, each))
    return next(found, None)


def _earlier(key: str | None, taken: Mapping[str, Row], claimed: Mapping[str, tuple[NewMemory, UUID]]) -> Row | None:
    if key is None:
        return None
    if key in claimed:
        first, memory_id = claimed[key]
        return {"request_digest": first.request_digest, "memory_id": memory_id}
    return taken.get(key)


def _new_memory(each: Draft) -> NewMemory:
    params = each.params
    return NewMemory(mint_memory_id(), each.columns, params.links, params.idempotency_key, each.digest)


def _targets(params: StoreParams) -> set[UUID]:
    named = {params.parent_memory_id, params.superseded_by} - {None}
    return {link.target_id for link in params.links} | {each for each in named if each is not None}


def _chars(item: StoreParams) -> int:
    if item.interaction is None:
        return len(item.content or "")
    return len(item.interaction.query or "") + len(item.interaction.response or "")


def _entry(memory: NewMemory) -> WorkingEntry:
    columns = memory.columns
    return WorkingEntry(
        memory.memory_id,
        columns.memory_type,
        columns.content,
        columns.timestamp,
        columns.speaker,
        columns.text.token_count,
        1,
        columns.text.summary if columns.text.summary != columns.content else "",
    )
