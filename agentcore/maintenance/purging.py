"""Purging: what removed rows leave in the files of PostgreSQL and Redis is removed physically."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
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
RETRY_SECONDS, POLL_SECONDS, REDIS_SECONDS = 0.5, 0.05, 120.0
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
    """Counts of what was purged, what could not be purged now, and what no purge reaches."""

    purged: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    remaining: list[str] = field(default_factory=list)

    def claims(self) -> dict[str, Any]:
        """Returns the fields of the answer and of a receipt."""
        return {"purged": self.purged, "remaining": [*self.failed, *self.remaining]}


@dataclass(frozen=True)
class Purge:
    """One purge of a database and its Redis. With `embedded` the URL is a superuser's."""

    database_url: str
    redis: Redis | None
    embedded: bool
    wait_seconds: float
    tell: Callable[[str], None]
    result: Purged = field(default_factory=Purged)

    async def run(self) -> Purged:
        """Purge everything that is reachable."""
        self.result.remaining += [ELSEWHERE, *(() if self.embedded else ADMINISTRATORS)]
        try:
            connection = await Connection.connect(self.database_url, autocommit=True, row_factory=dict_row)
            async with connection:
                await self._rewrite_tables(connection)
                if self.embedded:
                    self.tell("PostgreSQL: removing old write-ahead log")
                    await self._replace_wal(connection)
        except psycopg.Error as error:
            self.result.failed.append(f"files of PostgreSQL: {str(error).splitlines()[0]}; purge again")
        if self.redis is not None:
            self.tell("Redis: rewriting its files")
            await self._rewrite_redis(self.redis)
        return self.result

    async def _rewrite_tables(self, connection: Connection) -> None:
        [start] = await _rows(connection, "purge_start", lock_timeout=LOCK_TIMEOUT)
        await self._wait_for_snapshots(connection, start["xid"])
        before = {row["name"]: row for row in await _rows(connection, "purge_relations")}
        tables = [name for name, row in before.items() if row["filenode"] is not None and name != STATISTICS]
        for number, name in enumerate(tables, 1):
            self.tell(f"PostgreSQL: {name} ({number} of {len(tables)})")
            await self._rewrite(connection, name)
        if start["version"] < CLEARS_STATISTICS:
            self.result.failed.append("column statistics of empty tables: PostgreSQL 18 can clear them")
        for name in before.keys() - {STATISTICS}:
            if start["version"] >= CLEARS_STATISTICS:
                await _rows(connection, "purge_clear_statistics", table=name)
            await connection.execute(shaped_query("purge_analyze", table=sql.Identifier(name)))
        await self._rewrite(connection, STATISTICS)
        after = {row["name"]: row for row in await _rows(connection, "purge_relations")}
        kept = [name for name in (*tables, STATISTICS)
                if name in after and after[name]["filenode"] == before[name]["filenode"]]
        self.result.failed.extend(f"table {name}: not rewritten, another process uses it" for name in kept)
        sizes = [sum(row["bytes"] for row in rows.values()) for rows in (before, after)]
        self.result.purged.update(tables=len(tables) - len(kept), table_bytes=sizes[0] - sizes[1])

    async def _wait_for_snapshots(self, connection: Connection, xid: str) -> None:
        holders: list[Mapping[str, Any]] = []

        async def none_is_older() -> bool:
            holders[:] = await _rows(connection, "purge_older_snapshots", xid=xid)
            return not holders

        if not await _until(none_is_older, self.wait_seconds):
            self.result.failed.extend(
                f"rows that {row['holder']} can still read: end it, then purge again" for row in holders)

    async def _rewrite(self, connection: Connection, table: str) -> None:
        """Rewrite a table, its TOAST and its indexes; between two attempts waiting calls go through."""
        deadline = time.monotonic() + self.wait_seconds
        while True:
            try:
                await connection.execute(shaped_query("purge_rewrite", table=sql.Identifier(table)))
                return
            except _BUSY:
                if time.monotonic() > deadline:
                    return
                await asyncio.sleep(RETRY_SECONDS)

    async def _replace_wal(self, connection: Connection) -> None:
        async def recycles_none() -> bool:
            return not (await _rows(connection, "purge_recycles_wal"))[0]["recycles"]

        await connection.execute(query("purge_keep_no_wal_files"))
        try:
            await connection.execute(query("purge_reload"))
            await _until(recycles_none, REDIS_SECONDS)
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
        async def at_rest() -> bool:
            found = await redis.info("persistence")
            return not any(found.get(name) for name in (
                "aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress"))

        try:
            state = await redis.info("persistence")
            snapshots = bool((await redis.config_get("save")).get("save"))
            for status, wanted, rewrite in (
                ("aof_last_bgrewrite_status", state["aof_enabled"], redis.bgrewriteaof),
                ("rdb_last_bgsave_status", snapshots, redis.bgsave),
            ):
                if wanted:
                    await rewrite()
                    if not await _until(at_rest, REDIS_SECONDS) or (await redis.info())[status] != "ok":
                        raise RedisError("not rewritten")
                    self.result.purged["redis_files"] = self.result.purged.get("redis_files", 0) + 1
        except RedisError as error:
            self.result.failed.append(f"files of Redis: {error}; run BGREWRITEAOF and BGSAVE there")


async def _until(reached: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not await reached():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def _rows(connection: Connection, name: str, **values: str) -> list[Mapping[str, Any]]:
    return list(await (await connection.execute(query(name), values or None)).fetchall())
