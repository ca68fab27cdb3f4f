"""How long a memory lives, as its row says it. Inside one transaction."""

from __future__ import annotations

from uuid import UUID

from agentcore.memory.owned_rows import OwnedRows, Row


class LifeRows(OwnedRows):
    """The lives of one agent's memories inside one transaction."""

    async def renew(self, memory_id: UUID) -> Row | None:
        """Let the memory live its time from now on; its version and its task, None where there is none."""
        rows = await self._rows("renew_memory", memory_id=memory_id)
        return rows[0] if rows else None

    async def complete_task(self, task_id: str, token_id: str | None, trace_id: str | None) -> None:
        """Mark a task as ended and expire its working-layer rows, which goes into their histories."""
        await self._run("complete_task", task_id=task_id)
        await self._run("expire_working_rows", task_id=task_id, token_id=token_id, trace_id=trace_id)
