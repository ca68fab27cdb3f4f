"""Changing and removing, as stories: update, prune, delete, complete a task."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable, InvalidParams, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.archival import archive_memory
from agentcore.memory.intake import text_columns
from agentcore.memory.params import DeleteParams, PruneParams, UpdateParams, Updates
from agentcore.memory.parts import MemoryParts
from agentcore.memory.pruning import Prunable, PruningPolicy, decide
from agentcore.memory.storage import DELETE_CHUNK, Change, MemoryTransaction, Row

PRUNE_CHUNK = 100
ARCHIVE_CONCURRENCY = 8
UPDATE_ATTEMPTS = 5
_TRACKED = ("content", "relevance_score", "tags", "metadata", "pinned")
_KEPT = (
    "content",
    "summary",
    "embedding",
    "embedding_model",
    "entities",
    "facts",
    "keywords",
    "tags",
    "metadata",
    "relevance_score",
    "pinned",
    "content_hash",
    "term_keys",
    "token_count",
)


class Updating:
    """One update of one memory."""

    def __init__(self, parts: MemoryParts, caller: Caller, params: UpdateParams) -> None:
        self._parts = parts
        self._caller = caller
        self._memory_id = params.memory_id
        self._updates = params.updates

    async def run(self) -> int:
        """Change the memory; its new version.

        Raises NotFound, Conflict (another version than `if_version`), InvalidParams, DependencyUnavailable.
        """
        for _ in range(UPDATE_ATTEMPTS):
            found = await self._current()
            changed = await self._changed_text(found)
            version = await self._write(found, changed)
            if version is not None:
                return version
        raise Conflict("the memory is being changed by others all the time; try again")

    async def _current(self) -> Row:
        rows = await self._parts.storage.whole_rows(self._caller.agent_id, [self._memory_id])
        if not rows:
            raise NotFound(data={"memory_id": str(self._memory_id)})
        self._check_version(rows[0])
        return rows[0]

    def _check_version(self, row: Row) -> None:
        wanted = self._updates.if_version
        if wanted is not None and row["version"] != wanted:
            raise Conflict(
                f"the memory stands at version {row['version']}, not {wanted}",
                data={"version": row["version"]},
            )

    async def _changed_text(self, row: Row) -> dict[str, Any]:
        """The columns of the new text with its vector; nothing if the text stays. Embeds before any lock."""
        updates = self._updates
        content = updates.content
        if updates.context is not None:
            content = f"{row['content']}\n{updates.context}"
        if content is None or content == row["content"]:
            return {}
        columns, text = text_columns(self._caller.agent_id, content, row["speaker"], self._parts.count_tokens)
        columns |= {"content": content, "embedding": None, "embedding_model": None}
        if self._parts.embedder is not None:
            try:
                columns["embedding"] = (await self._parts.embedder.embed([text], "document"))[0]
                columns["embedding_model"] = self._parts.vector_model
            except DependencyUnavailable:
                pass  # the maintenance embeds what has no vector
        return columns

    async def _write(self, found: Row, changed: Mapping[str, Any]) -> int | None:
        """The new version; None if the memory changed since it was read."""
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            row = await transaction.lock(self._memory_id)
            if row is None:
                raise NotFound(data={"memory_id": str(self._memory_id)})
            self._check_version(row)
            if row["version"] != found["version"]:
                return None
            version = await self._apply(transaction, row, changed)
        if row["task_id"] is not None:
            await self._parts.working.forget(self._caller.agent_id, [row["task_id"]])
        return version

    async def _apply(self, transaction: MemoryTransaction, row: Row, changed: Mapping[str, Any]) -> int:
        columns = {**{name: row[name] for name in _KEPT}, **_plain_columns(self._updates, row), **changed}
        columns["ttl_seconds"] = self._updates.ttl_seconds
        if changed:
            await transaction.append_terms([row["term_keys"]], sign=-1)
            await transaction.append_terms([columns["term_keys"]], sign=1)
        await self._relate(transaction)
        before, after = _difference(row, columns, self._updates)
        await transaction.record(
            Change(self._memory_id, "update", self._caller.token_id, self._caller.trace_id, before, after)
        )
        return await transaction.update(self._memory_id, columns)

    async def _relate(self, transaction: MemoryTransaction) -> None:
        if self._updates.unlink:
            await transaction.unlink(self._memory_id, self._updates.unlink)
        targets = {link.target_id for link in self._updates.links}
        if self._memory_id in targets:
            raise InvalidParams("a memory cannot be linked to itself", data={"field": "updates.links"})
        missing = targets - await transaction.existing(targets)
        if missing:
            raise NotFound(data={"memory_id": str(min(missing))})
        await transaction.link(self._memory_id, self._updates.links)


def _plain_columns(updates: Updates, row: Row) -> dict[str, Any]:
    importance = updates.relevance_score if updates.relevance_score is not None else updates.importance
    columns: dict[str, Any] = {"relevance_score": importance, "tags": updates.tags, "pinned": updates.pinned}
    if updates.metadata is not None:
        merged = {**row["metadata"], **updates.metadata}
        columns["metadata"] = {name: value for name, value in merged.items() if value is not None}
    return {name: value for name, value in columns.items() if value is not None}


def _difference(
    row: Row, columns: Mapping[str, Any], updates: Updates
) -> tuple[dict[str, Any], dict[str, Any]]:
    changed = [name for name in _TRACKED if row[name] != columns[name]]
    before: dict[str, Any] = {name: row[name] for name in changed}
    after: dict[str, Any] = {name: columns[name] for name in changed}
    if updates.ttl_seconds is not None:
        before["expires_at"] = row["expires_at"] and row["expires_at"].isoformat()
    asked = updates.model_dump(mode="json", include={"ttl_seconds", "links", "unlink"}, exclude_defaults=True)
    return before, after | asked


async def prune(parts: MemoryParts, caller: Caller, params: PruneParams) -> list[UUID]:
    """Archive, then remove, what the strategy names; the ids that went (or would go in a dry run).

    A memory that changes or is pinned between its copy and its removal stays.
    """
    layer = params.memory_layer.value
    rows = await parts.storage.prunable(caller.agent_id, layer)
    named = "strategy" in params.model_fields_set
    strategy = params.strategy if named else parts.policy.pruning_strategy
    policy = PruningPolicy(strategy, parts.policy.capacities.get(layer, 0), params.target)
    going = decide([Prunable(**row) for row in rows], policy, parts.clock())
    if params.dry_run:
        return [each.memory_id for each in going]
    gone: list[UUID] = []
    for start in range(0, len(going), PRUNE_CHUNK):
        gone += await _prune_chunk(parts, caller, going[start : start + PRUNE_CHUNK], strategy)
    return gone


async def _prune_chunk(
    parts: MemoryParts, caller: Caller, going: Sequence[Prunable], reason: str
) -> list[UUID]:
    if parts.archive is None:
        return await _remove(parts, caller, [each.memory_id for each in going])
    archive, slots = parts.archive, asyncio.Semaphore(ARCHIVE_CONCURRENCY)
    rows = await parts.storage.whole_rows(caller.agent_id, [each.memory_id for each in going])

    async def copy(row: Row) -> tuple[Row, dict[str, Any]]:
        async with slots:
            kept = await archive_memory(archive, caller.agent_id, row)
        return row, {
            "memory_type": row["memory_type"],
            "object_key": kept.object_key,
            "sha256": kept.sha256,
            "size_bytes": kept.size_bytes,
            "reason": reason,
        }

    copies = await asyncio.gather(*(copy(row) for row in rows))
    removed: list[Row] = []
    async with parts.storage.transaction(caller.agent_id) as transaction:
        for row, tombstone in copies:
            removed += await transaction.delete_archived(row["memory_id"], row["version"], tombstone)
    await _forget_tasks(parts, caller, removed)
    gone = {row["memory_id"] for row in removed}
    return [each.memory_id for each in going if each.memory_id in gone]


async def delete(parts: MemoryParts, caller: Caller, params: DeleteParams) -> int:
    """Remove what is named or matches, however many; how many went."""
    if params.memory_ids is not None:
        return len(await _remove(parts, caller, params.memory_ids))
    deleted = 0
    while True:
        async with parts.storage.transaction(caller.agent_id) as transaction:
            rows = await transaction.delete_matching(params.conditions())
        await _forget_tasks(parts, caller, rows)
        deleted += len(rows)
        if len(rows) < DELETE_CHUNK:
            return deleted


async def _remove(parts: MemoryParts, caller: Caller, memory_ids: Sequence[UUID]) -> list[UUID]:
    async with parts.storage.transaction(caller.agent_id) as transaction:
        rows = await transaction.delete(memory_ids)
    await _forget_tasks(parts, caller, rows)
    return [row["memory_id"] for row in rows]


async def _forget_tasks(parts: MemoryParts, caller: Caller, rows: Sequence[Row]) -> None:
    await parts.working.forget(
        caller.agent_id, sorted({row["task_id"] for row in rows if row["task_id"] is not None})
    )


async def complete_task(parts: MemoryParts, caller: Caller, task_id: str) -> int:
    """Clear a task's working memory; how many memories it held."""
    held = await parts.storage.working_rows(caller.agent_id, task_id, parts.working.ttl_seconds)
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await transaction.complete_task(task_id)
    await parts.working.forget(caller.agent_id, [task_id])
    return len(held)
