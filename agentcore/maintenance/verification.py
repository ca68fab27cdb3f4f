"""The archive checked: every copy read again and compared with what its tombstone says. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agentcore.database import Database, query
from agentcore.errors import Conflict, NotFound
from agentcore.memory.archival import READS_AT_ONCE, Archive, ArchivedObject, read_copy

PAGE = 500


@dataclass(frozen=True)
class Finding:
    """One archived memory whose copy would not come back: `missing` or `damaged`, and why."""

    agent_id: str
    memory_id: UUID
    kind: str
    problem: str


async def verify(
    database: Database, archive: Archive, agent_id: str | None = None
) -> AsyncIterator[list[Finding | None]]:
    """A result for each archived memory of all agents, or of one: None where its copy is whole.

    They come in pages, in the order of agents and ids. Raises DependencyUnavailable.
    """
    slots = asyncio.Semaphore(READS_AT_ONCE)

    async def checked(row: Mapping[str, Any]) -> Finding | None:
        async with slots:
            return await _finding(archive, row)

    place: Mapping[str, Any] = {"agent_id": "", "memory_id": UUID(int=0)}
    while True:
        values = {"after_agent_id": place["agent_id"], "after_id": place["memory_id"], "agent_id": agent_id}
        async with database.owner_transaction() as connection:
            cursor = await connection.execute(query("archived_everywhere"), {**values, "limit": PAGE})
            rows = await cursor.fetchall()
        if not rows:
            return
        yield list(await asyncio.gather(*map(checked, rows)))
        place = rows[-1]


async def _finding(archive: Archive, row: Mapping[str, Any]) -> Finding | None:
    kept = ArchivedObject(row["object_key"], bytes(row["sha256"]), row["size_bytes"])
    try:
        await read_copy(archive, row["memory_id"], kept)
    except NotFound as missing:
        return Finding(row["agent_id"], row["memory_id"], "missing", missing.message)
    except Conflict as damaged:
        return Finding(row["agent_id"], row["memory_id"], "damaged", damaged.message)
    return None
