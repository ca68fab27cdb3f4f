"""A memory to give an agent: one of a running service, or one with its own parts in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentcore.assembly import revealed
from agentcore.client import MemoryClient, TokenSource
from agentcore.config import Settings, load_settings
from agentcore.errors import ConfigurationError
from agentcore.memory.api import Caller, MemoryApi
from agentcore.runtime import open_runtime


@asynccontextmanager
async def open_memory(
    *, url: str | None = None, token: TokenSource | None = None, agent_id: str | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[MemoryApi]:
    """The memory of the token's agent at a service, or of `agent_id` in this process, until the block ends.

    `settings` (else the environment) give AGENTCORE_URL and AGENTCORE_TOKEN where they are not named, and say
    what runs in this process. Raises ConfigurationError where both or neither are meant, and StartupError.
    """
    if agent_id is not None:
        if url is not None or token is not None:
            raise ConfigurationError(["Give url and token (a service), or agent_id (in this process)."])
        async with open_runtime(settings or load_settings()) as runtime:
            yield runtime.manager_for(Caller(agent_id))
        return
    known = settings or load_settings()
    source = revealed(known.agentcore_token) if token is None else token
    if source is None:
        raise ConfigurationError([
            "No token: set AGENTCORE_TOKEN (`agentcore token --agent my-agent` prints one), or give agent_id "
            "for a memory in this process."])
    async with MemoryClient(url or known.agentcore_url, source) as memory:
        yield memory
