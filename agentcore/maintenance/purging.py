"""Physically removes the remains of deleted rows from the files of PostgreSQL and Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agentcore.database import Connection, query, shaped_query

# Calls of the service are blocked by the pending lock of VACUUM FULL: each attempt is short.
LOCK_TIMEOUT = "2s"
RETRY_SECONDS, POLL_SECONDS, REDIS_SECONDS, RELOAD_SECONDS = 0.5, 0.05, 120.0, 30.0
CLEARS_STATISTICS = 180_000
STATISTICS = "pg_statistic"
ELSEWHERE = "backups, exports and file system snapshots made before; blocks freed but not overwritten"
ADMINISTRATORS = (
    "write-ahead log: with wal_recycle=off an administrator repeats pg_switch_wal() and CHECKPOINT until the "
    "old segments are gone, and deletes them from the WAL archive",
    "replicas and base backups of this PostgreSQL",
)
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


@dataclass
class Purged:
    """`remaining`: data that no purge reaches."""

    purged: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    remaining: list[str] = field(default_factory=list)

    def claims(self) -> dict[str, Any]:
        return {"purged": self.purged, "remaining": [*self.failed, *self.remaining]}


@dataclass(frozen=True)
class Purge:
    """With `embedded`, the URL is that of a superuser."""

    database_url: str
    redis: Redis | None
    embedded: bool
    wait_seconds: float
    tell: Callable[[str], None]
    result: Purged = field(default_factory=Purged)

    async def run(self) -> Purged:
        """A step that fails is listed, and the next one runs."""
        self.result.remaining += [ELSEWHERE, *(() if self.embedded else ADMINISTRATORS)]
        steps = [self._rewrite_tables]
        if self.embedded:
            steps.append(self._replace_wal)
        for step in steps:
            try:
                async with await Connection.connect(
                    self.database_url, autocommit=True, row_factory=dict_row, connect_timeout=10
                ) as connection:
                    await step(connection)
            except psycopg.Error as error:
                self.result.failed.append(f"files of PostgreSQL: {str(error).splitlines()[0]}; purge again")
        if self.redis is not None:
            self.tell("Redis: rewriting its files")
            await self._rewrite_redis(self.redis)
        return self.result

    async def _rewrite_tables(self, connection: Connection) -> None:
        [start] = await _rows(connection, "purge_start", lock_timeout=LOCK_TIMEOUT)
        await self._wait_for_snapshots(connection, start["xid"])
        before = await _relations(connection)
        tables = [name for name, row in before.items() if row["filenode"] is not None and name != STATISTICS]
        self.tell(f"PostgreSQL: rewriting {len(tables)} tables")
        for name in tables:
            rewritten = await self._retried(connection, _vacuum_full(name))
            self.result.purged["tables"] = self.result.purged.get("tables", 0) + rewritten
        await self._renew_statistics(connection, before.keys() - {STATISTICS}, start["version"])
        await self._retried(connection, _vacuum_full(STATISTICS))
        after = await _relations(connection)
        # VACUUM FULL skips a table of another owner with a warning only.
        kept = [
            name
            for name in (*tables, STATISTICS)
            if name in after and after[name]["filenode"] == before[name]["filenode"]
        ]
        self.result.failed.extend(f"table {name}: not rewritten, another process uses it" for name in kept)
        sizes = [sum(row["bytes"] for row in rows.values()) for rows in (before, after)]
        self.result.purged.update(tables=len({*tables} - {*kept}), table_bytes=sizes[0] - sizes[1])

    async def _renew_statistics(self, connection: Connection, tables: Set[str], version: int) -> None:
        """Column statistics contain values of deleted rows."""
        clears = version >= CLEARS_STATISTICS
        if not clears:
            self.result.failed.append("column statistics of empty tables: PostgreSQL 18 can clear them")
        clear = query("purge_clear_statistics")
        for name in tables:
            analyze = shaped_query("purge_analyze", table=sql.Identifier(name))
            if not (
                (not clears or await self._retried(connection, clear, table=name))
                and await self._retried(connection, analyze)
            ):
                self.result.failed.append(f"column statistics of {name}: another process locks it")

    async def _wait_for_snapshots(self, connection: Connection, xid: str) -> None:
        holders: list[Mapping[str, Any]] = []

        async def all_ended() -> bool:
            holders[:] = await _rows(connection, "purge_older_snapshots", xid=xid)
            return not holders

        if not await _until(all_ended, self.wait_seconds):
            self.result.failed.extend(
                f"rows that {row['holder']} can still read: end it, then purge again" for row in holders
            )

    async def _retried(self, connection: Connection, statement: sql.SQL | sql.Composed, **values: str) -> bool:
        """Retries a statement that needs a lock for `wait_seconds`. False: it is locked.

        Between two attempts queued calls of the service proceed.
        """
        deadline = time.monotonic() + self.wait_seconds
        while True:
            try:
                await connection.execute(statement, values or None)
                return True
            except _BUSY:
                if time.monotonic() > deadline:
                    return False
                await asyncio.sleep(RETRY_SECONDS)

    async def _replace_wal(self, connection: Connection) -> None:
        self.tell("PostgreSQL: removing old write-ahead log")

        async def recycles_no_segments() -> bool:
            return not (await _rows(connection, "purge_recycles_wal"))[0]["recycles"]

        await connection.execute(query("purge_keep_no_wal_files"))
        try:
            await connection.execute(query("purge_reload"))
            if not await _until(recycles_no_segments, RELOAD_SECONDS):
                self.result.failed.append("write-ahead log: the server did not reload wal_recycle=off")
            await connection.execute(query("purge_checkpoint"))
            old = left = {row["name"] for row in await _rows(connection, "purge_wal_files")}
            for _ in range(len(old) + 1):
                await connection.execute(query("purge_next_wal_file"))
                await connection.execute(query("purge_checkpoint"))
                left = old & {row["name"] for row in await _rows(connection, "purge_wal_files")}
                if not left:
                    break
        finally:
            await connection.execute(query("purge_keep_wal_files_again"))
            await connection.execute(query("purge_reload"))
        self.result.purged["wal_files"] = len(old - left)
        if left:
            self.result.failed.append(f"write-ahead log: {len(left)} segments that a slot or setting keeps")

    async def _rewrite_redis(self, redis: Redis) -> None:
        async def is_idle() -> bool:
            found = await redis.info("persistence")
            return not any(
                found.get(name)
                for name in ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
            )

        try:
            state = await redis.info("persistence")
            snapshots = bool((await redis.config_get("save")).get("save"))
            for status, wanted, rewrite in (
                ("aof_last_bgrewrite_status", state["aof_enabled"], redis.bgrewriteaof),
                ("rdb_last_bgsave_status", snapshots, redis.bgsave),
            ):
                if wanted:
                    await rewrite()
                    if not await _until(is_idle, REDIS_SECONDS) or (await redis.info())[status] != "ok":
                        raise RedisError("not rewritten")
                    self.result.purged["redis_files"] = self.result.purged.get("redis_files", 0) + 1
        except RedisError as error:
            self.result.failed.append(f"files of Redis: {error}; run BGREWRITEAOF and BGSAVE there")


def _vacuum_full(table: str) -> sql.Composed:
    return shaped_query("purge_rewrite", table=sql.Identifier(table))


async def _until(reached: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not await reached():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def _relations(connection: Connection) -> dict[str, Mapping[str, Any]]:
    return {row["name"]: row for row in await _rows(connection, "purge_relations")}


async def _rows(connection: Connection, name: str, **values: str) -> list[Mapping[str, Any]]:
    return list(await (await connection.execute(query(name), values or None)).fetchall())
