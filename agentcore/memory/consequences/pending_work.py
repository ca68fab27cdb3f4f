"""Enqueues the work that a write causes: summaries, facts, comparisons, pruning. In the transaction of the
write.

The rows of the queue decide what is pending; a job only starts the work.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from agentcore.errors import AgentCoreError, DependencyUnavailable
from agentcore.memory.columns import MemoryColumns, NewColumns, StoredMemory
from agentcore.memory.language.rejection import rejection
from agentcore.memory.llm_limits import is_budget_spent
from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import Pending, UnreadMemory
from agentcore.memory.rows.memory_rows import PendingRelation, Superseded
from agentcore.memory.scoring import is_assistant
from agentcore.memory.storage import MemoryTransaction, NewMemory, job_lock
from agentcore.summary_rules import SummaryRules

REFRESH_SUMMARIES, SUMMARISE_PERIODS = "refresh_summaries", "summarise_periods"
# Enqueues session summaries that are older than the agent's rules for period summaries.
QUEUE_PERIODS = "queue_periods"
# In this order everywhere: their locks are kept until the transaction ends.
_JOBS = (("refresh", REFRESH_SUMMARIES), ("period", SUMMARISE_PERIODS))


async def mark_summaries_stale(transaction: MemoryTransaction, memory_ids: Iterable[UUID]) -> None:
    """Marks the summaries of changed memories stale. Call it last in a transaction."""
    changed = sorted({*memory_ids})
    if changed:
        await enqueue_summaries(transaction, await transaction.summaries.mark_stale(changed))


async def mark_restored_stale(transaction: MemoryTransaction, memory_ids: Sequence[UUID]) -> None:
    """Marks restored summaries, and those of restored memories, stale. Call it last in a transaction."""
    if memory_ids:
        summaries = transaction.summaries
        works = await summaries.mark_stale(memory_ids) | await summaries.mark_restored_stale(memory_ids)
        await enqueue_summaries(transaction, works | await summaries.enqueue_for_period(memory_ids))


async def enqueue_for_period(transaction: MemoryTransaction, memory_ids: Iterable[UUID]) -> None:
    """Enqueues new session summaries for the summary of their period. Call it last in a transaction."""
    await enqueue_summaries(transaction, await transaction.summaries.enqueue_for_period(memory_ids))


async def enqueue_summaries(transaction: MemoryTransaction, works: Iterable[str]) -> None:
    """Enqueues the jobs for these kinds of work. Call it last in a transaction."""
    come = {*works}
    for work, name in _JOBS:
        if work in come:
            await transaction.jobs.enqueue(name)


PRUNE_LAYER = "prune_layer"
# Pruning reads the whole layer: the larger it is, the longer the wait before the next run.
MEMORIES_A_SECOND = 1_000
LONGEST_WAIT_SECONDS = 300.0


async def watch_capacity(
    transaction: MemoryTransaction, capacities: Mapping[str, int], layers: Iterable[str], now: datetime
) -> None:
    """Enqueues pruning of those of these layers that are over capacity. Call it last in a transaction.

    `capacities`: the service's defaults by layer; an agent's own take precedence.
    """
    watched = {layer: capacities.get(layer, 0) for layer in sorted(set(layers))}
    if not watched:
        return
    locks = {layer: job_lock(PRUNE_LAYER, layer=layer) for layer in watched}
    for layer, capacity in await transaction.jobs.over_capacity(watched, locks):
        wait_seconds = min(LONGEST_WAIT_SECONDS, capacity / MEMORIES_A_SECOND)
        await transaction.jobs.enqueue(PRUNE_LAYER, layer=layer, not_before=now + timedelta(seconds=wait_seconds))


RELATE_MESSAGES = "relate_messages"
# A longer text counts as a document, not as a message.
LONGEST_CHARS = 4_000
_TYPES = frozenset({MemoryType.EPISODIC.value, MemoryType.SEMANTIC.value})
_SAID = frozenset({"content", "interaction"})


async def queue_relations(transaction: MemoryTransaction, parts: MemoryParts, memories: Sequence[NewMemory]) -> None:
    """Enqueues new messages for comparison with earlier ones. Call it last in a transaction."""
    pending = [each.memory_id for each in memories if is_message(each.columns)]
    if parts.relations is not None and pending:
        await transaction.relations.enqueue(pending)
        await transaction.jobs.enqueue(RELATE_MESSAGES)


def is_message(memory: NewColumns | PendingRelation | MemoryRecord) -> bool:
    """Whether a memory is a message: not derived, not an assistant's, not a document."""
    said = memory.parent_memory_id is None and memory.provenance.get("form") in _SAID
    lasts = memory.memory_type in _TYPES and not memory.flagged
    short = len(memory.content) <= LONGEST_CHARS
    return said and lasts and short and not is_assistant(memory.speaker)


