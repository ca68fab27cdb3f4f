"""Marks summaries stale after a change and enqueues the jobs that refresh them, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from agentcore.memory.storage import MemoryTransaction

REFRESH_SUMMARIES, SUMMARISE_PERIODS = "refresh_summaries", "summarise_periods"
# Lets what was summarised of sessions before the agent wished summaries of periods wait for them.
QUEUE_PERIODS = "queue_periods"
# In the order in which they are enqueued by whoever enqueues both: their locks are held until the end.
_JOBS = (("refresh", REFRESH_SUMMARIES), ("period", SUMMARISE_PERIODS))


async def let_summaries_wait(transaction: MemoryTransaction, memory_ids: Iterable[UUID]) -> None:
    """These memories say something else, or hold no longer, or again. One of a transaction's last acts."""
    changed = sorted({*memory_ids})
    if changed:
        await enqueue_summaries(transaction, await transaction.summaries.let_wait(changed))


async def let_restored_wait(transaction: MemoryTransaction, memory_ids: Sequence[UUID]) -> None:
    """These memories came back from the archive, summaries perhaps among them. One of the last acts."""
    if memory_ids:
        summaries = transaction.summaries
        works = await summaries.let_wait(memory_ids) | await summaries.let_restored_wait(memory_ids)
        await enqueue_summaries(transaction, works | await summaries.let_wait_for_period(memory_ids))


async def let_wait_for_period(transaction: MemoryTransaction, memory_ids: Iterable[UUID]) -> None:
    """These are new summaries of sessions, which that of their period is to tell of. One of the last acts."""
    await enqueue_summaries(transaction, await transaction.summaries.let_wait_for_period(memory_ids))


async def enqueue_summaries(transaction: MemoryTransaction, works: Iterable[str]) -> None:
    """Have what has come to wait done. One of the last acts."""
    come = {*works}
    for work, name in _JOBS:
        if work in come:
            await transaction.jobs.enqueue(name)
