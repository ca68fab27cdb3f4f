"""Rows of what memories state and what superseded what. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.models import SUPERSEDES
from agentcore.memory.rows.owned_rows import OwnedRows, Row

# How far a line of supersessions is followed back, and how many memories of it are read.
LINE_STEPS, IN_A_LINE = 8, 32


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

    async def stated_before(self, lookup: Lookup, *, limit: int, session_limit: int = 0) -> list[Row]:
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

    async def stated_in_line(self, memory_ids: Sequence[UUID], max_chars: int) -> list[Row]:
        """What these took the place of, and what that took the place of before; a bounded number."""
        values = {"memory_ids": list(memory_ids), "max_chars": max_chars}
        return await self._rows("stated_in_line", **values, most_steps=LINE_STEPS, limit=IN_A_LINE)

    async def supersede(self, taken: Sequence[Row]) -> list[Row]:
        """Let others take these memories' places; a row for each done.

        Each says `memory_id`, its `version` and what held its place (`superseded_by`), its `successor`, the
        version that must stand in (`successor_version`, None: any), and the `moment` since when.
        """
        held = await self._rows(
            "hold_supersessions",
            memory_ids=_column(taken, "memory_id"),
            versions=_column(taken, "version"),
            held_by=_column(taken, "superseded_by"),
            successors=_column(taken, "successor"),
            successor_versions=_column(taken, "successor_version"),
            moments=_column(taken, "moment"),
        )
        if not held:
            return []
        return await self._rows(
            "supersede_memories",
            memory_ids=_column(held, "memory_id"),
            successors=_column(held, "successor"),
            moments=_column(held, "moment"),
        )

    async def superseded_by(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """What these took the place of; nobody changes it before the end."""
        return await self._rows("superseded_by", memory_ids=list(memory_ids))

    async def succeed(
        self, memory_id: UUID, *, superseded_by: UUID | None, valid_to: datetime | None
    ) -> int:
        """Say what took a held memory's place, or that nothing did; its new version."""
        values = {"memory_id": memory_id, "superseded_by": superseded_by, "valid_to": valid_to}
        return int((await self._rows("succeed_memory", **values))[0]["version"])

    async def reinstate(self, memory_id: UUID, keys: Sequence[int]) -> None:
        """Let a superseded memory hold again."""
        await self._run("reinstate_memory", memory_id=memory_id)
        await self._run("delete_superseding_links", memory_id=memory_id, relation=SUPERSEDES)
        await self.learn_anew(memory_id, keys)


def _column(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows]
