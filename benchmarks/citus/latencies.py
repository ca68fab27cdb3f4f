"""Latencies of the methods on a cluster of three nodes on this machine, beside one plain PostgreSQL with the same
settings. All nodes share its cores: the figures show what distribution costs a call, not what more machines give.

    python -m benchmarks.citus.latencies TARGET_DIR [--calls 100]
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from agentcore import migration
from benchmarks import ledger
from benchmarks.citus.cluster import cluster
from benchmarks.service import Service, run, running_service

AGENTS = 10
TEXTS = "I moved to {} in {} and work there as a {} now."
PLACES, JOBS = ("Oslo", "Lima", "Kyoto", "Turin", "Quito"), ("baker", "nurse", "pilot", "tailor")


def _text(number: int) -> str:
    return TEXTS.format(PLACES[number % 5], 1950 + number % 70, JOBS[number % 4]) + f" It is note {number}."


async def _measured(service: Service, method: str, params: list[dict[str, Any]]) -> float:
    """Returns the median in milliseconds; agents take turns."""
    taken = []
    for number, each in enumerate(params):
        began = time.perf_counter()
        await service.call(f"agent-{number % AGENTS}", method, each)
        taken.append(1_000 * (time.perf_counter() - began))
    return round(statistics.median(taken), 1)


async def _latencies(url: str, calls: int) -> dict[str, float]:
    async with running_service(None, database_url=url, embedding_model="hashing", embedding_dimensions=384) as service:
        texts = [{"content": _text(number), "memory_type": "episodic"} for number in range(calls)]
        batches = [
            {"items": [{"content": _text(1_000 + 50 * each + n), "memory_type": "semantic"} for n in range(50)]}
            for each in range(2 * AGENTS)
        ]
        asked = [{"query": f"Where did the {JOBS[number % 4]} of {1950 + number} move?"} for number in range(calls)]
        figures = {"store_ms": await _measured(service, "memory.store", texts)}
        figures["store_50_ms"] = await _measured(service, "memory.store_batch", batches)
        await service.settle()
        figures["retrieve_ms"] = await _measured(service, "memory.retrieve", asked)
        figures["get_context_ms"] = await _measured(
            service, "memory.get_context", [{**each, "max_tokens": 800} for each in asked]
        )
        return figures


async def _both(installation: Path, calls: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, citus in (("plain", False), ("citus", True)):
        async with cluster(installation, citus=citus) as running:
            migration.upgrade(running.url, distribute=citus)
            figures[name] = await _latencies(running.url, calls)
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("installation", type=Path)
    parser.add_argument("--calls", type=int, default=100)
    arguments = parser.parse_args()
    found = run(_both(arguments.installation, arguments.calls))
    print(f"{'median':<16}{'plain':>10}{'citus':>10}")
    for figure, milliseconds in found["plain"].items():
        print(f"{figure:<16}{milliseconds:>10}{found['citus'][figure]:>10}")
    ledger.append("citus_latencies", {"calls": arguments.calls, "nodes": 3}, found)
