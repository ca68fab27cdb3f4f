"""Summaries and what they are of, as rows: which wait, for what, how they stand. Inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from agentcore.database import BOUND_ROLE, SERVICE_ROLE, Connection, query, shaped_query
from agentcore.memory.rows.owned_rows import NamedOrComposed, Row, RuledRows
from agentcore.memory.summaries.periods import Period
from agentcore.summary_rules import SummaryRules

SummaryWork = Literal["refresh", "period", "facts", "summary"]
# No memory has it, and all come behind it.
_FIRST_ID = UUID(int=0)


class SummaryRows(RuledRows):
    """The summaries of one agent inside one transaction; `bound`: the caller's token is bound to users."""

    def __init__(
        self, connection: Connection, agent_id: str, service: SummaryRules | None, *, bound: bool = False
    ) -> None:
        super().__init__(connection, agent_id, service)
        self._bound = bound

    async def of_all_users(self, statement: NamedOrComposed, **values: Any) -> list[Row]:
        """Executes as the agent: row security hides summaries of several users from a bound caller."""
        if not self._bound:
            return await self._rows(statement, **values)
        await self._run("take_role", role=SERVICE_ROLE)
        rows = await self._rows(statement, **values)
        await self._run("take_role", role=BOUND_ROLE)
        return rows

    async def let_wait(self, memory_ids: Sequence[UUID]) -> set[SummaryWork]:
        """Marks the summaries stale that were made of these; returns the kinds of work that are new."""
        return _works(await self.of_all_users("let_summaries_wait", memory_ids=list(memory_ids)))

    async def let_restored_wait(self, memory_ids: Sequence[UUID]) -> set[SummaryWork]:
        """The same of what comes back from the archive, itself included where it is a summary."""
        return _works(await self._rows("let_restored_wait", memory_ids=list(memory_ids)))

    async def let_wait_for_period(self, memory_ids: Iterable[UUID]) -> set[SummaryWork]:
        """Let those of these that summarise a session wait for their period, where the agent wishes it."""
        return _works(await self._ruled("let_wait_for_period", memory_ids=list(memory_ids)))

    async def let_page_wait_for_period(self, after: UUID | None, limit: int) -> tuple[int, UUID | None]:
        """The same of a page of memories behind an id: how many, and the last id where more may come."""
        values = {"after": after or _FIRST_ID, "limit": limit}
        [row] = await self._rows("let_page_wait_for_period", **values)
        return int(row["queued"]), row["last_id"]

    async def hold(
        self,
        *,
        going: Iterable[UUID] = (),
        changing: Iterable[UUID] = (),
        standing: Iterable[UUID] = (),
        staying: Iterable[UUID] = (),
    ) -> Mapping[UUID, int]:
        """Hold these memories and all that their deletion or change touches; the versions of those there.

        `standing`: nobody may change them; `staying`: nobody may delete them. Called once, before anything
        else that takes locks of memories: they are taken in one order.
        """
        rows = await self.of_all_users(
            shaped_query("hold_in_order", going=query("going")),
            memory_ids=list(going),
            changing=list(changing),
            standing=list(standing),
            staying=list(staying),
        )
        return {row["memory_id"]: row["version"] for row in rows if row["version"] is not None}

    async def wait_again(self, memory_ids: Sequence[UUID]) -> None:
        """Before these are deleted, which are held: what else their summaries tell of waits once more."""
        statement, rules = self._with_rules("wait_again", going=query("going"))
        await self._run(statement, memory_ids=list(memory_ids), **rules)

    async def delete(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Remove these, and the summaries that hold their words; a row for each."""
        statement = shaped_query("delete_memories", going=query("going"))
        return await self._rows(statement, memory_ids=list(memory_ids))

    async def expire_with(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Remove what tells of those of these that expired as wished; a row for each. All are held."""
        rows = await self._rows("expired_as_wished", memory_ids=list(memory_ids))
        wished = [row["memory_id"] for row in rows]
        if not wished:
            return []
        await self.wait_again(wished)
        return await self.delete(wished)

    async def waiting_again(self) -> list[Row]:
        """What waits again: kinds of work, and sessions where it is messages."""
        return await self._rows("waiting_again")

    async def waiting_refreshes(self, limit: int) -> list[Row]:
        """Summaries of sessions that wait to be made anew, those that wait longest first."""
        return await self._rows("waiting_refreshes", limit=limit)

    async def waiting_for_periods(self, limit: int, without: Iterable[UUID] = ()) -> list[Row]:
        """Summaries of sessions that wait for their period, those that wait longest first; not these."""
        return await self._rows("waiting_for_periods", limit=limit, without=list(without))

    async def waits(self, work: SummaryWork, memory_id: UUID) -> list[Row]:
        """Since when a model is asked in vain about a memory that waits; no row where it does not wait."""
        return await self._rows("waits_for", work=work, memory_id=memory_id)

    async def standing(self, memory_id: UUID) -> Row | None:
        """A summary as it stands, with the operation that gave it other words last (`reworded_by`)."""
        rows = await self._rows("summary_row", memory_id=memory_id)
        return rows[0] if rows else None

    async def sources(self, memory_id: UUID) -> list[Row]:
        """What a summary is of and is there, in the order of its times."""
        statement = shaped_query("sources_of_summary", columns=query("source_columns"))
        return await self._rows(statement, memory_id=memory_id)

    async def sessions_of(self, period: Period, user_id: str | None, namespace: str | None) -> list[Row]:
        """The summaries of sessions that hold, of one user and namespace in a period, in order."""
        statement = shaped_query("sessions_of_period", columns=query("source_columns"))
        return await self._rows(statement, **_place(period, user_id, namespace))

    async def of_period(self, period: Period, user_id: str | None, namespace: str | None) -> UUID | None:
        """The summary of a period, where there is one."""
        place = _place(period, user_id, namespace)
        rows = await self._rows("summary_of_period", label=period.label, **place)
        return rows[0]["memory_id"] if rows else None

    async def claim_periods(self) -> None:
        """Wait to be the only one who writes summaries of the agent's periods, until the transaction ends."""
        await self._run("claim_periods")

    async def take(self, work: SummaryWork, memory_ids: Sequence[UUID]) -> bool:
        """Take these out of what waits; whether all of them waited. What they rest on is held already."""
        rows = await self._rows("take_waiting", work=work, memory_ids=list(memory_ids))
        return len(rows) == len(memory_ids)

    async def retell(self, memory_id: UUID, provenance: Mapping[str, Any], timestamp: datetime) -> None:
        """Keep what a held summary says of its making, and until when it tells."""
        values = {"provenance": Jsonb(provenance), "timestamp": timestamp}
        await self._run("retell_summary", memory_id=memory_id, **values)


def _works(rows: Sequence[Row]) -> set[SummaryWork]:
    return {row["work"] for row in rows}


def _place(period: Period, user_id: str | None, namespace: str | None) -> dict[str, Any]:
    return {"starts": period.starts, "ends": period.ends, "user_id": user_id, "namespace": namespace}
