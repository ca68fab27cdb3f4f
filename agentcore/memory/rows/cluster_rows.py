"""Clusters of episodes and their summaries, as rows. Inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import Statement, query, shaped_query
from agentcore.memory.rows.owned_rows import OwnedRows, Row

# What a summary of a cluster says of itself in its provenance.
FORM = "consolidation"


class ClusterRows(OwnedRows):
    """The episodes and summaries of one agent inside one transaction. `before`: nothing younger is free."""

    async def settings(self) -> tuple[Mapping[str, Any], UUID | None]:
        """What the agent wishes, and up to which id everything was looked at."""
        rows = await self._rows("consolidation_settings")
        return (rows[0]["consolidation"], rows[0]["consolidated_to"]) if rows else ({}, None)

    async def wish(self, consolidation: Mapping[str, Any]) -> None:
        """What the agent wishes from now on; its settings are held already."""
        await self._run("set_consolidation", consolidation=Jsonb(consolidation))

    async def seen(self, memory_id: UUID, witness: UUID) -> None:
        """Everything up to this id was looked at; `witness`, a memory that was, must still be there."""
        await self._run("consolidated_to", memory_id=memory_id, witness=witness)

    async def unseen(self, after: UUID | None, limit: int) -> list[Row]:
        """The oldest episodes behind an id, by id."""
        return await self._rows("unseen_episodes", after=after, limit=limit)

    async def come_late(self, memory_ids: Iterable[UUID]) -> None:
        """Have these looked at, as far as they are episodes, though what is as old as they are was."""
        await self._run("note_late_episodes", memory_ids=list(memory_ids))

    async def late(self, model: str, before: datetime, after: UUID | None, limit: int) -> list[UUID]:
        """Episodes with a vector of the model that came late, behind an id."""
        values = {"model": model, "before": before, "after": after, "limit": limit}
        return [row["memory_id"] for row in await self._rows("late_episodes", **values)]

    async def late_seen(self, memory_ids: Sequence[UUID]) -> None:
        """These were looked at."""
        await self._run("forget_late_episodes", memory_ids=list(memory_ids))

    async def changed_sources(self, limit: int) -> list[UUID]:
        """What was changed after the summary of it was made, the latest first."""
        rows = await self._rows("changed_sources", limit=limit)
        return [row["memory_id"] for row in rows]

    async def prepare(self, settings: Statement) -> None:
        """How far an approximate search looks, until the transaction ends."""
        statement, values = settings
        await self._connection.execute(statement, values)

    async def near(
        self,
        memory_ids: Sequence[UUID],
        model: str,
        before: datetime,
        limit: int,
        *,
        dimensions: int | None = None,
    ) -> list[tuple[UUID, UUID]]:
        """Pairs of these memories and what is nearest to each; with `dimensions` through the index."""
        if dimensions is None:
            distance: sql.Composable = query("near_by_comparison")
        else:
            distance = shaped_query("near_by_index", dimensions=sql.Literal(dimensions))
        statement = shaped_query("near_episodes", free=query("can_be_clustered"), distance=distance)
        rows = await self._rows(
            statement, memory_ids=list(memory_ids), model=model, before=before, limit=limit
        )
        return [(row["one_id"], row["other_id"]) for row in rows]

    async def count_young(self, before: datetime) -> int:
        """How many episodes are too young to be looked at."""
        [row] = await self._rows("count_young_episodes", before=before)
        return int(row["count"])

    async def standing(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """The summaries that stand for any of these memories."""
        return await self._rows("standing_summaries", memory_ids=list(memory_ids))

    async def episodes(self, memory_ids: Sequence[UUID], model: str, before: datetime) -> list[Row]:
        """What is known of these memories that have a vector of the model, and whether each is free."""
        statement = shaped_query("episodes", free=query("can_be_clustered"))
        return await self._rows(statement, memory_ids=list(memory_ids), model=model, before=before)

    async def claim(self) -> None:
        """Wait to be the only one who writes summaries of the agent, until the transaction ends."""
        await self._run("claim_consolidation")

    async def hold(self, memory_ids: Sequence[UUID]) -> dict[UUID, str]:
        """The digests of what these memories say, which nobody changes before the end."""
        rows = await self._rows("hold_episodes", memory_ids=list(memory_ids))
        return {row["memory_id"]: bytes(row["content_hash"]).hex() for row in rows}

    async def supersede(self, memory_id: UUID, successor: UUID, valid_to: datetime) -> int | None:
        """Let an older summary point to the newer; its new version, None if it is not there any more."""
        values = {"memory_id": memory_id, "successor": successor, "valid_to": valid_to}
        rows = await self._rows("supersede_summary", **values)
        return int(rows[0]["version"]) if rows else None

    async def summarised(self, before: datetime, limit: int) -> list[Row]:
        """Free episodes whose summary stands, the oldest first, as pruning knows memories."""
        statement = shaped_query("summarised_sources", free=query("can_be_clustered"))
        return await self._rows(statement, before=before, limit=limit)

    async def note_archived(
        self, memory_ids: Sequence[UUID], token_id: str | None, trace_id: str | None
    ) -> None:
        """Keep the ties to these sources in the histories of their summaries."""
        values = {"memory_ids": list(memory_ids), "token_id": token_id, "trace_id": trace_id}
        await self._run("note_archived_sources", **values)

