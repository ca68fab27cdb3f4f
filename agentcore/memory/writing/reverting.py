"""A memory's past: what was changed, and the way back to an earlier version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.params.changes import HistoryEntry, HistoryParams, RevertParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.writing.changing import TRACKED, Changing, Wanted

EXPIRED = "expires_at: that time is over; the memory expires when it would have without the revert"
PROMOTED = "memory_type: it was promoted since then, and keeps its layer and its expiry"
NOT_TIED = "links: a memory it was tied to is gone; that tie stays away"


class Reverting(Changing):
    """One return of one memory to how it stood at an earlier version."""

    operation = "revert"

    def __init__(self, parts: MemoryParts, caller: Caller, params: RevertParams) -> None:
        super().__init__(parts, caller, params.memory_id, params.if_version)
        self._version = params.version

    async def _wanted(self, row: Row) -> Wanted:
        if self._version >= row["version"]:
            raise InvalidParams(
                f"version is not an earlier one: the memory stands at {row['version']}",
                data={"field": "version"},
            )
        changes = await self._changes_since(row)
        earlier = _fields_before(changes)
        expiry = self._expiry(earlier)
        cut, put = await self._ties_back(changes)
        return Wanted(
            content=earlier.get("content"),
            columns={name: earlier[name] for name in TRACKED if name in earlier and name != "content"},
            **expiry,
            current=row["superseded_by"] is not None and earlier.get("superseded_by", "") is None,
            cut=cut,
            put=put,
            told={"to_version": self._version},
        )

    def _expiry(self, earlier: Mapping[str, Any]) -> dict[str, Any]:
        if "memory_type" in earlier:
            # It was promoted since: it stays in its layer, and lives as long as that lets it.
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

    async def _changes_since(self, row: Row) -> list[Row]:
        """Returns every later change, latest first. Raises Conflict if one is not recorded."""
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            changes = await transaction.history.since(self.memory_id, self._version)
        # Changes made meanwhile are left out: the write then finds another version, and reads anew.
        changes = [change for change in changes if change["version"] <= row["version"]]
        if [change["version"] for change in changes] != list(range(row["version"], self._version, -1)):
            raise Conflict(
                "the history does not hold every change since that version",
                data={"version": row["version"]},
            )
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
        others = {tie[end] for tie in put.values() for end in ("source_id", "target_id")}
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            there = await transaction.existing(others)
        # One that goes between here and the write makes that NotFound; asked again, the tie stays away.
        possible = [tie for tie in put.values() if {tie["source_id"], tie["target_id"]} <= there]
        if len(possible) < len(put):
            self.degraded.append(NOT_TIED)
        return list(cut.values()), possible


def _fields_before(changes: Sequence[Row]) -> dict[str, Any]:
    earlier: dict[str, Any] = {}
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
    """The memory as it stands, a page of its changes and the cursor of the next. Raises NotFound."""
    records = await parts.storage.get(caller.agent_id, [params.memory_id])
    if params.memory_id not in records:
        raise NotFound(data={"memory_id": str(params.memory_id)})
    record = records[params.memory_id]
    rows = await parts.storage.history(
        caller.agent_id, params.memory_id, params.cursor, params.limit + 1
    )
    page = rows[: params.limit]
    cursor = page[-1]["number"] if page and page[-1]["found"] > len(page) else None
    standing = {name: getattr(record, name) for name in ("version", "created_at", "provenance")}
    return standing, [HistoryEntry.model_construct(**row) for row in page], cursor
