"""Folding: the deltas of the document frequencies are added up, the longest wait first, till none is left."""

from __future__ import annotations

from agentcore.database import Database, query

AGENTS_A_TURN = 500
DELTAS_A_FOLD = 1_000


async def fold_deltas(database: Database) -> int:
    """Fold what waits; how many deltas. An agent with many takes turns with the others."""
    folded = 0
    while True:
        async with database.owner_transaction() as connection:
            cursor = await connection.execute(query("agents_with_deltas"), {"limit": AGENTS_A_TURN})
            agents = [row["agent_id"] for row in await cursor.fetchall()]
        counts = [await _fold(database, agent_id) for agent_id in agents]
        folded += sum(counts)
        # Nothing folded means that another process holds what is there.
        waiting = len(agents) == AGENTS_A_TURN or DELTAS_A_FOLD in counts
        if not waiting or sum(counts) == 0:
            return folded


async def _fold(database: Database, agent_id: str) -> int:
    async with database.owner_transaction() as connection:
        cursor = await connection.execute(
            query("fold_lexical_deltas"), {"agent_id": agent_id, "limit": DELTAS_A_FOLD}
        )
        [row] = await cursor.fetchall()
        await connection.execute(
            query("forget_empty_terms"), {"agent_id": agent_id, "empty_keys": row["empty_keys"]}
        )
        await connection.execute(query("forget_empty_totals"), {"agent_id": agent_id})
    return int(row["delta_count"])
