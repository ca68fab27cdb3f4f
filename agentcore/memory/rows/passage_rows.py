"""Rows of the later passages of long memories, and which memories are pending. Inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from agentcore.memory.language.passages import Passage
from agentcore.memory.rows.owned_rows import OwnedRows, Row

EMBED_PASSAGES = "embed_passages"


@dataclass(frozen=True)
class EmbeddedPassage:
    """A passage of a memory in one of its versions; `vector` is None if the model refused the text.

    `model` is then the name for refused texts.
    """

    memory_id: UUID
    version: int
    number: int
    passage: Passage
    model: str
    vector: NDArray[np.float32] | None


class PassageRows(OwnedRows):
    """The passages of one agent. `queued`: this transaction made memories pending, and owes the job."""

    queued = False

    async def queue(self, memory_ids: Sequence[UUID]) -> None:
        """Enqueues long memories; those that are pending already stay in their place."""
        if memory_ids:
            self.queued = True
            await self._run("queue_passages", memory_ids=list(memory_ids))

    async def replace(self, memory_id: UUID, *, is_long: bool) -> None:
        """Removes the passages of a memory that has another text; enqueues it if that is long."""
        await self._run("delete_passages", memory_id=memory_id)
        await self.queue([memory_id] if is_long else [])

    async def pending(self, models: Sequence[str], limit: int) -> list[Row]:
        """Returns the longest pending memories, with the passages that have rows of one of these models."""
        return await self._rows("pending_passages", done=list(models), limit=limit)

    async def add(self, made: Sequence[EmbeddedPassage]) -> None:
        """Writes passages, except those of memories that were changed or deleted meanwhile."""
        await self._run(
            "insert_passages",
            memory_ids=[each.memory_id for each in made],
            versions=[each.version for each in made],
            passages=[each.number for each in made],
            starts=[each.passage.start for each in made],
            ends=[each.passage.end for each in made],
            models=[each.model for each in made],
            vectors=[None if each.vector is None else HalfVector(each.vector) for each in made],
        )
