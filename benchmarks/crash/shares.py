"""An agent's data in each place of the text inventory, read independently of an erasure's own check."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql
from redis.asyncio import Redis

from agentcore.memory.archival import Archive
from agentcore.memory.forgetting.inventory import ARCHIVE, JOBS, TABLES, WORKING_MEMORY

# The jobs table belongs to the library; ids are in its arguments.
_JOBS = sql.SQL("SELECT j::text FROM procrastinate_jobs AS j WHERE args ->> 'agent_id' = %s")
_ROWS = sql.SQL("SELECT t::text FROM {} AS t WHERE agent_id = %s")
Shares = Mapping[str, frozenset[str]]


async def shares(environment: Mapping[str, str], archive: Archive, agent_id: str) -> Shares:
    """Returns, by place, each row, key and object with its content."""
    statements: dict[str, sql.SQL | sql.Composed] = {JOBS.name: _JOBS}
    statements |= {table.name: _ROWS.format(sql.Identifier(table.name)) for table in TABLES}
    found: dict[str, frozenset[str]] = {}
    async with await psycopg.AsyncConnection.connect(environment["DATABASE_URL"]) as connection:
        for name, statement in statements.items():
            cursor = await connection.execute(statement, (agent_id,))
            found[name] = frozenset(row[0] for row in await cursor.fetchall())
    redis: Any = Redis.from_url(environment["REDIS_URL"])
    async with redis:
        held = [key async for key in redis.scan_iter(match=WORKING_MEMORY.pattern(agent_id), count=1_000)]
        found[WORKING_MEMORY.name] = frozenset([f"{key!r} {await redis.dump(key)!r}" for key in held])
    keys = await archive.keys(ARCHIVE.folder(agent_id))
    digests = {key: hashlib.sha256(await archive.read(key)).hexdigest() for key in keys}
    found[ARCHIVE.name] = frozenset(f"{key} {digest}" for key, digest in digests.items())
    return found


def kept_places(found: Shares) -> Shares:
    """Removes places that background work recomputes from the memories' rows at any time."""
    derived = {table.name for table in TABLES if table.derived}
    return {name: share for name, share in found.items() if name not in derived}
