"""What language models do in the background: facts of new memories, summaries of sessions."""

from __future__ import annotations

from datetime import timedelta

from agentcore.database import Database, Row, query
from agentcore.errors import DependencyUnavailable
from agentcore.maintenance.jobs import Work, job
from agentcore.memory.extracting import Extracting
from agentcore.memory.llm_params import SummaryRules
from agentcore.memory.llm_work import AFTER_COMPACTION, AFTER_INACTIVITY, EXTRACT_FACTS, SUMMARISE_SESSION
from agentcore.memory.parts import MemoryParts
from agentcore.memory.session_summaries import SessionSummarizing, rules_of

# Accounts of days so long gone are of no use to anybody.
KEPT_DAYS = 90


@job
async def extract_facts(work: Work) -> None:
    """Read a batch of the agent's memories for facts; the rest is left to another job."""
    if await Extracting(work.parts, work.caller).run():
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(EXTRACT_FACTS)


@job
async def summarise_session(work: Work, session_id: str, after: str = "") -> None:
    """Summarise what of a session waits; after inactivity only where it has been quiet since."""
    if after == AFTER_INACTIVITY and not await _is_quiet(work, session_id):
        return
    only_compacted = after == AFTER_COMPACTION
    try:
        await SessionSummarizing(work.parts, work.caller, session_id, only_compacted=only_compacted).run()
    except DependencyUnavailable:
        async with work.transaction() as transaction:
            await transaction.llm.note_failure("summary", session_id=session_id)
        raise


async def _is_quiet(work: Work, session_id: str) -> bool:
    """Whether nothing was said for as long as the agent's rules ask; else it is asked again then."""
    async with work.transaction() as transaction:
        rules = rules_of(await transaction.llm.wishes())
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
    """Enqueue what waits for a model and is due, all agents together; how much.

    A store sees to its own. What it cannot see are stores that fill a session side by side, rules that were
    changed later, and jobs that were cancelled or failed for good.
    """
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("llm_work_of_agents"))).fetchall()
    due = [row for row in rows if _is_due(row, parts)]
    for row in due:
        async with parts.storage.transaction(row["agent_id"]) as transaction:
            if row["work"] == "facts":
                await transaction.jobs.enqueue(EXTRACT_FACTS)
            else:
                await transaction.jobs.enqueue(SUMMARISE_SESSION, session_id=row["session_id"])
    return len(due)


def _is_due(row: Row, parts: MemoryParts) -> bool:
    if row["work"] == "facts":
        return parts.extractor is not None
    if row["summaries"] is None:
        return False
    rules = SummaryRules(**row["summaries"])
    if rules.trigger == "inactivity":
        return bool(row["latest_at"] + timedelta(seconds=rules.inactivity_seconds) <= parts.clock())
    return rules.is_due(messages=row["messages"], user_turns=row["user_turns"])


async def sweep_llm_usage(database: Database) -> int:
    """Remove the accounts of days long gone; how many."""
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("sweep_llm_usage"), {"days": KEPT_DAYS})).fetchall()
    return len(rows)
