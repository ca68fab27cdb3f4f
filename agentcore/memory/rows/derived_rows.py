"""Rows of language models: accounts, settings, queues, and the facts they read. Inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import BOUND_ROLE, SERVICE_ROLE, Connection, Statement, query, shaped_query
from agentcore.memory.api import Caller
from agentcore.memory.language.passages import Passage
from agentcore.memory.rows.memory_rows import NamedOrComposed, OwnedRows, Row, RuledRows
from agentcore.memory.summaries.periods import Period
from agentcore.summary_rules import SummaryRules

LlmWork = Literal["facts", "summary", "refresh", "period", "relations", "passages"]
# From when, None: from the beginning, until when.
Span = tuple[datetime | None, datetime]
# Among so many that wait longest those of one user are looked for; what expired is gone before long.
HEAD_OF_LINE = 256


@dataclass(frozen=True)
class Waiting:
    """A new memory that may be read for facts, or belongs to a session that may be summarised."""

    memory_id: UUID
    work: LlmWork
    session_id: str | None = None
    user_turn: bool = False


class LlmRows(RuledRows):
    """One agent's account, wishes and waiting memories inside one transaction."""

    async def reserve(
        self, tokens: int, cost_micros: Decimal, *, most_tokens: int, most_micros: Decimal
    ) -> date | None:
        """Put so much on today's account; that day, or None where the budget (0: none) does not allow it."""
        rows = await self._rows(
            "reserve_llm_usage",
            tokens=tokens,
            cost_micros=cost_micros,
            most_tokens=most_tokens,
            most_micros=most_micros,
        )
        return rows[0]["day"] if rows else None

    async def note_refusal(self) -> None:
        """Count a request that was not sent."""
        await self._run("note_llm_refusal")

    async def settle(self, day: date, tokens: int, cost_micros: Decimal) -> None:
        """Add to a day's account what a request took more than was reserved; less is negative."""
        await self._run("settle_llm_usage", day=day, tokens=tokens, cost_micros=cost_micros)

    async def usage_today(self) -> Row:
        """Today's account: calls, refused, tokens, cost_micros."""
        rows = await self._rows("llm_usage_today")
        return rows[0] if rows else {"calls": 0, "refused": 0, "tokens": 0, "cost_micros": Decimal(0)}

    async def wish(self, wishes: Mapping[str, Any]) -> None:
        """What it wishes from now on; its settings are held already."""
        await self._run("set_model_wishes", models=Jsonb(wishes))

    async def queue(self, waiting: Sequence[Waiting], *, extract_facts: bool) -> list[Row]:
        """Let these wait for what the agent wishes: kinds of work and sessions, with its summaries' rules.

        `extract_facts` is what holds for an agent that wishes nothing of the kind.
        """
        return await self._ruled(
            "queue_llm_work",
            memory_ids=[each.memory_id for each in waiting],
            works=[each.work for each in waiting],
            session_ids=[each.session_id for each in waiting],
            user_turns=[each.user_turn for each in waiting],
            extract_facts=extract_facts,
        )

    async def claim_session(self, session_id: str) -> None:
        """Wait to be the only one who changes what of a session waits, or tells of it, until the end."""
        await self._run("claim_session", session_id=session_id)

    async def queue_session(self, session_id: str) -> None:
        """Let what of a session no summary tells of wait for one."""
        await self._run("queue_session", session_id=session_id)

    async def leave_summaries(self) -> None:
        """Nothing waits for summaries any more: the agent wishes none."""
        await self._run("leave_queue_for_summaries")

    async def waiting_of(self, session_ids: Sequence[str]) -> list[Row]:
        """How many messages and user turns of these sessions wait, and when the latest came."""
        return await self._rows("waiting_of_sessions", session_ids=list(session_ids))

    async def stretch(
        self, session_id: str, limit: int, *, only_again: bool = False, within: Sequence[Span] | None = None
    ) -> list[Row]:
        """What of a session waits for its summary, in order.

        `only_again`: once more, as another went; `within`: said in one of these times.
        """
        return await self._rows(
            "waiting_stretch",
            session_id=session_id,
            limit=limit,
            only_again=only_again,
            begins=None if within is None else [began for began, _ in within],
            ends=None if within is None else [ended for _, ended in within],
        )

    async def compactions(self, session_id: str) -> list[Row]:
        """The caller's own summaries of parts of a session, in order."""
        return await self._rows("compactions", session_id=session_id)

    async def for_facts(self, limit: int) -> list[Row]:
        """Memories of one user and namespace to be read for facts, those that wait longest first.

        What failed by itself comes behind all others, alone, and what failed least first. `waiting` says how
        many wait, or more than `limit` do.
        """
        return await self._rows("waiting_for_facts", limit=limit, head=HEAD_OF_LINE)

    async def note_failure(
        self, work: LlmWork, memory_ids: Sequence[UUID], *, by_itself: bool = False
    ) -> None:
        """A model was asked about these in vain; `by_itself`: of each alone."""
        if memory_ids:
            values = {"memory_ids": list(memory_ids), "tries": int(by_itself)}
            await self._run("note_llm_failure", work=work, **values)

    async def claim(self, work: LlmWork, versions: Mapping[UUID, int]) -> set[UUID]:
        """Take memories out of what waits; those that somebody took or changed are not among them."""
        rows = await self._rows(
            "claim_llm_work", work=work, memory_ids=list(versions), versions=list(versions.values())
        )
        return {row["memory_id"] for row in rows}


