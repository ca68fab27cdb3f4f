"""Leadership: of all processes on one database, one does the background work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentcore.database import Database

LOCK_KEY = 5_520_981_347_702_114_403


@asynccontextmanager
async def leadership(database: Database) -> AsyncIterator[bool]:
    """Whether this process leads, for as long as the block runs; the lock goes with the connection."""
    async with database.owner_autocommit() as connection:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s) AS leads", (LOCK_KEY,))
        row = await cursor.fetchone()
        yield bool(row and row["leads"])
