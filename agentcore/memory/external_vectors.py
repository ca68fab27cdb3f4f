"""External vector stores, which supply candidate ids. PostgreSQL remains the source of truth.

A transactional outbox keeps a store in sync: a trigger enqueues each change of a vector in the transaction of the
change, and a background task applies it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from agentcore.cancellation import run_to_completion
from agentcore.circuit_breaker import CircuitBreaker, CircuitOpen
from agentcore.database import Database, Row, query, shaped_query
from agentcore.errors import Unreachable

VECTOR_STORES: Mapping[str, str] = {
    "memory": "agentcore.providers.memory_vectors:MemoryVectors",
    "milvus": "agentcore.providers.milvus_vectors:MilvusVectors",
    "pgvector": "agentcore.memory.vector_store:PgVectorStore",
    "qdrant": "agentcore.providers.qdrant_vectors:QdrantVectors",
}
COLLECTION_PREFIX = "agentcore_"
LOCK_KEY = 5_520_981_347_702_114_407
SEARCH_SECONDS, CALL_SECONDS, LOCK_SECONDS = 2.0, 60.0, 10.0
BATCH_SIZE, PAGE_SIZE, DELETE_BATCH_SIZE = 500, 1_000, 10_000
# Pending changes of an agent that a search compares.
MAX_PENDING = 1_000
# A float is up to 24 bytes of JSON, and Qdrant accepts requests of 32 MiB.
MAX_FLOATS = 640_000
MAX_REASON_CHARS = 300
# If the changes of more agents are refused, draining stops.
MAX_REFUSED = 50
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNAVAILABLE = "vector store: it does not answer"
OUTDATED = "vector store: it is not up to date"
PARTLY_OUTDATED = f"{OUTDATED}; recent changes were searched by words alone"
REFUSED = "vector store: it refuses requests"
logger = logging.getLogger(__name__)
ReturnT = TypeVar("ReturnT")
# Called with a step, the number done, and the total (0: unknown).
Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class VectorStoreOptions:
    """`url`: of a server, or a path of a local store. `timeout_seconds`: of one request."""

    url: str | None
    api_key: str | None
    timeout_seconds: float = CALL_SECONDS / 2


class StoreUnusable(Unreachable):
    """The message states whether the store does not answer, refuses requests, or is not up to date."""


class StoreRefused(StoreUnusable):
    """The store answered with an error; the log has its reason."""


class Suggestion(NamedTuple):
    """Ids of candidates, unordered and to be filtered again; `degraded`: warnings for the receipt."""

    memory_ids: list[UUID]
    may_have_more: bool
    degraded: tuple[str, ...]


class Point(NamedTuple):
    """A vector, float32 (dimensions,), and the fields by which a store filters. `at`: microseconds since 1970, UTC."""

    memory_id: UUID
    vector: NDArray[np.float32]
    agent_id: str
    user_id: str | None
    session_id: str | None
    memory_type: str
    at: int


@dataclass(frozen=True)
class PointFilter:
    """Selects points of an agent; a field that is None does not filter.

    An element None of `user_ids` selects points without a user. `after` is inclusive, `before` exclusive.
    """

    agent_id: str
    user_ids: tuple[str | None, ...] | None = None
    session_id: str | None = None
    memory_types: tuple[str, ...] | None = None
    after: int | None = None
    before: int | None = None


class VectorStore(Protocol):
    """A vector store; `VECTOR_STORE=package.module:Class` names a class that is called with VectorStoreOptions.

    Methods block and run in up to `threads` threads at the same time. The constructor sends no request. A method
    returns when its change is visible to later searches. A collection has vectors of one model, which are compared by
    cosine and not normalized; upsert creates it, or completes it after an interruption. A missing collection is empty.
    `failures`: exceptions of a store that is unavailable or refuses a request; others are defects.
    """

    threads: int
    failures: tuple[type[Exception], ...]

    def collections(self) -> Collection[str]:
        """Returns the names that start with COLLECTION_PREFIX."""

    def upsert(self, collection: str, points: Sequence[Point]) -> None: ...

    def delete(self, collection: str, ids: Sequence[UUID]) -> None: ...

    def search(
        self, collection: str, vectors: Sequence[NDArray[np.float32]], where: PointFilter, limit: int
    ) -> list[list[UUID]]:
        """Returns for each vector, (dimensions,), up to `limit` ids of the nearest points."""

    def ids(self, collection: str, after: UUID | None, limit: int) -> list[tuple[str, UUID]]:
        """Returns up to `limit` pairs of agent id and memory id, in the order of memory ids, after an id."""

    def erase(self, where: PointFilter) -> None:
        """Deletes these points from every collection."""

    def count(self, where: PointFilter | None) -> int:
        """Counts these points in every collection exactly; None: all points, approximately."""

    def is_refusal(self, failure: Exception) -> bool:
        """Returns whether the store rejected the request, so that a retry would fail."""

    def ping(self) -> None: ...

    def close(self) -> None: ...


def collection_of(model: str, dimensions: int) -> str:
    return f"{COLLECTION_PREFIX}{dimensions}_{hashlib.sha256(model.encode()).hexdigest()[:16]}"


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


class ExternalVectors:
    """Searches the store of VECTOR_STORE and keeps it in sync. Methods raise Unreachable if it is unavailable."""

    def __init__(self, database: Database, store: VectorStore, name: str, url: str | None) -> None:
        """A store without a URL belongs to this process: each start fills it again."""
        self.name = name
        self.circuit = CircuitBreaker("vector_store", "searches use PostgreSQL alone, changes remain enqueued")
        self._database = database
        self._store = store
        self._identity = f"{name}:{hashlib.sha256(url.encode()).hexdigest()[:16] if url else uuid4()}"
        self._last_refusal = ""
        self._threads = ThreadPoolExecutor(store.threads, "vector-store")

    async def ping(self) -> None:
        await self._call(self._store.ping, force=True)

    async def close(self) -> None:
        """Closes the store after its last request."""
        await asyncio.to_thread(self._threads.shutdown)
        with suppress(*self._store.failures):
            await asyncio.to_thread(self._store.close)

    async def nearest(
        self, database: Database, model: str, vectors: NDArray[Any], where: PointFilter, limit: int, *, partial: bool
    ) -> Suggestion:
        """Returns the store's candidates and the agent's newest pending memories.

        `vectors`: (queries, dimensions); `limit`: for each query. Raises StoreUnusable, also if more than MAX_PENDING
        changes of the agent are pending, unless `partial` results suffice.
        """
        # Read before the search: a change that is applied in between is found in one of the two.
        values = {"agent_id": where.agent_id, "limit": MAX_PENDING + 1}
        [[state]] = await database.fetch(where.agent_id, [(query("pending_vectors"), values)])
        lags = len(state["memory_ids"]) > MAX_PENDING
        if state["store"] != self._identity or (lags and not partial):
            raise StoreUnusable(OUTDATED)
        collection = collection_of(model, vectors.shape[1])
        queries = [*vectors.astype(np.float32)]
        found = await self._call(self._store.search, collection, queries, where, limit, seconds=SEARCH_SECONDS)
        ids = dict.fromkeys([*state["memory_ids"], *(each for ids in found for each in ids)])
        has_more = not lags and any(len(each) >= limit for each in found)
        return Suggestion([*ids], has_more, (PARTLY_OUTDATED,) if lags else ())

    async def enable_outbox(self) -> None:
        """Creates the trigger and enqueues every vector, unless that is done for this store."""
        [state] = await self._database.owner_rows(query("vector_outbox"))
        if state["store"] == self._identity:
            return
        async with self._writer_lock():
            [state] = await self._database.owner_rows(query("vector_outbox"))
            if state["store"] == self._identity:
                return
            if not state["exists"]:
                async with self._database.owner_transaction() as connection:
                    await connection.execute(query("short_lock_wait"))
                    await connection.execute(query("enable_vector_outbox"))
            await self._backfill()

    async def _backfill(self) -> None:
        values = {"agent_id": None, "user_ids": None, "filling": True}
        async with self._database.owner_transaction() as connection:
            await connection.execute(query("backfill_vectors"), values)
            await connection.execute(shaped_query("name_vector_store", store=sql.Literal(self._identity)))

    async def drain(self, agent_id: str | None = None, report: Callable[[int], object] = lambda done: None) -> int:
        """Applies all changes, or an agent's, until none is pending; returns how many.

        Changes of an agent that the store refuses remain pending, after all others are applied: StoreRefused.
        """
        done, refused = 0, set[str]()
        while batch := await self._drain_batch(agent_id, refused):
            done += batch
            report(done)
        if refused:
            raise StoreRefused(REFUSED)
        return done

    async def _drain_batch(self, agent_id: str | None, refused: set[str]) -> int:
        values = {"agent_id": agent_id, "refused": [*refused], "limit": BATCH_SIZE}
        if not await self._database.owner_rows(query("vector_changes"), **values):
            return 0
        async with self._writer_lock():
            changes = await self._database.owner_rows(query("vector_changes"), **values)
            try:
                await self._apply_changes(changes)
            except StoreRefused:
                for each in dict.fromkeys(row["agent_id"] for row in changes):
                    try:
                        await self._apply_changes([row for row in changes if row["agent_id"] == each])
                    except StoreRefused:
                        refused.add(each)
                        if len(refused) > MAX_REFUSED:
                            raise
        return len(changes)

    async def _apply_changes(self, changes: Sequence[Row]) -> None:
        agents = [row["agent_id"] for row in changes]
        memory_ids = [row["memory_id"] for row in changes]
        rows = await self._database.owner_rows(query("changed_vectors"), agent_ids=agents, memory_ids=memory_ids)
        points: dict[str, list[Point]] = defaultdict(list)
        for collection, point in _points(rows):
            points[collection].append(point)
        await self._apply({*memory_ids}, points)
        await _delete_changes(self._database, changes)

    async def _apply(self, memory_ids: set[UUID], points: Mapping[str, Sequence[Point]]) -> None:
        existing = await self._call(self._store.collections)
        for collection in {*existing, *points}:
            upserted = points.get(collection, ())
            deleted = memory_ids - {each.memory_id for each in upserted}
            # First: a refused vector must not keep deleted ones.
            if deleted and collection in existing:
                await self._write(self._store.delete, collection, [*deleted])
            size = max(1, MAX_FLOATS // len(upserted[0].vector)) if upserted else 1
            for start in range(0, len(upserted), size):
                await self._write(self._store.upsert, collection, upserted[start : start + size])

    async def erase(self, where: PointFilter) -> int:
        """Applies the agent's pending changes, then deletes the matching points; returns how many there were before.

        Call it after the rows were deleted from PostgreSQL.
        """
        before = await self.count(where)
        with suppress(StoreRefused):
            # A refused vector of another memory must not prevent the erasure.
            await self.drain(where.agent_id)
        user_ids = None if where.user_ids is None else [*where.user_ids]
        values = {"agent_id": where.agent_id, "user_ids": user_ids, "filling": False}
        async with self._writer_lock():
            # Memories that were stored meanwhile are enqueued again: the erasure removes their vectors, too.
            await self._database.owner_rows(query("backfill_vectors"), **values)
            await self._write(self._store.erase, where)
        return before

    async def count(self, where: PointFilter) -> int:
        return await self._call(self._store.count, where)

    async def rebuild(self, report: Report) -> dict[str, int]:
        """Fills the store from PostgreSQL, and deletes what PostgreSQL does not have. Resumes what was interrupted."""
        await self.enable_outbox()
        async with self._writer_lock():
            [state] = await self._database.owner_rows(query("count_vector_changes"))
            if not state["filling"]:
                await self._backfill()
                [state] = await self._database.owner_rows(query("count_vector_changes"))
        applied = await self.drain(report=lambda done: report("filling", done, max(done, state["changes"])))
        removed = 0
        for collection in await self._call(self._store.collections):
            after: UUID | None = None
            while page := await self._call(self._store.ids, collection, after, PAGE_SIZE):
                after = page[-1][1]
                removed += await self._remove_orphans(collection, page)
                report("removing orphaned vectors", removed, 0)
        return {"passed_on": applied, "removed": removed}

    async def _remove_orphans(self, collection: str, page: Sequence[tuple[str, UUID]]) -> int:
        async with self._writer_lock():
            agents, ids = zip(*page, strict=True)
            rows = await self._database.owner_rows(query("orphaned_points"), agent_ids=[*agents], memory_ids=[*ids])
            if rows:
                await self._write(self._store.delete, collection, [row["memory_id"] for row in rows])
        return len(rows)

    @asynccontextmanager
    async def _writer_lock(self) -> AsyncIterator[None]:
        """Serializes writers by an advisory lock of a session: an old vector must not replace a newer one."""
        async with self._database.owner_autocommit() as connection:
            try:
                async with asyncio.timeout(LOCK_SECONDS + CALL_SECONDS):
                    await connection.execute(query("take_vector_lock"), {"key": LOCK_KEY})
            except TimeoutError as cause:
                raise Unreachable("Another process writes to the vector store: call again.") from cause
            yield

    async def _write(self, method: Callable[..., None], *arguments: Any) -> None:
        """Waits until the thread ends, also if canceled: nothing may be written after the lock is released."""
        await run_to_completion(self._call(method, *arguments, seconds=None))

    async def _call(
        self, method: Callable[..., ReturnT], *arguments: Any, seconds: float | None = CALL_SECONDS, force: bool = False
    ) -> ReturnT:
        failures: tuple[type[Exception], ...] = (*self._store.failures, TimeoutError, CircuitOpen)
        try:
            with self.circuit.guard(*failures, answers=(StoreRefused,), force=force):
                running = asyncio.get_running_loop().run_in_executor(self._threads, partial(method, *arguments))
                try:
                    # Python 3.11's wait_for can swallow a cancellation.
                    async with asyncio.timeout(seconds):
                        return await running
                except self._store.failures as failure:
                    if not self._store.is_refusal(failure):
                        raise
                    self._log_refusal(f"{getattr(method, '__name__', method)} refused: {failure}")
                    raise StoreRefused(REFUSED) from failure
        except failures as cause:
            raise StoreUnusable(UNAVAILABLE) from cause

    def _log_refusal(self, refusal: str) -> None:
        reason = " ".join(refusal.split())[:MAX_REASON_CHARS]
        if reason != self._last_refusal:
            logger.warning("vector store: %s", reason)
        self._last_refusal = reason


async def disable_outbox(database: Database) -> None:
    """Empties the outbox and drops the trigger, if there is one."""
    [state] = await database.owner_rows(query("vector_outbox"))
    if not state["exists"]:
        return
    values: dict[str, Any] = {"agent_id": None, "refused": [], "limit": DELETE_BATCH_SIZE}
    while changes := await database.owner_rows(query("vector_changes"), **values):
        await _delete_changes(database, changes)
    async with database.owner_transaction() as connection:
        await connection.execute(query("short_lock_wait"))
        await connection.execute(query("disable_vector_outbox"))
        # Few rows are left: calls wait for the lock on `memories`.
        await connection.execute(query("empty_vector_outbox"))


async def _delete_changes(database: Database, changes: Sequence[Row]) -> None:
    agents, ids = [row["agent_id"] for row in changes], [row["change_id"] for row in changes]
    await database.owner_rows(query("delete_vector_changes"), agent_ids=agents, change_ids=ids)


def _points(rows: Sequence[Row]) -> Iterator[tuple[str, Point]]:
    """Yields a point for each vector; during a re-embedding a memory has two."""
    for row in rows:
        labels = (row["agent_id"], row["user_id"], row["session_id"], row["memory_type"])
        at = microseconds(row["timestamp"])
        for model, stored in (
            (row["embedding_model"], row["embedding"]),
            (row["next_embedding_model"], row["next_embedding"]),
        ):
            if model is not None and stored is not None:
                vector = stored.to_numpy().astype(np.float32)
                yield collection_of(model, len(vector)), Point(row["memory_id"], vector, *labels, at)
