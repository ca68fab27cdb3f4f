"""Ties between memories, as rows. Inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from agentcore.database import Connection, query
from agentcore.memory.models import Link

Row = Mapping[str, Any]


class LinkRows:
    """The ties of one agent's memories inside one transaction; a row has both ends, relation and weight."""

    def __init__(self, connection: Connection, agent_id: str) -> None:
        self._connection = connection
        self._agent_id = agent_id

    async def add(self, source_id: UUID, links: Iterable[Link]) -> None:
        """Tie a memory to others, which must exist; an equal tie takes the new weight."""
        for link in links:
            await self.put({"source_id": source_id, **link.model_dump()})

    async def put(self, tie: Row) -> None:
        """Make one tie between memories that exist."""
        await self._connection.execute(query("insert_link"), {"agent_id": self._agent_id, **tie})

    async def cut(self, tie: Row) -> None:
        """Remove one tie."""
        await self._connection.execute(query("delete_tie"), {"agent_id": self._agent_id, **tie})

    async def remove(self, memory_id: UUID, others: Sequence[UUID]) -> None:
        """Remove every tie between a memory and these others, either way."""
        await self._connection.execute(query("delete_links"), self._between(memory_id, others))

    async def between(self, memory_id: UUID, others: Sequence[UUID]) -> list[Row]:
        """The ties between a memory and these others, either way."""
        cursor = await self._connection.execute(query("ties_of"), self._between(memory_id, others))
        return cast(list[Row], await cursor.fetchall())

    def _between(self, memory_id: UUID, others: Sequence[UUID]) -> dict[str, Any]:
        return {"agent_id": self._agent_id, "memory_id": memory_id, "others": list(others)}
