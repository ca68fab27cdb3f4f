"""Verifies archived copies for `archive verify`: reads each one and compares it with its tombstone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agentcore.assembly import make_archive
from agentcore.cli.app import fail
from agentcore.config import load_settings
from agentcore.database import Database, query
from agentcore.errors import Conflict, NotFound
from agentcore.memory.archival import READS_AT_ONCE, Archive, ArchivedObject, archive_id, read_copy
from agentcore.runtime import home_of, running_database

PAGE = 500


@dataclass(frozen=True)
class Finding:
    """An archived memory that cannot be restored: its copy is `missing`, `damaged` or `unreachable`."""

    agent_id: str
    memory_id: UUID
    kind: str
    problem: str


async def verify(
    database: Database, archive: Archive, agent_id: str | None = None, *, adopt: bool = False
) -> AsyncIterator[list[Finding | None]]:
    """Yields a result for each archived memory of all agents, or of one: None if its copy is intact.

    Results come in pages, ordered by agent and id. `adopt`: records this archive as the place of intact
    copies that were recorded for another one, after archives were merged. Raises DependencyUnavailable.
    """
    slots = asyncio.Semaphore(READS_AT_ONCE)
    own_id = await archive_id(archive)

    async def checked(row: Mapping[str, Any]) -> Finding | None:
        async with slots:
            return await _finding(archive, row, own_id, adopt=adopt)

    place: Mapping[str, Any] = {"agent_id": "", "memory_id": UUID(int=0)}
    while True:
        values = {"after_agent_id": place["agent_id"], "after_id": place["memory_id"], "agent_id": agent_id}
        async with database.owner_transaction() as connection:
            cursor = await connection.execute(query("archived_everywhere"), {**values, "limit": PAGE})
            rows = await cursor.fetchall()
        if not rows:
            return
        results = list(await asyncio.gather(*map(checked, rows)))
        if adopt:
            whole = [row for row, finding in zip(rows, results, strict=True) if finding is None]
            await _adopt(database, [row for row in whole if row["archive_id"] != own_id], own_id)
        yield results
        place = rows[-1]


async def _adopt(database: Database, rows: Sequence[Mapping[str, Any]], own_id: UUID) -> None:
    values = {
        "agent_ids": [row["agent_id"] for row in rows],
        "memory_ids": [row["memory_id"] for row in rows],
        "digests": [row["sha256"] for row in rows],
    }
    async with database.owner_transaction() as connection:
        await connection.execute(query("note_archive"), {**values, "archive_id": own_id})


async def _finding(archive: Archive, row: Mapping[str, Any], own_id: UUID, *, adopt: bool) -> Finding | None:
    recorded = row["archive_id"]
    elsewhere = f"The copy of memory {row['memory_id']} is in another archive ({recorded or 'unknown'})."
    unreachable = Finding(row["agent_id"], row["memory_id"], "unreachable", elsewhere)
    if recorded not in (None, own_id) and not adopt:
        return unreachable
    kept = ArchivedObject(row["object_key"], bytes(row["sha256"]), row["size_bytes"])
    try:
        await read_copy(archive, row["memory_id"], kept)
    except NotFound as missing:
        if recorded != own_id:
            return unreachable
        return Finding(row["agent_id"], row["memory_id"], "missing", missing.message)
    except Conflict as damaged:
        return Finding(row["agent_id"], row["memory_id"], "damaged", damaged.message)
    return None


async def verified(agent_id: str | None, *, adopt: bool) -> tuple[int, list[Finding]]:
    """Returns the number of intact copies, and a finding for each of the others."""
    settings = load_settings()
    kept = make_archive(settings, home_of(settings))
    if kept is None:
        fail("MEMORY_ARCHIVAL_ENABLED=false: there is no archive to read")
    read, findings = 0, []
    async with running_database(settings) as database:
        async for page in verify(database, kept, agent_id, adopt=adopt):
            read += len(page)
            findings += [each for each in page if each is not None]
    return read - len(findings), findings
