"""Recall, measured: the least reach with which an index gives enough of what an exact search would.

Asked are stored vectors with noise as long as themselves: a stored vector finds itself too easily, and with
that noise the recall was that of real questions (docs/decisions/0017).
"""

from __future__ import annotations

import asyncio
import bisect
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import IsolationLevel, sql
from psycopg.types.json import Jsonb

from agentcore.database import SERVICE_ROLE, Connection, query, shaped_query
from agentcore.memory.rows.embedding_models import SETTLED
from agentcore.memory.rows.serving_indexes import index_settings
from agentcore.memory.rows.vector_index import ServingIndex, VectorIndex, most_reach, reaches
from agentcore.memory.vector_store import ASKED

NEAREST = 50
QUERIES, LEAST_QUERIES = 100, 10
EXACT_SEARCH_SECONDS = 20.0
LONGEST_INDEXED_SEARCH_MS = 30_000
LONGEST_REST_SECONDS = 1.0
SAMPLED_ROWS_A_QUERY = 20

Told = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """The reach that was chosen and its recall over so many queries; None: exact searches took too long."""

    reach: int
    recall: float | None
    queries: int


@dataclass(frozen=True)
class Subject:
    """What is measured: the one index that serves a partition, and whose searches go through it."""

    partition: str
    rows: int
    index: VectorIndex
    dimensions: int
    exact_search_limit: int
    iterative: bool


@dataclass(frozen=True)
class _Asked:
    agent_id: str
    vector: str
    nearest: frozenset[Any]


async def measure(connection: Connection, subject: Subject, goal: float, told: Told) -> Measured:
    """Choose the index's reach for this recall. Takes a connection of its own, in autocommit.

    Exact and indexed searches see one snapshot, and are those of the service. After each it rests as long as
    it took: half of one core at most.
    """
    await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    try:
        async with connection.transaction():
            asked = await _ask_exactly(connection, subject, told)
            if not asked:
                return Measured(subject.index.reach, None, 0)
            ladder = reaches(subject.index.kind, subject.index.shape, subject.rows)

            async def recall_at(reach: int) -> tuple[float, bool]:
                shares = [await _share(connection, subject, each, reach) for each in asked]
                mean, doubt = float(np.mean(shares)), float(np.std(shares)) / math.sqrt(len(shares))
                told(f"recall {mean:.3f} at a reach of {reach}")
                return mean, mean - doubt >= goal

            reach, recall = await choose(ladder, subject.index.reach, recall_at)
            return Measured(reach, round(recall, 4), len(asked))
    except psycopg.errors.QueryCanceled:
        return Measured(subject.index.reach, None, 0)


async def choose(
    ladder: Sequence[int], start: int, recall_at: Callable[[int], Awaitable[tuple[float, bool]]]
) -> tuple[int, float]:
    """The least reach of the ladder that is enough, and its recall; else the last one.

    More reach finds more, so each answer halves what is left; `start` is asked first.
    """
    position = min(bisect.bisect_left(ladder, start), len(ladder) - 1)
    least, enough = 0, len(ladder) - 1
    recall: float | None = None
    while least < enough:
        found, reached = await recall_at(ladder[position])
        if reached:
            enough, recall = position, found
        else:
            least = position + 1
        position = (least + enough) // 2
    return ladder[enough], (await recall_at(ladder[enough]))[0] if recall is None else recall


async def _ask_exactly(connection: Connection, subject: Subject, told: Told) -> list[_Asked]:
    percent = 100 * QUERIES * SAMPLED_ROWS_A_QUERY / max(1, subject.rows)
    cursor = await connection.execute(
        shaped_query("sample_vectors", partition=sql.Identifier(subject.partition)),
        {
            "percent": min(100.0, percent),
            "model": subject.index.model,
            "exact_search_limit": subject.exact_search_limit,
            "limit": QUERIES,
        },
    )
    sampled = await cursor.fetchall()
    asked: list[_Asked] = []
    ends = time.monotonic() + 2 * EXACT_SEARCH_SECONDS
    for row in sampled:
        vector = HalfVector(disturbed(np.asarray(row["vector"], dtype=np.float32))).to_text()
        left = ends - time.monotonic()
        if left <= 0:
            break
        timeout = {"timeout_ms": str(math.ceil(left * 1_000))}
        await connection.execute(query("measuring_timeout"), timeout)
        exact = shaped_query("vector_arm_exact", vector=ASKED, **SETTLED.shape)
        try:
            async with connection.transaction():
                nearest = await _searched(connection, exact, row["agent_id"], vector, subject)
        except psycopg.errors.QueryCanceled:
            break
        asked.append(_Asked(row["agent_id"], vector, nearest))
        told(f"compared {len(asked)} of {len(sampled)}")
    await connection.execute(query("measuring_timeout"), {"timeout_ms": str(LONGEST_INDEXED_SEARCH_MS)})
    return asked if len(asked) >= min(LEAST_QUERIES, len(sampled)) else []


def disturbed(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vector with noise as long as itself: their cosine is about 0.7."""
    noise = np.random.default_rng().normal(size=vector.shape).astype(np.float32)
    length = float(np.linalg.norm(vector)) or 1.0
    return vector / length + noise / float(np.linalg.norm(noise))


async def _share(connection: Connection, subject: Subject, asked: _Asked, reach: int) -> float:
    if not asked.nearest:
        return 1.0
    index = subject.index
    most = most_reach(index.kind, index.shape)
    serving = ServingIndex(reach, most, reach, index.kind == "hnsw", subject.iterative)
    await connection.execute(*index_settings(serving, filtered=False))
    arm = shaped_query(
        "vector_arm_indexed", dimensions=sql.Literal(subject.dimensions), vector=ASKED, **SETTLED.shape
    )
    found = await _searched(connection, arm, asked.agent_id, asked.vector, subject)
    return len(asked.nearest & found) / len(asked.nearest)


async def _searched(
    connection: Connection, arm: sql.SQL | sql.Composed, agent_id: str, vector: str, subject: Subject
) -> frozenset[Any]:
    values = {
        "agent_id": agent_id,
        "filter": Jsonb({"current": True}),
        "model": subject.index.model,
        "vector": vector,
        "limit": NEAREST,
    }
    began = time.monotonic()
    whose = {"role": SERVICE_ROLE, "agent_id": agent_id, "users": ""}
    await connection.execute(query("begin_as_agent"), whose)
    rows = await (await connection.execute(arm, values)).fetchall()
    await asyncio.sleep(min(LONGEST_REST_SECONDS, time.monotonic() - began))
    return frozenset(row["memory_id"] for row in rows)
