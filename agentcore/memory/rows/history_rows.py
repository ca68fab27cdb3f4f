"""What happened to memories, as rows: each change with the version it made. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from agentcore.memory.rows.owned_rows import OwnedRows, Row


@dataclass(frozen=True)
class Change:
    """One entry of the history: which operation made which version, by whom, and what differs.

    `before` and `after` hold the fields that changed, and `links` those that went or came. Without a
    version what the memory holds stayed as it was.
    """

    memory_id: UUID
    operation: str
    version: int | None
    token_id: str | None
    trace_id: str | None
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class HistoryRows(OwnedRows):
    """The histories of one agent's memories inside one transaction."""

    async def append(self, change: Change) -> None:
        """Add one change; it comes and goes with the transaction."""
        await self.append_all([change])

    async def append_all(self, changes: Sequence[Change]) -> None:
        """Add changes in this order, in one statement."""
        await self._run(
            "append_history",
            memory_ids=[each.memory_id for each in changes],
            operations=[each.operation for each in changes],
            versions=[each.version for each in changes],
            token_ids=[each.token_id for each in changes],
            trace_ids=[each.trace_id for each in changes],
            # Not arrays: psycopg escapes each quotation mark in their elements by itself, on the event loop.
            befores=Jsonb([each.before for each in changes]),
            afters=Jsonb([each.after for each in changes]),
        )

    async def since(self, memory_id: UUID, version: int) -> list[Row]:
        """What was changed after this version, the latest first."""
        return await self._rows("changes_since", memory_id=memory_id, version=version)

