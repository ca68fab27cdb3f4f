"""The jobs there are: each is one decorated function, known by its name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agentcore.database import Database
from agentcore.memory.api import Caller
from agentcore.memory.parts import MemoryParts
from agentcore.memory.storage import MemoryTransaction


@dataclass(frozen=True)
class Work:
    """What a job works with, and for which agent."""

    parts: MemoryParts
    database: Database
    agent_id: str
    job_id: int

    @property
    def caller(self) -> Caller:
        """Whom the history names: the agent itself, by no token, and the job as the trace."""
        return Caller(self.agent_id, trace_id=f"job-{self.job_id}")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[MemoryTransaction]:
        """One transaction of the agent: all of its writes, what it enqueues included, or none."""
        async with self.parts.storage.transaction(self.agent_id) as transaction:
            yield transaction


# Called with the work and the ids that were enqueued, by name. It may be stopped anywhere, and may be run
# again after it has ended: what it does twice must come to the same.
Job = Callable[..., Awaitable[None]]
JOBS: dict[str, Job] = {}


def job(function: Job) -> Job:
    """Register a job by its function's name."""
    JOBS[function.__name__] = function
    return function
