"""Rows of background jobs, enqueued in the caller's transaction: a function name with ids, never text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from agentcore.memory.rows.memory_rows import OwnedRows


class JobRows(OwnedRows):
    """Jobs of one agent in one transaction. Enqueue last: locks block others until the commit."""

    async def enqueue(
        self,
        name: str,
        *,
        lock: str | None = None,
        not_before: datetime | None = None,
        **ids: str | int | UUID,
    ) -> None:
        """Enqueues a job that starts after the commit of this transaction.

        A no-op while a job with the same lock is pending; jobs with equal locks never run concurrently. The
        default `lock` is the name and the ids.
        """
        values = {"name": name, "ids": Jsonb(_plain(ids)), "not_before": not_before}
        await self._rows("enqueue_job", lock=lock or job_lock(name, **ids), **values)

    async def waits(self, lock: str) -> bool:
        """Whether a job with this lock is pending; if so, it starts only after this transaction."""
        rows = await self._rows("job_waits", lock=lock)
        return bool(rows[0]["waits"])

    async def over_capacity(
        self, capacities: Mapping[str, int], locks: Sequence[str]
    ) -> list[tuple[str, int]]:
        """Returns layers over capacity, with their capacity, except those whose job is pending.

        The agent's own capacity overrides the given one; 0 is unlimited.
        """
        rows = await self._rows(
            "layers_over_capacity", layers=[*capacities], capacities=[*capacities.values()], locks=[*locks]
        )
        return [(row["layer"], row["capacity"]) for row in rows]

    async def forget(self) -> int:
        """Deletes all jobs of the agent in any state; returns how many. Running ones continue."""
        rows = await self._rows("forget_jobs")
        return int(rows[0]["forgotten"])

    async def await_enqueuers(self, lock: str) -> None:
        """Waits for the transactions that found a job pending; `lock`: the digest stored with the job."""
        await self._rows("await_enqueuers", lock=lock)

def job_lock(name: str, **ids: str | int | UUID) -> str:
    """Returns the default lock of a job: the function's name and the ids."""
    return json.dumps([name, _plain(ids)], sort_keys=True)


def _plain(ids: dict[str, Any]) -> dict[str, str | int]:
    return {key: str(value) if isinstance(value, UUID) else value for key, value in ids.items()}

