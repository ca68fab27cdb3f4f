"""Builds, measures and rebuilds vector indexes without blocking reads or writes.

An ivfflat index computes its centroids from the rows present at the build. The search width (probes or
ef_search) is measured after a build and as the partition grows.
"""

from __future__ import annotations

import asyncio
import bisect
import hashlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import IsolationLevel, sql
from psycopg.types.json import Jsonb

from agentcore.database import (
    SERVICE_ROLE,
    Connection,
    Database,
    Row,
    query,
    set_for_transaction,
    settings_of,
    shaped_query,
)
from agentcore.errors import DependencyUnavailable
from agentcore.failpoints import failpoint
from agentcore.memory.rows.vector_index import (
    HNSW_CONSTRUCTION,
    IndexKind,
    IndexPolicy,
    ServingIndex,
    VectorIndex,
    default_width,
    described,
    fastest_exact,
    max_width,
    min_width,
    reaches,
    shape_for,
)
from agentcore.memory.rows.vector_rows import LIFE_SECONDS, SETTLED, index_settings
from agentcore.memory.vector_store import ASKED, PASSAGES
from agentcore.telemetry import describe_failure

NEAREST = 50
QUERIES, LEAST_QUERIES = 100, 10
EXACT_SEARCH_SECONDS = 20.0
LONGEST_INDEXED_SEARCH_MS = 30_000
LONGEST_REST_SECONDS = 1.0
SAMPLED_ROWS_A_QUERY = 20

Report = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """`recall` None: the exact searches timed out."""

    reach: int
    recall: float | None
    queries: int


@dataclass(frozen=True)
class Subject:
    """The index to measure. No other index serves its partition."""

    partition: str
    rows: int
    index: VectorIndex
    dimensions: int
    exact_search_limit: int


@dataclass(frozen=True)
class _Asked:
    agent_id: str
    vector: str
    nearest: frozenset[Any]


async def measure(connection: Connection, subject: Subject, goal: float, report: Report) -> Measured:
    """Returns the least search width that reaches the recall `goal`. Needs its own connection, in autocommit.

    All searches read one snapshot. It sleeps after each for the same time, to limit its load.
    """
    await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    try:
        async with connection.transaction():
            asked = await _ask_exactly(connection, subject, report)
            if not asked:
                return Measured(subject.index.reach, None, 0)
            ladder = reaches(subject.index.kind, subject.index.shape, subject.rows)

            async def recall_at(reach: int) -> tuple[float, bool]:
                shares = [await _share(connection, subject, each, reach) for each in asked]
                mean, doubt = float(np.mean(shares)), float(np.std(shares)) / math.sqrt(len(shares))
                report(f"recall {mean:.3f} at a reach of {reach}")
                return mean, mean - doubt >= goal

            reach, recall = await choose(ladder, subject.index.reach, recall_at)
            return Measured(reach, round(recall, 4), len(asked))
    except psycopg.errors.QueryCanceled:
        return Measured(subject.index.reach, None, 0)


async def choose(
    ladder: Sequence[int], start: int, recall_at: Callable[[int], Awaitable[tuple[float, bool]]]
) -> tuple[int, float]:
    """Returns the least sufficient width and its recall, else the last one, by binary search from `start`."""
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


