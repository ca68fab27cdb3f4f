"""Expiry: what expired has been invisible since; here its rows go, and idempotency keys that are over."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from agentcore.database import Database, query
from agentcore.memory.storage import MemoryStorage
from agentcore.memory.working import WorkingMemory

ROWS_A_ROUND = 1_000
GRACE_SECONDS = 60


async def sweep_expired(database: Database, storage: MemoryStorage, working: WorkingMemory) -> int:
    """Remove expired memories, agent by agent; how many."""
    async with database.owner_transaction() as connection:
        await connection.execute(query("sweep_idempotency_keys"))
        cursor = await connection.execute(
            query("expired_memories"), {"limit": ROWS_A_ROUND, "grace_seconds": GRACE_SECONDS}
        )
        rows = await cursor.fetchall()
    swept = 0
    for agent_id, expired in groupby(rows, key=itemgetter("agent_id")):
        async with storage.transaction(agent_id) as transaction:
            gone = await transaction.delete_expired([row["memory_id"] for row in expired])
        await working.forget(agent_id, sorted({row["task_id"] for row in gone if row["task_id"] is not None}))
        swept += len(gone)
    return swept
