"""Rows of derived memories and of the queue of model work, of one agent in one transaction."""

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

from agentcore.database import ALL_USERS, Connection, Users, query, shaped_query, users_setting
from agentcore.memory.api import Caller
from agentcore.memory.language.passages import Passage
from agentcore.memory.models import JsonObject
from agentcore.memory.rows.memory_rows import HistoryRows, NamedOrComposed, OwnedRows, Row, RuledRows, Superseded
from agentcore.memory.summaries.summarizing import Period
from agentcore.summary_rules import SummaryRules

LlmWork = Literal["facts", "summary", "refresh", "period", "relations", "passages"]
# Start (None: unbounded) and end.
Span = tuple[datetime | None, datetime]
# Number of the longest pending rows that are searched for those of one user.
QUEUE_HEAD_ROWS = 256


@dataclass(frozen=True)
class Pending:
    memory_id: UUID
    work: LlmWork
    session_id: str | None = None
    user_turn: bool = False


class LlmRows(RuledRows):
    async def reserve(
        self, tokens: int, cost_micros: Decimal, *, most_tokens: int, most_micros: Decimal
    ) -> date | None:
        """Reserves tokens and cost for today; returns the day, None if over budget (0: no limit)."""
        if 0 < most_tokens < tokens or 0 < most_micros < cost_micros:
            return None
        rows = await self._rows(
            "reserve_llm_usage",
            tokens=tokens,
            cost_micros=cost_micros,
            most_tokens=most_tokens,
            most_micros=most_micros,
        )
        return rows[0]["day"] if rows else None

    async def note_refusal(self) -> None:
        await self._run("note_llm_refusal")

    async def settle(self, day: date, tokens: int, cost_micros: Decimal) -> None:
        await self._run("correct_llm_usage", day=day, tokens=tokens, cost_micros=cost_micros)

    async def usage_today(self) -> Row:
        """Returns today's usage: calls, refused, tokens, cost_micros."""
        rows = await self._rows("llm_usage_today")
        return rows[0] if rows else {"calls": 0, "refused": 0, "tokens": 0, "cost_micros": Decimal(0)}

    async def configure(self, settings: Mapping[str, Any]) -> None:
        """Replaces the agent's settings for language models; the row is locked already."""
        await self._run("set_model_settings", models=Jsonb(settings))

    async def enqueue(self, waiting: Sequence[Pending], *, extract_facts: bool) -> list[Row]:
        """Returns work, session and summary rules of each; `extract_facts`: default of agents without a setting."""
        statement, rules = self._with_rules("rules_in_force")
        # In the same round trip.
        in_force = await self._connection.execute(statement, {"agent_id": self._agent_id, **rules})
        queued = await self._ruled(
            "enqueue_for_models",
            memory_ids=[each.memory_id for each in waiting],
            works=[each.work for each in waiting],
            session_ids=[each.session_id for each in waiting],
            user_turns=[each.user_turn for each in waiting],
            extract_facts=extract_facts,
        )
        [found] = await in_force.fetchall()
        return [{**row, **found} for row in queued]

    async def lock_session(self, session_id: str) -> None:
        await self._run("lock_session", session_id=session_id)

    async def enqueue_session(self, session_id: str) -> None:
        await self._run("enqueue_session", session_id=session_id)

    async def dequeue_session_messages(self) -> None:
        await self._run("dequeue_session_messages")

    async def count_pending(self, session_ids: Sequence[str]) -> list[Row]:
        """Returns per session: number of pending messages and user turns, and time of the newest."""
        return await self._rows("count_pending_of_sessions", session_ids=list(session_ids))

    async def pending_messages(
        self, session_id: str, limit: int, *, only_again: bool = False, within: Sequence[Span] | None = None
    ) -> list[Row]:
        """Returns pending messages: all, with `only_again` those whose summary was deleted, or those `within` time
        spans."""
        return await self._rows(
            "pending_messages",
            session_id=session_id,
            limit=limit,
            only_again=only_again,
            begins=None if within is None else [began for began, _ in within],
            ends=None if within is None else [ended for _, ended in within],
        )

    async def compactions(self, session_id: str) -> list[Row]:
        return await self._rows("compactions", session_id=session_id)

    async def pending_for_facts(self, limit: int) -> list[Row]:
        """Returns the longest pending memories; `waiting`: the number pending, up to `limit` + 1."""
        return await self._rows("pending_for_facts", limit=limit, head=QUEUE_HEAD_ROWS)

    async def record_failure(self, work: LlmWork, memory_ids: Sequence[UUID], *, alone: bool = False) -> None:
        """Records a failed request; `alone`: the request was about one memory."""
        if memory_ids:
            await self._run("record_llm_failure", work=work, memory_ids=list(memory_ids), tries=int(alone))

    async def dequeue_unchanged(self, work: LlmWork, versions: Mapping[UUID, int]) -> set[UUID]:
        """Dequeues memories that are unchanged; returns which."""
        ids, numbers = list(versions), list(versions.values())
        return set(await self._ids("dequeue_unchanged", work=work, memory_ids=ids, versions=numbers))


