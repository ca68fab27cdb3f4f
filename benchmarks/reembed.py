"""Re-embedding all memories from 384 to 768 dimensions during searches: failures, and recall afterwards.

The service runs here; `agentcore reembed` is a separate process. Every search uses the text of a stored
memory as its query, so that each shows whether it is found. With --kill the first run is killed half way.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from agentcore.database import query, shaped_query
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.memory.rows.vector_rows import known_models
from agentcore.memory.vector_store import PgVectorStore
from benchmarks.corpus import question, sentence
from benchmarks.ledger import append, percentiles
from benchmarks.service import Service, run, running_service

AGENT = "searcher"
BATCH, K, NEAREST, RECALL_QUERIES = 250, 5, 50, 100
FROM, TO = 384, 768
COUNT = shaped_query("count_to_reembed", missing=query("missing_passage"))


@dataclass
class Search:
    """One search: its stage, duration and result."""

    stage: str
    milliseconds: float
    found: bool = False
    mode: str = ""
    degraded: bool = False
    failure: str = ""


@dataclass
class Done:
    """The stored memories, every search, and the current stage."""

    texts: list[str] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    stage: str = "before"


async def fill(service: Service, done: Done, options: argparse.Namespace) -> float:
    """Stores the memories in two concurrent batches; returns memories a second."""
    chance = random.Random(options.seed)
    done.texts = [f"{sentence(chance)} (note {number})" for number in range(options.memories)]
    began = time.perf_counter()
    with Progress() as progress:
        task = progress.add_task("storing", total=options.memories)
        slots = asyncio.Semaphore(2)

        async def batch(start: int) -> None:
            async with slots:
                items = [{"content": text, "force": True} for text in done.texts[start : start + BATCH]]
                await service.call(AGENT, "memory.store_batch", {"items": items})
                progress.advance(task, len(items))

        async with asyncio.TaskGroup() as batches:
            for start in range(0, options.memories, BATCH):
                batches.create_task(batch(start))
    return float(options.memories) / (time.perf_counter() - began)


async def client(service: Service, done: Done, seed: int) -> None:
    """Runs sequential searches until cancelled."""
    chance = random.Random(seed)
    with suppress(asyncio.CancelledError):
        while True:
            await search(service, done, chance.choice(done.texts))


async def search(service: Service, done: Done, text: str) -> None:
    """Searches for a memory by its own text."""
    exact = service.exact_searches()
    began, one = time.perf_counter(), Search(done.stage, 0.0)
    try:
        result = await service.call(AGENT, "memory.retrieve", {"query": text, "k": K})
    except RuntimeError as failure:
        one.failure = str(failure)
    else:
        words = result["receipt"]["searched"]["vectors"] == "words"
        # Counts as exact if any concurrent search was.
        one.mode = "words" if words else "indexed" if service.exact_searches() == exact else "exact"
        one.degraded = bool(result["receipt"]["degraded"])
        one.found = text in {memory["content"] for memory in result["memories"]}
    one.milliseconds = (time.perf_counter() - began) * 1_000
    done.searches.append(one)


async def reembed(service: Service, done: Done, options: argparse.Namespace) -> dict[str, float]:
    """Runs the command, optionally killed half way; returns the seconds of each stage."""
    began = time.perf_counter()
    if options.kill:
        process = await command(service)
        while await share_filled(service) < 0.5:
            assert process.returncode is None, "the command ended before it was killed"
            await asyncio.sleep(0.2)
        process.kill()
        await process.wait()
        print(f"killed with {await share_filled(service):.0%} embedded")
    process = await command(service)
    seconds: dict[str, float] = {}
    waiting = asyncio.create_task(process.wait())
    while not waiting.done():
        known = next((each for each in await known_models(service.runtime.database)), None)
        done.stage = known.stage if known else "filling"
        others = sum(value for stage, value in seconds.items() if stage != done.stage)
        seconds[done.stage] = round(time.perf_counter() - began - others, 1)
        await asyncio.wait({waiting}, timeout=0.1)
    assert waiting.result() == 0, "the command failed"
    done.stage = "after"
    return seconds


async def command(service: Service) -> asyncio.subprocess.Process:
    """Starts `agentcore reembed` on the running parts."""
    environment = {**os.environ, "AGENTCORE_HOME": str(service.runtime.home.path)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agentcore", "reembed", "--model", "hashing", "--dimensions", str(TO), env=environment
    )


async def share_filled(service: Service) -> float:
    """Returns the share of memories that already have the new vector."""
    async with service.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(COUNT, {"done": []})
        row = await cursor.fetchone() or {}
    return int(row["to_move"]) / max(1, int(row["memories"]))


async def recall(service: Service, seed: int) -> tuple[float, str]:
    """Returns recall at 50 of the current vectors against an exact search, and the model."""
    parts, chance = service.runtime.parts, random.Random(seed)
    model, vectors = parts.vector_model, parts.vectors
    assert isinstance(vectors, PgVectorStore)
    assert parts.embedder is not None
    shares = []
    for _ in range(RECALL_QUERIES):
        [vector] = await parts.embedder.embed([question(chance)], "query")
        shares.append(await vectors.measured_recall(AGENT, np.asarray(vector), model, NEAREST))
    return round(statistics.fmean(shares), 4), model


def by_stage(done: Done) -> dict[str, dict[str, Any]]:
    table = {}
    for stage in dict.fromkeys(each.stage for each in done.searches):
        those = [each for each in done.searches if each.stage == stage]
        table[stage] = {
            "searches": len(those),
            "failed": sum(bool(each.failure) for each in those),
            "degraded": sum(each.degraded for each in those),
            "found": round(sum(each.found for each in those) / len(those), 4),
            "modes": dict(Counter(each.mode for each in those)),
            **percentiles([each.milliseconds for each in those]),
            "longest": round(max(each.milliseconds for each in those), 1),
        }
    return table


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fills, then searches and re-embeds concurrently, then compares; returns all figures."""
    done = Done()
    async with running_service(
        options.home, embedding_model="hashing", embedding_dimensions=FROM, maintenance_interval_seconds=2.0
    ) as service:
        stored_per_second = await fill(service, done, options)
        runtime, parts = service.runtime, service.runtime.parts
        await IndexKeeper(runtime.database, parts.vector_model, FROM, parts.policy.indexes).round()
        before, model_before = await recall(service, options.seed)
        clients = [asyncio.create_task(client(service, done, seed)) for seed in range(options.clients)]
        await asyncio.sleep(options.around_seconds)
        seconds = await reembed(service, done, options)
        await asyncio.sleep(options.around_seconds)
        for each in clients:
            each.cancel()
        await asyncio.gather(*clients)
        after, model_after = await recall(service, options.seed)
        async with runtime.database.owner_transaction() as connection:
            cursor = await connection.execute(COUNT, {"done": [model_after]})
            left = dict(await cursor.fetchone() or {})
    for failure in sorted({each.failure for each in done.searches if each.failure}):
        print("failed:", failure)
    return {
        "stored_per_second": round(stored_per_second),
        "models": [model_before, model_after],
        "memories_after": left,
        "recall_at_50_before": before,
        "recall_at_50_after": after,
        "seconds": {**seconds, "all": round(sum(seconds.values()), 1)},
        "searches": len(done.searches),
        "failed_searches": sum(bool(each.failure) for each in done.searches),
        "by_stage": by_stage(done),
    }


def main() -> int:
    """Returns 1 if a search failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--around-seconds", type=float, default=10.0, help="searched before and after")
    parser.add_argument("--kill", action="store_true", help="kill the command half way, and start it again")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--home", type=Path, help="a home to fill, which is kept")
    options = parser.parse_args()
    figures = run(measure(options))
    for name, value in figures.items():
        if name != "by_stage":
            print(f"{name:<22} {value}")
    for stage, row in figures["by_stage"].items():
        print(f"  {stage:<10} {row}")
    append("reembed", {name: value for name, value in vars(options).items() if name != "home"}, figures)
    return 1 if figures["failed_searches"] else 0
