"""Soak: searches and stores at a share of the capacity for half an hour; latency and resident memory by minute.

The capacity is that of ten callers with new queries, measured first. Calls are due at fixed times, one in ten a store;
milliseconds count from the time a call is due, so that a stall counts for all calls that it delays. The background work
runs in the service, as by default.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from agentcore.auth import mint_token
from benchmarks.corpus import question, sentence
from benchmarks.ledger import percentiles
from benchmarks.load import Address, Row, home_of, memory_of_service, parser_of, phase, report, serving
from benchmarks.retrieval_latency import AGENT, fill, settle
from benchmarks.service import SECRET, run, running_service

CONNECTIONS = 40
STORE_EVERY = 10
MINUTE = 60.0


@dataclass
class Minutes:
    """By minute of the run: milliseconds of each method's calls, MiB of the service; and the rejected calls."""

    taken: dict[str, defaultdict[int, list[float]]] = field(
        default_factory=lambda: {"memory.retrieve": defaultdict(list), "memory.store": defaultdict(list)}
    )
    resident_mib: dict[int, int] = field(default_factory=dict)
    rejected: int = 0

    def figures(self) -> Row:
        """Returns percentiles of the first and the last quarter, and the resident memory over time."""
        last = max(self.resident_mib)
        quarter = max(1, (last + 1) // 4)
        figures: Row = {"minutes": last + 1, "rejected": self.rejected}
        for method, by_minute in self.taken.items():
            for name, of in (("first", range(quarter)), ("last", range(last + 1 - quarter, last + 1))):
                figures[f"{method}, {name} quarter"] = percentiles([each for at in of for each in by_minute[at]])
            figures[f"{method}, calls"] = sum(map(len, by_minute.values()))
        figures["p50 by minute"] = [round(median(self.taken["memory.retrieve"][at]), 1) for at in range(last + 1)]
        figures["resident MiB by minute"] = [self.resident_mib[at] for at in sorted(self.resident_mib)]
        return figures


async def soak(address: Address, rate: float, seconds: float, chance: random.Random) -> Minutes:
    """Sends calls at this rate per second."""
    done, began = Minutes(), time.perf_counter()
    due = iter(range(int(rate * seconds)))

    async def connection() -> None:
        token = mint_token(SECRET, AGENT, ["memory:read", "memory:write"], 86_400, now=time.time())
        reader, writer = await asyncio.open_connection(address.host, address.port)
        for number in due:
            at = number / rate
            await asyncio.sleep(max(0.0, began + at - time.perf_counter()))
            method: str = "memory.store" if number % STORE_EVERY == 0 else "memory.retrieve"
            salt = chance.randrange(10**9)
            params: Row = {"query": f"{question(chance)} ({salt})", "k": 5}
            if method == "memory.store":
                params = {"content": f"{sentence(chance)} ({salt})"}
            if await address.post(reader, writer, token, method, params):
                done.rejected += 1
            else:
                done.taken[method][int(at // MINUTE)].append((time.perf_counter() - began - at) * 1_000)
        writer.close()

    async def watch() -> None:
        while True:
            minute = int((time.perf_counter() - began) // MINUTE)
            done.resident_mib[minute] = sum(memory_of_service())
            await asyncio.sleep(MINUTE / 4)

    watching = asyncio.create_task(watch())
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(connection())
    watching.cancel()
    # The last reading may be in a minute without calls.
    last = int((seconds - 1) // MINUTE)
    done.resident_mib = {minute: mib for minute, mib in done.resident_mib.items() if minute <= last}
    return done


async def measure(options: argparse.Namespace) -> Row:
    # Not from the seed: a kept home keeps the vectors of earlier queries.
    chance = random.Random(time.time_ns())
    with home_of(options) as home:
        async with running_service(home, embedding_model=options.embedder, maintenance_in_server=False) as service:
            await fill(service, AGENT, options.memories, options.seed)
            await settle(service)
        async with serving(home, options, maintenance=True) as address:
            await phase(address, {AGENT: 10}, lambda: question(chance), 10.0)
            capacity = (await phase(address, {AGENT: 10}, lambda: f"{question(chance)} ({chance.random()})", 20.0))[
                "per_second"
            ]
            rate = options.rate or options.share * capacity
            print(f"capacity {capacity}/s; {rate:.1f} calls a second for {options.minutes} minutes")
            done = await soak(address, rate, options.minutes * MINUTE, chance)
    return {"capacity per second": capacity, "calls per second": round(rate, 1), **done.figures()}


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--share", type=float, default=0.8, help="of the capacity")
    parser.add_argument("--rate", type=float, help="calls per second, in place of a share of the capacity")
    options = parser.parse_args()
    report("soak", options, run(measure(options)))
    return 0
