"""Rows of relations between messages. Inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from agentcore.memory.rows.owned_rows import OwnedRows, Row


class RelationRows(OwnedRows):
    """Which of one agent's memories wait to be compared, and what came of it."""

    async def queue(self, memory_ids: Sequence[UUID]) -> None:
        """Enqueues memories; those that are pending already stay in their place."""
        await self._run("queue_relations", memory_ids=list(memory_ids))

    async def pending(self, limit: int, model: str) -> list[Row]:
        """Returns the longest pending memories that have a vector of this model, with it."""
        return await self._rows("pending_relations", limit=limit, model=model)

    async def ends(self, memory_ids: Sequence[UUID]) -> set[UUID]:
        """Returns both ends of the links by CHANGES of these memories."""
        rows = await self._rows("ends_of_changes", memory_ids=list(memory_ids))
        return {row[end] for row in rows for end in ("source_id", "target_id")}

    async def forget(self, memory_ids: Sequence[UUID]) -> None:
        """Removes the links by CHANGES of these memories, in both directions."""
        await self._run("forget_changes", memory_ids=list(memory_ids))
