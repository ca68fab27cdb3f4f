"""Base classes of rows: statements get the agent, and its summary rules. Inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import Connection, query, shaped_query
from agentcore.memory.models import SUPERSEDES, Link
from agentcore.memory.params.layers import OwnRules
from agentcore.summary_rules import SummaryRules, rules_in_force

Row = Mapping[str, Any]
NamedOrComposed = str | sql.SQL | sql.Composed


class OwnedRows:
    """Rows of one agent inside one transaction. A statement is named as in `queries`, or composed of one."""

    def __init__(self, connection: Connection, agent_id: str) -> None:
        self._connection = connection
        self._agent_id = agent_id

    async def _rows(self, statement: NamedOrComposed, /, **values: Any) -> list[Row]:
        cursor = await self._connection.execute(_composed(statement), {"agent_id": self._agent_id, **values})
        return cast(list[Row], await cursor.fetchall())

    async def _run(self, statement: NamedOrComposed, /, **values: Any) -> None:
        """Executes without reading the result; errors surface at the transaction's next result."""
        await self._connection.execute(_composed(statement), {"agent_id": self._agent_id, **values})


def _composed(statement: NamedOrComposed) -> sql.SQL | sql.Composed:
    return query(statement) if isinstance(statement, str) else statement


class RuledRows(OwnedRows):
    """Rows of one agent inside one transaction. `service` holds where the agent has no rules of its own."""

    def __init__(self, connection: Connection, agent_id: str, service: SummaryRules | None) -> None:
        super().__init__(connection, agent_id)
        self._service = service

    async def wishes(self) -> Mapping[str, Any]:
        """What the agent itself wishes of models."""
        rows = await self._rows("model_wishes")
        return rows[0]["models"] if rows else {}

    async def summary_rules(self) -> SummaryRules | None:
        """How the agent's sessions are summarised; None: not in stretches."""
        return rules_in_force((await self.wishes()).get("summaries"), self._service)

    async def _ruled(self, name: str, /, **values: Any) -> list[Row]:
        statement, rules = self._with_rules(name)
        return await self._rows(statement, **rules, **values)

    def _with_rules(self, name: str, **shape: Any) -> tuple[NamedOrComposed, dict[str, Any]]:
        rules = None if self._service is None else Jsonb(self._service.model_dump(mode="json"))
        return shaped_query(name, rules=query("summary_rules"), **shape), {"service_rules": rules}


@dataclass(frozen=True)
class Change:
    """One entry of the history: which operation made which version, by whom, and what differs.

    `before` and `after` hold the fields that changed, and `links` those that went or came. Without a
    version what the memory holds stayed as it was.
    """

    memory_id: UUID
    operation: str
    version: int | None
    token_id: str | None
    trace_id: str | None
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class HistoryRows(OwnedRows):
    """The histories of one agent's memories inside one transaction."""

    async def append(self, change: Change) -> None:
        """Add one change; it comes and goes with the transaction."""
        await self.append_all([change])

    async def append_all(self, changes: Sequence[Change]) -> None:
        """Add changes in this order, in one statement."""
        await self._run(
            "append_history",
            memory_ids=[each.memory_id for each in changes],
            operations=[each.operation for each in changes],
            versions=[each.version for each in changes],
            token_ids=[each.token_id for each in changes],
            trace_ids=[each.trace_id for each in changes],
            # Not arrays: psycopg escapes each quotation mark in their elements by itself, on the event loop.
            befores=Jsonb([each.before for each in changes]),
            afters=Jsonb([each.after for each in changes]),
        )

    async def since(self, memory_id: UUID, version: int) -> list[Row]:
        """What was changed after this version, the latest first."""
        return await self._rows("changes_since", memory_id=memory_id, version=version)


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


class LifeRows(OwnedRows):
    """The lives of one agent's memories inside one transaction."""

    async def renew(self, memory_id: UUID) -> Row | None:
        """Let the memory live its time from now on; its version and its task, None where there is none."""
        rows = await self._rows("renew_memory", memory_id=memory_id)
        return rows[0] if rows else None

    async def complete_task(self, task_id: str, token_id: str | None, trace_id: str | None) -> None:
        """Mark a task as ended and expire its working-layer rows, which goes into their histories."""
        await self._run("complete_task", task_id=task_id)
        await self._run("expire_working_rows", task_id=task_id, token_id=token_id, trace_id=trace_id)

    async def end_session(self, session_id: str, **rules: Any) -> list[Row]:
        """Let a session's working memories last or end by these rules; a row for each."""
        return await self._rows("end_session_rows", session_id=session_id, **rules)

    async def count_accesses(
        self,
        counts: Mapping[UUID, int],
        moments: Mapping[UUID, datetime],
        extend_after_uses: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Add accesses and extend what they keep alive, in id order so that two flushes never deadlock."""
        ids = sorted(counts)
        await self._run(
            "count_accesses",
            memory_ids=ids,
            counts=[counts[each] for each in ids],
            moments=[moments[each] for each in ids],
        )
        await self._run(
            "extend_used",
            memory_ids=ids,
            moments=[moments[each] for each in ids],
            extend_after_uses=Jsonb(dict(extend_after_uses)),
        )


class RuleRows(OwnedRows):
    """The rules of one agent inside one transaction."""

    async def hold(self) -> OwnRules:
        """The agent's own rules, which nobody else changes before the end."""
        return cast(OwnRules, (await self._rows("hold_agent_rules"))[0]["layers"])

    async def set(self, rules: Mapping[str, Mapping[str, int]]) -> None:
        """These from now on."""
        await self._run("set_agent_rules", layers=Jsonb(rules))


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
