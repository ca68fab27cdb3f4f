"""Rows of background jobs, enqueued inside a transaction: a function name with ids, never a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from agentcore.memory.rows.memory_rows import OwnedRows


class JobRows(OwnedRows):
    """The jobs of one agent inside one transaction. Enqueue last: until its end others wait for its locks."""

    async def enqueue(
        self,
        name: str,
        *,
        lock: str | None = None,
        not_before: datetime | None = None,
        **ids: str | int | UUID,
    ) -> None:
        """Have the job of that name run with these ids once this transaction has ended.

        Nothing is added while a job with the same lock has yet to start, and two of them never run at once.
        Without a `lock` it is the name and the ids.
        """
        values = {"name": name, "ids": Jsonb(_plain(ids)), "not_before": not_before}
        await self._rows("enqueue_job", lock=lock or job_lock(name, **ids), **values)

    async def waits(self, lock: str) -> bool:
        """Whether a job with this lock has yet to start; it then starts after this transaction has ended."""
        rows = await self._rows("job_waits", lock=lock)
        return bool(rows[0]["waits"])

    async def over_capacity(
        self, capacities: Mapping[str, int], locks: Sequence[str]
    ) -> list[tuple[str, int]]:
        """The layers that hold more than their capacity, and that; not those whose job, by its lock, waits.

        The agent's own capacity goes before that given for a layer; 0 is unlimited.
        """
        rows = await self._rows(
            "layers_over_capacity", layers=[*capacities], capacities=[*capacities.values()], locks=[*locks]
        )
        return [(row["layer"], row["capacity"]) for row in rows]

    async def forget(self) -> int:
        """Remove every job of the agent, waiting, running and ended; how many. One that runs goes on."""
        rows = await self._rows("forget_jobs")
        return int(rows[0]["forgotten"])

    async def await_enqueuers(self, lock: str) -> None:
        """Return when whoever found a job with this lock of the database's waiting has ended."""
        await self._rows("await_enqueuers", lock=lock)

def job_lock(name: str, **ids: str | int | UUID) -> str:
    """The lock of a job that names none: the same function with the same ids."""
    return json.dumps([name, _plain(ids)], sort_keys=True)


def _plain(ids: dict[str, Any]) -> dict[str, str | int]:
    return {key: str(value) if isinstance(value, UUID) else value for key, value in ids.items()}

