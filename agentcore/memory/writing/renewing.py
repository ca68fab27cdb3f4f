"""Renewing one memory, as a story: its time to live begins anew, since it was used."""

from __future__ import annotations

from uuid import UUID

from agentcore.errors import NotFound
from agentcore.memory.api import Caller
from agentcore.memory.parts import MemoryParts


class Renewing:
    """One renewal by one caller. What a memory holds does not change: its version and its history stay."""

    operation = "renew"

    def __init__(self, parts: MemoryParts, caller: Caller, memory_id: UUID) -> None:
        self._parts = parts
        self._caller = caller
        self.memory_id = memory_id
        self.degraded: list[str] = []

    async def run(self) -> int:
        """Renew the memory, where it has a time to live; its version. Raises NotFound."""
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            row = await transaction.life.renew(self.memory_id)
        if row is None:
            raise NotFound(data={"memory_id": str(self.memory_id)})
        if row["task_id"] is not None:
            await self._parts.working.forget(self._caller.agent_id, [row["task_id"]])
        return int(row["version"])
