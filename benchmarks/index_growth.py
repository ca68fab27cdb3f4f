"""Recall and latency of searches while 200,000 memories arrive and the index keeper keeps up.

Memories with callers' own vectors arrive through memory.store_batch, in sequential batches from a separate
process, which pauses while searches queue up. 20 searches a second start on schedule, each a memory.retrieve
with a query_vector through the whole application. Vectors are embeddings of texts with seeded noise. Topics
appear over time, so that late memories differ from those an index was built on; queries are about existing
topics. Each answer is compared afterwards with the exact nearest of the memories acknowledged at its start.
DESIGN section 6.1, issue 3.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import multiprocessing
import random
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event as EventType
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from agentcore import assembly
from agentcore.config import Settings
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.memory.rows.vector_index import VectorIndex
from agentcore.runtime import open_runtime
from benchmarks.corpus import sentence
from benchmarks.ledger import append, percentiles
from benchmarks.service import Service, bench_settings, run, running_service

AGENT = "bench-growth"
BATCH = 50
NEAREST = 50
# All hits come from the vector retriever: no query word occurs in any memory.
K = 60
QUERY = "zzyzx"
COMPARED_AT_ONCE = 64
MOST_UNDER_WAY = 10

Matrix = NDArray[np.float32]


def base_texts(options: argparse.Namespace) -> list[str]:
    """Returns the texts of the base vectors: seeded sentences, or the memories of labeled sets."""
    chance = random.Random(options.seed)
    if options.data is None:
        return [sentence(chance) for _ in range(options.base)]
    texts = []
    for path in sorted(options.data.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            texts += [memory["text"] for line in file for memory in json.loads(line)["memories"]]
    chance.shuffle(texts)
    return texts[: options.base]


async def embedded(texts: list[str]) -> Matrix:
    """Returns each text's vector by the local model."""
    embedder = assembly.make_embedder(Settings(_env_file=None, embedding_model="local"))
    assert embedder is not None
    await embedder.open()
    try:
        vectors = []
        with Progress() as progress:
            task = progress.add_task("embedding", total=len(texts))
            for start in range(0, len(texts), 64):
                vectors.append(np.asarray(await embedder.embed(texts[start : start + 64], "document")))
                progress.update(task, completed=start + 64)
        return np.concatenate(vectors).astype(np.float32)
    finally:
        await embedder.close()


def disturbed(base: Matrix, chance: np.random.Generator) -> Matrix:
    """Adds noise of 0.2 to 0.7 of the vectors' length, in half precision."""
    noise = chance.normal(size=base.shape)
    noise *= chance.uniform(0.2, 0.7, size=(len(base), 1)) / np.linalg.norm(noise, axis=1, keepdims=True)
    vectors = base + noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.round(4).astype(np.float16).astype(np.float32)


def opened(topics: int, arrived: Any, count: int) -> Any:
    """Returns the number of topics after this share of memories; a quarter exist at the start."""
    return topics * (0.25 + 0.75 * arrived / count)


def memories(base: Matrix, count: int, seed: int) -> Matrix:
    """Returns all vectors in order of arrival."""
    chance = np.random.default_rng(seed)
    topics = opened(len(base), np.arange(count), count)
    return disturbed(base[(chance.random(count) * topics).astype(int)], chance)


@dataclass
class Asked:
    """One search: its time, the number of memories, its duration and its hits."""

    at: float
    stored: int
    vector: Matrix
    milliseconds: float = 0.0
    mode: str = ""
    found: list[str] = field(default_factory=list)
    failure: str = ""


@dataclass
class Run:
    """The record of a run: the searches, the ids in order of arrival, and every index state."""

    started: float
    asked: list[Asked] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    indexes: dict[tuple[str, float | None], VectorIndex] = field(default_factory=dict)
    under_way: int = 0
    room: EventType = field(default_factory=multiprocessing.get_context("spawn").Event)

    def count(self, more: int) -> None:
        """Adjusts the number of running searches, and whether the writer may store."""
        self.under_way += more
        (self.room.set if self.under_way <= MOST_UNDER_WAY else self.room.clear)()


