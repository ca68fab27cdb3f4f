"""Rows of memories, by table family, of one agent in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import Connection, query, set_for_transaction, shaped_query
from agentcore.memory.columns import RuleColumns
from agentcore.memory.models import SUPERSEDES, JsonObject, Link
from agentcore.memory.params.agent_settings import OwnRules
from agentcore.summary_rules import SummaryRules, rules_in_force

Row = Mapping[str, Any]
NamedOrComposed = str | sql.SQL | sql.Composed


class OwnedRows:
    """Executes statements for one agent: named ones, which `queries` describe, or composed SQL."""

    def __init__(self, connection: Connection, agent_id: str) -> None:
        self._connection = connection
        self._agent_id = agent_id

    async def _rows(self, statement: NamedOrComposed, /, **values: Any) -> list[Row]:
        cursor = await self._connection.execute(_composed(statement), {"agent_id": self._agent_id, **values})
        return cast(list[Row], await cursor.fetchall())

    async def _ids(self, statement: NamedOrComposed, /, **values: Any) -> list[UUID]:
        return [row["memory_id"] for row in await self._rows(statement, **values)]

    async def _run(self, statement: NamedOrComposed, /, **values: Any) -> None:
        """Executes without reading the result; errors surface at the transaction's next result."""
        await self._connection.execute(_composed(statement), {"agent_id": self._agent_id, **values})

    async def set_for_transaction(self, settings: Mapping[str, str]) -> None:
        """Sets settings of PostgreSQL until the transaction ends."""
        await self._connection.execute(*set_for_transaction(settings))


def _composed(statement: NamedOrComposed) -> sql.SQL | sql.Composed:
    return query(statement) if isinstance(statement, str) else statement


class RuledRows(OwnedRows):
    """Rows that depend on summary rules; `service` applies to agents without rules of their own."""

    def __init__(self, connection: Connection, agent_id: str, service: SummaryRules | None) -> None:
        super().__init__(connection, agent_id)
        self._service = service

    async def own_settings(self) -> Mapping[str, Any]:
        rows = await self._rows("model_settings")
        return rows[0]["models"] if rows else {}

    async def summary_rules(self) -> SummaryRules | None:
        """Returns the summary rules in force, None if session summaries are off."""
        return rules_in_force((await self.own_settings()).get("summaries"), self._service)

    async def _ruled(self, name: str, /, **values: Any) -> list[Row]:
        statement, rules = self._with_rules(name)
        return await self._rows(statement, **rules, **values)

    def _with_rules(self, name: str, **shape: Any) -> tuple[NamedOrComposed, dict[str, Any]]:
        rules = None if self._service is None else Jsonb(self._service.model_dump(mode="json"))
        return shaped_query(name, rules=query("summary_rules"), **shape), {"service_rules": rules}


@dataclass(frozen=True)
class Change:
    """An entry of the history: the fields that changed, and under `links` those removed or added.

    `version` is None if the memory itself did not change.
    """

    memory_id: UUID
    operation: str
    version: int | None
    token_id: str | None
    trace_id: str | None
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def succession(successor: UUID | None, valid_to: datetime | None) -> JsonObject:
    return {"superseded_by": successor and str(successor), "valid_to": valid_to and valid_to.isoformat()}


class HistoryRows(OwnedRows):
    async def append(self, change: Change) -> None:
        await self.append_all([change])

    async def append_all(self, changes: Sequence[Change]) -> None:
        await self._run(
            "append_history",
            memory_ids=[each.memory_id for each in changes],
            operations=[each.operation for each in changes],
            versions=[each.version for each in changes],
            token_ids=[each.token_id for each in changes],
            trace_ids=[each.trace_id for each in changes],
            # JSON, not arrays: psycopg escapes array elements one by one, on the event loop.
            befores=Jsonb([each.before for each in changes]),
            afters=Jsonb([each.after for each in changes]),
        )

    async def append_rows(
        self, rows: Sequence[Row], operation: str, token_id: str | None = None, trace_id: str | None = None
    ) -> None:
        """Appends an entry for each row; in a statement of its own, since Citus permits no INSERT inside WITH."""
        if rows:
            await self.append_all(
                [
                    Change(
                        row["memory_id"], operation, row.get("version"), token_id, trace_id, row["before"], row["after"]
                    )
                    for row in rows
                ]
            )

    async def since(self, memory_id: UUID, version: int) -> list[Row]:
        return await self._rows("changes_since", memory_id=memory_id, version=version)


