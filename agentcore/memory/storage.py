"""Reads and writes memories in PostgreSQL, always for one agent."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, cast
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import MAX_LOOKUP_KEYS, Connection, Database, Users, array_literal, query, shaped_query
from agentcore.limits import MAX_PAGE_BYTES
from agentcore.memory.columns import NEW, TEXT, MemoryColumns, NewColumns, StoredMemory
from agentcore.memory.models import ActionOutcome, Link, MemoryRecord, MemoryType
from agentcore.memory.params.agent_settings import OwnRules
from agentcore.memory.rows.archive_rows import ArchiveRows, EraseRows
from agentcore.memory.rows.derived_rows import EMBED_PASSAGES, ClusterRows, FactRows, LlmRows, PassageRows, SummaryRows
from agentcore.memory.rows.memory_rows import (
    HistoryRows,
    LifeRows,
    LinkRows,
    OwnedRows,
    RelationRows,
    Row,
    RuleRows,
    SubjectRows,
)
from agentcore.memory.rows.vector_rows import ServingIndexes
from agentcore.summary_rules import SummaryRules


class _Mint:
    """Creates UUIDv7 (RFC 9562) that rise within this process, so a batch keeps its order."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = Lock()

    def __call__(self) -> UUID:
        now = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 74
        with self._lock:
            self._last = max(now | secrets.randbits(74), self._last + 1 + secrets.randbits(32))
            bits = self._last
        head, tail = bits >> 62, bits & (1 << 62) - 1
        return UUID(int=head >> 12 << 80 | 0x7 << 76 | (head & 0xFFF) << 64 | 0b10 << 62 | tail)


mint_memory_id = _Mint()


class JobRows(OwnedRows):
    """The jobs of one agent in one transaction. Enqueue last: its locks block others until the commit."""

    async def enqueue(
        self, name: str, *, lock: str | None = None, not_before: datetime | None = None, **ids: str | int | UUID
    ) -> None:
        """Enqueues the job for after the commit, unless a job with the same lock is pending.

        Two jobs with one lock never run concurrently. The default `lock` is the name with the ids.
        """
        values = {"name": name, "ids": Jsonb(_plain(ids)), "not_before": not_before}
        await self._rows("enqueue_job", lock=lock or job_lock(name, **ids), **values)

    async def waits(self, lock: str) -> bool:
        """Returns whether a job with this lock is pending; if so, it starts only after this transaction."""
        rows = await self._rows("job_waits", lock=lock)
        return bool(rows[0]["waits"])

    async def over_capacity(self, capacities: Mapping[str, int], locks: Mapping[str, str]) -> list[tuple[str, int]]:
        """Returns layers above their capacity, and the capacity; omits those whose job, by its lock, is pending.

        The agent's own capacity overrides the one passed for a layer; 0 is unlimited.
        """
        values = {"layers": [*capacities], "capacities": [*capacities.values()]}
        over = []
        for near in await self._rows("layers_near_capacity", **values):
            if await self.waits(locks[near["layer"]]):
                continue
            [found] = await self._rows("layer_is_over_capacity", layer=near["layer"], capacity=near["capacity"])
            if found["over"]:
                over.append((near["layer"], near["capacity"]))
        return over

    async def forget(self) -> int:
        """Deletes every job of the agent; running ones are not aborted. Returns how many."""
        rows = await self._rows("forget_jobs")
        return int(rows[0]["forgotten"])

    async def await_enqueuers(self, lock: str) -> None:
        """Blocks until the transactions that saw a job with this lock as pending have ended."""
        await self._rows("await_enqueuers", lock=lock)


def job_lock(name: str, **ids: str | int | UUID) -> str:
    """Returns the default lock of a job: its name with its ids."""
    return json.dumps([name, _plain(ids)], sort_keys=True)


def _plain(ids: Mapping[str, str | int | UUID]) -> dict[str, str | int]:
    return {key: str(value) if isinstance(value, UUID) else value for key, value in ids.items()}


