"""The work of `archive verify`: every copy of the archive read again, beside the service."""

from __future__ import annotations

from agentcore.assembly import make_archive
from agentcore.cli.app import fail
from agentcore.config import load_settings
from agentcore.maintenance.verification import Finding, verify
from agentcore.runtime import home_of, running_database


async def verified(agent_id: str | None, *, adopt: bool) -> tuple[int, list[Finding]]:
    """How many copies are whole, and what is wrong with the others."""
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
