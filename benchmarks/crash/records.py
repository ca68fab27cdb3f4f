"""All rows of a memory in PostgreSQL, byte for byte: a restore must reproduce them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

# A restore appends to the history.
ROWS = {
    "memories": "SELECT m.memory_id, m::text AS row FROM memories m",
    "memory_usage": "SELECT m.memory_id, m::text AS row FROM memory_usage m",
    "memory_history": "SELECT m.memory_id, m::text AS row FROM memory_history m WHERE m.operation <> 'restore'",
    "memory_links": "SELECT m.source_id AS memory_id, m::text AS row FROM memory_links m",
}
Records = Mapping[UUID, Sequence[str]]


async def records(database_url: str, agent_id: str) -> dict[UUID, list[str]]:
    """Returns each memory's rows as PostgreSQL text with their table names, sorted."""
    found: dict[UUID, list[str]] = {}
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as connection:
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        for table, statement in ROWS.items():
            for row in await _rows(connection, statement, agent_id):
                found.setdefault(row["memory_id"], []).append(f"{table} {row['row']}")
    return {memory_id: sorted(rows) for memory_id, rows in found.items()}


async def _rows(connection: Any, statement: str, agent_id: str) -> list[dict[str, Any]]:
    joint = "AND" if "WHERE" in statement else "WHERE"
    cursor = await connection.execute(f"{statement} {joint} m.agent_id = %s", (agent_id,))
    rows: list[dict[str, Any]] = await cursor.fetchall()
    return rows
