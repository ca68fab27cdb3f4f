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
