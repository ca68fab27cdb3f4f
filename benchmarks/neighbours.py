"""One agent of 100,000 memories next to 600 agents of 100: the latency of a retrieve of each kind.

All share the same tables, and some small agents the large one's partition. Small agents are searched exactly
by their key, the large one through the vector index: neither may slow down the other (DESIGN, section 6).
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus import question
from benchmarks.ledger import append, percentiles
from benchmarks.retrieval_latency import fill, settle
from benchmarks.service import Service, run, running_service

BIG = "bench-agent"


async def partition_of(service: Service, agent_id: str) -> str:
    """Returns the partition of an agent's rows."""
    async with service.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT tableoid::regclass::text AS name FROM memories WHERE agent_id = %s LIMIT 1", (agent_id,)
        )
        row = await cursor.fetchone()
    return str(row["name"]) if row else ""


async def latencies(service: Service, agents: list[str], count: int, chance: random.Random) -> dict[str, float]:
    """Times retrieves by these agents in turn."""
    taken: list[float] = []
    for number in range(count + 20):
        started = time.perf_counter()
        await service.call(agents[number % len(agents)], "memory.retrieve", {"query": question(chance), "k": 5})
        if number >= 20:
            taken.append((time.perf_counter() - started) * 1_000)
    return percentiles(taken)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    async with running_service(options.home, embedding_model=options.embedder, maintenance_in_server=False) as service:
        chance = random.Random(options.seed)
        small = [f"small-{number}" for number in range(options.agents)]
        await fill(service, BIG, options.memories, options.seed)
        for number, agent_id in enumerate(small):
            await fill(service, agent_id, options.each, number)
        await settle(service)
        shared = await partition_of(service, BIG)
        beside = [agent for agent in small if await partition_of(service, agent) == shared]
        elsewhere = [agent for agent in small if agent not in beside]
        return {
            "sharing_the_partition": len(beside),
            "big_ms": await latencies(service, [BIG], options.queries, chance),
            "small_beside_ms": await latencies(service, beside, options.queries, chance) if beside else {},
            "small_elsewhere_ms": await latencies(service, elsewhere, options.queries, chance),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--agents", type=int, default=600)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--embedder", default="local", help="local | hashing")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    options = parser.parse_args()
    figures = run(measure(options))
    for name, value in figures.items():
        print(f"{name:<24} {value}")
    append("neighbours", {name: value for name, value in vars(options).items() if name != "home"}, figures)
    return 0
