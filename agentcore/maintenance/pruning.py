"""Automatic pruning: a layer that holds more than its capacity goes back to it."""

from __future__ import annotations

from datetime import timedelta

from agentcore.database import Database, query
from agentcore.errors import Conflict
from agentcore.maintenance.jobs import Work, job
from agentcore.memory.consequences.capacity import PRUNE_LAYER
from agentcore.memory.forgetting.removing import Pruning
from agentcore.memory.models import MemoryType
from agentcore.memory.params.memories import PruneParams
from agentcore.memory.parts import MemoryParts

BUSY_SECONDS = 5.0


@job
async def prune_layer(work: Work, layer: str) -> None:
    """Prune one layer down to its capacity, by the service's strategy; the rest is left to another job."""
    params, wait_seconds = PruneParams(memory_layer=MemoryType(layer)), 0.0
    try:
        removed = await Pruning(work.parts, work.caller, params, capacity_only=True).run()
        complete = removed.complete
    except Conflict:
        # Somebody prunes the layer just now, and perhaps not down to its capacity.
        complete, wait_seconds = False, BUSY_SECONDS
    if not complete:
        not_before = work.parts.clock() + timedelta(seconds=wait_seconds)
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(PRUNE_LAYER, layer=layer, not_before=not_before)


async def enqueue_missed(database: Database, parts: MemoryParts) -> int:
    """Enqueue the pruning of every layer that holds too much; how many there are.

    A store sees to its own layer. What it cannot see are stores that fill a layer side by side, and a
    capacity that was set later.
    """
    capacities = parts.capacities
    values = {"layers": [*MemoryType], "capacities": [capacities.get(layer, 0) for layer in MemoryType]}
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("agents_over_capacity"), values)).fetchall()
    for row in rows:
        async with parts.storage.transaction(row["agent_id"]) as transaction:
            await transaction.jobs.enqueue(PRUNE_LAYER, layer=row["layer"])
    return len(rows)