_RECORD_FIELDS = set(MemoryRecord.model_fields) - {"embedding"}
_DIRECTIONS = {True: (sql.SQL("DESC"), sql.SQL("<")), False: (sql.SQL("ASC"), sql.SQL(">"))}
_LISTS = {"timestamp": "list_by_timestamp", "importance": "list_by_importance", "access_count": "list_by_access_count"}
_UPDATED = ("content", "flagged", "tags", "relevance_score", "pinned")
DELETE_CHUNK = 5_000
_WORKING = sql.SQL("m.memory_id, m.version, m.token_count, m.relevance_score, m.pinned")
_WHOLE_WORKING = sql.SQL(
    "m.memory_id, m.version, m.token_count, m.relevance_score, m.pinned, m.memory_type, m.timestamp, "
    "m.speaker, m.created_at, CASE WHEN {fits} THEN m.content END AS content, "
    "CASE WHEN {fits} THEN m.summary END AS summary"
).format(
    # The rows that `_inside_budget` keeps; the contents of the others are not loaded.
    fits=sql.SQL(
        "sum(m.token_count) OVER (ORDER BY m.timestamp DESC, m.memory_id DESC ROWS UNBOUNDED PRECEDING) "
        "- m.token_count <= %(budget_tokens)s"
    )
)


@dataclass(frozen=True)
class NewMemory:
    memory_id: UUID
    columns: NewColumns
    links: Sequence[Link] = field(default_factory=tuple)
    idempotency_key: str | None = None
    request_digest: bytes = b""


