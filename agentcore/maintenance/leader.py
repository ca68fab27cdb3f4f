"""Leadership: of all processes on one database, one does the background work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentcore.database import Connection, Database, translated_errors

LOCK_KEY = 5_520_981_347_702_114_403


class Lead:
    """The lead, held by a connection: it is lost when that is."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def confirm(self) -> None:
        """Raise DependencyUnavailable if the lead is lost."""
        with translated_errors():
            await self._connection.execute("SELECT 1")


@asynccontextmanager
async def leadership(database: Database) -> AsyncIterator[Lead | None]:
    """The lead for as long as the block runs; None if another process has it."""
    async with database.owner_autocommit() as connection:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s) AS leads", (LOCK_KEY,))
        row = await cursor.fetchone()
        yield Lead(connection) if row and row["leads"] else None
