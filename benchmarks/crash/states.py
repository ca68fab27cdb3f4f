"""Random states of a memory: a dry run must name the memories that a prune removes, and no pinned one."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.memories import DeleteParams, ListParams, PruneParams, StoreBatchParams, StoreParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.pruning import STRATEGIES
from benchmarks.corpus import sentence

MOST = 24
OLDEST_DAYS = 400


@dataclass(frozen=True)
class Said:
    """The number of states, and of violations, each of which should be 0."""

    states: int = 0
    otherwise_than_said: int = 0
    pinned_taken: int = 0
    kept_wrongly: int = 0


async def prunes_as_said(parts: MemoryParts, states: int, chance: random.Random) -> Said:
    """Prunes this many random states, each with a dry run first."""
    found = [await _state(parts, chance) for _ in range(states)]
    return Said(states, *(sum(each) for each in zip(*found, strict=True)))


async def _state(parts: MemoryParts, chance: random.Random) -> tuple[int, int, int]:
    agent_id = f"state-{time.time_ns()}"
    memory = MemoryManager(parts, Caller(agent_id))
    items = [_item(chance, number) for number in range(chance.randint(1, MOST))]
    stored = (await memory.store_batch(StoreBatchParams(items=items))).results
    ids = [each.memory_id for each in stored if each.memory_id is not None]
    pinned = {each for each, item in zip(ids, items, strict=True) if item.pinned}
    used = {each: chance.randint(1, 200) for each in ids if chance.random() < 0.5}
    async with parts.storage.transaction(agent_id) as transaction:
        await transaction.life.count_accesses(used, {each: _moment(chance) for each in used})
    target = chance.choice([None, chance.randint(1, MOST), 1.0, max(0.01, round(chance.random(), 2))])
    params = PruneParams(
        memory_layer=chance.choice([MemoryType.EPISODIC, MemoryType.SEMANTIC]),
        target=target,
        strategy=chance.choice(sorted(STRATEGIES)),
        dry_run=True,
    )
    said = (await memory.prune(params)).memory_ids
    taken = (await memory.prune(params.model_copy(update={"dry_run": False}))).memory_ids
    left = {each.memory_id for each in (await memory.list(ListParams(limit=100))).memories}
    await memory.delete(DeleteParams(all=True, confirm=True))
    return int(said != taken), len(pinned & set(taken)), len(left ^ (set(ids) - set(taken)))


def _item(chance: random.Random, number: int) -> StoreParams:
    return StoreParams(
        content=f"State {number}: {sentence(chance)}",
        pinned=chance.random() < 0.25,
        importance=chance.choice([0.0, 0.5, 1.0, chance.random()]),
        timestamp=_moment(chance),
        force=True,
        memory_type=chance.choice([MemoryType.EPISODIC, MemoryType.SEMANTIC]),
    )


def _moment(chance: random.Random) -> datetime:
    """Returns a time that is often the same, to produce ties."""
    days = chance.choice([0.0, 1.0, 30.0, chance.uniform(0, OLDEST_DAYS)])
    return datetime(2026, 6, 1, tzinfo=UTC) - timedelta(days=days)
