"""Background jobs of derived memories: facts, summaries, relations, passage embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from agentcore.database import Database, Row, query
from agentcore.maintenance.job_queue import Work, job
from agentcore.memory.consequences.pending_work import (
    AFTER_COMPACTION,
    AFTER_INACTIVITY,
    EXTRACT_FACTS,
    QUEUE_PERIODS,
    REFRESH_SUMMARIES,
    RELATE_MESSAGES,
    SUMMARISE_AGAIN,
    SUMMARISE_PERIODS,
    SUMMARISE_SESSION,
    do_each,
)
from agentcore.memory.deriving.extracting import Extracting
from agentcore.memory.deriving.period_summaries import PeriodSummarizing
from agentcore.memory.deriving.relating import Relating
from agentcore.memory.deriving.session_summaries import Refreshing, SessionSummarizing
from agentcore.memory.deriving.summary_providers import ModelFailed
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import EMBED_PASSAGES
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.writing.document_vectors import EmbeddingPassages
from agentcore.summary_rules import rules_in_force

# Retention of daily usage.
KEPT_DAYS = 90
# Memories stay pending this long after their summary rules were removed: the rules may be restored.
RULES_MISSED_FOR = timedelta(days=1)
# Limits of one job, so that other jobs get their turn.
SESSIONS_A_JOB, MEMORIES_A_PAGE, BATCHES_A_JOB = 20, 2_000, 20
_JOBS = {
    "facts": EXTRACT_FACTS,
    "summary": SUMMARISE_AGAIN,
    "refresh": REFRESH_SUMMARIES,
    "period": SUMMARISE_PERIODS,
    "relations": RELATE_MESSAGES,
    "passages": EMBED_PASSAGES,
}


@job
async def extract_facts(work: Work) -> None:
    """Extracts facts from a batch of the agent's memories; enqueues a job for the rest."""
    if await Extracting(work.parts, work.caller).run():
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(EXTRACT_FACTS)


@job
async def summarise_session(work: Work, session_id: str, after: str = "") -> None:
    """Summarizes the pending messages of a session; after inactivity only if no message has arrived since."""
    if after == AFTER_INACTIVITY and not await _is_quiet(work, session_id):
        return
    only_compacted = after == AFTER_COMPACTION
    await _summarise(work, session_id, only_compacted=only_compacted)


async def _summarise(work: Work, session_id: str, *, only_compacted: bool = False, only_again: bool = False) -> None:
    summarizing = SessionSummarizing(
        work.parts, work.caller, session_id, only_compacted=only_compacted, only_again=only_again
    )
    try:
        await summarizing.run()
    except ModelFailed as failure:
        async with work.transaction() as transaction:
            await transaction.llm.note_failure("summary", failure.memory_ids)
        raise


@job
async def summarise_again(work: Work) -> None:
    """Summarizes messages whose summary was deleted; enqueues a job for the rest."""
    async with work.transaction() as transaction:
        has_rules = await transaction.llm.summary_rules() is not None
        waiting = await transaction.summaries.pending_again() if has_rules else []
    session_ids = [row["session_id"] for row in waiting if row["work"] == "summary"]
    await do_each(session_ids[:SESSIONS_A_JOB], partial(_summarise, work, only_again=True))
    if len(session_ids) > SESSIONS_A_JOB:
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(SUMMARISE_AGAIN)


@job
async def refresh_summaries(work: Work) -> None:
    """Rewrites a batch of the agent's stale summaries; enqueues a job for the rest."""
    if await Refreshing(work.parts, work.caller).run():
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(REFRESH_SUMMARIES)


@job
async def summarise_periods(work: Work) -> None:
    """Summarizes the periods of a batch of session summaries; enqueues a job for the rest."""
    if await PeriodSummarizing(work.parts, work.caller).run():
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(SUMMARISE_PERIODS)