class MemoryTransaction(OwnedRows):
    def __init__(
        self, connection: Connection, agent_id: str, rules: SummaryRules | None = None, *, users: Users = None
    ) -> None:
        super().__init__(connection, agent_id)
        self._bound = users is not None
        self.clusters = ClusterRows(connection, agent_id)
        self.history = HistoryRows(connection, agent_id)
        self.life = LifeRows(connection, agent_id)
        self.links = LinkRows(connection, agent_id)
        self.rules = RuleRows(connection, agent_id)
        self.jobs = JobRows(connection, agent_id)
        self.archived = ArchiveRows(connection, agent_id)
        self.subjects = SubjectRows(connection, agent_id)
        self.erasing = EraseRows(connection, agent_id)
        self.llm = LlmRows(connection, agent_id, rules)
        self.summaries = SummaryRows(connection, agent_id, rules, users)
        self.facts = FactRows(connection, agent_id)
        self.relations = RelationRows(connection, agent_id)
        self.passages = PassageRows(connection, agent_id)

    async def claim_keys(self, memories: Sequence[NewMemory], ttl_seconds: int) -> dict[str, Row]:
        """Claims the memories' idempotency keys; returns the rows of keys that are taken already."""
        keyed = {memory.idempotency_key: memory for memory in memories if memory.idempotency_key is not None}
        if not keyed:
            return {}
        rows = await self._rows(
            "claim_idempotency_keys",
            keys=list(keyed),
            ttl_seconds=ttl_seconds,
            digests=[memory.request_digest for memory in keyed.values()],
            memory_ids=[memory.memory_id for memory in keyed.values()],
        )
        claimed = {row["idempotency_key"] for row in rows}
        taken = [key for key in keyed if key not in claimed]
        return await self.known_keys(taken) if taken else {}

    async def known_keys(self, keys: Sequence[str]) -> dict[str, Row]:
        return {row["idempotency_key"]: row for row in await self._rows("find_idempotency_keys", keys=list(keys))}

    async def point_key(self, key: str, memory_id: UUID) -> None:
        await self._run("point_idempotency_key", key=key, memory_id=memory_id)

    async def same_texts(self, hashes: Iterable[bytes]) -> list[Row]:
        wanted = list(set(hashes))
        return await self._rows("find_same_texts", hashes=wanted) if wanted else []

    async def existing(self, memory_ids: Iterable[UUID], changing: Iterable[UUID] = ()) -> set[UUID]:
        """Locks and returns those of these memories that exist, so they are not deleted before the commit.

        Call it before other statements that lock rows: locks are acquired in one order. `changing`: memories to lock
        for an update, with those derived from them.
        """
        wanted, among = list(set(memory_ids)), list(changing)
        if not wanted:
            return set()
        if among:
            # Locks hidden summaries too; `existing_ids` then selects the rows visible to a bound caller.
            ids = {"memory_ids": wanted, "changing": among}
            rows = await self.summaries.run_for_all_users("existing_with_changing", **ids)
            if not self._bound:
                return {row["memory_id"] for row in rows if row["visible"]}
        return {row["memory_id"] for row in await self._rows("existing_ids", memory_ids=wanted)}

    async def insert(self, memories: Sequence[NewMemory]) -> None:
        """Inserts memories with links and term frequencies; enqueues long ones for passage embedding."""
        if not memories:
            return
        cursor = self._connection.cursor()
        await cursor.executemany(query("insert_memory"), [self._columns(memory) for memory in memories])
        await self.links.add_all({memory.memory_id: memory.links for memory in memories})
        await self.subjects.learn({memory.memory_id: memory.columns.subjects for memory in memories})
        await self.append_terms([memory.columns.text.term_keys for memory in memories], sign=1)
        await self.passages.enqueue([memory.memory_id for memory in memories if memory.columns.is_long])

    def _columns(self, memory: NewMemory) -> dict[str, Any]:
        columns = {name: getattr(memory.columns, name) for name in NEW} | _derived(memory.columns)
        columns |= {"agent_id": self._agent_id, "memory_id": memory.memory_id}
        for name in ("actions", "outcome", "action_outcomes"):
            columns[name] = Jsonb(columns[name]) if columns[name] not in (None, []) else None
        for name in ("metadata", "provenance"):
            columns[name] = Jsonb(columns[name])
        return columns

    async def append_terms(self, documents: Sequence[Sequence[int]], *, sign: int) -> None:
        """Adds (`sign` 1) or subtracts (-1) terms in the agent's document frequencies."""
        frequencies: Counter[int] = Counter()
        for keys in documents:
            frequencies.update(set(keys))
        await self._run(
            "append_lexical_delta",
            memory_count=sign * len(documents),
            term_count=sign * sum(len(keys) for keys in documents),
            term_keys=array_literal(frequencies.keys()),
            term_memories=array_literal(sign * count for count in frequencies.values()),
        )

    async def lock(self, memory_id: UUID) -> StoredMemory | None:
        """Locks and returns one memory; None if it does not exist."""
        rows = await self._rows("lock_memory", memory_id=memory_id)
        return StoredMemory.of(rows[0]) if rows else None

    async def update(
        self, memory: StoredMemory, ttl_seconds: int | None, expires_at: datetime | None, never_expires: bool
    ) -> Row:
        """Updates a locked memory; returns its new version, `ttl_seconds` and `expires_at`."""
        values = _derived(memory) | {name: getattr(memory, name) for name in _UPDATED}
        values |= {"metadata": Jsonb(memory.metadata), "ttl_seconds": ttl_seconds}
        values |= {"expires_at": expires_at, "never_expires": never_expires}
        return (await self._rows("update_memory", memory_id=memory.memory_id, **values))[0]

    async def delete(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Deletes memories with their histories and derived memories; returns a row for each."""
        await self.summaries.lock(to_delete=memory_ids)
        await self.summaries.enqueue_again(memory_ids)
        return await self._forget(await self.summaries.delete(memory_ids))

    async def delete_expired(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Deletes those of these memories that have expired, as `delete` does."""
        await self.summaries.lock(to_delete=memory_ids)
        made_of = await self.summaries.delete_derived_of_expired(memory_ids)
        rows = await self._rows("delete_expired_memories", memory_ids=list(memory_ids))
        return await self._forget([*made_of, *rows])

    async def chosen(self, memory_ids: Sequence[UUID], conditions: Mapping[str, Any], limit: int) -> list[UUID]:
        """Returns the visible ones of these memories, or without ids up to `limit` that match."""
        if memory_ids:
            return sorted(await self.existing(memory_ids))
        rows = await self._rows("matching_ids", filter=Jsonb(conditions), limit=limit)
        return [row["memory_id"] for row in rows]

    async def delete_matching(self, conditions: Mapping[str, Any], limit: int = DELETE_CHUNK) -> list[Row]:
        """Deletes up to `limit` matching memories and those derived from them; returns a row for each."""
        return await self.delete(await self.chosen((), conditions, limit))

    async def claim_layer(self, memory_type: str) -> bool:
        """Tries to take the pruning lock of a layer; returns whether it succeeded."""
        return bool((await self._rows("claim_layer", memory_type=memory_type))[0]["claimed"])

    async def lock_prunable(self, versions: Mapping[UUID, int]) -> list[UUID]:
        """Locks and returns those of these memories that are unpinned and unchanged in version."""
        rows = await self._rows("lock_prunable", memory_ids=list(versions), versions=list(versions.values()))
        return [row["memory_id"] for row in rows]

    async def whole_rows(self, memory_ids: Sequence[UUID]) -> list[Row]:
        return await self._rows("archive_rows", memory_ids=list(memory_ids))

    async def delete_versions(self, versions: Mapping[UUID, int]) -> list[Row]:
        """Deletes the memories that are unpinned and unchanged in version; returns a row for each."""
        rows = await self._rows("delete_versions", memory_ids=list(versions), versions=list(versions.values()))
        return await self._forget(rows)

    async def _forget(self, rows: list[Row]) -> list[Row]:
        if rows:
            await self._run("forget_histories", memory_ids=[row["memory_id"] for row in rows])
            await self.append_terms([row["term_keys"] for row in rows], sign=-1)
        return rows


class MemoryStorage:
    """Rows of all agents; `service_rules`: defaults for session summaries.

    Methods raise DependencyUnavailable.
    """

    def __init__(self, database: Database, service_rules: SummaryRules | None = None) -> None:
        self._database = database
        self.service_rules = service_rules
        self.indexes = ServingIndexes(database)

    def bound_to(self, users: Users) -> MemoryStorage:
        bound = MemoryStorage(self._database.bound_to(users), self.service_rules)
        bound.indexes = self.indexes
        return bound

    @asynccontextmanager
    async def transaction(self, agent_id: str, *, record_lsn: bool = True) -> AsyncIterator[MemoryTransaction]:
        """Opens a transaction of the agent; `record_lsn`: its later reads see it on replicas, too."""
        async with self._database.transaction(agent_id, record_lsn=record_lsn) as connection:
            transaction = MemoryTransaction(connection, agent_id, self.service_rules, users=self._database.users)
            yield transaction
            if transaction.passages.job_needed:
                # Last: the job's lock blocks other transactions until the commit.
                await transaction.jobs.enqueue(EMBED_PASSAGES)

    async def _read(
        self, agent_id: str, name: str, *, primary: bool = False, by_key: bool = False, **values: Any
    ) -> list[Row]:
        return await self._fetch(agent_id, query(name), values, primary=primary, by_key=by_key)

    async def _fetch(
        self,
        agent_id: str,
        statement: sql.SQL | sql.Composed,
        values: Mapping[str, Any],
        *,
        primary: bool,
        by_key: bool = False,
    ) -> list[Row]:
        statements = [(statement, {"agent_id": agent_id, **values})]
        [rows] = await self._database.fetch(agent_id, statements, primary=primary, by_key=by_key)
        return rows

    async def get(
        self, agent_id: str, memory_ids: Sequence[UUID], *, primary: bool = False, vectors: bool = False
    ) -> dict[UUID, MemoryRecord]:
        """Returns existing memories in the order of the ids, up to MAX_PAGE_BYTES; `vectors`: count vectors, too."""
        values: Row = {"memory_ids": list(memory_ids), "vectors": vectors, "max_bytes": MAX_PAGE_BYTES}
        rows = await self._read(agent_id, "get_memories", primary=primary, **values)
        return {row["memory_id"]: as_record(row) for row in rows}

    async def search_hits(self, agent_id: str, memory_ids: Sequence[UUID]) -> tuple[dict[UUID, Row], int]:
        """Returns memories as rows of `MemorySummary`, up to MAX_PAGE_BYTES, and the number omitted."""
        values: Row = {"memory_ids": list(memory_ids), "max_bytes": MAX_PAGE_BYTES}
        by_key = len(memory_ids) <= MAX_LOOKUP_KEYS
        rows = await self._read(agent_id, "search_hits", by_key=by_key, **values)
        read = {row["memory_id"]: row for row in rows if row["content"] is not None}
        return read, len(rows) - len(read)

    async def contents(self, agent_id: str, starts: Mapping[UUID, int], max_chars: int) -> list[Row]:
        """Returns up to `max_chars` characters of each memory from its offset, and its speaker."""
        values: Row = {"memory_ids": [*starts], "starts": [*starts.values()], "max_chars": max_chars}
        return await self._read(agent_id, "get_contents", **values)

    async def page(
        self,
        agent_id: str,
        conditions: Mapping[str, Any],
        *,
        order_by: str,
        descending: bool,
        place: Any,
        after_id: UUID | None,
        limit: int,
        primary: bool = False,
    ) -> list[Row]:
        direction, beyond = _DIRECTIONS[descending]
        statement = shaped_query(_LISTS[order_by], direction=direction, beyond=beyond)
        values = {"filter": Jsonb(conditions), "place": place, "after_id": after_id, "limit": limit}
        return await self._fetch(agent_id, statement, values, primary=primary)

    async def count(self, agent_id: str, conditions: Mapping[str, Any], *, primary: bool = False) -> int:
        rows = await self._read(agent_id, "count_memories", primary=primary, filter=Jsonb(conditions))
        return int(rows[0]["count"])

    async def count_values(
        self, agent_id: str, conditions: Mapping[str, Any], fields: Sequence[str], newest: int, limit: int
    ) -> list[Row]:
        values: Row = {"filter": Jsonb(conditions), "fields": [*fields], "newest": newest, "limit": limit}
        return await self._read(agent_id, "count_values", **values)

    async def count_flagged(self, agent_id: str, conditions: Mapping[str, Any]) -> int:
        rows = await self._read(agent_id, "count_flagged", filter=Jsonb(conditions))
        return int(rows[0]["count"])

    async def history(self, agent_id: str, memory_id: UUID, before_number: int | None, limit: int) -> list[Row]:
        """Returns changes before this number, newest first; `found`: how many up to `limit`."""
        values: Row = {"before_number": before_number, "limit": limit, "max_bytes": MAX_PAGE_BYTES}
        return await self._read(agent_id, "list_history", memory_id=memory_id, **values)

    async def own_rules(self, agent_id: str) -> OwnRules:
        """Returns the agent's own layer rules; empty if it has none."""
        rows = await self._read(agent_id, "agent_rules", primary=True)
        return cast(OwnRules, rows[0]["layers"]) if rows else {}

    async def layers(self, agent_id: str) -> list[Row]:
        return await self._read(agent_id, "layer_statistics")

    async def totals(self, agent_id: str) -> Row:
        return (await self._read(agent_id, "agent_statistics"))[0]

    async def working_rows(
        self,
        agent_id: str,
        task_id: str,
        ttl_seconds: int,
        conditions: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        budget_tokens: int | None = None,
    ) -> list[Row]:
        """Returns a task's working memory, newest first; with `budget_tokens` the contents inside it, too."""
        columns = _WORKING if budget_tokens is None else _WHOLE_WORKING
        statement = shaped_query("working_rows", columns=columns)
        values = {"task_id": task_id, "ttl_seconds": ttl_seconds, "limit": limit}
        values |= {"filter": Jsonb(conditions or {}), "budget_tokens": budget_tokens}
        return await self._fetch(agent_id, statement, values, primary=True)

    async def summaries_of(
        self, agent_id: str, memory_ids: Sequence[UUID], conditions: Mapping[str, Any], least: int, limit: int
    ) -> list[Row]:
        """Returns matching summaries of at least `least` of these memories, widest coverage first."""
        values = {"memory_ids": list(memory_ids), "filter": Jsonb(conditions), "least": least, "limit": limit}
        return await self._fetch(agent_id, query("summaries_of"), values, primary=False)

    async def prunable(self, agent_id: str, memory_type: str) -> list[Row]:
        return await self._read(agent_id, "pruning_candidates", primary=True, memory_type=memory_type)

    async def whole_rows(self, agent_id: str, memory_ids: Sequence[UUID]) -> list[Row]:
        return await self._read(agent_id, "archive_rows", primary=True, memory_ids=list(memory_ids))

    async def receipt_key(self) -> Row:
        """Returns the newest key of erasure receipts, `key_id` and `key`; creates the first one."""
        async with self._database.owner_transaction() as connection:
            found = await (await connection.execute(query("receipt_keys"), {"key_id": None})).fetchone()
            if found is None:
                new = {"key_id": secrets.token_hex(8), "key": secrets.token_bytes(32)}
                found = await (await connection.execute(query("insert_receipt_key"), new)).fetchone()
        return cast(Row, found)

    async def receipt_keys_of(self, key_id: str) -> list[bytes]:
        """Returns the key of erasure receipts with this id; empty if it is unknown."""
        async with self._database.owner_transaction() as connection:
            rows = await (await connection.execute(query("receipt_keys"), {"key_id": key_id})).fetchall()
        return [bytes(row["key"]) for row in rows]

    async def record_redis(self, redis_id: UUID, seconds: int) -> None:
        """Records that this Redis may contain working memory for this many seconds."""
        async with self._database.owner_transaction() as connection:
            await connection.execute(query("record_redis"), {"redis_id": redis_id, "seconds": seconds})

    async def other_redis(self, redis_id: UUID | None) -> list[UUID]:
        async with self._database.owner_transaction() as connection:
            cursor = await connection.execute(query("other_redis"), {"redis_id": redis_id})
            return [row["redis_id"] for row in await cursor.fetchall()]

    async def archived(
        self, agent_id: str, conditions: Mapping[str, Any], *, place: Any, after_id: UUID | None, limit: int
    ) -> list[Row]:
        """Returns matching tombstones, last archived first; `found`: how many up to `limit`."""
        where = {"filter": Jsonb(conditions), "place": place, "after_id": after_id, "limit": limit}
        return await self._read(agent_id, "list_tombstones", **where, max_bytes=MAX_PAGE_BYTES)

    async def own_vectors(
        self, agent_id: str, memory_ids: Sequence[UUID], *, primary: bool = False
    ) -> dict[UUID, list[float]]:
        rows = await self._read(agent_id, "own_vectors", primary=primary, memory_ids=list(memory_ids))
        return {row["memory_id"]: row["embedding"].to_list() for row in rows}


def as_record(row: Row) -> MemoryRecord:
    values = {name: value for name, value in row.items() if name in _RECORD_FIELDS}
    values["memory_type"] = MemoryType(row["memory_type"])
    values["actions"] = row["actions"] or []
    values["action_outcomes"] = [ActionOutcome(**pair) for pair in row["action_outcomes"] or []]
    values["links"] = [Link.model_validate(link) for link in row["links"] or []]
    values["content_hash"] = bytes(row["content_hash"]).hex()
    return MemoryRecord.model_construct(**values)


def _derived(columns: MemoryColumns) -> dict[str, Any]:
    vector = columns.vector.embedding
    values = {name: getattr(columns.text, name) for name in TEXT}
    values["term_keys"] = array_literal(columns.text.term_keys)
    values["embedding"] = vector if vector is None or isinstance(vector, HalfVector) else HalfVector(vector)
    return values | {"embedding_model": columns.vector.embedding_model}