@dataclass(frozen=True, slots=True)
class UnreadMemory:
    memory_id: UUID
    memory_type: str
    content: str
    session_id: str | None
    metadata: JsonObject
    parent_memory_id: UUID | None
    flagged: bool


class FactRows(OwnedRows):
    async def lock_facts_of(self, successors: Mapping[UUID, UUID | None]) -> list[Row]:
        return await self._rows("lock_facts_of", memory_ids=[*successors], successors=[*successors.values()])

    async def supersede(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> None:
        """Supersedes locked facts: (fact, successor, end of validity)."""
        memory_ids, successors, moments = ([fact[at] for fact in facts] for at in range(3))
        await self._rows("supersede_memories", memory_ids=memory_ids, successors=successors, moments=moments)

    async def unmodified_facts(self, memory_id: UUID) -> list[UUID]:
        return await self._ids("unmodified_facts", memory_id=memory_id)

    async def sync_expiry(self, memory_id: UUID, operation: str, caller: Caller) -> None:
        rows = await self._rows("sync_expiry_of_facts", memory_id=memory_id)
        history = HistoryRows(self._connection, self._agent_id)
        await history.append_rows(rows, operation, caller.token_id, caller.trace_id)

    async def superseded_with(self, memory_id: UUID, successor: UUID) -> list[Superseded]:
        rows = await self._rows("facts_superseded_with", memory_id=memory_id, successor=successor)
        return [Superseded(**row) for row in rows]

    async def reworded_since(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> dict[UUID, UUID]:
        """Returns facts (fact, memory, time of extraction) whose memory was reworded since, with the memory."""
        memory_ids, parents, moments = ([fact[at] for fact in facts] for at in range(3))
        rows = await self._rows("reworded_since", memory_ids=memory_ids, parents=parents, moments=moments)
        return {row["memory_id"]: row["parent_memory_id"] for row in rows}

    async def superseded_since(self, archived_at: Mapping[UUID, datetime]) -> list[Row]:
        """Returns the current facts whose memory was superseded since these times; by which, and when."""
        return await self._rows("superseded_since", memory_ids=[*archived_at], moments=[*archived_at.values()])

    async def dequeue_facts(self, memory_ids: Sequence[UUID]) -> None:
        await self._run("dequeue_facts", memory_ids=list(memory_ids))

    async def unread(self, memory_ids: Sequence[UUID]) -> list[UnreadMemory]:
        rows = await self._rows("unread_memories", memory_ids=list(memory_ids))
        return [UnreadMemory(**row) for row in rows]


# Smaller than the id of any memory.
_FIRST_ID = UUID(int=0)


class SummaryRows(RuledRows):
    """Summaries. `users`: those that the caller's token is bound to; None: not bound."""

    def __init__(self, connection: Connection, agent_id: str, service: SummaryRules | None, users: Users) -> None:
        super().__init__(connection, agent_id, service)
        self._users = users

    async def run_for_all_users(self, statement: NamedOrComposed, **values: Any) -> list[Row]:
        """Executes with the rows of all users visible: summaries of several users are hidden from a bound caller."""
        if self._users is None:
            return await self._rows(statement, **values)
        # The role stays: for another one, Citus would open a second connection, which waits for the locks of the first.
        await self.set_for_transaction({"agentcore.users": ALL_USERS})
        rows = await self._rows(statement, **values)
        await self.set_for_transaction({"agentcore.users": users_setting(self._users)})
        return rows

    async def mark_stale(self, memory_ids: Sequence[UUID]) -> set[LlmWork]:
        """Returns the kinds of work enqueued."""
        return _works(await self.run_for_all_users("mark_summaries_stale", memory_ids=list(memory_ids)))

    async def mark_restored_stale(self, memory_ids: Sequence[UUID]) -> set[LlmWork]:
        return _works(await self._rows("mark_restored_stale", memory_ids=list(memory_ids)))

    async def enqueue_for_period(self, memory_ids: Iterable[UUID]) -> set[LlmWork]:
        return _works(await self._ruled("enqueue_for_period", memory_ids=list(memory_ids)))

    async def enqueue_page_for_period(self, after: UUID | None, limit: int) -> tuple[int, UUID | None]:
        """Enqueues a page of session summaries; returns the number, and the last id if there may be more."""
        page = {"after": after or _FIRST_ID}
        last_id = next(iter(await self._ids("end_of_page", limit=limit, **page)), None)
        queued = await self._ids("enqueue_page_for_period", last_id=last_id, **page)
        return len(queued), last_id

    async def lock(
        self,
        *,
        to_delete: Iterable[UUID] = (),
        to_change: Iterable[UUID] = (),
        no_change: Iterable[UUID] = (),
        no_delete: Iterable[UUID] = (),
    ) -> Mapping[UUID, int]:
        """Locks all memories that this transaction deletes, changes or refers to; returns their versions.

        `no_change`, `no_delete`: by others. Call it before any other locking statement: locks are taken in id order.
        """
        rows = await self.run_for_all_users(
            shaped_query("lock_in_order", going=query("going")),
            memory_ids=list(to_delete),
            changing=list(to_change),
            unchanged=list(no_change),
            kept=list(no_delete),
        )
        return {row["memory_id"]: row["version"] for row in rows if row["version"] is not None}

    async def enqueue_again(self, memory_ids: Sequence[UUID]) -> None:
        statement, rules = self._with_rules("enqueue_again", going=query("going"))
        await self._run(statement, memory_ids=list(memory_ids), **rules)

    async def delete(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Deletes memories and the summaries that quote them; returns a row for each."""
        statement = shaped_query("delete_memories", going=query("going"))
        return await self._rows(statement, memory_ids=list(memory_ids))

    async def delete_derived_of_expired(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Deletes locked memories that expired at a TTL of their caller."""
        expired = await self._ids("expired_by_caller_ttl", memory_ids=list(memory_ids))
        if not expired:
            return []
        await self.enqueue_again(expired)
        return await self.delete(expired)

    async def pending_again(self) -> list[Row]:
        return await self._rows("pending_again")

    async def stale_summaries(self, limit: int) -> list[Row]:
        return await self._rows("stale_summaries", limit=limit)

    async def pending_for_periods(self, limit: int, without: Iterable[UUID] = ()) -> list[Row]:
        """Returns session summaries pending for their period, except these; longest pending first."""
        return await self._rows("pending_for_periods", limit=limit, without=list(without))

    async def pending(self, work: LlmWork, memory_id: UUID) -> list[Row]:
        """Returns `failing_since` of a pending memory; no row if it is not pending."""
        return await self._rows("pending_summary", work=work, memory_id=memory_id)

    async def summary_row(self, memory_id: UUID) -> Row | None:
        """Returns a summary, with the operation that last changed its content as `reworded_by`."""
        rows = await self._rows("summary_row", memory_id=memory_id)
        return rows[0] if rows else None

    async def sources(self, memory_id: UUID) -> list[Row]:
        statement = shaped_query("sources_of_summary", columns=query("source_columns"))
        return await self._rows(statement, memory_id=memory_id)

    async def sessions_of(self, period: Period, user_id: str | None, namespace: str | None) -> list[Row]:
        statement = shaped_query("sessions_of_period", columns=query("source_columns"))
        return await self._rows(statement, **_place(period, user_id, namespace))

    async def of_period(self, period: Period, user_id: str | None, namespace: str | None) -> UUID | None:
        """Returns the id of a period's summary, None if there is none."""
        ids = await self._ids("summary_of_period", label=period.label, **_place(period, user_id, namespace))
        return ids[0] if ids else None

    async def lock_periods(self) -> None:
        await self._run("lock_periods")

    async def dequeue(self, work: LlmWork, memory_ids: Sequence[UUID]) -> bool:
        """Dequeues these memories, whose sources are locked; returns whether all were pending."""
        rows = await self._rows("dequeue_summaries", work=work, memory_ids=list(memory_ids))
        return len(rows) == len(memory_ids)

    async def update_provenance(self, memory_id: UUID, provenance: Mapping[str, Any], timestamp: datetime) -> None:
        await self._run(
            "update_summary_provenance", memory_id=memory_id, provenance=Jsonb(provenance), timestamp=timestamp
        )


def _works(rows: Sequence[Row]) -> set[LlmWork]:
    return {row["work"] for row in rows}


def _place(period: Period, user_id: str | None, namespace: str | None) -> dict[str, Any]:
    return {"starts": period.starts, "ends": period.ends, "user_id": user_id, "namespace": namespace}


# `form` in the provenance of a cluster summary.
CLUSTER_SUMMARY_KIND = "consolidation"


class ClusterRows(OwnedRows):
    """Episodes and cluster summaries. `before`: episodes after that time are too young."""

    async def settings(self) -> tuple[Mapping[str, Any], UUID | None]:
        """Returns the consolidation settings, and the id up to which episodes were processed."""
        rows = await self._rows("consolidation_settings")
        return (rows[0]["consolidation"], rows[0]["consolidated_to"]) if rows else ({}, None)

    async def configure(self, consolidation: Mapping[str, Any]) -> None:
        """Replaces the agent's consolidation settings; the row is locked already."""
        await self._run("set_consolidation", consolidation=Jsonb(consolidation))

    async def save_progress(self, memory_id: UUID, witness: UUID) -> None:
        """Stores the id up to which episodes were processed, if `witness`, one of them, still exists."""
        await self._run("consolidated_to", memory_id=memory_id, witness=witness)

    async def episodes_after(self, after: UUID | None, limit: int) -> list[Row]:
        return await self._rows("episodes_after", after=after, limit=limit)

    async def enqueue_late(self, memory_ids: Iterable[UUID]) -> None:
        await self._run("enqueue_late_episodes", memory_ids=list(memory_ids))

    async def late(self, model: str, before: datetime, after: UUID | None, limit: int) -> list[UUID]:
        return await self._ids("late_episodes", model=model, before=before, after=after, limit=limit)

    async def dequeue_late(self, memory_ids: Sequence[UUID]) -> None:
        await self._run("dequeue_late_episodes", memory_ids=list(memory_ids))

    async def changed_sources(self, limit: int) -> list[UUID]:
        return await self._ids("changed_sources", limit=limit)

    async def near(
        self, memory_ids: Sequence[UUID], model: str, before: datetime, limit: int, *, dimensions: int | None = None
    ) -> list[tuple[UUID, UUID]]:
        """Returns pairs of these memories and their nearest; with `dimensions` through the index."""
        if dimensions is None:
            distance: sql.Composable = query("near_by_comparison")
        else:
            distance = shaped_query("near_by_index", dimensions=sql.Literal(dimensions))
        statement = shaped_query("near_episodes", free=query("can_be_clustered"), distance=distance)
        rows = await self._rows(statement, memory_ids=list(memory_ids), model=model, before=before, limit=limit)
        return [(row["one_id"], row["other_id"]) for row in rows]

    async def count_young(self, before: datetime) -> int:
        [row] = await self._rows("count_young_episodes", before=before)
        return int(row["count"])

    async def current_summaries(self, memory_ids: Sequence[UUID]) -> list[Row]:
        return await self._rows("standing_summaries", memory_ids=list(memory_ids))

    async def episodes(self, memory_ids: Sequence[UUID], model: str, before: datetime) -> list[Row]:
        statement = shaped_query("episodes", free=query("can_be_clustered"))
        return await self._rows(statement, memory_ids=list(memory_ids), model=model, before=before)

    async def lock_consolidation(self) -> None:
        await self._run("lock_consolidation")

    async def lock_episodes(self, memory_ids: Sequence[UUID]) -> dict[UUID, str]:
        """Locks these memories against change; returns the digests of their contents."""
        rows = await self._rows("lock_episodes", memory_ids=list(memory_ids))
        return {row["memory_id"]: bytes(row["content_hash"]).hex() for row in rows}

    async def supersede(self, memory_id: UUID, successor: UUID, valid_to: datetime) -> int | None:
        """Supersedes a cluster summary; returns its new version, None if it is gone or superseded."""
        rows = await self._rows("supersede_summary", memory_id=memory_id, successor=successor, valid_to=valid_to)
        return int(rows[0]["version"]) if rows else None

    async def summarised(self, before: datetime, limit: int) -> list[Row]:
        statement = shaped_query("summarised_sources", free=query("can_be_clustered"))
        return await self._rows(statement, before=before, limit=limit)

    async def record_archived_sources(
        self, memory_ids: Sequence[UUID], token_id: str | None, trace_id: str | None
    ) -> None:
        rows = await self._rows("links_to_archived_sources", memory_ids=list(memory_ids))
        entries = [{**row, "after": {}} for row in rows]
        history = HistoryRows(self._connection, self._agent_id)
        await history.append_rows(entries, "archive_sources", token_id, trace_id)


EMBED_PASSAGES = "embed_passages"


@dataclass(frozen=True)
class EmbeddedPassage:
    """A passage of a memory in one version; `vector` is None if the model refused its text."""

    memory_id: UUID
    version: int
    number: int
    passage: Passage
    model: str
    vector: NDArray[np.float32] | None


class PassageRows(OwnedRows):
    """Passages of long memories. `job_needed`: this transaction must enqueue the job."""

    def __init__(self, connection: Connection, agent_id: str) -> None:
        super().__init__(connection, agent_id)
        self.job_needed = False

    async def enqueue(self, memory_ids: Sequence[UUID]) -> None:
        """Enqueues long memories; those already pending keep their position."""
        if memory_ids:
            self.job_needed = True
            await self._run("enqueue_passages", memory_ids=list(memory_ids))

    async def replace(self, memory_id: UUID, *, is_long: bool) -> None:
        """Deletes the passages of a memory with a new text; enqueues it if the text is long."""
        await self._run("delete_passages", memory_id=memory_id)
        await self.enqueue([memory_id] if is_long else [])

    async def pending(self, models: Sequence[str], limit: int) -> list[Row]:
        return await self._rows("pending_passages", done=list(models), limit=limit)

    async def add(self, made: Sequence[EmbeddedPassage]) -> None:
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
