"""Database access for derived memories and for the queue of model work."""

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
from agentcore.memory.models import JsonObject
from agentcore.memory.rows.memory_rows import NamedOrComposed, OwnedRows, Row, RuledRows, Superseded
from agentcore.memory.summaries.summarizing import Period
from agentcore.summary_rules import SummaryRules

LlmWork = Literal["facts", "summary", "refresh", "period", "relations", "passages"]
# Start (None: unbounded) and end.
Span = tuple[datetime | None, datetime]
# Number of the longest pending rows that are searched for those of one user.
QUEUE_HEAD_ROWS = 256


@dataclass(frozen=True)
class Pending:
    """A new memory that is pending for fact extraction, or for the summary of its session."""

    memory_id: UUID
    work: LlmWork
    session_id: str | None = None
    user_turn: bool = False


class LlmRows(RuledRows):
    """One agent's model usage, model settings and pending work."""

    async def reserve(
        self, tokens: int, cost_micros: Decimal, *, most_tokens: int, most_micros: Decimal
    ) -> date | None:
        """Reserves tokens and cost for today; returns the day, None if over budget (0: no limit)."""
        rows = await self._rows(
            "reserve_llm_usage",
            tokens=tokens,
            cost_micros=cost_micros,
            most_tokens=most_tokens,
            most_micros=most_micros,
        )
        return rows[0]["day"] if rows else None

    async def note_refusal(self) -> None:
        """Counts a request that the budget refused."""
        await self._run("note_llm_refusal")

    async def settle(self, day: date, tokens: int, cost_micros: Decimal) -> None:
        """Adds the difference between actual and reserved usage (negative if less) to a day's account."""
        await self._run("correct_llm_usage", day=day, tokens=tokens, cost_micros=cost_micros)

    async def usage_today(self) -> Row:
        """Returns today's usage: calls, refused, tokens, cost_micros."""
        rows = await self._rows("llm_usage_today")
        return rows[0] if rows else {"calls": 0, "refused": 0, "tokens": 0, "cost_micros": Decimal(0)}

    async def configure(self, settings: Mapping[str, Any]) -> None:
        """Replaces the agent's settings for language models; the row is locked already."""
        await self._run("set_model_settings", models=Jsonb(settings))

    async def enqueue(self, waiting: Sequence[Pending], *, extract_facts: bool) -> list[Row]:
        """Enqueues memories for the work that is switched on; returns work, session and summary rules of each.

        `extract_facts` is the default for agents that have not set it.
        """
        return await self._ruled(
            "enqueue_for_models",
            memory_ids=[each.memory_id for each in waiting],
            works=[each.work for each in waiting],
            session_ids=[each.session_id for each in waiting],
            user_turns=[each.user_turn for each in waiting],
            extract_facts=extract_facts,
        )

    async def lock_session(self, session_id: str) -> None:
        """Takes the advisory lock of a session's summaries until the transaction ends."""
        await self._run("lock_session", session_id=session_id)

    async def enqueue_session(self, session_id: str) -> None:
        """Enqueues the messages of a session that no summary covers."""
        await self._run("enqueue_session", session_id=session_id)

    async def dequeue_session_messages(self) -> None:
        """Removes everything that is pending for session summaries."""
        await self._run("dequeue_session_messages")

    async def count_pending(self, session_ids: Sequence[str]) -> list[Row]:
        """Returns per session: number of pending messages and user turns, and time of the newest."""
        return await self._rows("count_pending_of_sessions", session_ids=list(session_ids))

    async def pending_messages(
        self, session_id: str, limit: int, *, only_again: bool = False, within: Sequence[Span] | None = None
    ) -> list[Row]:
        """Returns the pending messages of a session, oldest first.

        `only_again`: only those whose summary was deleted; `within`: only those in one of these time spans.
        """
        return await self._rows(
            "pending_messages",
            session_id=session_id,
            limit=limit,
            only_again=only_again,
            begins=None if within is None else [began for began, _ in within],
            ends=None if within is None else [ended for _, ended in within],
        )

    async def compactions(self, session_id: str) -> list[Row]:
        """Returns the caller's own summaries of parts of a session, oldest first."""
        return await self._rows("compactions", session_id=session_id)

    async def pending_for_facts(self, limit: int) -> list[Row]:
        """Returns memories pending for fact extraction, of one user and namespace, longest pending first.

        Memories that failed alone come last, and are returned alone. `waiting` is the number pending, at most
        `limit` + 1.
        """
        return await self._rows("pending_for_facts", limit=limit, head=QUEUE_HEAD_ROWS)

    async def record_failure(self, work: LlmWork, memory_ids: Sequence[UUID], *, alone: bool = False) -> None:
        """Records a failed request; `alone`: the request was about one memory."""
        if memory_ids:
            values = {"memory_ids": list(memory_ids), "tries": int(alone)}
            await self._run("record_llm_failure", work=work, **values)

    async def dequeue_unchanged(self, work: LlmWork, versions: Mapping[UUID, int]) -> set[UUID]:
        """Dequeues memories that are unchanged; returns which."""
        rows = await self._rows(
            "dequeue_unchanged", work=work, memory_ids=list(versions), versions=list(versions.values())
        )
        return {row["memory_id"] for row in rows}


