"""CPU time and disk space of one node by memories of an agent and by agents; a model of both, validated.

Agents of --sizes memories and --agents small ones are stored in one home. Then each round measures every size, in
random order: CPU time of the embedding, of the service with its caller, and of PostgreSQL for a search and a store, and
searches a second with ten callers. Medians over the rounds are compared, so that a drift of the machine's speed affects
all sizes equally. The model is fitted to every second size and predicts the others and the small agents. Texts and
vectors are those of `scale`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from psycopg import sql
from rich.progress import Progress, track

from agentcore.embedded.process import processes_in
from benchmarks.corpus import question, sentence
from benchmarks.ledger import append
from benchmarks.retrieval_latency import settle
from benchmarks.scale import EXTRA, Vectors, fill, vectors_of
from benchmarks.service import Service, run, running_service

CALLERS = 10
SMALL_MEMORIES = 10
DATABASE_BYTES = sql.SQL("SELECT pg_database_size(current_database()) AS bytes")
Row = dict[str, Any]


class ProcessorTime:
    """Milliseconds of CPU time of this process and of PostgreSQL, since the last call of `lap`."""

    def __init__(self, service: Service) -> None:
        self._data = service.runtime.home.postgres_data
        self._last = self._read()

    def _read(self) -> tuple[float, float]:
        server = 0.0
        for pid in processes_in(self._data, ("postgres",)):
            with suppress(psutil.NoSuchProcess):
                # The time of processes that have ended is that of the postmaster's children.
                server += sum(psutil.Process(pid).cpu_times()[:4])
        return time.process_time() * 1_000, server * 1_000

    def lap(self) -> tuple[float, float]:
        before, self._last = self._last, self._read()
        return self._last[0] - before[0], self._last[1] - before[1]


async def repeated(times: ProcessorTime, count: int, call: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    """Returns the CPU time of one call, in the service and in PostgreSQL."""
    times.lap()
    for _ in range(count):
        await call()
    service, server = times.lap()
    return service / count, server / count


def agent_of(memories: int) -> str:
    return f"capacity-{memories}"


async def search(service: Service, agent_id: str, chance: random.Random) -> None:
    await service.call(agent_id, "memory.retrieve", {"query": question(chance), "k": 5})


async def store(service: Service, agent_id: str, chance: random.Random) -> None:
    await service.call(agent_id, "memory.store", {"content": sentence(chance), "user_id": EXTRA})


async def searches_per_second(service: Service, agent_id: str, count: int, chance: random.Random) -> float:
    began = time.perf_counter()

    async def caller() -> None:
        for _ in range(count):
            await search(service, agent_id, chance)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return CALLERS * count / (time.perf_counter() - began)


async def sample(service: Service, agent_id: str, queries: int, chance: random.Random) -> Row:
    """Measures one agent once; times are milliseconds of CPU time of one call."""
    times, embedder = ProcessorTime(service), service.runtime.parts.embedder
    assert embedder is not None
    for _ in range(10):
        await search(service, agent_id, chance)
    embedding, _ = await repeated(times, queries, lambda: embedder.embed([question(chance)], "query"))
    python, server = await repeated(times, queries, lambda: search(service, agent_id, chance))
    stored = await repeated(times, queries // 4, lambda: store(service, agent_id, chance))
    return {
        "embedding_ms": embedding,
        "search_service_ms": python - embedding,
        "search_postgresql_ms": server,
        "store_ms": sum(stored) - embedding,
        "searches_per_second": await searches_per_second(service, agent_id, queries // CALLERS, chance),
    }


async def database_bytes(service: Service) -> int:
    rows = await service.runtime.database.owner_rows(DATABASE_BYTES)
    return int(rows[0]["bytes"])


async def maintenance_ms(service: Service) -> float:
    """Returns the wall time of a round of the leader in which no work is due."""
    began = time.perf_counter()
    await service.runtime.maintenance.round()
    return round((time.perf_counter() - began) * 1_000, 1)


async def filled(service: Service, options: argparse.Namespace, vectors: Vectors) -> Row:
    """Stores all agents, unless the home has them; returns what they cost.

    `bytes`: the memories and the bytes of the database after each size.
    """
    record = options.home / "filled.json"
    if not record.exists():
        totals, total = [], 0
        for memories in sorted(options.sizes):
            with Progress() as progress:
                task = progress.add_task(f"storing {memories:,}", total=memories)
                advance = partial(progress.advance, task)
                await fill(service, agent_of(memories), memories, vectors, advance)
            await settle(service)
            total += memories
            totals.append((total, await database_bytes(service)))
        small = await fill_small(service, options.agents, vectors)
        record.write_text(json.dumps({"sizes": options.sizes, "bytes": totals, "small_agents": small}))
    costs: Row = json.loads(record.read_text())
    if costs["sizes"] != options.sizes or costs["small_agents"]["agents"] != options.agents:
        raise SystemExit(f"{options.home} was filled with other --sizes or --agents: choose another directory")
    return costs


async def fill_small(service: Service, agents: int, vectors: Vectors) -> Row:
    """Stores the small agents; returns what an agent and its memories cost."""
    before = await database_bytes(service)
    for number in track(range(agents), "storing small agents"):
        await fill(service, f"small-{number}", SMALL_MEMORIES, vectors, lambda done: None)
    await settle(service)
    added = await database_bytes(service) - before
    return {"agents": agents, "bytes_of_agent": round(added / agents), "maintenance_ms": await maintenance_ms(service)}


@dataclass(frozen=True)
class Model:
    """Constants, and bytes as a line over the memories: a search costs about the same in agents of all sizes."""

    search_ms: float
    searches_per_second: float
    bytes_each: tuple[float, float]

    def bytes(self, memories: int) -> float:
        base, each = self.bytes_each
        return base + each * memories


def whole_search(point: Row) -> float:
    return float(point["embedding_ms"] + point["search_service_ms"] + point["search_postgresql_ms"])


def fitted(points: list[Row], totals: list[tuple[int, int]]) -> Model:
    """Means, and least squares for the bytes."""
    each, base = np.polyfit([memories for memories, _ in totals], [size for _, size in totals], 1)
    return Model(
        float(np.mean([whole_search(point) for point in points])),
        float(np.mean([point["searches_per_second"] for point in points])),
        (float(base), float(each)),
    )


def checked(measured: float, predicted: float) -> Row:
    error = round(100 * (predicted / measured - 1), 1)
    return {"measured": round(measured, 1), "predicted": round(predicted, 1), "error_percent": error}


def held_out(model: Model, points: list[Row], totals: list[tuple[int, int]]) -> list[Row]:
    """Returns measured beside predicted values of sizes that the model has not seen."""
    searches = [
        {
            "memories": point["memories"],
            "search_ms": checked(whole_search(point), model.search_ms),
            "searches_per_second": checked(point["searches_per_second"], model.searches_per_second),
        }
        for point in points
    ]
    disk = [
        {"memories_stored": total, "mib": checked(size / 2**20, model.bytes(total) / 2**20)} for total, size in totals
    ]
    return searches + disk


async def measure(options: argparse.Namespace) -> Row:
    options.home.mkdir(parents=True, exist_ok=True)
    wanted = sorted(options.sizes)
    vectors = await vectors_of(options.vectors or options.home / "vectors.f16", wanted[-1])
    chance = random.Random(time.time_ns())
    samples: dict[int, list[Row]] = {memories: [] for memories in (SMALL_MEMORIES, *wanted)}
    agents = {memories: agent_of(memories) for memories in wanted}
    async with running_service(options.home / "home", embedding_model="local", maintenance_in_server=False) as service:
        costs = await filled(service, options, vectors)
        for number in track(range(options.rounds), "measuring"):
            # A new small agent each round: measuring stores, too.
            agents[SMALL_MEMORIES] = f"small-{number}"
            for memories in chance.sample(list(samples), len(samples)):
                samples[memories].append(await sample(service, agents[memories], options.queries, chance))
    points = [
        {"memories": memories} | {name: round(statistics.median(each[name] for each in rows), 2) for name in rows[0]}
        for memories, rows in samples.items()
    ]
    smallest, points, totals = points[0], points[1:], costs["bytes"]
    model = fitted(points[::2], totals[::2])
    return {
        "points": points,
        "small_agents": costs["small_agents"] | smallest,
        "bytes": totals,
        "model": {
            "search_ms": round(model.search_ms, 2),
            "searches_per_second": round(model.searches_per_second, 2),
            "bytes": [round(each) for each in model.bytes_each],
        },
        "held_out": held_out(model, [smallest, *points[1::2]], totals[1::2]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a directory for the home and the vectors, kept")
    parser.add_argument("--vectors", type=Path, help="the file of the vectors; default: in the directory")
    parser.add_argument("--sizes", type=int, nargs="+", default=[6_250, 12_500, 25_000, 50_000, 100_000])
    parser.add_argument("--agents", type=int, default=5_000, help=f"small agents, {SMALL_MEMORIES} memories each")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--queries", type=int, default=100, help="of each size in a round")
    options = parser.parse_args()
    figures = run(measure(options))
    for name, value in figures.items():
        print(name, value)
    append("capacity", {key: value for key, value in vars(options).items() if key not in {"home", "vectors"}}, figures)
    return 0
