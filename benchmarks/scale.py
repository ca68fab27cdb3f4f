"""One agent of a million memories, ten of 100,000, 10,000 of 100: searches, recall, writes, index build, disk.

The texts are synthetic, each seeded by its number. Their vectors (local model) are kept in a file, so that a second
fill takes minutes; an interrupted fill continues. Measures, in one process: memory.retrieve with and without filters,
memory.get_context, recall at 50 of a search against exact search, stores beside searches, ten queries a second on
the agents of 100,000 (AC-6), the index build and searches beside it, and bytes by table (with an idempotency key for
each memory).
`--changes` also exports, erases a user and prunes a fifth, after which a kept home cannot be filled again.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from rich.progress import Progress

from agentcore import assembly
from agentcore.config import Settings
from agentcore.memory.lexical import Bm25, LexicalStatistics
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.vector_store import PgVectorStore, SearchRequest
from benchmarks.corpus import question, sentence
from benchmarks.ledger import append, percentiles
from benchmarks.retrieval_latency import settle
from benchmarks.service import Service, run, running_service

LARGE, TEN, SMALL = "scale-large", "scale-ten", "scale-small"
BATCH, DIMENSIONS, NEAREST = 500, 384, 50
TEN_MEMORIES, SMALL_MEMORIES = 100_000, 100
START = datetime(2024, 1, 1, tzinfo=UTC)
# Memories of one session; every thousandth memory is of the rare user.
SESSION, RARE = 200, 1_000
# The user of memories that are stored beside searches: a second fill does not count them.
EXTRA = "extra"
SIZES = sql.SQL("""
SELECT coalesce(parent.relname, c.relname) AS name, sum(pg_total_relation_size(c.oid))::bigint AS bytes
  FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
 GROUP BY 1 ORDER BY 2 DESC LIMIT 8""")

Row = dict[str, Any]
Vectors = NDArray[np.float16]


def text(number: int) -> str:
    return sentence(random.Random(number))


def rows_in(path: Path) -> int:
    return path.stat().st_size // (2 * DIMENSIONS) if path.exists() else 0


async def vectors_of(path: Path, count: int) -> Vectors:
    """Returns a row for each text, (count, DIMENSIONS); embeds those that the file does not have."""
    there = rows_in(path)
    if there < count:
        embedder = assembly.make_embedder(Settings(_env_file=None, embedding_model="local"))
        assert embedder is not None
        await embedder.open()
        with path.open("ab") as file, Progress() as progress:
            file.truncate(there * 2 * DIMENSIONS)
            task = progress.add_task("embedding", total=count, completed=there)
            for start in range(there, count, BATCH):
                texts = [text(number) for number in range(start, min(start + BATCH, count))]
                rows = await embedder.embed(texts, "document")
                await asyncio.to_thread(file.write, np.asarray(rows, np.float16).tobytes())
                progress.advance(task, len(texts))
        await embedder.close()
    return np.memmap(path, np.float16, "r", shape=(count, DIMENSIONS))


def item(number: int, vector: NDArray[np.float16]) -> Row:
    """Returns the params of one memory; the times are two minutes apart."""
    return {
        "content": text(number),
        "idempotency_key": f"scale-{number}",
        "embedding": vector.astype(float).round(5).tolist(),
        "user_id": "rare" if number % RARE == 0 else f"user-{number % 300}",
        "session_id": f"session-{number // SESSION}",
        "timestamp": (START + timedelta(minutes=2 * (number % 600_000))).isoformat(),
    }


async def fill(service: Service, agent_id: str, count: int, vectors: Vectors, advance: Callable[[int], None]) -> None:
    extra = (await service.call(agent_id, "memory.count", {"user_id": EXTRA}))["count"]
    there = (await service.call(agent_id, "memory.count", {}))["count"] - extra
    advance(there)
    for start in range(there, count, BATCH):
        items = [item(number, vectors[number]) for number in range(start, min(start + BATCH, count))]
        await store_batch(service, agent_id, items)
        advance(len(items))


async def store_batch(service: Service, agent_id: str, items: list[Row]) -> None:
    """Stores a batch; retries retryable errors. The idempotency keys prevent duplicates."""
    for attempt in range(5):
        try:
            await service.call(agent_id, "memory.store_batch", {"items": items})
            return
        except RuntimeError as failure:
            if attempt == 4 or "retryable" not in str(failure):
                raise
            print(f"retry: {failure}")
            await asyncio.sleep(5)


async def fill_all(service: Service, options: argparse.Namespace, vectors: Vectors) -> float:
    """Fills the large agent and, beside it, the others; returns the seconds."""
    others = {f"{TEN}-{number}": TEN_MEMORIES for number in range(options.tens)}
    others |= {f"{SMALL}-{number}": SMALL_MEMORIES for number in range(options.small)}
    began = time.perf_counter()
    with Progress() as progress:
        task = progress.add_task("storing", total=options.memories + sum(others.values()))

        async def fill_each(agents: dict[str, int]) -> None:
            for agent_id, count in agents.items():
                await fill(service, agent_id, count, vectors, lambda done: progress.advance(task, done))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fill_each({LARGE: options.memories}))
            tasks.create_task(fill_each(others))
    return time.perf_counter() - began


async def timed(count: int, call: Callable[[], Awaitable[Any]]) -> dict[str, float]:
    """Returns percentiles in milliseconds; ten calls before are not counted."""
    taken = []
    for number in range(count + 10):
        began = time.perf_counter()
        await call()
        if number >= 10:
            taken.append((time.perf_counter() - began) * 1_000)
    return percentiles(taken)


def filters_of(memories: int) -> dict[str, Row]:
    week = START + timedelta(minutes=min(memories, 600_000))
    return {
        "none": {},
        "user": {"user_id": "rare"},
        "session": {"session_id": f"session-{memories // SESSION // 2}"},
        "week": {"after": week.isoformat(), "before": (week + timedelta(days=7)).isoformat()},
    }


async def searches(service: Service, agent_id: str, memories: int, queries: int, chance: random.Random) -> Row:
    """Times memory.retrieve by filter, and memory.get_context."""
    figures: Row = {}
    for name, conditions in filters_of(memories).items():

        async def search(conditions: Row = conditions) -> None:
            await service.call(agent_id, "memory.retrieve", {"query": question(chance), "k": 5, **conditions})

        figures[f"retrieve_{name}_ms"] = await timed(queries, search)
    figures["context_ms"] = await timed(
        queries, lambda: service.call(agent_id, "memory.get_context", {"query": question(chance)})
    )
    return figures


async def recalls(service: Service, agent_id: str, memories: int, queries: int, chance: random.Random) -> Row:
    """Returns the share of the exact 50 nearest that a search finds, by filter; few matches are searched exactly."""
    parts = service.runtime.parts
    assert parts.embedder is not None
    limits = SearchLimits(exact_search_limit=10**9)
    exactly = PgVectorStore(service.runtime.database, DIMENSIONS, limits)
    # The number of memories decides whether a search uses the index.
    no_words = Bm25([], LexicalStatistics(memories, 1.0, {}))
    shares: dict[str, list[float]] = {}
    for _ in range(queries):
        vector = np.asarray(await parts.embedder.embed([question(chance)], "query"))
        for name, conditions in filters_of(memories).items():
            request = SearchRequest({"current": True, **conditions}, vector, parts.vector_model, no_words)
            nearest = [await _nearest(store, agent_id, request) for store in (exactly, parts.vectors)]
            if nearest[0]:
                shares.setdefault(name, []).append(len(nearest[0] & nearest[1]) / len(nearest[0]))
    return {f"recall_{name}": round(float(np.mean(each)), 3) for name, each in shares.items()}


async def _nearest(store: Any, agent_id: str, request: SearchRequest) -> set[Any]:
    found = await store.search(agent_id, request)
    near = sorted((each for each in found.candidates if each.similarity is not None), key=lambda each: -each.similarity)
    return {each.memory_id for each in near[:NEAREST]}


async def stores_beside_searches(service: Service, queries: int, chance: random.Random) -> Row:
    """Times stores of the large agent while four callers search it."""
    ended = asyncio.Event()

    async def search() -> None:
        while not ended.is_set():
            await service.call(LARGE, "memory.retrieve", {"query": question(chance), "k": 5})

    async with asyncio.TaskGroup() as tasks:
        for _ in range(4):
            tasks.create_task(search())

        async def store() -> None:
            await service.call(LARGE, "memory.store", {"content": sentence(chance), "user_id": EXTRA})

        figures = await timed(queries, store)
        ended.set()
    return {"store_beside_searches_ms": figures}


async def index_build(service: Service, agent_id: str, chance: random.Random) -> Row:
    """Folds document frequencies, vacuums and runs the index keeper; times searches of the agent meanwhile."""
    began = time.perf_counter()
    building = asyncio.create_task(settle(service))
    taken = []
    while not building.done():
        started = time.perf_counter()
        await service.call(agent_id, "memory.retrieve", {"query": question(chance), "k": 5})
        taken.append((time.perf_counter() - started) * 1_000)
        await asyncio.wait({building}, timeout=0.5)
    await building
    return {"index_seconds": round(time.perf_counter() - began), "retrieve_beside_build_ms": percentiles(taken)}


async def ten_a_second(service: Service, agents: Sequence[str], seconds: float, chance: random.Random) -> Row:
    """Starts ten searches a second, on the agents in turn; times them from when they were due (AC-6: p95 < 100 ms)."""
    taken: list[float] = []

    async def search(agent_id: str, due: float) -> None:
        await service.call(agent_id, "memory.retrieve", {"query": question(chance), "k": 5})
        taken.append((time.perf_counter() - due) * 1_000)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(10 * seconds)):
            due = began + number / 10
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.create_task(search(agents[number % len(agents)], due))
    return {"ten_a_second_ms": percentiles(taken)}


async def changes(service: Service) -> Row:
    """Exports, erases the rare user, and prunes a fifth; returns seconds."""

    async def seconds(call: Callable[[], Awaitable[Any]]) -> float:
        began = time.perf_counter()
        await call()
        return round(time.perf_counter() - began, 1)

    async def export() -> None:
        params: Row = {"limit": 1_000}
        while True:
            page = await service.call(LARGE, "memory.list", params)
            if page.get("next_cursor") is None:
                return
            params["cursor"] = page["next_cursor"]

    async def erase() -> None:
        while not (await service.call(LARGE, "memory.erase", {"user_id": "rare", "confirm": True}))["complete"]:
            pass

    async def prune() -> None:
        left, complete = (await service.call(LARGE, "memory.count", {}))["count"] // 5, False
        while not complete:
            pruned = await service.call(LARGE, "memory.prune", {"memory_layer": "episodic", "target": left})
            left, complete = left - pruned["pruned_count"], pruned["complete"]

    return {
        "export_seconds": await seconds(export),
        "erase_user_seconds": await seconds(erase),
        "prune_seconds": await seconds(prune),
    }


async def sizes(service: Service) -> dict[str, int]:
    """Returns MiB of the largest tables, with their indexes."""
    rows = await service.runtime.database.owner_rows(SIZES)
    return {row["name"]: round(row["bytes"] / 2**20) for row in rows}


async def measure(options: argparse.Namespace) -> Row:
    options.home.mkdir(parents=True, exist_ok=True)
    most = max(options.memories, TEN_MEMORIES if options.tens else 0, SMALL_MEMORIES)
    vectors = await vectors_of(options.vectors or options.home / "vectors.f16", most)
    async with running_service(options.home / "home", embedding_model="local", maintenance_in_server=False) as service:
        chance = random.Random(time.time_ns())
        figures: Row = {"fill_seconds": round(await fill_all(service, options, vectors))}
        figures |= await index_build(service, f"{TEN}-0" if options.tens else LARGE, chance)
        figures |= await searches(service, LARGE, options.memories, options.queries, chance)
        figures |= await recalls(service, LARGE, options.memories, options.queries // 4, chance)
        if options.tens:
            agents = [f"{TEN}-{number}" for number in range(options.tens)]
            figures |= await ten_a_second(service, agents, 60.0, chance)
        if options.small:
            figures["small_ms"] = await timed(
                options.queries,
                lambda: service.call(
                    f"{SMALL}-{chance.randrange(options.small)}", "memory.retrieve", {"query": question(chance), "k": 5}
                ),
            )
        figures |= await stores_beside_searches(service, options.queries, chance)
        figures["disk_mib"] = await sizes(service)
        return figures | (await changes(service) if options.changes else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a directory for the home and the vectors, kept")
    parser.add_argument("--vectors", type=Path, help="the file of the vectors; default: in the directory")
    parser.add_argument("--memories", type=int, default=1_000_000, help="of the large agent")
    parser.add_argument("--tens", type=int, default=10, help="agents of 100,000 memories")
    parser.add_argument("--small", type=int, default=10_000, help="agents of 100 memories")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--changes", action="store_true", help="also export, erase a user and prune; changes the home")
    options = parser.parse_args()
    figures = run(measure(options))
    for name, value in figures.items():
        print(f"{name:<26} {value}")
    append("scale", {key: value for key, value in vars(options).items() if key not in {"home", "vectors"}}, figures)
    return 0