@dataclass(frozen=True)
class Writer:
    """A second server process on the same parts, which stores and reports acknowledged memories."""

    home: Path
    vectors: Matrix
    seed: int
    per_second: float
    room: EventType
    acknowledged: Queue[list[str]]

    def __call__(self) -> None:
        run(self._store())

    async def _store(self) -> None:
        settings = bench_settings(
            self.home, embedding_model="none", embedding_dimensions=self.vectors.shape[1], maintenance_in_server=False
        )
        chance = random.Random(self.seed)
        async with open_runtime(settings, attach_only=True) as runtime:
            service, started = Service(runtime), time.perf_counter()
            for start in range(0, len(self.vectors), BATCH):
                rows = self.vectors[start : start + BATCH].astype(np.float64).round(4).tolist()
                items = [{"content": sentence(chance), "embedding": row} for row in rows]
                result = await service.call(AGENT, "memory.store_batch", {"items": items})
                self.acknowledged.put([each["memory_id"] for each in result["results"]])
                due = started + (start + BATCH) / self.per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                await asyncio.to_thread(self.room.wait)


async def store(service: Service, vectors: Matrix, done: Run, options: argparse.Namespace) -> None:
    """Stores all memories in sequential batches; returns when all are acknowledged."""
    spawning = multiprocessing.get_context("spawn")
    acknowledged: Queue[list[str]] = spawning.Queue()
    home, per_second = service.runtime.home.path, options.stores_per_second
    writer = Writer(home, vectors, options.seed, per_second, done.room, acknowledged)
    process = spawning.Process(target=writer, daemon=True)
    process.start()
    with Progress() as progress:
        task = progress.add_task("storing", total=len(vectors))
        while len(done.ids) < len(vectors):
            try:
                done.ids += await asyncio.to_thread(acknowledged.get, timeout=1.0)
            except Empty:
                assert process.is_alive(), "the storing process ended"
            progress.update(task, completed=len(done.ids))
    await asyncio.to_thread(process.join)


async def search(service: Service, asked: Asked, done: Run) -> None:
    """Runs and times one search; hits are ordered by similarity. A failed search counts as no hits."""
    params = {"query": QUERY, "k": K, "query_vector": [float(x) for x in asked.vector]}
    exact = service.exact_searches()
    began = time.perf_counter()
    done.count(1)
    try:
        result = await service.call(AGENT, "memory.retrieve", params)
    except RuntimeError as failure:
        asked.failure = str(failure)
        return
    finally:
        done.count(-1)
        asked.milliseconds = (time.perf_counter() - began) * 1_000
    # Counts as exact if any concurrent search was.
    asked.mode = "indexed" if service.exact_searches() == exact else "exact"
    near = sorted(result["memories"], key=lambda memory: -memory["similarity"])
    asked.found = [memory["memory_id"] for memory in near]


async def search_on(service: Service, base: Matrix, done: Run, options: argparse.Namespace) -> None:
    """Starts searches on schedule until cancelled, then waits for the running ones."""
    chance = np.random.default_rng(options.seed + 1)
    async with asyncio.TaskGroup() as searches:
        try:
            for number in range(10**9):
                due = done.started + number / options.searches_per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                if len(done.ids) < NEAREST:
                    continue
                topics = int(opened(len(base), len(done.ids), options.memories))
                vector = disturbed(base[chance.integers(topics, size=1)], chance)[0]
                asked = Asked(time.perf_counter() - done.started, len(done.ids), vector)
                done.asked.append(asked)
                searches.create_task(search(service, asked, done))
        except asyncio.CancelledError:
            return


async def watch(service: Service, done: Run) -> None:
    """Records every index and every measurement of it, until cancelled."""
    runtime = service.runtime
    policy = runtime.parts.policy
    keeper = IndexKeeper(runtime.database, runtime.parts.vector_model, policy.embedding_dimensions, policy.indexes)
    while True:
        for state in await keeper.states():
            done.indexes |= {(index.name, index.measured_at): index for index in state.indexes}
        await asyncio.sleep(0.5)


@asynccontextmanager
async def in_background(*duties: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(duty) for duty in duties]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


def recalls(done: Run, vectors: Matrix) -> list[float]:
    """Returns each search's share of the exact nearest of the memories acknowledged at its start."""
    number = {memory_id: row for row, memory_id in enumerate(done.ids)}
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / lengths
    shares = []
    for start in range(0, len(done.asked), COMPARED_AT_ONCE):
        together = done.asked[start : start + COMPARED_AT_ONCE]
        most = max(asked.stored for asked in together)
        scores = np.stack([asked.vector for asked in together]) @ units[:most].T
        for asked, row in zip(together, scores, strict=True):
            nearest = set(np.argpartition(-row[: asked.stored], NEAREST - 1)[:NEAREST].tolist())
            # Memories stored during the search may be in its hits, but not in the exact ones.
            found = [number[each] for each in asked.found if number.get(each, most) < asked.stored]
            shares.append(len(nearest & set(found[:NEAREST])) / NEAREST)
    return shares


