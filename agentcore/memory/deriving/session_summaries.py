"""Summarizes a session in segments, and again when its sources change.

A worker that finds a message taken or changed writes nothing and reads again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import (
    BUSY,
    SESSION_FORM,
    SUMMARISE_SESSION,
    SUMMARY_TAG,
    do_each,
    enqueue_for_period,
    failing_since,
    watch_capacity,
)
from agentcore.memory.deriving.remaking import (
    NewSummary,
    SummaryState,
    drafted,
    insert,
    keep,
    metadata_of,
    new_content,
    write,
)
from agentcore.memory.deriving.summary_providers import EXTRACTED, Compaction, SessionSummary, SummaryWriter, source_of
from agentcore.memory.intake import Draft
from agentcore.memory.models import MemoryType
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.summaries.summarizing import digest_of, shared
from agentcore.summary_rules import LLM_PROVIDERS, SummaryRules

BATCH = 20
MOST_MESSAGES = 400
# Maximum attempts while other workers process the same session.
MOST_LOOKS = 8


@dataclass(frozen=True)
class Ended:
    """Result of ending a session. `summary_pending`: a model's summary follows."""

    summary_ids: Sequence[UUID] = ()
    summary: str = ""
    summary_pending: bool = False
    promoted_count: int = 0
    ended_count: int = 0


@dataclass(frozen=True)
class _Pending:
    rules: SummaryRules
    rows: Sequence[Row]
    compactions: Sequence[Compaction]


class SessionSummarizing:
    """Summarizes the pending messages of one session.

    `only_compacted`: those in the caller's own summaries. `only_again`: those whose summary was deleted.
    `otherwise`: rules to use if none are in force.
    """

    def __init__(
        self,
        parts: MemoryParts,
        caller: Caller,
        session_id: str,
        *,
        only_compacted: bool = False,
        only_again: bool = False,
        otherwise: SummaryRules | None = None,
    ) -> None:
        self._parts = parts
        self._caller = caller
        self._session_id = session_id
        self._only_compacted = only_compacted
        self._only_again = only_again
        self._otherwise = otherwise
        self.kept: dict[UUID, str] = {}

    async def run(self) -> dict[UUID, str]:
        """Returns the texts of the summaries by id. Raises DependencyUnavailable: retry later."""
        in_vain = 0
        while in_vain < MOST_LOOKS:
            found = await self._look()
            if found is None:
                return self.kept
            try:
                await self._summarize(found)
            except (Conflict, NotFound):
                in_vain += 1
                continue
            if len(found.rows) < MOST_MESSAGES:
                return self.kept
        raise DependencyUnavailable("Others are at work on this session.", data={BUSY: True})

    async def _look(self) -> _Pending | None:
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rules = await transaction.llm.summary_rules() or self._otherwise
            if rules is None:
                return None
            found = await transaction.llm.compactions(self._session_id)
            compactions = [each for row in found if (each := _compaction(row)) is not None]
            spans = [(each.began, each.ended) for each in compactions]
            within = spans if self._only_compacted and rules.provider != "llm" else None
            rows = await transaction.llm.pending_messages(
                self._session_id, MOST_MESSAGES, only_again=self._only_again, within=within
            )
        return _Pending(rules, rows, compactions) if rows else None

    async def _summarize(self, found: _Pending) -> None:
        since = failing_since((row["failing_since"] for row in found.rows), self._parts.clock())
        writer = SummaryWriter(self._parts, self._caller.agent_id, found.rules, since)
        messages = [source_of(row) for row in found.rows]
        async for summary in writer.of_session(messages, found.compactions, only_compacted=self._only_compacted):
            await self._write(summary, found)

    async def _write(self, summary: SessionSummary, found: _Pending) -> None:
        draft = await self._draft(summary, found)
        versions = {message.memory_id: message.version for message in summary.covers}
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await transaction.llm.lock_session(self._session_id)
            if await transaction.llm.dequeue_unchanged("summary", versions) != set(versions):
                raise Conflict("Some of these messages were taken, or changed, meanwhile.")
            memory_id = await insert(transaction, self._caller, summary, draft)
            if memory_id is not None:
                await enqueue_for_period(transaction, [memory_id])
                layers = [MemoryType.SEMANTIC.value]
                await watch_capacity(transaction, self._parts.capacities, layers, self._parts.clock())
        if memory_id is not None:
            self.kept[memory_id] = summary.text

    async def _draft(self, summary: SessionSummary, found: _Pending) -> Draft | None:
        covers = summary.covers
        of = {message.memory_id for message in covers}
        rows = [row for row in found.rows if row["memory_id"] in of]
        # Links to sources end when these are archived; the provenance keeps them.
        provenance = {
            "form": SESSION_FORM,
            "sources": [str(message.memory_id) for message in covers],
            "users": sorted({row["user_id"] for row in rows if row["user_id"] is not None}),
            "of": digest_of((row["memory_id"], row["content_hash"], row["superseded_by"] is None) for row in rows),
            "max_tokens": found.rules.max_tokens,
        }
        metadata = {
            "summarised_count": len(covers),
            "from": covers[0].timestamp.isoformat(),
            "until": covers[-1].timestamp.isoformat(),
            "provider": found.rules.provider,
        }
        return await drafted(
            self._parts,
            self._caller,
            summary,
            provenance,
            metadata=metadata,
            tags=[SUMMARY_TAG],
            timestamp=covers[-1].timestamp,
            session_id=self._session_id,
            user_id=shared(row["user_id"] for row in rows),
            namespace=shared(row["namespace"] for row in rows),
        )


