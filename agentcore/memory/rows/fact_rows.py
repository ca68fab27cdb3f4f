"""Facts that a model read from memories, as rows: which follow their memory. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.rows.owned_rows import OwnedRows, Row


class FactRows(OwnedRows):
    """What a model read from one agent's memories inside one transaction."""

    async def hold_with(self, successors: Mapping[UUID, UUID | None]) -> list[Row]:
        """Facts of these memories whose place the same held as theirs; nobody changes them before the end."""
        values = {"memory_ids": [*successors], "successors": [*successors.values()]}
        return await self._rows("hold_facts_with", **values)

    async def supersede(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> None:
        """Let these held facts be superseded: each by which memory, and since when."""
        await self._rows(
            "supersede_memories",
            memory_ids=[memory_id for memory_id, _, _ in facts],
            successors=[successor for _, successor, _ in facts],
            moments=[moment for _, _, moment in facts],
        )

    async def as_read(self, memory_id: UUID) -> list[UUID]:
        """Facts that were read from a memory and that nobody has made another of."""
        return [row["memory_id"] for row in await self._rows("facts_as_read", memory_id=memory_id)]

    async def live_with(self, memory_id: UUID, operation: str, caller: Caller) -> None:
        """Let what was read from a memory end when it does by now, which goes into the facts' histories."""
        source = {"token_id": caller.token_id, "trace_id": caller.trace_id}
        await self._run("let_facts_live_with", memory_id=memory_id, operation=operation, **source)

    async def superseded_with(self, memory_id: UUID, successor: UUID) -> list[Row]:
        """Facts of a memory that were superseded by the same; nobody changes them before the end."""
        return await self._rows("facts_superseded_with", memory_id=memory_id, successor=successor)

    async def reworded_since(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> dict[UUID, UUID]:
        """Which of these facts, given with their memories and when they were read, have lost their words."""
        memory_ids, parents, moments = ([fact[at] for fact in facts] for at in range(3))
        values = {"memory_ids": memory_ids, "parents": parents, "moments": moments}
        rows = await self._rows("reworded_since", **values)
        return {row["memory_id"]: row["parent_memory_id"] for row in rows}

    async def superseded_since(self, archived_at: Mapping[UUID, datetime]) -> list[Row]:
        """Which of these facts hold though their memories were superseded since; by what, and since when."""
        values = {"memory_ids": [*archived_at], "moments": [*archived_at.values()]}
        return await self._rows("superseded_since", **values)

    async def read_no_more(self, memory_ids: Sequence[UUID]) -> None:
        """Take these out of what waits to be read for facts."""
        await self._run("leave_queue_for_facts", memory_ids=list(memory_ids))

    async def unread(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Which of these hold and were not read for facts since they have their words."""
        return await self._rows("unread_memories", memory_ids=list(memory_ids))