async def _ask_exactly(connection: Connection, subject: Subject, report: Report) -> list[_Asked]:
    percent = 100 * QUERIES * SAMPLED_ROWS_A_QUERY / max(1, subject.rows)
    cursor = await connection.execute(
        shaped_query("sample_vectors", partition=sql.Identifier(subject.partition)),
        {
            "percent": min(100.0, percent),
            "model": subject.index.model,
            "exact_search_limit": max(
                subject.exact_search_limit, fastest_exact(subject.rows) if subject.index.kind == "hnsw" else 0
            ),
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
        exact = _arm(subject, "exact")
        try:
            async with connection.transaction():
                nearest = await _searched(connection, exact, row["agent_id"], vector, subject)
        except psycopg.errors.QueryCanceled:
            break
        asked.append(_Asked(row["agent_id"], vector, nearest))
        report(f"compared {len(asked)} of {len(sampled)}")
    await connection.execute(query("measuring_timeout"), {"timeout_ms": str(LONGEST_INDEXED_SEARCH_MS)})
    return asked if len(asked) >= min(LEAST_QUERIES, len(sampled)) else []


def disturbed(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Adds noise of equal length: the cosine to the vector is about 0.7."""
    noise = np.random.default_rng().normal(size=vector.shape).astype(np.float32)
    length = float(np.linalg.norm(vector)) or 1.0
    return vector / length + noise / float(np.linalg.norm(noise))


async def _share(connection: Connection, subject: Subject, asked: _Asked, reach: int) -> float:
    if not asked.nearest:
        return 1.0
    index = subject.index
    most = max_width(index.kind, index.shape)
    serving = ServingIndex(reach, most, reach, index.kind == "hnsw", subject.rows)
    await connection.execute(*set_for_transaction(index_settings(serving, filtered=False)))
    arm = _arm(subject, "indexed", dimensions=sql.Literal(subject.dimensions))
    found = await _searched(connection, arm, asked.agent_id, asked.vector, subject)
    return len(asked.nearest & found) / len(asked.nearest)


def _arm(subject: Subject, mode: str, **shape: sql.Composable) -> sql.Composed:
    if is_of_passages(subject.partition):
        return shaped_query(f"passage_retriever_{mode}", vector=ASKED, then=query("held_ever"), **shape)
    return shaped_query(f"vector_retriever_{mode}", vector=ASKED, **SETTLED.shape, **shape)


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
    await connection.execute(*settings_of(agent_id, SERVICE_ROLE))
    rows = await (await connection.execute(arm, values)).fetchall()
    await asyncio.sleep(min(LONGEST_REST_SECONDS, time.monotonic() - began))
    return frozenset(row["memory_id"] for row in rows)


# To train the largest number of lists, ivfflat asks for 200 MB, and 100 kB more per dimension.
LISTS_MEMORY_KB, LISTS_KB_A_DIMENSION = 215_000, 115
# A node of an HNSW graph, without its vector. A graph that does not fit is completed on disk, many times slower.
NODE_BYTES = 720
LEAST_MEMORY_KB, MOST_MEMORY_KB = 65_536, 2_097_152


def building_memory_kb(kind: IndexKind, dimensions: int, rows: int) -> int:
    """Returns maintenance_work_mem for a build: for HNSW a fifth more than the graph needs."""
    if kind == "ivfflat":
        return LISTS_MEMORY_KB + LISTS_KB_A_DIMENSION * dimensions
    graph = rows * (2 * dimensions + NODE_BYTES) * 6 // (5 * 1_024)
    return min(MOST_MEMORY_KB, max(LEAST_MEMORY_KB, graph))


async def build(
    connection: Connection, partition: str, index: VectorIndex, dimensions: int, *, moving: str | None = None
) -> None:
    """Builds the index, then writes its comment: an index without a comment is unfinished.

    `moving`: the migrating model to index, whose vectors may be in either column; only for ivfflat.
    """
    memory = str(building_memory_kb(index.kind, dimensions, index.built_rows))
    await connection.execute(query("index_building_session"), {"memory": memory})
    shape = {
        "index": sql.Identifier(index.name),
        "partition": sql.Identifier(partition),
        "dimensions": sql.Literal(dimensions),
        "shape": sql.Literal(index.shape),
        "construction": sql.Literal(HNSW_CONSTRUCTION),
        "model": sql.Literal(index.model if moving is None else moving),
    }
    statement = f"build_{index.kind}_index" if moving is None else "build_moving_index"
    await connection.execute(shaped_query(statement, **shape))
    failpoint("reembed.built")
    await remember(connection, index)


async def remember(connection: Connection, index: VectorIndex) -> None:
    description = sql.Literal(index.comment())
    await connection.execute(
        shaped_query("describe_vector_index", index=sql.Identifier(index.name), description=description)
    )


async def drop(connection: Connection, names: Iterable[str]) -> None:
    for name in names:
        await connection.execute(shaped_query("drop_vector_index", index=sql.Identifier(name)))


def is_of_passages(partition: str) -> bool:
    return partition.startswith(PASSAGES)


def new_name(partition: str, model: str) -> str:
    digest = hashlib.sha256(model.encode()).hexdigest()[:8]
    return f"ann_{partition}_{digest}_{time.time_ns() // 1_000_000}"


logger = logging.getLogger(__name__)
MIN_ROWS = 2_000
# Growth in rows at which an ivfflat index is rebuilt, and any index is measured again.
GROWTH, MEASURED_GROWTH = 2.0, 1.25
# Lists computed from other rows serve badly: with a width above this share, a fifth more rows suffice.
WORN_SHARE, WORN_GROWTH = 0.4, 1.2
MAX_INDEXED_DIMENSIONS = 4_000
LOCK_KEY = 5_520_981_347_702_114_404

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class PartitionState:
    """`half_made`: unfinished indexes."""

    partition: str
    rows: int
    indexes: tuple[VectorIndex, ...]
    half_made: tuple[str, ...]


@dataclass(frozen=True)
class IndexPlan:
    """Steps in this order: sweep, build, drop the replaced indexes, measure (a new index always)."""

    sweep: tuple[str, ...] = ()
    build: bool = False
    replaced: tuple[VectorIndex, ...] = ()
    measured: VectorIndex | None = None


def partition_state(row: Mapping[str, Any]) -> PartitionState:
    """Parses a row of `partition_sizes`."""
    found = {
        each["name"]: described(each["name"], each["comment"], each["bytes"]) if each["valid"] else None
        for each in row["indexes"]
    }
    return PartitionState(
        row["partition"],
        max(int(row["rows"]), int(row["live_rows"] or 0)),
        tuple(index for index in found.values() if index is not None),
        # Invalid, or without the comment that ends a build: the build was interrupted.
        tuple(name for name, index in found.items() if index is None),
    )


def _with_shard_sizes(row: Row, sizes: Row) -> Row:
    """Replaces the coordinator's figures by those of `shard_sizes`."""
    indexes = [{**each, "bytes": sizes["index_bytes"].get(each["name"], 0)} for each in row["indexes"]]
    return {**row, "rows": sizes["rows"], "indexes": indexes}


def plan(state: PartitionState, model: str, policy: IndexPolicy) -> IndexPlan | None:
    """Returns the steps that a partition's size and indexes require; None if there are none."""
    ours = indexes_of(state, model)
    current = next((index for index in reversed(ours) if index.kind == policy.kind), None)
    if _is_due(current, state.rows):
        return IndexPlan(state.half_made, build=True, replaced=tuple(ours))
    kept = current or next(reversed(ours), None)
    others = tuple(index for index in ours if index is not kept)
    todo = IndexPlan(state.half_made, replaced=others, measured=_unmeasured(kept, state.rows))
    return None if todo == IndexPlan() else todo


def rebuild_plan(state: PartitionState, model: str) -> IndexPlan:
    return IndexPlan(state.half_made, build=True, replaced=tuple(indexes_of(state, model)))


def tune_plan(state: PartitionState, model: str) -> IndexPlan | None:
    """Returns a plan that measures the newest index again; None if there is no index."""
    ours = indexes_of(state, model)
    return IndexPlan(measured=ours[-1]) if ours else None


def indexes_of(state: PartitionState, model: str) -> list[VectorIndex]:
    """Returns the indexes of a model, newest last."""
    return sorted((each for each in state.indexes if each.model == model), key=lambda index: index.built_at)


def _is_due(index: VectorIndex | None, rows: int) -> bool:
    if rows < MIN_ROWS:
        return False
    if index is None:
        return True
    if index.kind == "hnsw":
        # A graph integrates new rows like the first ones; ivfflat's lists stay those of its first rows.
        return False
    enough = max(WORN_SHARE * index.shape, min_width(index.kind, index.shape, index.built_rows))
    worn = index.reach > enough and index.measured_at is not None
    return rows >= (WORN_GROWTH if worn else GROWTH) * index.built_rows


def _unmeasured(index: VectorIndex | None, rows: int) -> VectorIndex | None:
    if index is None or index.measured_rows is None:
        return index
    most, least = max(rows, index.measured_rows), min(rows, index.measured_rows)
    return index if most >= MEASURED_GROWTH * max(1, least) else None


class IndexKeeper:
    """Maintains the vector indexes of one model; `tell` is called with (partition, step)."""

    def __init__(
        self,
        database: Database,
        model: str,
        dimensions: int,
        policy: IndexPolicy,
        *,
        exact_search_limit: int = 1_000,
        tell: Tell = lambda partition, step: None,
        passages_alone: bool = False,
    ) -> None:
        """`passages_alone`: a vector store searches the memories; indexes on them stay as they are."""
        self._passages_alone = passages_alone
        self._database = database
        self._model = model
        self._dimensions = dimensions
        self._policy = policy
        self._exact_search_limit = exact_search_limit
        self._tell = tell

    async def states(self) -> list[PartitionState]:
        """Raises DependencyUnavailable while a worker of a cluster is unavailable."""
        rows = await self._database.owner_rows(query("partition_sizes"))
        if any(row["is_distributed"] for row in rows):
            shards = {row["partition"]: row for row in await self._database.owner_rows(query("shard_sizes"))}
            if any(row["partition"] not in shards for row in rows):
                raise DependencyUnavailable(
                    "A worker of the cluster does not answer: the sizes of its shards are unknown."
                )
            rows = [_with_shard_sizes(row, shards[row["partition"]]) for row in rows]
        return [partition_state(row) for row in rows]

    async def round(self) -> int:
        """Returns the number of partitions changed. Failures are retried in the next round."""
        if self._dimensions > MAX_INDEXED_DIMENSIONS or not self._plans(await self.states()):
            return 0
        async with self.alone() as connection:
            if connection is None:
                return 0
            changed = 0
            for state, todo in self._plans(await self.states()):
                try:
                    await self.carry_out(connection, state, todo)
                except (psycopg.Error, DependencyUnavailable) as failure:
                    logger.warning(
                        "the vector index of %s waits", state.partition, extra={"failure": describe_failure(failure)}
                    )
                else:
                    changed += 1
        return changed

    def _plans(self, states: Sequence[PartitionState]) -> list[tuple[PartitionState, IndexPlan]]:
        kept = [state for state in states if is_of_passages(state.partition) or not self._passages_alone]
        plans = [(state, plan(state, self._model, self._policy)) for state in kept]
        return [(state, todo) for state, todo in plans if todo is not None]

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Connection | None]:
        """Yields None if another process has the index lock."""
        async with self._database.owner_autocommit() as connection:
            cursor = await connection.execute(query("take_index_lock"), {"key": LOCK_KEY})
            row = await cursor.fetchone()
            yield connection if row and row["taken"] else None

    async def carry_out(self, connection: Connection, state: PartitionState, todo: IndexPlan) -> None:
        """During a build the old index serves, or search is exact."""
        # Swept first: a build that fails repeatedly leaves one unfinished index, not many.
        await drop(connection, todo.sweep)
        index = await self._build(connection, state, todo.replaced) if todo.build else todo.measured
        if index is not None and any(each.kind != index.kind for each in todo.replaced):
            # Processes that read only the old index would not repeat a search in which the new one comes short.
            await asyncio.sleep(LIFE_SECONDS)
        await drop(connection, [each.name for each in todo.replaced])
        if index is not None:
            await self._measure(connection, state, index)

    async def _build(
        self, connection: Connection, state: PartitionState, replaced: Sequence[VectorIndex]
    ) -> VectorIndex:
        kind = self._policy.kind
        shape = shape_for(kind, state.rows)
        alike = [index for index in replaced if index.kind == kind]
        shares = [index.reach / index.shape for index in alike if kind == "ivfflat"]
        index = VectorIndex(
            name=new_name(state.partition, self._model),
            kind=kind,
            model=self._model,
            shape=shape,
            built_rows=state.rows,
            built_at=time.time(),
            reach=max(default_width(kind, shape, state.rows), *(int(share * shape) + 1 for share in shares), 0),
        )
        for old in alike:
            # The planner may use the new index before processes read it: their cached width must suffice.
            await remember(connection, replace(old, reach=max(old.reach, index.reach)))
        if alike:
            await asyncio.sleep(LIFE_SECONDS)
        self._tell(state.partition, f"building {kind} over {state.rows} rows")
        await build(connection, state.partition, index, self._dimensions)
        return index

    async def _measure(self, connection: Connection, state: PartitionState, index: VectorIndex) -> None:
        subject = Subject(state.partition, state.rows, index, self._dimensions, self._exact_search_limit)
        found = await measure(connection, subject, self._policy.recall, lambda step: self._tell(state.partition, step))
        await remember(
            connection,
            replace(index, reach=found.reach, recall=found.recall, measured_at=time.time(), measured_rows=state.rows),
        )
        logger.info(
            "the vector index of %s was measured",
            state.partition,
            extra={"recall": found.recall, "reach": found.reach, "queries": found.queries},
        )
