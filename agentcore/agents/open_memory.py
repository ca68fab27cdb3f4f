"""Opens a memory for an agent: of a running service, or in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentcore.agents.failing_open import failing_open
from agentcore.client import MemoryClient, TokenSource
from agentcore.config import Settings, environment_settings, load_settings, revealed
from agentcore.errors import ConfigurationError
from agentcore.memory.api import MemoryApi
from agentcore.registry import resolve

# Imported lazily: it needs the service's packages, which a client does not install.
_IN_PROCESS = {"server": "agentcore.runtime:memory_in_process"}


@asynccontextmanager
async def open_memory(
    *,
    url: str | None = None,
    token: TokenSource | None = None,
    agent_id: str | None = None,
    settings: Settings | None = None,
    fail_open: bool = False,
    timeout_seconds: float = 30.0,
    max_attempts: int = 3,
) -> AsyncIterator[MemoryApi]:
    """Opens the memory of the token's agent at a service, or of `agent_id` in this process, for the block.

    - In this process it starts PostgreSQL and Redis. If a service of the same home runs, it attaches to that
      service's, and stops with it.
    - `fail_open`: reads that exceed `timeout_seconds` return empty results with a warning instead of an
      error.
    - `timeout_seconds` and `max_attempts` are otherwise those of the service's client.
    - `settings` supply AGENTCORE_URL and AGENTCORE_TOKEN by default; without them the environment does. A
      `.env` file only configures a memory in this process.

    Raises ConfigurationError if both or neither are named, and StartupError.
    """
    if agent_id is not None:
        if url is not None or token is not None:
            raise ConfigurationError(["Give url and token (a service), or agent_id (in this process)."])
        in_process = resolve("server", _IN_PROCESS, kind="memory in this process")
        async with in_process(agent_id, settings or load_settings()) as memory:
            yield failing_open(memory, timeout_seconds=timeout_seconds) if fail_open else memory
        return
    known = settings or environment_settings()
    source = revealed(known.agentcore_token) if token is None else token
    if source is None:
        raise ConfigurationError(
            [
                "No token: set AGENTCORE_TOKEN (`agentcore token --agent my-agent` prints one), or give agent_id "
                "for a memory in this process."
            ]
        )
    async with MemoryClient(
        url or known.agentcore_url,
        source,
        timeout_seconds=timeout_seconds,
        max_attempts=max_attempts,
        fail_open=fail_open,
    ) as memory:
        yield memory
