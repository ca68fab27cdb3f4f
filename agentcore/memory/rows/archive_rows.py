"""Rows of archived memories and of erasure, of one agent in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import query, shaped_query
from agentcore.memory.rows.memory_rows import OwnedRows, Row

ROWS_A_STATEMENT = 50


@dataclass(frozen=True)
class Tombstone:
    """The archive record of a pruned memory: its object's location and digest, and its filter columns."""

    memory_id: UUID
    version: int
    memory_type: str
    object_key: str
    sha256: bytes
    size_bytes: int
    reason: str
    timestamp: datetime
    task_id: str | None
    session_id: str | None
    user_id: str | None
    users: Sequence[str]
    namespace: str | None
    tags: Sequence[str]
    archive_id: UUID


class ArchiveRows(OwnedRows):
    async def write_tombstones(self, tombstones: Iterable[Tombstone]) -> None:
        rows = [
            {
                **asdict(each),
                "memory_id": str(each.memory_id),
                "archive_id": str(each.archive_id),
                "sha256": f"\\x{each.sha256.hex()}",
                "timestamp": each.timestamp.isoformat(),
            }
            for each in tombstones
        ]
        if rows:
            await self._run("insert_tombstones", rows=Jsonb(rows))

    async def record_copies(self, memory_ids: Iterable[UUID], archive_id: UUID) -> None:
        await self._run("record_copies", memory_ids=list(memory_ids), archive_id=archive_id)

    async def claim(
        self,
        memory_ids: Sequence[UUID] | None,
        conditions: Mapping[str, Any],
        limit: int,
        after: tuple[datetime, UUID] | None = None,
    ) -> list[Row]:
        """Locks and returns tombstones that are named or match, newest first, after the key `after` (archived at, id).

        `object_key` is None if another transaction restored it first.
        """
        place, after_id = after or (None, None)
        return await self._rows(
            "claim_tombstones",
            memory_ids=None if memory_ids is None else list(memory_ids),
            filter=Jsonb(conditions),
            place=place,
            after_id=after_id,
            limit=limit,
        )

    async def delete_tombstones(self, memory_ids: Sequence[UUID]) -> None:
        await self._run("delete_tombstones", memory_ids=list(memory_ids))

    async def visible_ids(self, memory_ids: Sequence[UUID]) -> set[UUID]:
        return set(await self._ids("visible_ids", memory_ids=list(memory_ids)))

    async def lock_existing(self, memory_ids: Iterable[UUID]) -> set[UUID]:
        """Locks against deletion and returns those of these ids that have a row, expired or not."""
        return set(await self._ids("lock_existing", memory_ids=list(memory_ids)))

    async def archived_ids(self, memory_ids: Iterable[UUID]) -> set[UUID]:
        return set(await self._ids("archived_ids", memory_ids=list(memory_ids)))

    async def columns(self) -> dict[str, list[str]]:
        return {row["name"]: row["columns"] for row in await self._rows("table_columns")}

    async def restore_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Inserts archived rows; omits values without a column in the table."""
        owned = ({**row, "agent_id": self._agent_id} for row in rows)
        for shape, alike in groupby(owned, key=lambda row: [name for name in columns if name in row]):
            group = [{name: row[name] for name in shape} for row in alike]
            names = sql.SQL(", ").join(map(sql.Identifier, shape))
            statement = shaped_query("restore_rows", table=sql.Identifier(table), columns=names)
            for start in range(0, len(group), ROWS_A_STATEMENT):
                values = {"rows": Jsonb(group[start : start + ROWS_A_STATEMENT])}
                await self._connection.execute(statement, values)


class EraseRows(OwnedRows):
    """Rows to erase: an agent's, or one user's and archive records without a user.

    Table names come from `forgetting/inventory.py`.
    """

    async def lock_layers(self, layers: Sequence[str]) -> None:
        await self._rows("lock_layers", layers=list(layers))

    async def memories(self, user_id: str | None) -> list[UUID]:
        return await self._ids("erasable_memories", user_id=user_id)

    async def tombstones(self, user_id: str | None) -> dict[UUID, Row]:
        """Returns archived memories: all, or a user's and those without a user."""
        return {row["memory_id"]: row for row in await self._rows("erasable_tombstones", user_id=user_id)}

    async def copies(self, user_id: str | None) -> list[Row]:
        """Returns the copies in archives: all, or a user's and those without a user."""
        return await self._rows("erasable_copies", user_id=user_id)

    async def known_ids(self, memory_ids: Iterable[UUID]) -> set[UUID]:
        return set(await self._ids("known_ids", memory_ids=list(memory_ids)))

    async def derived(self, memory_ids: Iterable[UUID], relation: str, user_id: str | None) -> list[UUID]:
        """Returns memories without a user that derive from these memories."""
        return await self._ids("derived_memories", memory_ids=list(memory_ids), relation=relation, user_id=user_id)

    async def lock_tombstones(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Locks the tombstones of these memories; returns keys, users and archives."""
        return await self._rows("lock_tombstones", memory_ids=list(memory_ids))

    async def assign_user(self, memory_ids: Sequence[UUID], user_id: str | None) -> None:
        for statement in ("assign_user", "assign_user_of_copies"):
            await self._run(statement, memory_ids=list(memory_ids), user_id=user_id)

    async def lock_for_erasure(self, memory_ids: Sequence[UUID]) -> list[Row]:
        return await self._rows("lock_for_erasure", memory_ids=list(memory_ids))

    async def erase(self, table: str, column: str, memory_ids: Sequence[UUID]) -> int:
        """Deletes these memories' rows of a table; returns the number."""
        shape = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        return await self._count(shaped_query("erase_rows", **shape), memory_ids=list(memory_ids))

    async def erase_copies(self, memory_ids: Sequence[UUID], archive_id: UUID | None) -> int:
        """Deletes the records of these memories' copies in an archive; returns the number."""
        return await self._count(query("erase_copies"), memory_ids=list(memory_ids), archive_id=archive_id)

    async def erase_ended_tasks(self, task_ids: Iterable[str]) -> int:
        """Deletes the records of completed tasks that have no memory left."""
        return await self._count(query("erase_ended_tasks"), task_ids=list(task_ids))

    async def erase_word_counts(self) -> Row:
        """Deletes the term statistics if the agent has no memories; returns deleted rows by table."""
        await self._rows("lock_lexical_totals")
        return (await self._rows("erase_word_counts"))[0]

    async def erase_table(self, table: str) -> int:
        """Deletes all rows of the agent in a table; for an agent without memories. Returns their number."""
        return await self._count(shaped_query("erase_table", table=sql.Identifier(table)))

    async def count(self, table: str) -> int:
        return await self._count(shaped_query("count_table", table=sql.Identifier(table)))

    async def _count(self, statement: sql.SQL | sql.Composed, **values: Any) -> int:
        [row] = await self._rows(statement, **values)
        return int(next(iter(row.values())))