EXTRACT_FACTS, SUMMARISE_SESSION = "extract_facts", "summarise_session"
SUMMARISE_AGAIN = "summarise_again"
# The tag of session summaries; the metadata key of a caller's own summary of a part of a session.
SUMMARY_TAG, COMPACTION = "session_summary", "compaction"
# `form` in the provenance of session and period summaries; the tag of the latter.
SESSION_FORM, PERIOD_FORM = "session", "period"
PERIOD_TAG = "period_summary"
AFTER_INACTIVITY, AFTER_COMPACTION = "inactivity", "compaction"
# Key in the data of a failure: another worker is processing the same.
BUSY = "busy"
# A failing model is retried for this long; then the fallback without a model is used.
PATIENCE = timedelta(minutes=30)
# Shorter texts are read for facts only if they contain a first person, a name, a number or another script.
TELLING_CHARS, LEAST_BYTES = 30, 10
_TELLING = re.compile(r"\d|\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b|(?<=[^.!?\s] )[A-Z]|[^\W\d_a-zA-Z]")
_USERS = frozenset({"user", "human"})

ItemT = TypeVar("ItemT")


def is_of_one(failure: DependencyUnavailable) -> bool:
    """Whether a failure concerns one item only: its text was refused, or another worker has it."""
    return any(failure.data.get(name) for name in ("refused", "unreadable", BUSY))


async def do_each(items: Iterable[ItemT], do: Callable[[ItemT], Awaitable[None]]) -> None:
    """Processes each item; a failure that concerns one item does not stop the others.

    Raises the first DependencyUnavailable, after the others, or at once if the others would fail, too.
    """
    failed: list[DependencyUnavailable] = []
    for item in items:
        try:
            await do(item)
        except DependencyUnavailable as failure:
            failed.append(failure)
            if not is_of_one(failure):
                break
    if failed:
        raise failed[0]


def failing_since(moments: Iterable[datetime | None], now: datetime) -> datetime:
    """Returns the first of these times at which a request failed, `now` if none did."""
    return min((since for since in moments if since is not None), default=now)


def gives_up(failure: AgentCoreError, waiting_since: datetime, now: datetime) -> bool:
    """Whether to fall back to extraction: text refused, budget spent, or failing for longer than PATIENCE.

    `waiting_since` is the time of the first failure.
    """
    return is_budget_spent(failure) or bool(failure.data.get("refused")) or now - waiting_since >= PATIENCE


async def enqueue_for_models(transaction: MemoryTransaction, parts: MemoryParts, memories: Sequence[NewMemory]) -> None:
    """Enqueues new memories for facts and session summaries, by their agent's settings. Call it last."""
    compacted = {
        memory.memory_id: session_id
        for memory in memories
        if is_compaction(memory.columns) and (session_id := memory.columns.session_id) is not None
    }
    if compacted:
        await enqueue_for_period(transaction, compacted)
    waiting = [each for memory in memories for each in _waiting(memory, reads=parts.extractor is not None)]
    if waiting:
        await _queue(transaction, parts, waiting)
    if compacted:
        await _enqueue_compacted(transaction, {*compacted.values()})


async def _queue(transaction: MemoryTransaction, parts: MemoryParts, waiting: Sequence[Pending]) -> None:
    extract_facts = parts.meter is not None and parts.meter.options.extract_facts
    queued = await transaction.llm.enqueue(waiting, extract_facts=extract_facts)
    if any(row["work"] == "facts" for row in queued):
        await transaction.jobs.enqueue(EXTRACT_FACTS)
    sessions = {row["session_id"]: row["summaries"] for row in queued if row["work"] == "summary"}
    await _enqueue_due(transaction, parts, sessions)


async def after_deletion(
    transaction: MemoryTransaction, parts: MemoryParts, changed: Sequence[Superseded], also: Sequence[UUID] = ()
) -> None:
    """Marks summaries stale and enqueues sources that lost theirs, after a deletion. Call it last in a
    transaction.

    `changed`: memories that the deletion changed; `also`: ids of other changed memories.
    """
    await mark_summaries_stale(transaction, [*also, *(each.memory_id for each in changed)])
    works = {row["work"] for row in await transaction.summaries.pending_again()}
    if "period" in works:
        await transaction.jobs.enqueue(SUMMARISE_PERIODS)
    if "summary" in works:
        await transaction.jobs.enqueue(SUMMARISE_AGAIN)
    holding = [each.memory_id for each in changed if each.superseded_by is None]
    await enqueue_unread(transaction, parts, holding)


