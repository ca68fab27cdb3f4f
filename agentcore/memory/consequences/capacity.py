"""Capacity: a store that fills a layer beyond it has the layer pruned in the background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from agentcore.memory.storage import MemoryTransaction, job_lock

PRUNE_LAYER = "prune_layer"
# Deciding reads the whole layer: a large one gathers more before it is done again.
MEMORIES_A_SECOND = 1_000
LONGEST_WAIT_SECONDS = 300.0


async def watch_capacity(
    transaction: MemoryTransaction, capacities: Mapping[str, int], layers: Iterable[str], now: datetime
) -> None:
    """Enqueue the pruning of those of these layers that hold too much. The last act of its transaction.

    `capacities` are the service's, by layer; an agent's own go before them.
    """
    watched = {layer: capacities.get(layer, 0) for layer in sorted(set(layers))}
    if not watched:
        return
    locks = [job_lock(PRUNE_LAYER, layer=layer) for layer in watched]
    for layer, capacity in await transaction.jobs.over_capacity(watched, locks):
        wait_seconds = min(LONGEST_WAIT_SECONDS, capacity / MEMORIES_A_SECOND)
        await transaction.jobs.enqueue(
            PRUNE_LAYER, layer=layer, not_before=now + timedelta(seconds=wait_seconds)
        )