async def at_the_end(parts: MemoryParts, caller: Caller, session_id: str, max_tokens: int) -> Ended:
    """Summarizes the pending messages of an ended session, or enqueues a job for it.

    `max_tokens` of a summary apply if there are no rules.
    """
    otherwise = SummaryRules(trigger="session_end", max_tokens=max_tokens)
    async with parts.storage.transaction(caller.agent_id) as transaction:
        # Serializes concurrent ends of one session.
        await transaction.llm.lock_session(session_id)
        rules = await transaction.llm.summary_rules() or otherwise
        # Not pending yet: messages stored before the rules were set, or promoted just now.
        await transaction.llm.enqueue_session(session_id)
        rows = await transaction.llm.pending_messages(session_id, MOST_MESSAGES)
        later = bool(rows) and rules.provider in LLM_PROVIDERS and parts.summariser is not None
        if later:
            await transaction.jobs.enqueue(SUMMARISE_SESSION, session_id=session_id)
    if not later:
        made = await SessionSummarizing(parts, caller, session_id, otherwise=otherwise).run()
        kept = made or await _last(parts, caller, session_id)
        return Ended([*kept], "\n".join(kept.values()))
    writer = SummaryWriter(parts, caller.agent_id, rules, parts.clock())
    meanwhile = await writer.extracted([source_of(row) for row in rows])
    return Ended(summary=meanwhile.text, summary_pending=True)


async def _last(parts: MemoryParts, caller: Caller, session_id: str) -> dict[UUID, str]:
    conditions = {"session_id": session_id, "tags": [SUMMARY_TAG], "current": True}
    page = await parts.storage.page(
        caller.agent_id,
        conditions,
        order_by="timestamp",
        descending=True,
        place=None,
        after_id=None,
        limit=1,
        primary=True,
    )
    records = await parts.storage.get(caller.agent_id, [row["memory_id"] for row in page])
    return {memory_id: record.content for memory_id, record in records.items()}


def _compaction(row: Row) -> Compaction | None:
    """Returns None if someone else wrote the metadata."""
    said = row["compaction"]
    try:
        began = None if said.get("from") is None else datetime.fromisoformat(said["from"])
        found = Compaction(row["memory_id"], row["content"], began, datetime.fromisoformat(said["until"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    aware = found.ended.tzinfo is not None and (began is None or began.tzinfo is not None)
    return found if aware else None


class Refreshing:
    """Refreshes stale session summaries of one agent: one batch a run."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    async def run(self) -> bool:
        """Processes a batch; returns whether more are stale. Raises DependencyUnavailable: retry later.

        A failure that concerns one summary does not stop the others.
        """
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.summaries.stale_summaries(BATCH + 1)
        await do_each([row["memory_id"] for row in rows[:BATCH]], self._refresh)
        return len(rows) > BATCH

    async def _refresh(self, memory_id: UUID) -> None:
        for _ in range(MOST_LOOKS):
            async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
                waiting = await transaction.summaries.pending("refresh", memory_id)
                row = await transaction.summaries.summary_row(memory_id)
                sources = await transaction.summaries.sources(memory_id)
                rules = await transaction.llm.summary_rules()
            if not waiting or row is None:
                return
            since = failing_since((each["failing_since"] for each in waiting), self._parts.clock())
            state = SummaryState(row, sources, rules, "refresh", [memory_id], [memory_id], since)
            try:
                await self._make(state, row)
            except (Conflict, NotFound):
                continue
            return
        raise DependencyUnavailable("Others are at work on what this summary is of.", data={BUSY: True})

    async def _make(self, state: SummaryState, row: Row) -> None:
        if state.stays:
            await keep(self._parts, self._caller, state)
            return
        messages = [source_of(each) for each in state.sources]
        provider = EXTRACTED if state.rules is None else state.rules.provider
        summary = await new_content(self._parts, self._caller, state, provider, messages)
        provenance = {**row["provenance"], "of": state.digest}
        new = NewSummary(summary, metadata_of(row, summary), provenance, row["timestamp"])
        await write(self._parts, self._caller, state, row, new if summary.text else None)
