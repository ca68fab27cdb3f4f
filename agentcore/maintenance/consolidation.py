"""Consolidation in the background: for agents that wish it, where enough new episodes have gathered."""

from __future__ import annotations

from typing import Any

from agentcore.database import Database, query
from agentcore.maintenance.jobs import Work, job
from agentcore.memory.deriving.consolidating import LEAST_AGE, Consolidating
from agentcore.memory.params.layers import ConsolidateParams
from agentcore.memory.parts import MemoryParts
from agentcore.summary_rules import BY_MODEL

CONSOLIDATE_EPISODES = "consolidate_episodes"
# Fewer new episodes wait for more of them.
LEAST_EPISODES = 20


@job
async def consolidate_episodes(work: Work) -> None:
    """Look at the agent's new episodes for a short time; the rest is left to another job."""
    async with work.transaction() as transaction:
        wish, _ = await transaction.clusters.settings()
        rules = await transaction.llm.summary_rules()
    if not wish.get("consolidate"):
        return
    params: dict[str, Any] = {}
    days = wish.get("archive_sources_after_days", 0)
    if days and work.parts.archive is not None:
        params = {"archive_sources": True, "archive_sources_after_days": days}
    by_model = rules is not None and rules.provider in BY_MODEL
    done = await Consolidating(work.parts, work.caller, ConsolidateParams(**params), by_model=by_model).run()
    if not done.complete:
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(CONSOLIDATE_EPISODES)


async def enqueue_consolidations(database: Database, parts: MemoryParts) -> int:
    """Enqueue the consolidation of every agent that wishes it and has enough new episodes; how many."""
    values = {"before": parts.clock() - LEAST_AGE, "least": LEAST_EPISODES}
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("agents_to_consolidate"), values)).fetchall()
    for row in rows:
        async with parts.storage.transaction(row["agent_id"]) as transaction:
            await transaction.jobs.enqueue(CONSOLIDATE_EPISODES)
    return len(rows)
