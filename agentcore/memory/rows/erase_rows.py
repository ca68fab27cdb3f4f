"""What erasing finds and removes as rows, expired, pinned and superseded ones too. Inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg import sql

from agentcore.database import query, shaped_query
from agentcore.memory.rows.owned_rows import OwnedRows, Row


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
        """Let those of these archived memories that name no user be this one's."""
        await self._run("name_tombstones", memory_ids=list(memory_ids), user_id=user_id)

    async def hold(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Those of these memories that there are, with `texts`, all that they ever said."""
        return await self._rows("hold_erasable", memory_ids=list(memory_ids))

    async def erase(self, table: str, column: str, memory_ids: Sequence[UUID]) -> int:
        """Remove these memories' rows of a table; how many."""
        shape = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        return await self._count(shaped_query("erase_rows", **shape), memory_ids=list(memory_ids))

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