class LinkRows(OwnedRows):
    """Links between memories. A row has source_id, target_id, relation, weight."""

    async def add(self, source_id: UUID, links: Iterable[Link]) -> None:
        """An equal link gets the new weight."""
        await self.add_all({source_id: links})

    async def add_all(self, links: Mapping[UUID, Iterable[Link]]) -> None:
        await self.put(
            [{"source_id": source_id, **link.model_dump()} for source_id, ties in links.items() for link in ties]
        )

    async def put(self, ties: Sequence[Row]) -> None:
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
        await self._run("delete_tie", **tie)

    async def remove(self, memory_id: UUID, others: Sequence[UUID]) -> None:
        await self._run("delete_links", memory_id=memory_id, others=list(others))

    async def between(self, memory_id: UUID, others: Sequence[UUID]) -> list[Row]:
        return await self._rows("ties_of", memory_id=memory_id, others=list(others))


@dataclass(slots=True, kw_only=True)
class PendingRelation(RuleColumns):
    """Without a vector if the model refused the text."""

    memory_id: UUID
    version: int
    memory_type: str
    provenance: JsonObject
    parent_memory_id: UUID | None
    embedding: HalfVector | None


class RelationRows(OwnedRows):
    """Messages pending to be compared with others, and the `probably_changes` links found."""

    async def enqueue(self, memory_ids: Sequence[UUID]) -> None:
        """Enqueues memories; those already pending keep their position."""
        await self._run("enqueue_relations", memory_ids=list(memory_ids))

    async def pending(self, limit: int, model: str) -> list[PendingRelation]:
        rows = await self._rows("pending_relations", limit=limit, model=model)
        return [PendingRelation(**row) for row in rows]

    async def still_pending(self, memory_ids: Sequence[UUID]) -> set[UUID]:
        return set(await self._ids("still_pending_relations", memory_ids=list(memory_ids)))

    async def ends(self, memory_ids: Sequence[UUID]) -> set[UUID]:
        """Returns both ends of the `probably_changes` links of these memories."""
        rows = await self._rows("ends_of_changes", memory_ids=list(memory_ids))
        return {row[end] for row in rows for end in ("source_id", "target_id")}

    async def forget(self, memory_ids: Sequence[UUID]) -> None:
        """Deletes the `probably_changes` links of these memories, in both directions."""
        await self._run("forget_changes", memory_ids=list(memory_ids))


# The parameters of end_session_rows, and the columns of ending_session_rows.
_ENDING = {
    "memory_ids": "memory_id",
    "promoted": "promoted",
    "lasting": "lasts",
    "types": "memory_type",
    "ttls": "ttl_seconds",
    "expiries": "expires_at",
    "next_types": "next_type",
    "next_ttls": "next_ttl_seconds",
    "next_expiries": "next_expires_at",
}