async def enqueue_reworded(transaction: MemoryTransaction, parts: MemoryParts, memory: StoredMemory) -> None:
    """Enqueues a reworded memory for fact extraction, if its agent uses it."""
    if parts.extractor is not None and _may_hold_facts(memory):
        await _queue_for_facts(transaction, parts, [memory.memory_id])


async def enqueue_unread(transaction: MemoryTransaction, parts: MemoryParts, memory_ids: Sequence[UUID]) -> None:
    """Enqueues memories that are current again and were never read for facts. Call it last."""
    if parts.extractor is None or not memory_ids:
        return
    unread = await transaction.facts.unread(memory_ids)
    waiting = [each.memory_id for each in unread if _may_hold_facts(each)]
    if waiting:
        await _queue_for_facts(transaction, parts, waiting)


async def _queue_for_facts(transaction: MemoryTransaction, parts: MemoryParts, memory_ids: Sequence[UUID]) -> None:
    extract_facts = parts.meter is not None and parts.meter.options.extract_facts
    waiting = [Pending(memory_id, "facts") for memory_id in memory_ids]
    if await transaction.llm.enqueue(waiting, extract_facts=extract_facts):
        await transaction.jobs.enqueue(EXTRACT_FACTS)


async def _enqueue_due(
    transaction: MemoryTransaction, parts: MemoryParts, sessions: Mapping[str, Mapping[str, Any]]
) -> None:
    ruled = {session_id: SummaryRules(**given) for session_id, given in sorted(sessions.items())}
    counted = [session_id for session_id, rules in ruled.items() if rules.is_count_based]
    for row in await transaction.llm.count_pending(counted) if counted else []:
        if ruled[row["session_id"]].is_due(messages=row["messages"], user_turns=row["user_turns"]):
            await transaction.jobs.enqueue(SUMMARISE_SESSION, session_id=row["session_id"])
    for session_id, rules in ruled.items():
        if rules.trigger == "inactivity":
            quiet_at = parts.clock() + timedelta(seconds=rules.inactivity_seconds)
            await transaction.jobs.enqueue(
                SUMMARISE_SESSION, session_id=session_id, after=AFTER_INACTIVITY, not_before=quiet_at
            )


async def _enqueue_compacted(transaction: MemoryTransaction, session_ids: set[str]) -> None:
    rules = await transaction.llm.summary_rules()
    if rules is not None and rules.trigger == "compaction":
        for session_id in sorted(session_ids):
            await transaction.jobs.enqueue(SUMMARISE_SESSION, session_id=session_id, after=AFTER_COMPACTION)


def is_compaction(memory: MemoryColumns | UnreadMemory) -> bool:
    """Whether the memory is its caller's own summary of a part of its session."""
    of = memory.metadata.get(COMPACTION)
    return memory.session_id is not None and isinstance(of, dict) and "until" in of


def _waiting(memory: NewMemory, *, reads: bool) -> list[Pending]:
    columns, found = memory.columns, []
    if columns.memory_type != MemoryType.EPISODIC.value or is_compaction(columns) or columns.flagged:
        return []
    if reads and _may_hold_facts(columns):
        found.append(Pending(memory.memory_id, "facts"))
    if columns.session_id is not None:
        found.append(Pending(memory.memory_id, "summary", columns.session_id, _is_user_turn(columns)))
    return found


def _may_hold_facts(memory: MemoryColumns | UnreadMemory) -> bool:
    if memory.flagged:
        return False
    episode = memory.memory_type == MemoryType.EPISODIC.value and not is_compaction(memory)
    return episode and memory.parent_memory_id is None and is_worth_reading(memory.content)


def is_worth_reading(content: str) -> bool:
    """Whether a text may contain facts: long, or with a name or number, and no greeting or refusal."""
    text = content.strip()
    telling = len(text.encode()) >= LEAST_BYTES and _TELLING.search(text) is not None
    return (telling or len(text) >= TELLING_CHARS) and rejection(content) is None


def _is_user_turn(columns: NewColumns) -> bool:
    if columns.provenance.get("form") == "interaction":
        return True
    role = columns.metadata.get("role", columns.speaker or "user")
    return str(role).casefold() in _USERS