@job
async def queue_periods(work: Work, after: str = "") -> None:
    """Enqueues a page of session summaries for their periods; enqueues a job for the next page."""
    async with work.transaction() as transaction:
        behind = UUID(after) if after else None
        queued, last_id = await transaction.summaries.enqueue_page_for_period(behind, MEMORIES_A_PAGE)
        if queued:
            await transaction.jobs.enqueue(SUMMARISE_PERIODS)
        if last_id is not None:
            await transaction.jobs.enqueue(QUEUE_PERIODS, after=last_id)


@job
async def relate_messages(work: Work) -> None:
    """Relates batches of the agent's messages to earlier ones; enqueues a job for the rest."""
    for _ in range(BATCHES_A_JOB):
        if not await Relating(work.parts, work.caller).run():
            return
    async with work.transaction() as transaction:
        await transaction.jobs.enqueue(RELATE_MESSAGES)


@job
async def embed_passages(work: Work) -> None:
    """Embeds a batch of passages of the agent's long memories; enqueues a job for the rest."""
    if await EmbeddingPassages(work.parts, work.caller).run():
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(EMBED_PASSAGES)


async def _is_quiet(work: Work, session_id: str) -> bool:
    """Returns whether the session was inactive for long enough; if not, enqueues the job for that time."""
    async with work.transaction() as transaction:
        rules = await transaction.llm.summary_rules()
        waiting = await transaction.llm.waiting_of([session_id])
        if rules is None or not waiting:
            return False
        quiet_at = waiting[0]["latest_at"] + timedelta(seconds=rules.inactivity_seconds)
        if quiet_at <= work.parts.clock():
            return True
        await transaction.jobs.enqueue(
            SUMMARISE_SESSION, session_id=session_id, after=AFTER_INACTIVITY, not_before=quiet_at
        )
    return False


async def enqueue_llm_work(database: Database, parts: MemoryParts) -> int:
    """Enqueues jobs for pending work that is due, of all agents; returns the number of entries.

    A store enqueues its own work. It misses concurrent stores to one session, rules changed later, and jobs
    that were cancelled or failed for good. Memories pending for a summary that no rules ask for are dequeued;
    the end of their session summarizes them in any case.
    """
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("llm_work_of_agents"))).fetchall()
    count = 0
    for agent_id, waiting in groupby(rows, key=itemgetter("agent_id")):
        of_agent = [*waiting]
        due = [row for row in of_agent if _is_due(row, parts)]
        missed = _misses_rules(of_agent, parts)
        if due or missed:
            async with parts.storage.transaction(agent_id) as transaction:
                if missed and await transaction.llm.summary_rules() is None:
                    await transaction.llm.dequeue_session_messages()
                for row in due:
                    await _enqueue(transaction, row)
        count += len(due)
    return count


def _misses_rules(rows: Sequence[Row], parts: MemoryParts) -> bool:
    times = [row["latest_at"] for row in rows if row["work"] == "summary"]
    if not times or rules_in_force(rows[0]["summaries"], parts.storage.service_rules) is not None:
        return False
    return bool(parts.clock() - max(times) >= RULES_MISSED_FOR)


async def _enqueue(transaction: MemoryTransaction, row: Row) -> None:
    if row["work"] == "summary" and not row["again"]:
        await transaction.jobs.enqueue(SUMMARISE_SESSION, session_id=row["session_id"])
    else:
        await transaction.jobs.enqueue(_JOBS[row["work"]])


def _is_due(row: Row, parts: MemoryParts) -> bool:
    if row["work"] == "facts":
        return parts.extractor is not None
    if row["work"] in ("refresh", "period"):
        return True
    if row["work"] == "relations":
        return parts.relations is not None
    if row["work"] == "passages":
        return parts.embedder is not None
    rules = rules_in_force(row["summaries"], parts.storage.service_rules)
    if rules is None:
        return False
    if row["again"]:
        return True
    if rules.trigger == "inactivity":
        return bool(row["latest_at"] + timedelta(seconds=rules.inactivity_seconds) <= parts.clock())
    return rules.is_due(messages=row["messages"], user_turns=row["user_turns"])


async def sweep_llm_usage(database: Database) -> int:
    """Deletes daily usage older than KEPT_DAYS; returns how many rows."""
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("sweep_llm_usage"), {"days": KEPT_DAYS})).fetchall()
    return len(rows)
