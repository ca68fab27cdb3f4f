"""Changes one memory: embeds, locks, and writes with its history."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.columns import StoredMemory, VectorColumns
from agentcore.memory.consequences.following import after_reinstatement, after_rewording
from agentcore.memory.intake import DerivedText, check_length, derive_text, is_long_work, strip_reasoning, subjects_of
from agentcore.memory.models import JsonObject, Link
from agentcore.memory.params.changes import (
    FeedbackParams,
    HistoryEntry,
    HistoryParams,
    RevertParams,
    UpdateParams,
    Updates,
)
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import LlmWork
from agentcore.memory.rows.memory_rows import Change, Row
from agentcore.memory.scoring import after_feedback
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.writing.document_vectors import vector_columns

ATTEMPTS = 5
TRACKED = ("content", "relevance_score", "tags", "metadata", "pinned")
# A model's work that a flagged memory is removed from.
FLAGGED_WORK: tuple[LlmWork, ...] = ("facts", "summary")
VALIDITY = ("superseded_by", "valid_to")
LIFE = ("ttl_seconds", "expires_at")
NewText = tuple[DerivedText, VectorColumns]


@dataclass(frozen=True)
class Wanted:
    """The change to apply to one memory; absent fields stay unchanged. A tie is a row of `LinkRows`."""

    content: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    # Counted from the change unless `expires_at` is set.
    ttl_seconds: int | None = None
    expires_at: datetime | None = None
    never_expires: bool = False
    # Reinstates a superseded memory.
    current: bool = False
    unlink: Sequence[UUID] = ()
    links: Sequence[Link] = ()
    cut: Sequence[Row] = ()
    put: Sequence[Row] = ()
    # Added to the history entry.
    told: Mapping[str, Any] = field(default_factory=dict)

    def tied(self, memory_id: UUID) -> list[UUID]:
        targets = {link.target_id for link in self.links}
        return sorted(({*self.unlink} | targets | _ends([*self.cut, *self.put])) - {memory_id})


def _ends(ties: Iterable[Row]) -> set[UUID]:
    return {tie[end] for tie in ties for end in ("source_id", "target_id")}


class Changing(ABC):
    operation: str

    def __init__(self, parts: MemoryParts, caller: Caller, memory_id: UUID, if_version: int | None = None) -> None:
        self._parts = parts
        self._caller = caller
        self.memory_id = memory_id
        self._if_version = if_version
        self.degraded: list[str] = []

    @abstractmethod
    async def _wanted(self, row: StoredMemory) -> Wanted: ...

    async def _prepare(self, transaction: MemoryTransaction, found: StoredMemory, wanted: Wanted) -> None:
        tied = wanted.tied(self.memory_id)
        if wanted.current and found.superseded_by is not None:
            # The successor's link is removed: a concurrent deletion of the successor deletes it, too.
            tied.append(found.superseded_by)
        if wanted.content not in (None, found.content):
            facts = await transaction.facts.unmodified_facts(self.memory_id)
            await transaction.summaries.lock(to_delete=facts, to_change=[self.memory_id], no_delete=tied)
        elif tied or wanted.current:
            await transaction.summaries.lock(to_change=[self.memory_id], no_delete=tied)

    async def run(self) -> int:
        """Returns the new version; retries up to ATTEMPTS times after concurrent changes.

        Raises NotFound, Conflict (another version than `if_version`), InvalidParams, DependencyUnavailable.
        """
        for _ in range(ATTEMPTS):
            self.degraded = []
            found = await self._current()
            wanted = await self._wanted(found)
            version = await self._write(found, wanted, await self._new_text(found, wanted.content))
            if version is not None:
                return version
        raise Conflict("the memory is being changed by others all the time; try again")

    async def _current(self) -> StoredMemory:
        rows = await self._parts.storage.whole_rows(self._caller.agent_id, [self.memory_id])
        if not rows:
            raise NotFound(data={"memory_id": str(self.memory_id)})
        memory = StoredMemory.of(rows[0])
        self._check_version(memory)
        return memory

    def _check_version(self, row: StoredMemory) -> None:
        wanted = self._if_version
        if wanted is not None and row.version != wanted:
            raise Conflict(f"the memory stands at version {row.version}, not {wanted}", data={"version": row.version})

    async def _new_text(self, row: StoredMemory, content: str | None) -> NewText | None:
        """Returns the new text with its vector, None if unchanged. Embeds before any lock."""
        if content is None or content == row.content:
            return None
        content = strip_reasoning(content, row.speaker, row.metadata) or content
        count, screen = self._parts.count_tokens, self._parts.policy.screen
        arguments = self._caller.agent_id, content, row.speaker, count, row.timestamp, screen
        if is_long_work(len(content)):
            derived = await asyncio.to_thread(derive_text, *arguments)
        else:
            derived = derive_text(*arguments)
        [vector], degraded = await vector_columns(self._parts, [derived.embedding_text])
        self.degraded += degraded
        return derived, vector

    async def _write(self, found: StoredMemory, wanted: Wanted, text: NewText | None) -> int | None:
        """Returns the new version; None if the memory changed since it was read."""
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await self._prepare(transaction, found, wanted)
            row = await transaction.lock(self.memory_id)
            if row is None:
                raise NotFound(data={"memory_id": str(self.memory_id)})
            self._check_version(row)
            if row.version != found.version:
                return None
            version = await self._apply(transaction, row, wanted, text)
        if row.task_id is not None:
            await self._parts.working.forget(self._caller.agent_id, [row.task_id])
        return version

    async def _apply(
        self, transaction: MemoryTransaction, row: StoredMemory, wanted: Wanted, text: NewText | None
    ) -> int:
        changed_row = replace(row, **wanted.columns)
        if text is not None:
            derived, changed_row.vector = text
            changed_row.content, changed_row.flagged = derived.content, bool(derived.flags)
            changed_row.text = derived.columns
            await transaction.append_terms([row.text.term_keys], sign=-1)
            await transaction.append_terms([changed_row.text.term_keys], sign=1)
            if self._parts.relations is not None:
                await transaction.relations.enqueue([self.memory_id])
            await transaction.passages.replace(self.memory_id, is_long=derived.is_long)
        await self._restate(transaction, row, changed_row, wanted)
        gone, came = await self._relate(transaction, wanted)
        life = wanted.ttl_seconds, wanted.expires_at, wanted.never_expires
        written = await transaction.update(changed_row, *life)
        values = {name: getattr(changed_row, name) for name in TRACKED}
        values |= {name: None if wanted.current else getattr(row, name) for name in VALIDITY}
        values |= {name: written[name] for name in LIFE}
        changed = [name for name, value in values.items() if getattr(row, name) != value]
        before = {name: _plain(getattr(row, name)) for name in changed} | _given("links", gone)
        after = {name: _plain(values[name]) for name in changed} | _given("links", came)
        version = int(written["version"])
        source = self._caller.token_id, self._caller.trace_id
        await transaction.history.append(
            Change(self.memory_id, self.operation, version, *source, before, {**wanted.told, **after})
        )
        retimed = not {"expires_at", "pinned"}.isdisjoint(changed)
        await self._follow(transaction, changed_row, wanted, reworded=text is not None, retimed=retimed)
        return version

    async def _follow(
        self, transaction: MemoryTransaction, row: StoredMemory, wanted: Wanted, *, reworded: bool, retimed: bool
    ) -> None:
        if retimed:
            await transaction.facts.sync_expiry(self.memory_id, self.operation, self._caller)
        if reworded and row.flagged:
            for work in FLAGGED_WORK:
                await transaction.summaries.dequeue(work, [self.memory_id])
        if reworded:
            await after_rewording(transaction, self._parts, self._caller, row)
        elif wanted.current and row.superseded_by is not None:
            memory = row.memory_id, row.superseded_by
            await after_reinstatement(transaction, self._parts, self._caller, self.operation, *memory)

    async def _restate(
        self, transaction: MemoryTransaction, row: StoredMemory, changed: StoredMemory, wanted: Wanted
    ) -> None:
        keys = subjects_of(self._caller.agent_id, changed)
        if wanted.current:
            await transaction.subjects.reinstate(self.memory_id, keys)
            await transaction.clusters.enqueue_late([self.memory_id])
        elif row.superseded_by is None and changed.content != row.content:
            await transaction.subjects.learn_anew(self.memory_id, keys)

    async def _relate(
        self, transaction: MemoryTransaction, wanted: Wanted
    ) -> tuple[list[JsonObject], list[JsonObject]]:
        others = wanted.tied(self.memory_id)
        if not others:
            return [], []
        targets = _ends(wanted.put) | {link.target_id for link in wanted.links}
        missing = targets - await transaction.existing(targets)
        if missing:
            raise NotFound(data={"memory_id": str(min(missing))})
        before = await transaction.links.between(self.memory_id, others)
        if wanted.unlink:
            await transaction.links.remove(self.memory_id, wanted.unlink)
        for tie in wanted.cut:
            await transaction.links.cut(tie)
        await transaction.links.put(wanted.put)
        await transaction.links.add(self.memory_id, wanted.links)
        after = await transaction.links.between(self.memory_id, others)
        gone = [each for each in before if each not in after]
        came = [each for each in after if each not in before]
        return _plain_ties(gone), _plain_ties(came)


def _plain_ties(rows: Sequence[Row]) -> list[JsonObject]:
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _given(name: str, values: list[JsonObject]) -> JsonObject:
    return {name: values} if values else {}


async def complete_task(parts: MemoryParts, caller: Caller, task_id: str) -> int:
    """Clears a task's working memory; returns the number of memories it contained."""
    held = await parts.storage.working_rows(caller.agent_id, task_id, parts.working.ttl_seconds)
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await transaction.life.complete_task(task_id, caller.token_id, caller.trace_id)
    await parts.working.forget(caller.agent_id, [task_id])
    return len(held)


