"""Ties between memories, as rows. Inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from agentcore.memory.models import Link
from agentcore.memory.rows.owned_rows import OwnedRows, Row


class LinkRows(OwnedRows):
    """The ties of one agent's memories inside one transaction; a row has both ends, relation and weight."""

    async def add(self, source_id: UUID, links: Iterable[Link]) -> None:
        """Tie a memory to others, which must exist; an equal tie takes the new weight."""
        await self.add_all({source_id: links})

    async def add_all(self, links: Mapping[UUID, Iterable[Link]]) -> None:
        """Tie memories to others, in one statement."""
        await self._put(
            [
                {"source_id": source_id, **link.model_dump()}
                for source_id, ties in links.items()
                for link in ties
            ]
        )

    async def put(self, tie: Row) -> None:
        """Make one tie between memories that exist."""
        await self._put([tie])

    async def _put(self, ties: Sequence[Row]) -> None:
        unique = {(tie["source_id"], tie["target_id"], tie["relation"]): tie["weight"] for tie in ties}
        if unique:
            await self._run(
                "insert_links",
                source_ids=[source_id for source_id, _, _ in unique],
                target_ids=[target_id for _, target_id, _ in unique],
                relations=[relation for _, _, relation in unique],
                weights=list(unique.values()),
            )

    async def cut(self, tie: Row) -> None:
        """Remove one tie."""
        await self._run("delete_tie", **tie)

    async def remove(self, memory_id: UUID, others: Sequence[UUID]) -> None:
        """Remove every tie between a memory and these others, either way."""
        await self._run("delete_links", memory_id=memory_id, others=list(others))

    async def between(self, memory_id: UUID, others: Sequence[UUID]) -> list[Row]:
        """The ties between a memory and these others, either way."""
        return await self._rows("ties_of", memory_id=memory_id, others=list(others))

