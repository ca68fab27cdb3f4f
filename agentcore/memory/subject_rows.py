"""Of what memories state something, and which took another's place, as rows. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from agentcore.memory.owned_rows import OwnedRows, Row

SUPERSEDES = "supersedes"
NEAR_DUPLICATE = "near_duplicate_of"


@dataclass(frozen=True)
class Lookup:
    """What is looked for: subjects by their keys; sessions, each with a moment before which it was said."""

    subject_keys: Sequence[int]
    sessions: Sequence[tuple[str, datetime]] = ()
    window_seconds: float = 0.0
    max_chars: int = 1_000


class SubjectRows(OwnedRows):
    """The subjects of one agent's memories inside one transaction."""

    async def learn(self, stated: Mapping[UUID, Sequence[int]]) -> None:
        """Keep of what new memories state something, by the memory's id."""
        rows = [(key, memory_id) for memory_id, keys in stated.items() for key in keys]
        if rows:
            await self._run(
                "insert_subjects",
                subject_keys=[key for key, _ in rows],
                memory_ids=[memory_id for _, memory_id in rows],
            )

    async def learn_anew(self, memory_id: UUID, keys: Sequence[int]) -> None:
        """Keep of what a memory states something now, and nothing of before."""
        await self.forget([memory_id])
        await self.learn({memory_id: keys})

    async def forget(self, memory_ids: Sequence[UUID]) -> None:
        """These no longer state what another could take the place of."""
        await self._run("forget_subjects", memory_ids=list(memory_ids))

    async def stated_before(self, lookup: Lookup, *, limit: int, session_limit: int) -> list[Row]:
        """Current memories on these subjects or of these sessions, the newest of each; no order."""
        return await self._rows(
            "stated_before",
            subject_keys=list(lookup.subject_keys),
            session_ids=[session_id for session_id, _ in lookup.sessions],
            moments=[moment for _, moment in lookup.sessions],
            window_seconds=lookup.window_seconds,
            max_chars=lookup.max_chars,
            limit=limit,
            session_limit=session_limit,
        )

    async def supersede(self, taken: Sequence[tuple[UUID, int, UUID, datetime]]) -> list[Row]:
        """Let others take these memories' places: id, version, successor, since when; a row for each done."""
        return await self._rows(
            "supersede_memories",
            memory_ids=[memory_id for memory_id, _, _, _ in taken],
            versions=[version for _, version, _, _ in taken],
            successors=[successor for _, _, successor, _ in taken],
            moments=[moment for _, _, _, moment in taken],
        )

    async def reinstate(self, memory_id: UUID, keys: Sequence[int]) -> None:
        """Let a superseded memory hold again."""
        await self._run("reinstate_memory", memory_id=memory_id)
        await self._run("delete_superseding_links", memory_id=memory_id, relation=SUPERSEDES)
        await self.learn_anew(memory_id, keys)

