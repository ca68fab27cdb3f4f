"""What happened to memories, as rows: each change with the version it made. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from psycopg.types.json import Jsonb

from agentcore.database import Connection, query

Row = Mapping[str, Any]


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


class HistoryRows:
    """The histories of one agent's memories inside one transaction."""

    def __init__(self, connection: Connection, agent_id: str) -> None:
        self._connection = connection
        self._agent_id = agent_id

    async def append(self, change: Change) -> None:
        """Add one change; it comes and goes with the transaction."""
        values = {
            "agent_id": self._agent_id,
            "memory_id": change.memory_id,
            "operation": change.operation,
            "version": change.version,
            "token_id": change.token_id,
            "trace_id": change.trace_id,
            "before": Jsonb(change.before),
            "after": Jsonb(change.after),
        }
        await self._connection.execute(query("append_history"), values)

    async def since(self, memory_id: UUID, version: int) -> list[Row]:
        """What was changed after this version, the latest first."""
        values = {"agent_id": self._agent_id, "memory_id": memory_id, "version": version}
        cursor = await self._connection.execute(query("changes_since"), values)
        return cast(list[Row], await cursor.fetchall())
