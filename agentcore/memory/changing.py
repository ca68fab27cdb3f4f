"""Changing, as stories: update a memory, complete a task."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agentcore.errors import Conflict, DependencyUnavailable, InvalidParams, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.embeddings import refused_by
from agentcore.memory.intake import check_length, is_long_work, subjects_of, text_columns
from agentcore.memory.params import UpdateParams, Updates
from agentcore.memory.parts import MemoryParts
from agentcore.memory.refusals import NOT_EMBEDDED, REFUSED, embed_each
from agentcore.memory.storage import Change, MemoryTransaction, Row

UPDATE_ATTEMPTS = 5
_TRACKED = ("content", "relevance_score", "tags", "metadata", "pinned")
_KEPT = (
    "content",
    "summary",
    "embedding",
    "embedding_model",
    "entities",
    "entity_keys",
    "facts",
    "keywords",
    "event_from",
    "event_to",
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
        self.degraded: list[str] = []

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
            check_length(content, "updates.context")
        if content is None or content == row["content"]:
            return {}
        arguments = self._caller.agent_id, content, row["speaker"], self._parts.count_tokens, row["timestamp"]
        if is_long_work(len(content)):
            columns, text = await asyncio.to_thread(text_columns, *arguments)
        else:
            columns, text = text_columns(*arguments)
        return {**columns, "content": content, **await self._vector_of(text)}

    async def _vector_of(self, text: str) -> dict[str, Any]:
        """The vector's columns; without one, what the maintenance needs to know to embed it later."""
        self.degraded = []
        columns: dict[str, Any] = {"embedding": None, "embedding_model": None}
        if self._parts.embedder is None:
            return columns
        try:
            [vector] = await embed_each(self._parts.embedder, [text], "document")
        except DependencyUnavailable:
            self.degraded = [NOT_EMBEDDED]
            return columns
        if vector is None:
            self.degraded = [REFUSED]
            return {**columns, "embedding_model": refused_by(self._parts.vector_model)}
        return {"embedding": vector, "embedding_model": self._parts.vector_model}

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
        columns["never_expires"] = _never_expires(self._updates)
        if changed:
            await transaction.append_terms([row["term_keys"]], sign=-1)
            await transaction.append_terms([columns["term_keys"]], sign=1)
            await transaction.aliases.learn_anew(self._memory_id, changed["aliases"])
        await self._restate(transaction, row, columns)
        await self._relate(transaction)
        before, after = _difference(row, columns, self._updates)
        await transaction.record(
            Change(self._memory_id, "update", self._caller.token_id, self._caller.trace_id, before, after)
        )
        return await transaction.update(self._memory_id, columns)

    async def _restate(self, transaction: MemoryTransaction, row: Row, columns: Mapping[str, Any]) -> None:
        """Keep of what the memory states something, unless another holds in its place."""
        keys = subjects_of(self._caller.agent_id, {**row, **columns})
        if self._updates.current:
            await transaction.subjects.reinstate(self._memory_id, keys)
        elif row["superseded_by"] is None and columns["content"] != row["content"]:
            await transaction.subjects.learn_anew(self._memory_id, keys)

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


def _never_expires(updates: Updates) -> bool:
    return "ttl_seconds" in updates.model_fields_set and updates.ttl_seconds is None


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
    if "ttl_seconds" in updates.model_fields_set:
        before["expires_at"] = row["expires_at"] and row["expires_at"].isoformat()
    if updates.current:
        before["superseded_by"] = row["superseded_by"] and str(row["superseded_by"])
        before["valid_to"] = row["valid_to"] and row["valid_to"].isoformat()
    named = {"ttl_seconds", "links", "unlink", "current"}
    asked = updates.model_dump(mode="json", include=named, exclude_unset=True)
    return before, after | asked


async def complete_task(parts: MemoryParts, caller: Caller, task_id: str) -> int:
    """Clear a task's working memory; how many memories it held."""
    held = await parts.storage.working_rows(caller.agent_id, task_id, parts.working.ttl_seconds)
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await transaction.complete_task(task_id)
    await parts.working.forget(caller.agent_id, [task_id])
    return len(held)
