"""Rows of archived memories, and of everything that erasing removes. Inside one transaction."""

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
    """Where an archived memory's copy is, how to know it is whole, and what the memory is chosen by."""

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
    """The archived memories of one agent inside one transaction."""

    async def bury(self, tombstones: Iterable[Tombstone]) -> None:
        """Remember where removed memories' copies are."""
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
        """Records that these memories have, or will have, a copy in that archive."""
        await self._run("record_copies", memory_ids=list(memory_ids), archive_id=archive_id)

    async def claim(
        self,
        memory_ids: Sequence[UUID] | None,
        conditions: Mapping[str, Any],
        limit: int,
        behind: tuple[datetime, UUID] | None = None,
    ) -> list[Row]:
        """The tombstones that are named or match, last archived first; others wait for them to be let go.

        `object_key` is None where another took it first.
        `behind`: those that come after this place, when one was archived and its id.
        """
        named = None if memory_ids is None else list(memory_ids)
        place, after_id = (None, None) if behind is None else behind
        where = {"filter": Jsonb(conditions), "place": place, "after_id": after_id, "limit": limit}
        return await self._rows("claim_tombstones", memory_ids=named, **where)

    async def unbury(self, memory_ids: Sequence[UUID]) -> None:
        """Forget the tombstones of memories that are back."""
        await self._run("delete_tombstones", memory_ids=list(memory_ids))

    async def note_archive(self, digests: Mapping[UUID, bytes], archive_id: UUID) -> None:
        """Records that the copies with these digests are in that archive."""
        if digests:
            copies = {"memory_ids": list(digests), "digests": list(digests.values())}
            agent_ids = [self._agent_id] * len(digests)
            await self._run("note_archive", agent_ids=agent_ids, **copies, archive_id=archive_id)

    async def visible(self, memory_ids: Sequence[UUID]) -> set[UUID]:
        """Which of these are memories of the agent."""
        return {row["memory_id"] for row in await self._rows("visible_ids", memory_ids=list(memory_ids))}

    async def held(self, memory_ids: Iterable[UUID]) -> set[UUID]:
        """Which of these have a row, be it expired; they keep it until the transaction ends."""
        return {row["memory_id"] for row in await self._rows("held_ids", memory_ids=list(memory_ids))}

    async def buried(self, memory_ids: Iterable[UUID]) -> set[UUID]:
        """Which of these are archived."""
        return {row["memory_id"] for row in await self._rows("buried_ids", memory_ids=list(memory_ids))}

    async def columns(self) -> dict[str, list[str]]:
        """The columns of each table that a memory has rows in."""
        return {row["name"]: row["columns"] for row in await self._rows("table_columns")}

    async def put_back(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows of the agent as they were archived; what the table has no column for is left out."""
        owned = ({**row, "agent_id": self._agent_id} for row in rows)
        for shape, alike in groupby(owned, key=lambda row: [name for name in columns if name in row]):
            group = [{name: row[name] for name in shape} for row in alike]
            names = sql.SQL(", ").join(map(sql.Identifier, shape))
            statement = shaped_query("put_back", table=sql.Identifier(table), columns=names)
            for start in range(0, len(group), ROWS_A_STATEMENT):
                values = {"rows": Jsonb(group[start : start + ROWS_A_STATEMENT])}
                await self._connection.execute(statement, values)


class EraseRows(OwnedRows):
    """The rows of one agent inside one transaction; tables and columns are those of the inventory."""

    async def hold_layers(self, layers: Sequence[str]) -> None:
        """Wait until no prune of these layers copies anything, and let none begin before the end."""
        await self._rows("hold_layers", layers=list(layers))

    async def memories(self, user_id: str | None) -> list[UUID]:
        """The agent's memories, or a user's."""
        return [row["memory_id"] for row in await self._rows("erasable_memories", user_id=user_id)]

    async def tombstones(self, user_id: str | None) -> dict[UUID, Row]:
        """Archived memories: all, or a user's own and those that name no user."""
        rows = await self._rows("erasable_tombstones", user_id=user_id)
        return {row["memory_id"]: row for row in rows}

    async def copies(self, user_id: str | None) -> list[Row]:
        """Returns every copy in an archive: of all, or a user's and those that name no user."""
        return await self._rows("erasable_copies", user_id=user_id)

    async def known(self, memory_ids: Iterable[UUID]) -> set[UUID]:
        """Which of these have a row, or are archived under a user's name."""
        return {row["memory_id"] for row in await self._rows("known_ids", memory_ids=list(memory_ids))}

    async def derived(self, memory_ids: Iterable[UUID], relation: str, user_id: str | None) -> list[UUID]:
        """Memories without a user that were made of these, or of others of the user."""
        values = {"memory_ids": list(memory_ids), "relation": relation, "user_id": user_id}
        rows = await self._rows("derived_memories", **values)
        return [row["memory_id"] for row in rows]

    async def hold_tombstones(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Locks those of these that are archived until the end; returns keys, users and archives."""
        return await self._rows("hold_tombstones", memory_ids=list(memory_ids))

    async def name_tombstones(self, memory_ids: Sequence[UUID], user_id: str | None) -> None:
        """Lets those of these archived memories, and of their copies, that name no user be this one's."""
        for statement in ("name_tombstones", "name_copies"):
            await self._run(statement, memory_ids=list(memory_ids), user_id=user_id)

    async def hold(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Those of these memories that there are, with `texts`, all that they ever said."""
        return await self._rows("hold_erasable", memory_ids=list(memory_ids))

    async def erase(self, table: str, column: str, memory_ids: Sequence[UUID]) -> int:
        """Remove these memories' rows of a table; how many."""
        shape = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        return await self._count(shaped_query("erase_rows", **shape), memory_ids=list(memory_ids))

    async def erase_copies(self, memory_ids: Sequence[UUID], archive_id: UUID | None) -> int:
        """Removes the records of these memories' copies in an archive; how many."""
        return await self._count(query("erase_copies"), memory_ids=list(memory_ids), archive_id=archive_id)

    async def erase_ended_tasks(self, task_ids: Iterable[str]) -> int:
        """Forget that tasks have ended of which no memory is left; how many."""
        return await self._count(query("erase_ended_tasks"), task_ids=list(task_ids))

    async def erase_word_counts(self) -> Row:
        """Remove the word counts of an agent that has no memories; rows by table."""
        await self._rows("hold_lexical_totals")
        return (await self._rows("erase_word_counts"))[0]

    async def erase_table(self, table: str) -> int:
        """Remove all that an agent without memories has in a table; how many rows."""
        return await self._count(shaped_query("erase_table", table=sql.Identifier(table)))

    async def count(self, table: str) -> int:
        """How many rows the agent has in a table."""
        return await self._count(shaped_query("count_table", table=sql.Identifier(table)))

    async def _count(self, statement: sql.SQL | sql.Composed, **values: Any) -> int:
        [row] = await self._rows(statement, **values)
        return int(next(iter(row.values())))
