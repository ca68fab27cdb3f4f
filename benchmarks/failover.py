"""Streaming replication: the replica's lag, who answers after a write, and how long a failover stops each caller.

A primary and a synchronous replica run here. Callers store; then the primary is killed and the replica promoted at
once. Real installations add the time until their cluster manager promotes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from rich import print

from agentcore.errors import AgentCoreError
from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.memories import GetParams, RetrieveParams, StoreParams
from agentcore.runtime import Runtime
from benchmarks.ledger import append, percentiles
from benchmarks.replicated_servers import Replication, replication
from benchmarks.service import run, running_service

SETTLED_SECONDS = 3.0


@dataclass
class Writer:
    """An agent that stores one memory after the other."""

    memory: MemoryManager
    name: str
    acknowledged: list[UUID] = field(default_factory=list)
    failures: int = 0
    # Seconds between two acknowledged stores.
    longest_pause: float = 0.0
    has_stored: asyncio.Event = field(default_factory=asyncio.Event)

    async def store(self, stop: asyncio.Event) -> None:
        last = time.perf_counter()
        while not stop.is_set():
            content = f"Note {len(self.acknowledged)} of {self.name}."
            try:
                result = await self.memory.store(StoreParams(content=content))
            except AgentCoreError:
                self.failures += 1
                await asyncio.sleep(0.05)
                continue
            now = time.perf_counter()
            self.longest_pause, last = max(self.longest_pause, now - last), now
            if result.memory_id is not None:
                self.acknowledged.append(result.memory_id)
                self.has_stored.set()

    async def lost(self) -> int:
        """Returns how many acknowledged memories are gone."""
        count = 0
        for memory_id in self.acknowledged:
            try:
                await self.memory.get(GetParams(memory_id=memory_id, consistent=True))
            except AgentCoreError:
                count += 1
        return count


async def lag(pair: Replication, memory: MemoryManager, writes: int) -> list[float]:
    """Returns the milliseconds from each acknowledged write until the replica has replayed it."""
    lags = []
    for number in range(writes):
        await memory.store(StoreParams(content=f"Reading {number} of the meter was {number * 37}."))
        began = time.perf_counter()
        await pair.caught_up()
        lags.append((time.perf_counter() - began) * 1_000)
    return lags


async def read_own_writes(runtime: Runtime, memory: MemoryManager, writes: int) -> dict[str, float]:
    """Returns the share of reads right after a write that the primary answered, and of those that missed it."""
    missed, before, reads = 0, runtime.database.fallbacks.total(), runtime.database.statistics()["read"]
    served = reads.get("requests_num", 0)
    for number in range(writes):
        content = f"Sensor {number} reported {number * 53} lux."
        await memory.store(StoreParams(content=content))
        result = await memory.retrieve(RetrieveParams(query=content, k=1))
        missed += [each.content for each in result.memories] != [content]
    fallbacks = runtime.database.fallbacks.total() - before
    asked = runtime.database.statistics()["read"]["requests_num"] - served
    return {"missed": missed, "reads_of_replica": asked, "answered_by_primary": fallbacks}


async def failover(pair: Replication, writers: list[Writer]) -> dict[str, float]:
    """Kills the primary, promotes the replica, and waits until each writer goes on."""
    stop = asyncio.Event()
    storing = [asyncio.create_task(writer.store(stop)) for writer in writers]
    await asyncio.sleep(SETTLED_SECONDS)
    pair.primary.kill()
    killed = time.perf_counter()
    await asyncio.to_thread(pair.replica.promote)
    promoted = time.perf_counter()
    for writer in writers:
        writer.has_stored.clear()
    await asyncio.gather(*(writer.has_stored.wait() for writer in writers))
    served = time.perf_counter()
    await asyncio.sleep(SETTLED_SECONDS)
    stop.set()
    await asyncio.gather(*storing)
    return {
        "promotion_s": round(promoted - killed, 2),
        "all_served_after_kill_s": round(served - killed, 2),
        "longest_pause_of_a_caller_s": round(max(writer.longest_pause for writer in writers), 2),
        "acknowledged": sum(len(writer.acknowledged) for writer in writers),
        "lost": sum([await writer.lost() for writer in writers]),
        "refused_meanwhile": sum(writer.failures for writer in writers),
    }


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    with replication(Path(tempfile.gettempdir()) / f"agentcore-failover-{time.time_ns()}") as pair:
        settings: dict[str, Any] = {"database_url": pair.url, "embedding_model": "hashing", "embedding_dimensions": 384}
        async with running_service(None, **settings, database_read_url=pair.replica.url()) as service:
            memory = service.runtime.manager_for(Caller("meter"))
            lags = await lag(pair, memory, options.writes)
            own = await read_own_writes(service.runtime, memory, options.writes)
        pair.commit_on_both()
        async with running_service(None, **settings) as service:
            names = [f"writer-{number}" for number in range(options.callers)]
            writers = [Writer(service.runtime.manager_for(Caller(name)), name) for name in names]
            after = await failover(pair, writers)
    return {"lag_ms": percentiles(lags), "read_own_writes": own, "failover": after}


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks failover", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--callers", type=int, default=20)
    options = parser.parse_args()
    figures = run(measure(options))
    print(figures)
    append("failover", vars(options), figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