class LifeRows(OwnedRows):
    def __init__(self, connection: Connection, agent_id: str) -> None:
        super().__init__(connection, agent_id)
        self._history = HistoryRows(connection, agent_id)

    async def renew(self, memory_id: UUID) -> Row | None:
        """Restarts a memory's time to live; returns its version and task, None if there is no such memory."""
        rows = await self._rows("renew_memory", memory_id=memory_id)
        return rows[0] if rows else None

    async def complete_task(self, task_id: str, token_id: str | None, trace_id: str | None) -> None:
        await self._run("complete_task", task_id=task_id)
        rows = await self._rows("expire_working_rows", task_id=task_id)
        await self._history.append_rows(rows, "complete_task", token_id, trace_id)

    async def end_session(
        self, session_id: str, *, token_id: str | None, trace_id: str | None, **rules: Any
    ) -> list[Row]:
        """Promotes or expires a session's working memories by these rules; returns a row for each."""
        ending = await self._rows("ending_session_rows", session_id=session_id, **rules)
        if not ending:
            return []
        rows = await self._rows(
            "end_session_rows", **{plural: [row[column] for row in ending] for plural, column in _ENDING.items()}
        )
        for promoted, operation in ((True, "promote"), (False, "end_session")):
            chosen = [row for row in rows if row["promoted"] == promoted]
            await self._history.append_rows(chosen, operation, token_id, trace_id)
        return rows

    async def count_accesses(
        self,
        counts: Mapping[UUID, int],
        moments: Mapping[UUID, datetime],
        extend_after_uses: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Adds accesses and extends expiry, in id order so that two flushes cannot deadlock."""
        ids = sorted(counts)
        await self._run(
            "count_accesses",
            memory_ids=ids,
            counts=[counts[each] for each in ids],
            moments=[moments[each] for each in ids],
        )
        due = await self._rows(
            "lock_used",
            memory_ids=ids,
            moments=[moments[each] for each in ids],
            extend_after_uses=Jsonb(dict(extend_after_uses)),
        )
        if not due:
            return
        extended = [row["memory_id"] for row in due]
        await self._run("extend_expiry", memory_ids=extended, moments=[row["extended_to"] for row in due])
        await self._run("restart_use_count", memory_ids=extended)
        await self._history.append_rows(due, "extend")


class RuleRows(OwnedRows):
    async def hold(self) -> OwnRules:
        return cast(OwnRules, (await self._rows("lock_agent_rules"))[0]["layers"])

    async def set(self, rules: Mapping[str, Mapping[str, int]]) -> None:
        await self._run("set_agent_rules", layers=Jsonb(rules))


# Maximum steps back along a chain of supersessions, and maximum memories read from it.
LINE_STEPS, IN_A_LINE = 8, 32


@dataclass(frozen=True)
class Lookup:
    """Subjects by key."""

    subject_keys: Sequence[int]
    max_chars: int = 1_000


@dataclass(slots=True, kw_only=True)
class Superseded(RuleColumns):
    memory_id: UUID
    superseded_by: UUID | None
    valid_to: datetime | None


class SubjectRows(OwnedRows):
    """Subjects that memories state something about, and supersession."""

    async def learn(self, stated: Mapping[UUID, Sequence[int]]) -> None:
        rows = [(key, memory_id) for memory_id, keys in stated.items() for key in keys]
        if rows:
            await self._run(
                "insert_subjects",
                subject_keys=[key for key, _ in rows],
                memory_ids=[memory_id for _, memory_id in rows],
            )

    async def learn_anew(self, memory_id: UUID, keys: Sequence[int]) -> None:
        await self.forget([memory_id])
        await self.learn({memory_id: keys})

    async def forget(self, memory_ids: Sequence[UUID]) -> None:
        """Deletes the subject keys of these memories: nothing supersedes them any more."""
        await self._run("forget_subjects", memory_ids=list(memory_ids))

    async def stated_before(self, lookup: Lookup, *, limit: int) -> list[Row]:
        return await self._rows(
            "stated_before", subject_keys=list(lookup.subject_keys), max_chars=lookup.max_chars, limit=limit
        )

    async def stated_in_line(self, memory_ids: Sequence[UUID], max_chars: int) -> list[Row]:
        values = {"memory_ids": list(memory_ids), "max_chars": max_chars}
        return await self._rows("stated_in_line", **values, most_steps=LINE_STEPS, limit=IN_A_LINE)

    async def supersede(self, taken: Sequence[Row]) -> list[Row]:
        """Supersedes memories; returns a row for each one done.

        Rows of `taken`: `memory_id`, `version`, `superseded_by` as read, `successor`, the required `successor_version`
        (None: any), `moment` of the end of validity.
        """
        held = await self._rows(
            "lock_supersessions",
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

    async def superseded_by(self, memory_ids: Sequence[UUID]) -> list[Superseded]:
        rows = await self._rows("superseded_by", memory_ids=list(memory_ids))
        return [Superseded(**row) for row in rows]

    async def succeed(self, memory_id: UUID, *, superseded_by: UUID | None, valid_to: datetime | None) -> int:
        """Sets or clears the successor of a locked memory; returns its new version."""
        values = {"memory_id": memory_id, "superseded_by": superseded_by, "valid_to": valid_to}
        return int((await self._rows("succeed_memory", **values))[0]["version"])

    async def reinstate(self, memory_id: UUID, keys: Sequence[int]) -> None:
        await self._run("reinstate_memory", memory_id=memory_id)
        await self._run("delete_superseding_links", memory_id=memory_id, relation=SUPERSEDES)
        await self.learn_anew(memory_id, keys)


def _column(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows]
