"""Purging: what removed rows leave in the files of PostgreSQL and Redis is removed physically."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agentcore.database import Connection, query, shaped_query

# Calls of the service queue behind the lock that VACUUM FULL asks for: each attempt is short.
LOCK_TIMEOUT = "2s"
RETRY_SECONDS = 0.5
POLL_SECONDS = 0.05
REDIS_SECONDS = 120.0
CLEARS_STATISTICS = 180_000
ELSEWHERE = "backups, exports and file system snapshots made before; blocks freed but not overwritten"
ADMINISTRATORS = (
    "write-ahead log: an administrator runs CHECKPOINT and pg_switch_wal() until the old segments are gone "
    "(with wal_recycle=off), and deletes them from the WAL archive",
    "replicas and base backups of this PostgreSQL",
)
Tell = Callable[[str], None]
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


@dataclass
class Purged:
    """Counts of what was purged, what remains by its nature, and what could not be purged now."""

    purged: dict[str, int] = field(default_factory=dict)
    remaining: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def claims(self) -> dict[str, Any]:
        """Returns the parts of the answer and of a receipt."""
        return {"purged": self.purged, "remaining": [*self.failed, *self.remaining]}


class Purge:
    """One purge of a database and its Redis. With `embedded` the URL is a superuser's."""

    def __init__(self, database_url: str, redis: Redis | None, *, embedded: bool, wait_seconds: float,
                 tell: Tell) -> None:
        self._url = database_url
        self._redis = redis
        self._embedded = embedded
        self._wait_seconds = wait_seconds
        self._tell = tell
        self._result = Purged(remaining=[ELSEWHERE, *(() if embedded else ADMINISTRATORS)])

    async def run(self) -> Purged:
        """Purge everything that is reachable."""
        try:
            connection = await Connection.connect(self._url, autocommit=True, row_factory=dict_row)
            async with connection:
                await self._rewrite_tables(connection)
                if self._embedded:
                    self._tell("PostgreSQL: removing old write-ahead log")
                    async with _no_recycling(connection):
                        await self._replace_wal(connection)
        except psycopg.Error as error:
            self._result.failed.append(f"files of PostgreSQL: {str(error).splitlines()[0]}; purge again")
        if self._redis is not None:
            self._tell("Redis: rewriting its files")
            await self._rewrite_redis(self._redis)
        return self._result

    async def _rewrite_tables(self, connection: Connection) -> None:
        [start] = await _rows(connection, "purge_start", lock_timeout=LOCK_TIMEOUT)
        await self._wait_for_snapshots(connection, start["xid"])
        before = await _rows(connection, "purge_relations")
        tables = [row for row in before if row["filenode"] is not None and row["name"] != "pg_statistic"]
        for number, row in enumerate(tables, 1):
            self._tell(f"PostgreSQL: {row['name']} ({number} of {len(tables)})")
            await self._rewrite(connection, row["name"])
        for row in before:
            if row["name"] != "pg_statistic":
                if start["version"] >= CLEARS_STATISTICS:
                    await _rows(connection, "purge_clear_statistics", table=row["name"])
                await connection.execute(shaped_query("purge_analyze", table=sql.Identifier(row["name"])))
        if start["version"] < CLEARS_STATISTICS:
            self._result.failed.append("column statistics of empty tables: PostgreSQL 18 can clear them")
        await self._rewrite(connection, "pg_statistic")
        after = {row["name"]: row for row in await _rows(connection, "purge_relations")}
        kept = [row["name"] for row in [*tables, before[-1]]
                if row["name"] in after and after[row["name"]]["filenode"] == row["filenode"]]
        self._result.failed += [f"table {name}: not rewritten, another process uses it" for name in kept]
        self._result.purged = {
            "tables": len(tables) - len(kept),
            "table_bytes": sum(row["bytes"] for row in before) - sum(row["bytes"] for row in after.values())}

    async def _wait_for_snapshots(self, connection: Connection, xid: str) -> None:
        async def older() -> list[Mapping[str, Any]]:
            return await _rows(connection, "purge_older_snapshots", xid=xid)

        if not await _until(self._wait_seconds, older, lambda holders: not holders):
            self._result.failed += [
                f"rows that {row['holder']} can still read: end it, then purge again"
                for row in await older()]

    async def _rewrite(self, connection: Connection, table: str) -> None:
        """Rewrite a table, its TOAST and its indexes; lets waiting calls through between two attempts."""
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                await connection.execute(shaped_query("purge_rewrite", table=sql.Identifier(table)))
                return
            except _BUSY:
                if time.monotonic() > deadline:
                    return
                await asyncio.sleep(RETRY_SECONDS)
            except psycopg.errors.UndefinedTable:
                return

    async def _replace_wal(self, connection: Connection) -> None:
        """Write new WAL segments until every file that exists now, future ones included, is gone."""
        await connection.execute(query("purge_checkpoint"))
        old = {row["name"] for row in await _rows(connection, "purge_wal_files")}
        left = set(old)
        for _ in range(len(old) + 1):
            await connection.execute(query("purge_next_wal_file"))
            await connection.execute(query("purge_checkpoint"))
            left = old & {row["name"] for row in await _rows(connection, "purge_wal_files")}
            if not left:
                break
        else:
            self._result.failed.append(f"write-ahead log: {len(left)} segments that a slot or setting keeps")
        self._result.purged["wal_files"] = len(old - left)

    async def _rewrite_redis(self, redis: Redis) -> None:
        try:
            if (await redis.info("persistence"))["aof_enabled"]:
                await redis.bgrewriteaof()
                await self._ended(redis, "aof_rewrite_in_progress", "aof_last_bgrewrite_status")
            if not self._embedded and (await redis.config_get("save")).get("save"):
                await redis.bgsave()
                await self._ended(redis, "rdb_bgsave_in_progress", "rdb_last_bgsave_status")
        except RedisError as error:
            self._result.failed.append(
                f"files of Redis: refused ({type(error).__name__}); run BGREWRITEAOF and BGSAVE there")

    async def _ended(self, redis: Redis, running: str, status: str) -> None:
        async def state() -> Mapping[str, Any]:
            found: Mapping[str, Any] = await redis.info("persistence")
            return found

        ended = await _until(REDIS_SECONDS, state, lambda found: not (
            found[running] or found.get("aof_rewrite_scheduled")))
        if ended and (await state())[status] == "ok":
            self._result.purged["redis_files"] = self._result.purged.get("redis_files", 0) + 1
        else:
            self._result.failed.append("files of Redis: not rewritten, see its log; then purge again")


@asynccontextmanager
async def _no_recycling(connection: Connection) -> AsyncIterator[None]:
    """Have checkpoints delete WAL segments: a recycled one keeps its old pages under a new name."""
    await connection.execute(query("purge_keep_no_wal_files"))
    try:
        await connection.execute(query("purge_reload"))
        await _until(REDIS_SECONDS, lambda: _rows(connection, "purge_recycles_wal"),
                     lambda rows: not rows[0]["recycles"])
        yield
    finally:
        await connection.execute(query("purge_keep_wal_files_again"))
        await connection.execute(query("purge_reload"))


async def _until(seconds: float, look: Callable[[], Awaitable[Any]], good: Callable[[Any], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not good(await look()):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def _rows(connection: Connection, name: str, **values: str) -> list[Mapping[str, Any]]:
    return list(await (await connection.execute(query(name), values or None)).fetchall())
