"""The work of `archive verify`: every copy of the archive read again, beside the service."""

from __future__ import annotations

import asyncio

from agentcore import migration
from agentcore.assembly import make_archive
from agentcore.cli.app import fail
from agentcore.config import load_settings
from agentcore.database import Database
from agentcore.maintenance.verification import Finding, verify
from agentcore.runtime import home_of, urls_of


async def verified(agent_id: str | None) -> tuple[int, list[Finding]]:
    """How many copies are whole, and what is wrong with the others."""
    settings = load_settings()
    database_url, _ = urls_of(settings)
    await asyncio.to_thread(migration.check_revision, database_url)
    kept = make_archive(settings, home_of(settings))
    if kept is None:
        fail("MEMORY_ARCHIVAL_ENABLED=false: there is no archive to read")
    database = Database(database_url, pool_size=1, timeout_seconds=settings.database_timeout_seconds)
    await database.open()
    read, findings = 0, []
    try:
        async for page in verify(database, kept, agent_id):
            read += len(page)
            findings += [each for each in page if each is not None]
    finally:
        await database.close()
    return read - len(findings), findings
