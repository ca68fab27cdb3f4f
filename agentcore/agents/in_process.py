"""A memory in this process: starts PostgreSQL and Redis, or attaches to a running service of its home."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentcore.config import Settings
from agentcore.memory.api import Caller, MemoryApi
from agentcore.runtime import open_runtime, server_runs


@asynccontextmanager
async def in_process(agent_id: str, settings: Settings) -> AsyncIterator[MemoryApi]:
    """Opens the agent's memory until the block ends."""
    attached = server_runs(settings)
    if attached:  # that server does the background work
        settings = settings.model_copy(update={"maintenance_in_server": False})
    async with open_runtime(settings, attach_only=attached) as runtime:
        yield runtime.manager_for(Caller(agent_id))