async def renew(parts: MemoryParts, caller: Caller, memory_id: UUID) -> int:
    """Restarts the TTL of a memory, if it has one; version and history stay unchanged. Raises NotFound."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        row = await transaction.life.renew(memory_id)
    if row is None:
        raise NotFound(data={"memory_id": str(memory_id)})
    if row["task_id"] is not None:
        await parts.working.forget(caller.agent_id, [row["task_id"]])
    return int(row["version"])


class Updating(Changing):
    operation = "update"

    def __init__(self, parts: MemoryParts, caller: Caller, params: UpdateParams) -> None:
        super().__init__(parts, caller, params.memory_id, params.updates.if_version)
        self._updates = params.updates

    async def _wanted(self, row: StoredMemory) -> Wanted:
        updates = self._updates
        if self.memory_id in {link.target_id for link in updates.links}:
            raise InvalidParams("a memory cannot be linked to itself", data={"field": "updates.links"})
        content = updates.content
        if updates.context is not None:
            content = f"{row.content}\n{updates.context}"
            check_length(content, "updates.context")
        return Wanted(
            content=content,
            columns=_plain_columns(updates, row),
            ttl_seconds=updates.ttl_seconds,
            never_expires="ttl_seconds" in updates.model_fields_set and updates.ttl_seconds is None,
            current=updates.current is True,
            unlink=updates.unlink,
            links=updates.links,
        )


def _plain_columns(updates: Updates, row: StoredMemory) -> dict[str, Any]:
    importance = updates.relevance_score if updates.relevance_score is not None else updates.importance
    columns: dict[str, Any] = {"relevance_score": importance, "tags": updates.tags, "pinned": updates.pinned}
    if updates.metadata is not None:
        merged = {**row.metadata, **updates.metadata}
        columns |= {"metadata": {name: value for name, value in merged.items() if value is not None}}
    return {name: value for name, value in columns.items() if value is not None}


class Judging(Changing):
    operation = "feedback"

    def __init__(self, parts: MemoryParts, caller: Caller, params: FeedbackParams) -> None:
        super().__init__(parts, caller, params.memory_id)
        self._params = params
        self.relevance_score = 0.0

    async def _wanted(self, row: StoredMemory) -> Wanted:
        self.relevance_score = after_feedback(row.relevance_score, self._params.verdict)
        told = self._params.model_dump(include={"verdict", "note"}, exclude_none=True)
        return Wanted(columns={"relevance_score": self.relevance_score}, told=told)


EXPIRED = "expires_at: that time is over; the memory expires when it would have without the revert"
PROMOTED = "memory_type: it was promoted since then, and keeps its layer and its expiry"
NOT_TIED = "links: a memory it was tied to is gone; that tie stays away"


class Reverting(Changing):
    operation = "revert"

    def __init__(self, parts: MemoryParts, caller: Caller, params: RevertParams) -> None:
        super().__init__(parts, caller, params.memory_id, params.if_version)
        self._version = params.version

    async def _wanted(self, row: StoredMemory) -> Wanted:
        if self._version >= row.version:
            raise InvalidParams(
                f"version is not an earlier one: the memory stands at {row.version}", data={"field": "version"}
            )
        changes = await self._changes_since(row)
        earlier = _fields_before(changes)
        expiry = self._expiry(earlier)
        cut, put = await self._ties_back(changes)
        return Wanted(
            content=earlier.get("content"),
            columns={name: earlier[name] for name in TRACKED if name in earlier and name != "content"},
            **expiry,
            current=row.superseded_by is not None and earlier.get("superseded_by", "") is None,
            cut=cut,
            put=put,
            told={"to_version": self._version},
        )

    def _expiry(self, earlier: Mapping[str, Any]) -> dict[str, Any]:
        if "memory_type" in earlier:
            # Promoted since then: it stays in its layer, with that layer's expiry.
            self.degraded.append(PROMOTED)
            return {}
        if "expires_at" not in earlier:
            return {}
        if earlier["expires_at"] is None:
            return {"never_expires": True}
        expires_at = datetime.fromisoformat(earlier["expires_at"])
        if expires_at <= self._parts.clock():
            self.degraded.append(EXPIRED)
            return {}
        return {"expires_at": expires_at, "ttl_seconds": earlier.get("ttl_seconds")}

    async def _changes_since(self, row: StoredMemory) -> list[Row]:
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            changes = await transaction.history.since(self.memory_id, self._version)
        # Concurrent changes are ignored: the write then finds another version, and retries.
        changes = [change for change in changes if change["version"] <= row.version]
        if [change["version"] for change in changes] != list(range(row.version, self._version, -1)):
            raise Conflict("the history does not hold every change since that version", data={"version": row.version})
        return changes

    async def _ties_back(self, changes: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        cut: dict[tuple[Any, ...], Row] = {}
        put: dict[tuple[Any, ...], Row] = {}
        for change in changes:
            for tie in _ties(change["after"]):
                cut[_key(tie)] = tie
                put.pop(_key(tie), None)
            for tie in _ties(change["before"]):
                put[_key(tie)] = tie
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            there = await transaction.existing(_ends(put.values()))
        # If an end is deleted before the write, that raises NotFound; a retry by the caller omits the link.
        possible = [tie for tie in put.values() if {tie["source_id"], tie["target_id"]} <= there]
        if len(possible) < len(put):
            self.degraded.append(NOT_TIED)
        return list(cut.values()), possible


def _fields_before(changes: Sequence[Row]) -> JsonObject:
    earlier: JsonObject = {}
    for change in changes:
        earlier.update(change["before"] or {})
    return earlier


def _ties(fields: Mapping[str, Any] | None) -> list[Row]:
    return [
        {**tie, "source_id": UUID(tie["source_id"]), "target_id": UUID(tie["target_id"])}
        for tie in (fields or {}).get("links", ())
    ]


def _key(tie: Row) -> tuple[Any, ...]:
    return tie["source_id"], tie["target_id"], tie["relation"]


async def changes(
    parts: MemoryParts, caller: Caller, params: HistoryParams
) -> tuple[Mapping[str, Any], list[HistoryEntry], int | None]:
    """Returns the current state, a page of changes and the next cursor. Raises NotFound."""
    records = await parts.storage.get(caller.agent_id, [params.memory_id])
    if params.memory_id not in records:
        raise NotFound(data={"memory_id": str(params.memory_id)})
    record = records[params.memory_id]
    rows = await parts.storage.history(caller.agent_id, params.memory_id, params.cursor, params.limit + 1)
    page = rows[: params.limit]
    cursor = page[-1]["number"] if page and page[-1]["found"] > len(page) else None
    standing = {name: getattr(record, name) for name in ("version", "created_at", "provenance")}
    return standing, [HistoryEntry.model_construct(**row) for row in page], cursor
