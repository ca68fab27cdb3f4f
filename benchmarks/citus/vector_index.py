"""Searches of an agent of 20,000 memories on a cluster: exactly, and through the index that the index keeper builds on
the shards. The vectors are synthetic.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector

from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.memory.rows.vector_index import IndexPolicy
from benchmarks.citus.cluster import Cluster
from benchmarks.ledger import percentiles
from benchmarks.service import Service

AGENT, DIMENSIONS, LATENT, NEAREST = "large-agent", 384, 24, 50
MEMORIES, CALLS = 20_000, 100
COPY = (
    "COPY memories (agent_id, memory_id, memory_type, content, summary, embedding, embedding_model, timestamp, "
    "content_hash) FROM STDIN"
)


def _fill(running: Cluster, vectors: NDArray[np.float32], model: str) -> None:
    with psycopg.connect(running.superuser_url) as connection:
        with connection.cursor().copy(COPY) as copy:
            for number, vector in enumerate(vectors):
                text, row_id = f"Note {number}.", str(uuid.UUID(int=number))
                half = HalfVector(vector).to_text()
                copy.write_row((AGENT, row_id, "episodic", text, text, half, model, "2026-01-01", "\\x00"))
        connection.execute("INSERT INTO lexical_totals VALUES (%s, %s, %s)", [AGENT, len(vectors), len(vectors)])
        connection.commit()
        connection.autocommit = True
        connection.execute("ANALYZE memories")


async def _searches(service: Service, queries: NDArray[np.float32]) -> dict[str, float]:
    taken = []
    for vector in queries:
        params = {"query": "Which note?", "query_vector": vector.tolist(), "k": 10}
        began = time.perf_counter()
        await service.call(AGENT, "memory.retrieve", params)
        taken.append(1_000 * (time.perf_counter() - began))
    return percentiles(taken[len(taken) // 10 :])


async def measure(running: Cluster, service: Service) -> dict[str, Any]:
    service.runtime.maintenance.stop()
    parts = service.runtime.parts
    chance = np.random.default_rng(7)
    plane = chance.normal(size=(LATENT, DIMENSIONS))
    made = (chance.normal(size=(MEMORIES + CALLS, LATENT)) @ plane).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    _fill(running, made[:MEMORIES], parts.vector_model)
    queries = made[MEMORIES:]
    figures: dict[str, Any] = {"exact_ms": await _searches(service, queries)}
    began = time.perf_counter()
    await service.runtime.maintenance.keep_indexes()
    figures["build_and_measure_s"] = round(time.perf_counter() - began, 1)
    states = await IndexKeeper(service.runtime.database, parts.vector_model, DIMENSIONS, IndexPolicy()).states()
    figures["index_mib"] = {each.name: round(each.bytes / 2**20, 1) for state in states for each in state.indexes}
    before = service.exact_searches()
    figures["indexed_ms"] = await _searches(service, queries)
    figures["searches_that_stayed_exact"] = service.exact_searches() - before
    shares = [await parts.vectors.measured_recall(AGENT, each, parts.vector_model, NEAREST) for each in queries]
    figures[f"recall_at_{NEAREST}"] = round(float(np.mean(shares)), 4)
    with psycopg.connect(running.url) as connection:
        statement = "SELECT relname, obj_description(oid, 'pg_class') FROM pg_class WHERE relname LIKE 'ann%'"
        figures["indexes"] = {name: json.loads(comment) for name, comment in connection.execute(statement)}
    return figures