class FactRows(OwnedRows):
    """What a model read from one agent's memories inside one transaction."""

    async def hold_with(self, successors: Mapping[UUID, UUID | None]) -> list[Row]:
        """Facts of these memories whose place the same held as theirs; nobody changes them before the end."""
        values = {"memory_ids": [*successors], "successors": [*successors.values()]}
        return await self._rows("hold_facts_with", **values)

    async def supersede(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> None:
        """Let these held facts be superseded: each by which memory, and since when."""
        await self._rows(
            "supersede_memories",
            memory_ids=[memory_id for memory_id, _, _ in facts],
            successors=[successor for _, successor, _ in facts],
            moments=[moment for _, _, moment in facts],
        )

    async def as_read(self, memory_id: UUID) -> list[UUID]:
        """Facts that were read from a memory and that nobody has made another of."""
        return [row["memory_id"] for row in await self._rows("facts_as_read", memory_id=memory_id)]

    async def live_with(self, memory_id: UUID, operation: str, caller: Caller) -> None:
        """Let what was read from a memory end when it does by now, which goes into the facts' histories."""
        source = {"token_id": caller.token_id, "trace_id": caller.trace_id}
        await self._run("let_facts_live_with", memory_id=memory_id, operation=operation, **source)

    async def superseded_with(self, memory_id: UUID, successor: UUID) -> list[Row]:
        """Facts of a memory that were superseded by the same; nobody changes them before the end."""
        return await self._rows("facts_superseded_with", memory_id=memory_id, successor=successor)

    async def reworded_since(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> dict[UUID, UUID]:
        """Which of these facts, given with their memories and when they were read, have lost their words."""
        memory_ids, parents, moments = ([fact[at] for fact in facts] for at in range(3))
        values = {"memory_ids": memory_ids, "parents": parents, "moments": moments}
        rows = await self._rows("reworded_since", **values)
        return {row["memory_id"]: row["parent_memory_id"] for row in rows}

    async def superseded_since(self, archived_at: Mapping[UUID, datetime]) -> list[Row]:
        """Which of these facts hold though their memories were superseded since; by what, and since when."""
        values = {"memory_ids": [*archived_at], "moments": [*archived_at.values()]}
        return await self._rows("superseded_since", **values)

    async def read_no_more(self, memory_ids: Sequence[UUID]) -> None:
        """Take these out of what waits to be read for facts."""
        await self._run("leave_queue_for_facts", memory_ids=list(memory_ids))

    async def unread(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Which of these hold and were not read for facts since they have their words."""
        return await self._rows("unread_memories", memory_ids=list(memory_ids))


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