@dataclass(frozen=True, slots=True)
class UnreadMemory:
    """A current memory whose content was not read for facts yet."""

    memory_id: UUID
    memory_type: str
    content: str
    session_id: str | None
    metadata: JsonObject
    parent_memory_id: UUID | None
    flagged: bool


class FactRows(OwnedRows):
    """Facts that a model extracted from one agent's memories."""

    async def lock_facts_of(self, successors: Mapping[UUID, UUID | None]) -> list[Row]:
        """Locks and returns the facts of these memories that have the same successor as their memory.

        Facts that a caller pinned or reworded are excluded.
        """
        values = {"memory_ids": [*successors], "successors": [*successors.values()]}
        return await self._rows("lock_facts_of", **values)

    async def supersede(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> None:
        """Supersedes locked facts: (fact, successor, end of validity)."""
        await self._rows(
            "supersede_memories",
            memory_ids=[memory_id for memory_id, _, _ in facts],
            successors=[successor for _, successor, _ in facts],
            moments=[moment for _, _, moment in facts],
        )

    async def unmodified_facts(self, memory_id: UUID) -> list[UUID]:
        """Returns the facts of a memory that no caller has pinned or reworded."""
        return [row["memory_id"] for row in await self._rows("unmodified_facts", memory_id=memory_id)]

    async def sync_expiry(self, memory_id: UUID, operation: str, caller: Caller) -> None:
        """Sets the expiry of a memory's facts to the memory's, with entries in their histories."""
        source = {"token_id": caller.token_id, "trace_id": caller.trace_id}
        await self._run("sync_expiry_of_facts", memory_id=memory_id, operation=operation, **source)

    async def superseded_with(self, memory_id: UUID, successor: UUID) -> list[Superseded]:
        """Locks and returns the facts of a memory that this successor superseded."""
        rows = await self._rows("facts_superseded_with", memory_id=memory_id, successor=successor)
        return [Superseded(**row) for row in rows]

    async def reworded_since(self, facts: Sequence[tuple[UUID, UUID, datetime]]) -> dict[UUID, UUID]:
        """Returns the facts (fact, memory, time of extraction) whose memory was reworded since, with the
        memory."""
        memory_ids, parents, moments = ([fact[at] for fact in facts] for at in range(3))
        values = {"memory_ids": memory_ids, "parents": parents, "moments": moments}
        rows = await self._rows("reworded_since", **values)
        return {row["memory_id"]: row["parent_memory_id"] for row in rows}

    async def superseded_since(self, archived_at: Mapping[UUID, datetime]) -> list[Row]:
        """Returns the current facts whose memory was superseded since these times; by which, and when."""
        values = {"memory_ids": [*archived_at], "moments": [*archived_at.values()]}
        return await self._rows("superseded_since", **values)

    async def dequeue_facts(self, memory_ids: Sequence[UUID]) -> None:
        """Removes these memories from the queue for fact extraction."""
        await self._run("dequeue_facts", memory_ids=list(memory_ids))

    async def unread(self, memory_ids: Sequence[UUID]) -> list[UnreadMemory]:
        """Returns the current memories among these whose present content was not read for facts yet."""
        rows = await self._rows("unread_memories", memory_ids=list(memory_ids))
        return [UnreadMemory(**row) for row in rows]


# Smaller than the id of any memory.
_FIRST_ID = UUID(int=0)


class SummaryRows(RuledRows):
    """Summaries of one agent. `bound`: the caller's token is bound to users."""

    def __init__(
        self, connection: Connection, agent_id: str, service: SummaryRules | None, *, bound: bool = False
    ) -> None:
        super().__init__(connection, agent_id, service)
        self._bound = bound

    async def run_as_agent(self, statement: NamedOrComposed, **values: Any) -> list[Row]:
        """Executes as the agent: row security hides summaries of several users from a bound caller."""
        if not self._bound:
            return await self._rows(statement, **values)
        await self._run("take_role", role=SERVICE_ROLE)
        rows = await self._rows(statement, **values)
        await self._run("take_role", role=BOUND_ROLE)
        return rows

    async def mark_stale(self, memory_ids: Sequence[UUID]) -> set[LlmWork]:
        """Marks the summaries of these memories stale; returns the kinds of work enqueued."""
        return _works(await self.run_as_agent("mark_summaries_stale", memory_ids=list(memory_ids)))

    async def mark_restored_stale(self, memory_ids: Sequence[UUID]) -> set[LlmWork]:
        """Marks restored summaries, and the summaries of restored memories, stale."""
        return _works(await self._rows("mark_restored_stale", memory_ids=list(memory_ids)))

    async def enqueue_for_period(self, memory_ids: Iterable[UUID]) -> set[LlmWork]:
        """Enqueues session summaries for the summary of their period, if the agent has period summaries."""
        return _works(await self._ruled("enqueue_for_period", memory_ids=list(memory_ids)))

    async def enqueue_page_for_period(self, after: UUID | None, limit: int) -> tuple[int, UUID | None]:
        """Does the same for a page of memories; returns the number enqueued, and the last id if there may be
        more."""
        values = {"after": after or _FIRST_ID, "limit": limit}
        [row] = await self._rows("enqueue_page_for_period", **values)
        return int(row["queued"]), row["last_id"]

    async def lock(
        self,
        *,
        to_delete: Iterable[UUID] = (),
        to_change: Iterable[UUID] = (),
        no_change: Iterable[UUID] = (),
        no_delete: Iterable[UUID] = (),
    ) -> Mapping[UUID, int]:
        """Locks all memories that this transaction will delete, change or refer to, in id order.

        Returns their versions. `no_change`, `no_delete`: locked so that others cannot change or delete them. Call
        it once, before any other locking statement.
        """
        rows = await self.run_as_agent(
            shaped_query("lock_in_order", going=query("going")),
            memory_ids=list(to_delete),
            changing=list(to_change),
            unchanged=list(no_change),
            kept=list(no_delete),
        )
        return {row["memory_id"]: row["version"] for row in rows if row["version"] is not None}

    async def enqueue_again(self, memory_ids: Sequence[UUID]) -> None:
        """Enqueues the remaining sources of the summaries that are deleted with these locked memories."""
        statement, rules = self._with_rules("enqueue_again", going=query("going"))
        await self._run(statement, memory_ids=list(memory_ids), **rules)

    async def delete(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Deletes memories and the summaries that quote them; returns a row for each."""
        statement = shaped_query("delete_memories", going=query("going"))
        return await self._rows(statement, memory_ids=list(memory_ids))

    async def delete_derived_of_expired(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Deletes locked memories that expired at a TTL of their caller, and their summaries; a row for each."""
        rows = await self._rows("expired_by_caller_ttl", memory_ids=list(memory_ids))
        expired = [row["memory_id"] for row in rows]
        if not expired:
            return []
        await self.enqueue_again(expired)
        return await self.delete(expired)

    async def pending_again(self) -> list[Row]:
        """Returns work and session of messages that lost their summary."""
        return await self._rows("pending_again")

    async def stale_summaries(self, limit: int) -> list[Row]:
        """Returns stale session summaries, longest stale first."""
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
        """Returns the sources of a summary that exist, oldest first."""
        statement = shaped_query("sources_of_summary", columns=query("source_columns"))
        return await self._rows(statement, memory_id=memory_id)

    async def sessions_of(self, period: Period, user_id: str | None, namespace: str | None) -> list[Row]:
        """Returns the current session summaries of one user and namespace in a period, oldest first."""
        statement = shaped_query("sessions_of_period", columns=query("source_columns"))
        return await self._rows(statement, **_place(period, user_id, namespace))

    async def of_period(self, period: Period, user_id: str | None, namespace: str | None) -> UUID | None:
        """Returns the id of a period's summary, None if there is none."""
        place = _place(period, user_id, namespace)
        rows = await self._rows("summary_of_period", label=period.label, **place)
        return rows[0]["memory_id"] if rows else None

    async def lock_periods(self) -> None:
        """Takes the advisory lock of the agent's period summaries until the transaction ends."""
        await self._run("lock_periods")

    async def dequeue(self, work: LlmWork, memory_ids: Sequence[UUID]) -> bool:
        """Dequeues these memories, whose sources are locked; returns whether all were pending."""
        rows = await self._rows("dequeue_summaries", work=work, memory_ids=list(memory_ids))
        return len(rows) == len(memory_ids)

    async def update_provenance(self, memory_id: UUID, provenance: Mapping[str, Any], timestamp: datetime) -> None:
        """Updates provenance and timestamp of a locked summary."""
        values = {"provenance": Jsonb(provenance), "timestamp": timestamp}
        await self._run("update_summary_provenance", memory_id=memory_id, **values)


def _works(rows: Sequence[Row]) -> set[LlmWork]:
    return {row["work"] for row in rows}


def _place(period: Period, user_id: str | None, namespace: str | None) -> dict[str, Any]:
    return {"starts": period.starts, "ends": period.ends, "user_id": user_id, "namespace": namespace}


# `form` in the provenance of a cluster summary.
CLUSTER_SUMMARY_KIND = "consolidation"


class ClusterRows(OwnedRows):
    """Episodes and cluster summaries of one agent. `before`: episodes after that time are too young."""

    async def settings(self) -> tuple[Mapping[str, Any], UUID | None]:
        """Returns the agent's consolidation settings, and the id up to which episodes were processed."""
        rows = await self._rows("consolidation_settings")
        return (rows[0]["consolidation"], rows[0]["consolidated_to"]) if rows else ({}, None)

    async def configure(self, consolidation: Mapping[str, Any]) -> None:
        """Replaces the agent's consolidation settings; the row is locked already."""
        await self._run("set_consolidation", consolidation=Jsonb(consolidation))

    async def save_progress(self, memory_id: UUID, witness: UUID) -> None:
        """Stores the id up to which episodes were processed, if `witness`, one of them, still exists."""
        await self._run("consolidated_to", memory_id=memory_id, witness=witness)

    async def episodes_after(self, after: UUID | None, limit: int) -> list[Row]:
        """Returns the episodes after an id, in id order."""
        return await self._rows("episodes_after", after=after, limit=limit)

    async def enqueue_late(self, memory_ids: Iterable[UUID]) -> None:
        """Enqueues episodes whose id was passed before they became episodes."""
        await self._run("enqueue_late_episodes", memory_ids=list(memory_ids))

    async def late(self, model: str, before: datetime, after: UUID | None, limit: int) -> list[UUID]:
        """Returns late episodes after an id that have a vector of the model."""
        values = {"model": model, "before": before, "after": after, "limit": limit}
        return [row["memory_id"] for row in await self._rows("late_episodes", **values)]

    async def dequeue_late(self, memory_ids: Sequence[UUID]) -> None:
        """Dequeues late episodes."""
        await self._run("dequeue_late_episodes", memory_ids=list(memory_ids))

    async def changed_sources(self, limit: int) -> list[UUID]:
        """Returns sources that changed after their cluster summary was written, newest change first."""
        rows = await self._rows("changed_sources", limit=limit)
        return [row["memory_id"] for row in rows]

    async def set_search_width(self, settings: Statement) -> None:
        """Sets the search width of an approximate index until the transaction ends."""
        statement, values = settings
        await self._connection.execute(statement, values)

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
        """Returns how many episodes are too young."""
        [row] = await self._rows("count_young_episodes", before=before)
        return int(row["count"])

    async def current_summaries(self, memory_ids: Sequence[UUID]) -> list[Row]:
        """Returns the current cluster summaries of these memories."""
        return await self._rows("standing_summaries", memory_ids=list(memory_ids))

    async def episodes(self, memory_ids: Sequence[UUID], model: str, before: datetime) -> list[Row]:
        """Returns the columns that clustering needs, of memories with a vector of the model."""
        statement = shaped_query("episodes", free=query("can_be_clustered"))
        return await self._rows(statement, memory_ids=list(memory_ids), model=model, before=before)

    async def lock_consolidation(self) -> None:
        """Takes the advisory lock of the agent's consolidation until the transaction ends."""
        await self._run("lock_consolidation")

    async def lock_episodes(self, memory_ids: Sequence[UUID]) -> dict[UUID, str]:
        """Locks these memories against change; returns the digests of their contents."""
        rows = await self._rows("lock_episodes", memory_ids=list(memory_ids))
        return {row["memory_id"]: bytes(row["content_hash"]).hex() for row in rows}

    async def supersede(self, memory_id: UUID, successor: UUID, valid_to: datetime) -> int | None:
        """Supersedes a cluster summary; returns its new version, None if it is gone or superseded."""
        values = {"memory_id": memory_id, "successor": successor, "valid_to": valid_to}
        rows = await self._rows("supersede_summary", **values)
        return int(rows[0]["version"]) if rows else None

    async def summarised(self, before: datetime, limit: int) -> list[Row]:
        """Returns the episodes that a current summary covers, oldest first, with the columns that pruning
        needs."""
        statement = shaped_query("summarised_sources", free=query("can_be_clustered"))
        return await self._rows(statement, before=before, limit=limit)

    async def record_archived_sources(
        self, memory_ids: Sequence[UUID], token_id: str | None, trace_id: str | None
    ) -> None:
        """Records the links to these sources in the histories of their summaries."""
        values = {"memory_ids": list(memory_ids), "token_id": token_id, "trace_id": trace_id}
        await self._run("record_archived_sources", **values)


EMBED_PASSAGES = "embed_passages"


@dataclass(frozen=True)
class EmbeddedPassage:
    """A passage of a memory in one version. `vector` is None, and `model` the name for refused texts, if the
    model refused the text.
    """

    memory_id: UUID
    version: int
    number: int
    passage: Passage
    model: str
    vector: NDArray[np.float32] | None


class PassageRows(OwnedRows):
    """Passages of one agent's long memories. `job_needed`: this transaction must enqueue the job."""

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
        """Returns the longest pending memories, with the passages that one of these models has embedded."""
        return await self._rows("pending_passages", done=list(models), limit=limit)

    async def add(self, made: Sequence[EmbeddedPassage]) -> None:
        """Stores passages, except those of memories that changed or were deleted meanwhile."""
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
