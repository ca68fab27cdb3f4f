"""Processor time and bytes for each search, store and memory as one agent grows; a model fitted to it and checked.

One agent grows through --sizes. At each size: processor time of the service (with and without embedding) and of
PostgreSQL for a search and a store, searches a second with ten callers, and bytes. The model is fitted to every second
size, the others are predicted. Texts and vectors are those of `scale`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.progress import Progress

from agentcore.embedded.process import processes_in
from benchmarks.corpus import question, sentence
from benchmarks.ledger import append
from benchmarks.retrieval_latency import settle
from benchmarks.scale import EXTRA, LARGE, fill, sizes, vectors_of
from benchmarks.service import Service, run, running_service

CALLERS = 10
Row = dict[str, Any]


class ProcessorTime:
    """Milliseconds of processor time of this process and of PostgreSQL, since the last call of `lap`."""

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
    """Returns the processor time of one call, in the service and in PostgreSQL."""
    for _ in range(20):
        await call()
    times.lap()
    for _ in range(count):
        await call()
    service, server = times.lap()
    return round(service / count, 2), round(server / count, 2)


async def searches_a_second(service: Service, count: int, chance: random.Random) -> float:
    began = time.perf_counter()

    async def caller() -> None:
        for _ in range(count):
            await search(service, chance)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return round(CALLERS * count / (time.perf_counter() - began), 1)


async def search(service: Service, chance: random.Random) -> None:
    await service.call(LARGE, "memory.retrieve", {"query": question(chance), "k": 5})


async def store(service: Service, chance: random.Random) -> None:
    await service.call(LARGE, "memory.store", {"content": sentence(chance), "user_id": EXTRA})


async def point(service: Service, memories: int, queries: int) -> Row:
    """Measures one size."""
    chance, times, embedder = random.Random(time.time_ns()), ProcessorTime(service), service.runtime.parts.embedder
    assert embedder is not None
    embedding, _ = await repeated(times, queries, lambda: embedder.embed([question(chance)], "query"))
    figures: Row = {"memories": memories, "embedding_ms": embedding}
    for name, call in (("search", search), ("store", store)):
        calls = queries if name == "search" else queries // 4
        python, server = await repeated(times, calls, lambda call=call: call(service, chance))  # type: ignore[misc]
        figures |= {f"{name}_service_ms": round(max(0.0, python - embedding), 2), f"{name}_postgresql_ms": server}
    figures["searches_per_second"] = await searches_a_second(service, queries // CALLERS, chance)
    return figures | {"mib": sum((await sizes(service)).values())}


@dataclass(frozen=True)
class Model:
    """Costs as lines: of a search over the logarithm of the memories, of bytes over the memories."""

    embedding_ms: float
    search_ms: tuple[float, float]
    bytes_each: tuple[float, float]
    store_ms: float

    def search(self, memories: int) -> float:
        """Returns milliseconds of processor time for a search, embedding included."""
        base, each_doubling = self.search_ms
        return self.embedding_ms + base + each_doubling * math.log2(memories / 1_000)

    def searches_per_second(self, memories: int, cores: float) -> float:
        return cores * 1_000 / self.search(memories)

    def bytes(self, memories: int) -> float:
        base, each = self.bytes_each
        return base + each * memories


def fitted(points: list[Row]) -> Model:
    """Least squares; the smallest relative error would favor small sizes."""
    sizes_ = np.array([each["memories"] for each in points], float)
    costs = np.array([each["search_service_ms"] + each["search_postgresql_ms"] for each in points])
    slope, base = np.polyfit(np.log2(sizes_ / 1_000), costs, 1)
    each, start = np.polyfit(sizes_, np.array([row["mib"] * 2**20 for row in points]), 1)
    stores = [each["store_service_ms"] + each["store_postgresql_ms"] for each in points]
    return Model(
        float(np.mean([each["embedding_ms"] for each in points])),
        (float(base), float(slope)),
        (float(start), float(each)),
        float(np.mean(stores)),
    )


def checked(model: Model, measured: Row, cores: float) -> Row:
    """Returns measured values beside predicted ones, and the relative errors in percent."""
    memories = measured["memories"]
    both = {
        "search_ms": (
            measured["embedding_ms"] + measured["search_service_ms"] + measured["search_postgresql_ms"],
            model.search(memories),
        ),
        "searches_per_second": (measured["searches_per_second"], model.searches_per_second(memories, cores)),
        "mib": (measured["mib"], model.bytes(memories) / 2**20),
    }
    return {"memories": memories} | {
        name: {"measured": round(seen, 1), "predicted": round(told, 1), "error_percent": round(100 * (told / seen - 1))}
        for name, (seen, told) in both.items()
    }


async def measure(options: argparse.Namespace) -> Row:
    options.home.mkdir(parents=True, exist_ok=True)
    wanted = sorted(options.sizes)
    vectors = await vectors_of(options.vectors or options.home / "vectors.f16", wanted[-1])
    points = []
    async with running_service(options.home / "home", embedding_model="local", maintenance_in_server=False) as service:
        for memories in wanted:
            with Progress() as progress:
                task = progress.add_task(f"storing up to {memories:,}", total=memories)
                await fill(service, LARGE, memories, vectors, lambda done, task=task: progress.advance(task, done))  # type: ignore[misc]
            await settle(service)
            points.append(await point(service, memories, options.queries))
            print(points[-1])
    learned, held_out = points[::2], points[1::2]
    model = fitted(learned)
    # Searches a second at the learned sizes tell how many cores ten callers really use.
    cores = float(np.mean([each["searches_per_second"] * model.search(each["memories"]) / 1_000 for each in learned]))
    return {
        "points": points,
        "model": {
            "embedding_ms": round(model.embedding_ms, 2),
            "search_ms": [round(each, 3) for each in model.search_ms],
            "store_ms": round(model.store_ms, 2),
            "bytes_each": round(model.bytes_each[1]),
            "cores_used": round(cores, 2),
        },
        "held_out": [checked(model, each, cores) for each in held_out],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a directory for the home and the vectors, kept")
    parser.add_argument("--vectors", type=Path, help="the file of the vectors; default: in the directory")
    parser.add_argument("--sizes", type=int, nargs="+", default=[6_250, 12_500, 25_000, 50_000, 100_000])
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    figures = run(measure(options))
    for name in ("model", "held_out"):
        print(name, figures[name])
    append("capacity", {key: value for key, value in vars(options).items() if key not in {"home", "vectors"}}, figures)
    return 0
