"""Vector stores beside PostgreSQL, which supply ids of near memories. PostgreSQL remains the record.

Triggers enqueue each change of a vector in the transaction of the change; a background task passes the changes on.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
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
CHANGES_A_BATCH, IDS_A_PAGE = 500, 1_000
# With more pending changes of an agent, PostgreSQL searches its memories alone.
MAX_PENDING = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AWAY = "The vector store does not answer."
ReturnT = TypeVar("ReturnT")
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class VectorStoreOptions:
    """`url`: of a server, or a path of a local store. `timeout_seconds`: of one request."""

    url: str | None
    api_key: str | None
    timeout_seconds: float = CALL_SECONDS / 2


class Point(NamedTuple):
    """A vector, and the fields by which a store filters. `at`: microseconds since 1970."""

    memory_id: UUID
    vector: NDArray[np.float32]
    agent_id: str
    user_id: str | None
    session_id: str | None
    memory_type: str
    at: int


@dataclass(frozen=True)
class Where:
    """Selects points of an agent; None: any. A None in `user_ids` selects points without a user."""

    agent_id: str
    user_ids: tuple[str | None, ...] | None = None
    session_id: str | None = None
    memory_types: tuple[str, ...] | None = None
    after: int | None = None
    before: int | None = None


class VectorStore(Protocol):
    """A vector store; `VECTOR_STORE=package.module:Class` names a class that is called with VectorStoreOptions.

    Methods block and run in at most `threads` threads. The constructor sends no request. A method returns when its
    change is visible to later searches. A collection has vectors of one model, which are compared by cosine; upsert
    creates it. A missing collection is empty. `failures`: exceptions of a store that is away or refuses a request.
    """

    threads: int
    failures: tuple[type[Exception], ...]

    def collections(self) -> Collection[str]:
        """Returns the names that start with COLLECTION_PREFIX."""

    def upsert(self, collection: str, points: Sequence[Point]) -> None: ...

    def delete(self, collection: str, ids: Sequence[UUID]) -> None: ...

    def search(
        self, collection: str, vectors: Sequence[NDArray[np.float32]], where: Where, limit: int
    ) -> list[list[UUID]]:
        """Returns for each vector the ids of the nearest points."""

    def ids(self, collection: str, after: UUID | None, limit: int) -> list[tuple[str, UUID]]:
        """Returns a page of agent ids and memory ids in the order of memory ids."""

    def erase(self, where: Where) -> None:
        """Deletes these points from every collection."""

    def count(self, where: Where) -> int:
        """Counts these points in every collection, exactly."""

    def ping(self) -> None: ...

    def close(self) -> None: ...


def collection_of(model: str, dimensions: int) -> str:
    return f"{COLLECTION_PREFIX}{dimensions}_{hashlib.sha256(model.encode()).hexdigest()[:16]}"


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


class ExternalVectors:
    """Searches the store of VECTOR_STORE, and keeps it like PostgreSQL. Methods raise Unreachable if it is away."""

    def __init__(self, database: Database, store: VectorStore, name: str, url: str | None) -> None:
        """A store without a URL belongs to this process."""
        self.name = name
        self.circuit = CircuitBreaker("vector_store", "searches use PostgreSQL alone, changes remain enqueued")
        self._database = database
        self._store = store
        self._identity = f"{name}:{hashlib.sha256(url.encode()).hexdigest()[:16] if url else uuid4()}"
        self._threads = ThreadPoolExecutor(store.threads, "vector-store")

    async def ping(self) -> None:
        await self._call(self._store.ping, force=True)

    async def close(self) -> None:
        """In the store's thread: after its last request."""
        self._threads.submit(self._store.close)
        await asyncio.to_thread(self._threads.shutdown)

    async def nearest(
        self, database: Database, model: str, vectors: NDArray[Any], where: Where, limit: int
    ) -> tuple[list[UUID], bool] | None:
        """Returns candidates and whether there may be more; None while the store lacks too many changes."""
        # Read before the store: a change that leaves the queue later is in the store.
        values = {"agent_id": where.agent_id, "limit": MAX_PENDING + 1}
        [[state]] = await database.fetch(where.agent_id, [(query("pending_vectors"), values)])
        if state["store"] != self._identity or len(state["memory_ids"]) > MAX_PENDING:
            return None
        collection = collection_of(model, vectors.shape[1])
        asked = [*vectors.astype(np.float32)]
        found = await self._call(self._store.search, collection, asked, where, limit, seconds=SEARCH_SECONDS)
        ids = dict.fromkeys([*state["memory_ids"], *(each for ids in found for each in ids)])
        return [*ids], any(len(each) >= limit for each in found)

    async def record(self) -> None:
        """Starts to record changes for this store, and enqueues every vector, unless that is done."""
        [state] = await self._database.owner_rows(query("recorded_vectors"))
        if state["store"] == self._identity:
            return
        if not state["exists"]:
            async with self._database.owner_transaction() as connection:
                await connection.execute(query("short_lock_wait"))
                await connection.execute(query("record_vector_changes"))
        await self._enqueue_all()

    async def _enqueue_all(self) -> None:
        async with self._database.owner_transaction() as connection:
            await connection.execute(query("enqueue_all_vectors"))
            await connection.execute(shaped_query("name_vector_store", store=sql.Literal(self._identity)))

    async def drain(self, agent_id: str | None = None) -> int:
        """Passes on all changes, or an agent's, until none is pending; returns how many."""
        done = 0
        while batch := await self._drain_batch(agent_id):
            done += batch
        return done

    async def _drain_batch(self, agent_id: str | None) -> int:
        values = {"agent_id": agent_id, "limit": CHANGES_A_BATCH}
        if not await self._database.owner_rows(query("vector_changes"), **values):
            return 0
        async with self._alone():
            changes = await self._database.owner_rows(query("vector_changes"), **values)
            agents = [row["agent_id"] for row in changes]
            memory_ids = [row["memory_id"] for row in changes]
            rows = await self._database.owner_rows(query("changed_vectors"), agent_ids=agents, memory_ids=memory_ids)
            points: dict[str, list[Point]] = defaultdict(list)
            for collection, point in _points(rows):
                points[collection].append(point)
            await self._pass_on({*memory_ids}, points)
            done = [row["change_id"] for row in changes]
            await self._database.owner_rows(query("forget_vector_changes"), agent_ids=agents, change_ids=done)
        return len(changes)

    async def _pass_on(self, memory_ids: set[UUID], points: Mapping[str, Sequence[Point]]) -> None:
        existing = await self._call(self._store.collections)
        for collection in {*existing, *points}:
            upserted = points.get(collection, ())
            if upserted:
                await self._write(self._store.upsert, collection, upserted)
            gone = memory_ids - {each.memory_id for each in upserted}
            if gone and collection in existing:
                await self._write(self._store.delete, collection, [*gone])

    async def erase(self, where: Where) -> int:
        """Deletes an agent's or a user's points, after its pending changes; returns how many there were."""
        before = await self.count(where)
        await self.drain(where.agent_id)
        async with self._alone():
            await self._write(self._store.erase, where)
        return before

    async def count(self, where: Where) -> int:
        return await self._call(self._store.count, where)

    async def rebuild(self, tell: Tell) -> dict[str, int]:
        """Fills the store from PostgreSQL, and deletes what PostgreSQL does not have. Resumes what was interrupted."""
        await self.record()
        [state] = await self._database.owner_rows(query("count_vector_changes"))
        if not state["filling"]:
            await self._enqueue_all()
            [state] = await self._database.owner_rows(query("count_vector_changes"))
        passed, removed = 0, 0
        while batch := await self._drain_batch(None):
            passed += batch
            tell("filling", passed, max(passed, state["changes"]))
        for collection in await self._call(self._store.collections):
            after: UUID | None = None
            while page := await self._call(self._store.ids, collection, after, IDS_A_PAGE):
                after = page[-1][1]
                removed += await self._remove_unknown(collection, page)
                tell("removing unknown vectors", removed, 0)
        return {"passed_on": passed, "removed": removed}

    async def _remove_unknown(self, collection: str, page: Sequence[tuple[str, UUID]]) -> int:
        async with self._alone():
            agents, ids = zip(*page, strict=True)
            rows = await self._database.owner_rows(query("unknown_vectors"), agent_ids=[*agents], memory_ids=[*ids])
            if rows:
                await self._write(self._store.delete, collection, [row["memory_id"] for row in rows])
        return len(rows)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Excludes other writers: an older state of a memory must not replace a newer one."""
        async with self._database.owner_autocommit() as connection:
            try:
                async with asyncio.timeout(LOCK_SECONDS + CALL_SECONDS):
                    await connection.execute(query("take_vector_lock"), {"key": LOCK_KEY})
            except TimeoutError as cause:
                raise Unreachable("Another process writes to the vector store: call again.") from cause
            yield

    async def _write(self, method: Callable[..., None], *arguments: Any) -> None:
        """Waits for the thread, whose requests have timeouts of their own: its change must not come after the lock."""
        await run_to_completion(self._call(method, *arguments, seconds=None))

    async def _call(
        self, method: Callable[..., ReturnT], *arguments: Any, seconds: float | None = CALL_SECONDS, force: bool = False
    ) -> ReturnT:
        failures: tuple[type[Exception], ...] = (*self._store.failures, TimeoutError)
        try:
            with self.circuit.guard(*failures, force=force):
                running = asyncio.get_running_loop().run_in_executor(self._threads, partial(method, *arguments))
                return await asyncio.wait_for(running, seconds)
        except CircuitOpen as cause:
            raise Unreachable(AWAY) from cause
        except failures as cause:
            raise Unreachable(AWAY) from cause


async def stop_recording(database: Database) -> None:
    """Ends the recording of changes, if no store uses them any more."""
    [state] = await database.owner_rows(query("recorded_vectors"))
    if state["exists"]:
        async with database.owner_transaction() as connection:
            await connection.execute(query("short_lock_wait"))
            await connection.execute(query("stop_vector_changes"))
        # After the commit: calls wait for the lock on `memories`.
        await database.owner_rows(query("forget_all_vector_changes"))


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
