"""Latency of memory.retrieve and memory.store with 100,000 memories of one agent.

Fills through store_batch, runs the index keeper, then measures in one process: memory.retrieve (k = 5, from
request bytes to response bytes through the whole application, including the embedding), alternating with the
same SQL and embedding alone; one store; 10 and 100 concurrent callers; and the size on disk. Each query is
used once, so that no cache hit occurs. NFR-1.1 to 1.4, AC-5, DESIGN section 7.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import time
from pathlib import Path
from typing import Any

from rich.progress import Progress

from agentcore.memory.api import Caller
from agentcore.memory.lexical import Bm25, idf, select_query_keys, term_keys
from agentcore.memory.params.memories import RetrieveParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.recall.wording import MAX_POSTINGS
from agentcore.memory.vector_store import SearchRequest
from benchmarks.corpus import question, sentence
from benchmarks.ledger import append, percentiles
from benchmarks.service import Service, run, running_service

AGENT = "bench-agent"
BATCH = 500
CONTEXT_TOKENS = 2_000
# Contexts that fill less of their budget are excluded from the timing for 2,000 tokens.
FILLED = 0.9


async def fill(service: Service, agent_id: str, count: int, seed: int) -> float:
    """Stores `count` memories; returns the seconds."""
    chance = random.Random(seed)
    there = (await service.call(agent_id, "memory.count", {}))["count"]
    started = time.perf_counter()
    with Progress(disable=count < 10 * BATCH) as progress:
        task = progress.add_task("storing", total=count, completed=there)
        for start in range(there, count, BATCH):
            items = [{"content": sentence(chance)} for _ in range(min(BATCH, count - start))]
            await service.call(agent_id, "memory.store_batch", {"items": items})
            progress.advance(task, len(items))
    return time.perf_counter() - started


async def settle(service: Service) -> None:
    """Folds the document frequencies, gathers statistics, and runs the index keeper."""
    for _ in range(50):
        async with service.runtime.database.owner_transaction() as connection:
            row = await (await connection.execute("SELECT count(*) AS waiting FROM lexical_deltas")).fetchone()
        if row is not None and row["waiting"] == 0:
            break
        await service.runtime.maintenance.round()
    async with service.runtime.database.owner_autocommit() as connection:
        await connection.execute("VACUUM ANALYZE")
    await service.runtime.maintenance.keep_indexes()


async def bare(service: Service, agent_id: str, text: str) -> None:
    """Runs the embedding and the SQL of a retrieve alone."""
    parts = service.runtime.parts
    vector, (bm25, weights) = await asyncio.gather(_vector(parts, text), _words(parts, agent_id, text))
    request = SearchRequest({"current": True}, vector, parts.vector_model, bm25, weights)
    found = await parts.vectors.search(agent_id, request)
    await parts.storage.search_hits(agent_id, [each.memory_id for each in found.candidates[:5]])


async def _vector(parts: MemoryParts, text: str) -> Any:
    return await parts.embedder.embed([text], "query") if parts.embedder is not None else None


async def _words(parts: MemoryParts, agent_id: str, text: str) -> tuple[Bm25, dict[int, float]]:
    keys = list(dict.fromkeys(term_keys(agent_id, text)))
    statistics = await parts.vectors.statistics(agent_id, keys)
    chosen = select_query_keys(keys, statistics.document_frequency, MAX_POSTINGS)
    weights = {key: idf(statistics.document_frequency.get(key, 0), statistics.memory_count) for key in chosen}
    return Bm25([], statistics), weights


async def one_by_one(service: Service, agent_id: str, count: int, chance: random.Random) -> dict[str, Any]:
    """Alternates retrieve with bare SQL + embedding, so that noise of the machine affects both."""
    retrieve_ms: list[float] = []
    bare_ms: list[float] = []
    for number in range(count + 20):
        started = time.perf_counter()
        await service.call(agent_id, "memory.retrieve", {"query": question(chance), "k": 5})
        middle = time.perf_counter()
        await bare(service, agent_id, question(chance))
        if number >= 20:  # the first ones warm up connections and plans
            retrieve_ms.append((middle - started) * 1_000)
            bare_ms.append((time.perf_counter() - middle) * 1_000)
    retrieve, plain = percentiles(retrieve_ms), percentiles(bare_ms)
    return {"retrieve_ms": retrieve, "bare_ms": plain, "ratio_p50": round(retrieve["p50"] / plain["p50"], 2)}


async def concurrent(service: Service, agent_id: str, callers: int, calls: int, seed: int) -> dict[str, Any]:
    """Runs concurrent callers: calls a second, and the latency of each call."""
    latencies: list[float] = []

    async def caller(number: int) -> None:
        chance = random.Random(seed * 1_000 + number)
        for _ in range(calls // callers):
            started = time.perf_counter()
            await service.call(agent_id, "memory.retrieve", {"query": question(chance), "k": 5})
            latencies.append((time.perf_counter() - started) * 1_000)

    started = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(callers)))
    return {**percentiles(latencies), "per_second": round(len(latencies) / (time.perf_counter() - started), 1)}


async def steps(service: Service, agent_id: str, chance: random.Random) -> dict[str, float]:
    """Returns the time of a retrieve by step: medians of the receipt's steps, in milliseconds."""
    seen: dict[str, list[float]] = {}
    memory = service.runtime.manager_for(Caller(agent_id))
    for _ in range(100):
        result = await memory.retrieve(RetrieveParams(query=question(chance), k=5))
        for step, taken in result.receipt.timings_ms.items():
            seen.setdefault(step, []).append(taken)
    return {step: percentiles(values)["p50"] for step, values in seen.items()}


