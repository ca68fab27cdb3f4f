"""Restores and lists archived memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable, NotFound
from agentcore.failpoints import failpoint
from agentcore.memory.api import Caller
from agentcore.memory.archival import Archive, ArchivedObject, archive_id, read_copies, stored_id, vector_of
from agentcore.memory.consequences.following import orphans, supersede_followers
from agentcore.memory.consequences.pending_work import mark_restored_stale
from agentcore.memory.consequences.supersession import rule_columns_of, supersede_overtaken
from agentcore.memory.embeddings import refused_by
from agentcore.memory.forgetting.removing import Deadline
from agentcore.memory.intake import subjects_of
from agentcore.memory.keys import read_cursor, write_cursor
from agentcore.memory.language.passages import is_long
from agentcore.memory.models import CHANGES, JsonObject
from agentcore.memory.params.archived import ArchivedMemory, ArchivedParams, LostLink, RestoreParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Change, Row
from agentcore.memory.storage import MemoryTransaction

LEAST_TIME_LEFT = timedelta(days=1)
MOST_REFUSED_TOLD = 1_000
Place = tuple[datetime, UUID]
_USAGE = ("memory_id", "access_count", "uses_in_life", "last_accessed")


@dataclass
class Restored:
    """The restored memories (of a dry run, those to restore)."""

    memory_ids: list[UUID] = field(default_factory=list)
    lost_links: list[LostLink] = field(default_factory=list)
    renewed_ids: list[UUID] = field(default_factory=list)
    superseded_ids: list[UUID] = field(default_factory=list)
    refused_ids: list[UUID] = field(default_factory=list)
    unreadable_ids: list[UUID] = field(default_factory=list)
    waiting_for_embedding_ids: list[UUID] = field(default_factory=list)
    complete: bool = True
    next_cursor: str | None = None


@dataclass(frozen=True)
class _Page:
    tombstones: dict[UUID, Row] = field(default_factory=dict)
    copies: dict[UUID, JsonObject] = field(default_factory=dict)
    refused_ids: list[UUID] = field(default_factory=list)
    unreadable_ids: list[UUID] = field(default_factory=list)
    ends: Place | None = None


class Restoring:
    def __init__(self, parts: MemoryParts, caller: Caller, params: RestoreParams) -> None:
        self._parts = parts
        self._caller = caller
        self._params = params

    async def run(self) -> Restored:
        """Restores in one transaction; memories whose copy is missing, damaged or elsewhere are reported.

        Raises NotFound (not archived, or no requested copy exists), Conflict (a memory of that id exists, no
        requested copy is readable, or a source was deleted), DependencyUnavailable.
        """
        archive = self._archive()
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            tombstones, copies, restored = await self._read(archive, transaction)
            if self._params.dry_run:
                return restored
            restored.renewed_ids = _renew(copies, tombstones, self._parts.clock())
            if self._parts.embedder is not None:
                restored.waiting_for_embedding_ids = _without_old_vectors(copies, self._parts.vector_model)
            restored.lost_links = await self._put_back(transaction, copies)
            await self._note(transaction, tombstones, copies, set(restored.renewed_ids))
            restored.superseded_ids = await self._superseded(transaction, tombstones, copies)
            failpoint("restore.inserted")
            if copies:
                await transaction.archived.record_copies(copies, await archive_id(archive))
            await transaction.archived.delete_tombstones(restored.memory_ids)
            await mark_restored_stale(transaction, restored.memory_ids)
            failpoint("restore.unburied")
        failpoint("restore.committed")
        tasks = {copy["task_id"] for copy in copies.values() if copy["task_id"] is not None}
        await self._parts.working.forget(self._caller.agent_id, sorted(tasks))
        return restored

    async def _read(
        self, archive: Archive, transaction: MemoryTransaction
    ) -> tuple[dict[UUID, Row], dict[UUID, JsonObject], Restored]:
        """Returns locked tombstones, their copies, and the first part of the result.

        Unreadable copies and orphans do not count to the limit.
        """
        deadline = Deadline()
        page = _Page(ends=None if self._params.cursor is None else read_cursor(self._params.cursor, _place))
        refused: list[UUID] = []
        unreadable: list[UUID] = []
        while deadline.leaves_time():
            page = await self._read_page(archive, transaction, page.ends)
            refused += page.refused_ids
            unreadable += page.unreadable_ids
            if page.copies or page.ends is None:
                break
        restored = Restored(
            [*page.copies],
            refused_ids=sorted(refused[:MOST_REFUSED_TOLD]),
            unreadable_ids=sorted(unreadable[:MOST_REFUSED_TOLD]),
        )
        if page.ends is not None:
            restored.complete, restored.next_cursor = False, _cursor(page.ends)
        return page.tombstones, page.copies, restored

    async def _read_page(self, archive: Archive, transaction: MemoryTransaction, behind: Place | None) -> _Page:
        named, conditions = self._params.memory_ids, self._params.conditions()
        limit = self._params.limit if named is None else len(named)
        claimed = await transaction.archived.claim(named, conditions, limit + 1, behind)
        tombstones = {row["memory_id"]: row for row in claimed[:limit] if row["object_key"] is not None}
        failpoint("restore.claimed")
        await self._refuse_wrong_ids(transaction, tombstones)
        copies, failures = await read_copies(archive, {each: _kept(row) for each, row in tombstones.items()})
        if named is not None and failures and not copies:
            raise await _located(archive, *min(failures.items()), tombstones)
        failpoint("restore.read")
        orphaned = await orphans(transaction, copies)
        self._refuse_orphans(orphaned)
        ends = _where(claimed[limit - 1]) if len(claimed) > limit else None
        copies = {memory_id: copy for memory_id, copy in copies.items() if memory_id not in orphaned}
        restorable = {memory_id: tombstones[memory_id] for memory_id in copies}
        return _Page(restorable, copies, [*orphaned], [*failures], ends)

    def _refuse_orphans(self, orphaned: Mapping[UUID, UUID]) -> None:
        if self._params.memory_ids is not None and orphaned:
            memory_id, source = min(orphaned.items())
            raise Conflict(
                f"memory {memory_id} does not come back: memory {source}, which it was made of, was deleted "
                "or has other words",
                data={"memory_id": str(memory_id), "made_of": str(source)},
            )

    def _archive(self) -> Archive:
        if self._parts.archive is None:
            raise DependencyUnavailable("This service keeps no archive (MEMORY_ARCHIVAL_ENABLED=false).")
        return self._parts.archive

    async def _refuse_wrong_ids(self, transaction: MemoryTransaction, tombstones: Mapping[UUID, Row]) -> None:
        named = self._params.memory_ids or ()
        there = await transaction.archived.lock_existing(tombstones) | await transaction.archived.visible_ids(named)
        if there:
            first = min(there)
            raise Conflict(f"memory {first} is there already", data={"memory_id": str(first)})
        missing = set(named) - tombstones.keys()
        if missing:
            raise NotFound("No such archived memory.", data={"memory_id": str(min(missing))})

    async def _put_back(
        self, transaction: MemoryTransaction, copies: Mapping[UUID, Mapping[str, Any]]
    ) -> list[LostLink]:
        rows = list(copies.values())
        archived, tables = transaction.archived, await transaction.archived.columns()
        await archived.restore_rows("memories", tables["memories"], [_exact(row) for row in rows])
        await transaction.clusters.enqueue_late(copies)
        await archived.restore_rows("memory_history", tables["memory_history"], _parts_of(rows, "history"))
        await archived.restore_rows("memory_usage", tables["memory_usage"], _used(rows))
        lost = await self._put_back_links(transaction, rows, tables["memory_links"])
        if rows:
            await transaction.append_terms([row["term_keys"] for row in rows], sign=1)
            if self._parts.relations is not None:
                await transaction.relations.enqueue(sorted(copies))
            long = [each for each, row in sorted(copies.items()) if is_long(row["content"])]
            await transaction.passages.enqueue(long)
        return lost

    async def _put_back_links(
        self, transaction: MemoryTransaction, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
    ) -> list[LostLink]:
        """Restores links whose other memory exists; returns the others."""
        archived = transaction.archived
        # Links from messages to ones they make outdated are classified again.
        ties = [tie for tie in _parts_of(rows, "links") if tie["relation"] != CHANGES]
        held = await archived.lock_existing({UUID(tie[end]) for tie in ties for end in ("source_id", "target_id")})
        whole, lost = [], []
        for tie in ties:
            source_id, target_id = UUID(tie["source_id"]), UUID(tie["target_id"])
            if {source_id, target_id} <= held:
                whole.append(tie)
            else:
                here, other = (source_id, target_id) if source_id in held else (target_id, source_id)
                lost.append(LostLink(memory_id=here, other_id=other, relation=tie["relation"]))
        await archived.restore_rows("memory_links", columns, whole)
        return lost

    async def _superseded(
        self, transaction: MemoryTransaction, tombstones: Mapping[UUID, Row], copies: Mapping[UUID, Mapping[str, Any]]
    ) -> list[UUID]:
        stated = {
            memory_id: subjects_of(self._caller.agent_id, rule_columns_of(copy))
            for memory_id, copy in copies.items()
            if copy["superseded_by"] is None
        }
        await transaction.subjects.learn(stated)
        archived_at = {memory_id: row["archived_at"] for memory_id, row in tombstones.items()}
        overtaken = await supersede_overtaken(transaction, self._caller, copies, stated, archived_at)
        return overtaken + await supersede_followers(transaction, self._caller, copies, archived_at)

    async def _note(
        self,
        transaction: MemoryTransaction,
        tombstones: Mapping[UUID, Row],
        copies: Mapping[UUID, Mapping[str, Any]],
        renewed: set[UUID],
    ) -> None:
        for memory_id, row in tombstones.items():
            before = {"archived_at": row["archived_at"].isoformat(), "reason": row["reason"]}
            after = {"expires_at": copies[memory_id]["expires_at"]} if memory_id in renewed else {}
            source = self._caller.token_id, self._caller.trace_id
            await transaction.history.append(Change(memory_id, "restore", None, *source, before, after))


def _where(row: Row) -> Place:
    return row["archived_at"], row["memory_id"]


def _kept(row: Row) -> ArchivedObject:
    return ArchivedObject(row["object_key"], bytes(row["sha256"]), row["size_bytes"])


async def _located(
    archive: Archive, memory_id: UUID, failure: NotFound | Conflict, tombstones: Mapping[UUID, Row]
) -> NotFound | Conflict:
    place = tombstones[memory_id]["archive_id"]
    if place == await archive_id(archive):
        return failure
    where = {**failure.data, "archive_id": str(place)}
    return NotFound(
        f"The copy of memory {memory_id} is in archive {place}, which this server does not use.", data=where
    )


def _renew(copies: Mapping[UUID, JsonObject], tombstones: Mapping[UUID, Row], now: datetime) -> list[UUID]:
    renewed = []
    for memory_id, copy in copies.items():
        if copy["pinned"] or copy["expires_at"] is None:
            continue
        ends_at = datetime.fromisoformat(copy["expires_at"])
        if ends_at <= now:
            left = max(ends_at - tombstones[memory_id]["archived_at"], LEAST_TIME_LEFT)
            copy["expires_at"] = (now + left).isoformat()
            renewed.append(memory_id)
    return renewed


def _without_old_vectors(copies: Mapping[UUID, JsonObject], model: str) -> list[UUID]:
    made = (model, refused_by(model))
    waiting = [memory_id for memory_id, copy in copies.items() if copy["embedding_model"] not in made]
    for memory_id in waiting:
        copies[memory_id] |= {"embedding": None, "embedding_model": None}
    return waiting


def _used(rows: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    used = (row for row in rows if row["last_accessed"] is not None)
    return [{name: row[name] for name in _USAGE if name in row} for row in used]


def _exact(row: Mapping[str, Any]) -> JsonObject:
    vector = vector_of(row)
    words = {name: str(value) for name, value in row.items() if isinstance(value, float)}
    return {**row, **words, "embedding": None if vector is None else vector.to_text()}


def _parts_of(rows: Iterable[Mapping[str, Any]], name: str) -> list[JsonObject]:
    return [part for row in rows for part in row.get(name, ())]


async def archived(
    parts: MemoryParts, caller: Caller, params: ArchivedParams
) -> tuple[list[ArchivedMemory], str | None]:
    """Returns a page, and the next cursor, if any. Raises InvalidParams for an invalid cursor."""
    place, after_id = (None, None) if params.cursor is None else read_cursor(params.cursor, _place)
    rows = await parts.storage.archived(
        caller.agent_id, params.conditions(), place=place, after_id=after_id, limit=params.limit + 1
    )
    page = rows[: params.limit]
    cursor = _cursor(_where(page[-1])) if page and page[-1]["found"] > len(page) else None
    here = await _own_id(parts.archive) if page else None
    return [
        ArchivedMemory(
            **{
                **{name: row[name] for name in ArchivedMemory.model_fields if name in row},
                "sha256": bytes(row["sha256"]).hex(),
                "elsewhere": None if here is None else row["archive_id"] != here,
            }
        )
        for row in page
    ], cursor


async def _own_id(archive: Archive | None) -> UUID | None:
    """Returns None if the archive does not answer."""
    with suppress(DependencyUnavailable):
        return None if archive is None else await stored_id(archive)
    return None


def _cursor(place: Place) -> str:
    archived_at, memory_id = place
    return write_cursor([archived_at.isoformat(), str(memory_id)])


def _place(archived_at: Any, memory_id: Any) -> Place:
    moment = datetime.fromisoformat(archived_at)
    if moment.tzinfo is None:
        raise ValueError("no page ends there")
    return moment, UUID(memory_id)