def windows(done: Run, shares: list[float], seconds: float) -> list[dict[str, Any]]:
    by_window: dict[int, list[int]] = {}
    for place, asked in enumerate(done.asked):
        by_window.setdefault(int(asked.at / seconds), []).append(place)
    return [
        {
            "from_s": round(window * seconds),
            "stored": done.asked[places[0]].stored,
            "searches": len(places),
            "indexed": sum(done.asked[place].mode == "indexed" for place in places),
            "recall": round(statistics.fmean(shares[place] for place in places), 3),
            "p95_ms": percentiles([done.asked[place].milliseconds for place in places])["p95"],
            "longest_ms": round(max(done.asked[place].milliseconds for place in places), 1),
        }
        for window, places in sorted(by_window.items())
        if len(places) >= 10
    ]


def summary(done: Run, shares: list[float], table: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    indexed = [share for share, asked in zip(shares, done.asked, strict=True) if asked.mode == "indexed"]
    of_windows = [window["recall"] for window in table]
    return {
        "memories": len(done.ids),
        "stored_per_second": round(len(done.ids) / seconds, 1),
        "searches": len(done.asked),
        "failed_searches": sum(bool(asked.failure) for asked in done.asked),
        "indexed_searches": len(indexed),
        "recall_at_50_least_window": min(of_windows),
        "recall_at_50_median_window": statistics.median(of_windows),
        "recall_at_50_indexed": round(statistics.fmean(indexed), 4) if indexed else None,
        "search_ms": percentiles([asked.milliseconds for asked in done.asked]),
        "worst_window_p95_ms": max(window["p95_ms"] for window in table),
        "longest_search_ms": max(window["longest_ms"] for window in table),
        "builds": len({name for name, _ in done.indexes}),
        "measurements": sum(measured is not None for _, measured in done.indexes),
        "index_mib": round(max((index.bytes for index in done.indexes.values()), default=0) / 2**20, 1),
    }


def show(done: Run, table: list[dict[str, Any]]) -> None:
    """Prints the windows, then each index as it was built and measured."""
    print("   ".join(table[0]))
    for window in table:
        print("   ".join(f"{value!s:>{len(name)}}" for name, value in window.items()))
    for failure in sorted({asked.failure for asked in done.asked if asked.failure}):
        print("failed:", failure)
    for index in sorted(done.indexes.values(), key=lambda each: each.measured_at or each.built_at):
        print(
            f"{index.kind} over {index.built_rows} rows, shape {index.shape}: reach {index.reach}, "
            f"recall {index.recall} measured over {index.measured_rows} rows"
        )


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fills while searching, then compares; returns all figures."""
    base = await embedded(base_texts(options))
    vectors = memories(base, options.memories, options.seed)
    async with running_service(
        options.home, embedding_model="none", embedding_dimensions=base.shape[1], vector_index=options.index
    ) as service:
        done = Run(time.perf_counter())
        done.count(0)
        async with in_background(search_on(service, base, done, options), watch(service, done)):
            await store(service, vectors, done, options)
            seconds = time.perf_counter() - done.started
            await asyncio.sleep(options.after_seconds)
    shares = recalls(done, vectors)
    table = windows(done, shares, options.window_seconds)
    show(done, table)
    return summary(done, shares, table, seconds) | {"windows": table}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=200_000)
    parser.add_argument("--base", type=int, default=4_000, help="texts embedded, the topics of the memories")
    parser.add_argument("--data", type=Path, help="directory of labelled sets to take the texts from")
    parser.add_argument("--index", default="hnsw", choices=["ivfflat", "hnsw"])
    parser.add_argument("--searches-per-second", type=float, default=20.0)
    parser.add_argument("--stores-per-second", type=float, default=300.0, help="at most")
    parser.add_argument("--window-seconds", type=float, default=10.0)
    parser.add_argument("--after-seconds", type=float, default=15.0, help="searched on after the last store")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--home", type=Path, help="a home to fill, which is kept")
    options = parser.parse_args()
    figures = run(measure(options))
    for name, value in figures.items():
        if name != "windows":
            print(f"{name:<28} {value}")
    unnoted = {"home", "data"}
    noted = {name: value for name, value in vars(options).items() if name not in unnoted}
    append("index_growth", noted | {"texts": "seeded" if options.data is None else "labelled"}, figures)
    return 0