async def stores(service: Service, agent_id: str, count: int, chance: random.Random) -> dict[str, float]:
    """Times the store of one interaction, including the embedding."""
    taken: list[float] = []
    for _ in range(count):
        interaction = {"query": question(chance), "response": sentence(chance)}
        started = time.perf_counter()
        await service.call(agent_id, "memory.store", {"interaction": interaction})
        taken.append((time.perf_counter() - started) * 1_000)
    return percentiles(taken)


async def batches(service: Service, count: int, chance: random.Random) -> dict[str, float]:
    """Alternates store_batch with the embedder alone, on new texts: memories a second."""
    embedder = service.runtime.parts.embedder
    stored = embedded = 0.0
    for _ in range(count // BATCH):
        items = [{"content": sentence(chance)} for _ in range(BATCH)]
        texts = [sentence(chance) for _ in range(BATCH)]
        started = time.perf_counter()
        await service.call("bench-batches", "memory.store_batch", {"items": items})
        middle = time.perf_counter()
        if embedder is not None:
            await embedder.embed(texts, "document")
        stored += middle - started
        embedded += time.perf_counter() - middle
    return {
        "store_batch_per_second": round(count / stored, 1),
        "embedder_alone_per_second": round(count / embedded, 1),
        "share": round(embedded / stored, 2),
    }


async def contexts(service: Service, agent_id: str, chance: random.Random) -> dict[str, float]:
    """Times the context of 2,000 tokens on top of its search, and counts the tokens used."""
    taken: list[float] = []
    used: list[int] = []
    for _ in range(200):
        params = {"query": question(chance), "max_tokens": CONTEXT_TOKENS}
        result = await service.call(agent_id, "memory.get_context", params)
        taken.append(result["receipt"]["timings_ms"]["format"])
        used.append(result["token_count"])
    filled = [ms for ms, tokens in zip(taken, used, strict=True) if tokens >= FILLED * CONTEXT_TOKENS]
    if not filled:
        raise RuntimeError(f"no context was filled: at most {max(used)} of {CONTEXT_TOKENS} tokens")
    return {
        **percentiles(filled),
        "filled": len(filled),
        "tokens": round(sum(used) / len(used)),
        "fewest_tokens": min(used),
    }


async def disk_bytes(service: Service) -> int:
    """Returns the size of the database with its indexes."""
    async with service.runtime.database.owner_transaction() as connection:
        row = await (await connection.execute("SELECT pg_database_size(current_database()) AS bytes")).fetchone()
    return int(row["bytes"]) if row else 0


async def recall_at_50(service: Service, agent_id: str, chance: random.Random, queries: int = 50) -> float:
    """Returns the share of the exact 50 nearest that the indexed search finds, over real query vectors."""
    parts = service.runtime.parts
    if parts.embedder is None:
        return 1.0
    shares: list[float] = []
    for _ in range(queries):
        [vector] = await parts.embedder.embed([question(chance)], "query")
        shares.append(await parts.vectors.measured_recall(agent_id, vector, parts.vector_model, 50))
    return round(sum(shares) / len(shares), 3)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    async with running_service(
        options.home,
        embedding_model=options.embedder,
        maintenance_in_server=False,
        exact_search_limit=options.exact_search_limit,
        max_queue_seconds=60.0,
    ) as service:
        chance = random.Random(options.query_seed)
        fill_seconds = await fill(service, AGENT, options.memories, options.seed)
        await settle(service)
        figures: dict[str, Any] = {
            "fill_seconds": round(fill_seconds, 1),
            "recall_at_50": await recall_at_50(service, AGENT, chance),
        }
        figures |= await one_by_one(service, AGENT, options.queries, chance)
        figures["steps_ms"] = await steps(service, AGENT, chance)
        figures["store_ms"] = await stores(service, AGENT, options.queries // 2, chance)
        figures["context_format_ms"] = await contexts(service, AGENT, chance)
        figures["batches"] = await batches(service, 2_000, chance)
        for callers in (10, 100):
            figures[f"callers_{callers}"] = await concurrent(service, AGENT, callers, options.queries * 2, callers)
        figures["disk_mib"] = round(await disk_bytes(service) / 2**20, 1)
        figures["resident_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024, 1)
        return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--embedder", default="local", help="local | hashing")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--query-seed",
        type=int,
        default=time.time_ns() % 10**6,
        help="new by default, so that a kept home's cache knows none of the queries",
    )
    parser.add_argument("--exact-search-limit", type=int, default=5_000)
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    options = parser.parse_args()
    figures = run(measure(options))
    for name, value in figures.items():
        print(f"{name:<20} {value}")
    append("retrieval_latency", {name: value for name, value in vars(options).items() if name != "home"}, figures)
    return 0
