"""Folding: the deltas of the document frequencies are added up, agent by agent."""

from __future__ import annotations

from agentcore.database import Database, query

AGENTS_A_ROUND = 500
DELTAS_A_FOLD = 200


async def fold_deltas(database: Database) -> int:
    """Fold what waits; how many agents had something."""
    async with database.owner_transaction() as connection:
        rows = await (
            await connection.execute(query("agents_with_deltas"), {"limit": AGENTS_A_ROUND})
        ).fetchall()
    for row in rows:
        async with database.owner_transaction() as connection:
            await connection.execute(
                query("fold_lexical_deltas"), {"agent_id": row["agent_id"], "limit": DELTAS_A_FOLD}
            )
    return len(rows)
