"""Rows of language models: accounts, settings, queues, and the facts they read. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from agentcore.memory.api import Caller
from agentcore.memory.rows.owned_rows import OwnedRows, Row, RuledRows

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
