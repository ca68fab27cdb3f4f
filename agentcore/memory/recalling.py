"""Recalling, as stories: a task's working memory, and the context made of it and of what a search finds."""

from __future__ import annotations

from agentcore.memory.api import Caller
from agentcore.memory.compression import KNOWLEDGE, PAST, TASK, ContextEntry, build_context
from agentcore.memory.models import Dropped, MemoryRecord, MemoryType
from agentcore.memory.params import ContextParams, ContextResult
from agentcore.memory.parts import MemoryParts
from agentcore.memory.searching import Search, summarised
from agentcore.memory.working import WorkingEntry

TOKENS_A_MEMORY = 25
MIN_MEMORIES, MAX_MEMORIES = 8, 60
NO_REDIS = "working memory: Redis does not answer; read from the rows"
_PAST_TYPES = (MemoryType.EPISODIC, MemoryType.WORKING)


async def working_memory(
    parts: MemoryParts, caller: Caller, task_id: str, degraded: list[str]
) -> list[WorkingEntry]:
    """What a task holds now, newest first, inside the budget: the copy where it stands, else the rows."""
    copied = await parts.working.recall(caller.agent_id, task_id)
    if copied is not None:
        unique = {entry.memory_id: entry for entry in reversed(copied)}
        standing = await parts.storage.confirm_working(caller.agent_id, task_id, list(unique))
        if all(standing.get(each.memory_id) == each.version for each in unique.values()):
            return _inside_budget(list(reversed(unique.values())), parts.working.budget_tokens)
        await parts.working.forget(caller.agent_id, [task_id])
    entries = await _from_rows(parts, caller, task_id)
    if copied is None and not entries:
        return []
    if not await parts.working.answers():
        degraded.append(NO_REDIS)
    return entries


async def _from_rows(parts: MemoryParts, caller: Caller, task_id: str) -> list[WorkingEntry]:
    rows = await parts.storage.working_rows(caller.agent_id, task_id, parts.working.ttl_seconds)
    entries = [
        WorkingEntry(
            row["memory_id"],
            row["memory_type"],
            row["content"],
            row["timestamp"],
            row["speaker"],
            row["token_count"],
            row["version"],
        )
        for row in rows
    ]
    entries = _inside_budget(entries, parts.working.budget_tokens)
    if entries:
        newest = max(row["created_at"] for row in rows)
        age_seconds = (parts.clock() - newest).total_seconds()
        await parts.working.make(
            caller.agent_id, task_id, entries, int(parts.working.ttl_seconds - age_seconds)
        )
    return entries


def _inside_budget(entries: list[WorkingEntry], budget_tokens: int) -> list[WorkingEntry]:
    kept: list[WorkingEntry] = []
    used = 0
    for entry in entries:
        used += entry.token_count
        if kept and used > budget_tokens:
            break
        kept.append(entry)
    return kept


async def context(parts: MemoryParts, caller: Caller, params: ContextParams) -> ContextResult:
    """A prompt-ready context of at most `max_tokens` tokens: the task first, then what the search found."""
    steps = parts.steps()
    degraded: list[str] = []
    working: list[WorkingEntry] = []
    if params.task_id is not None:
        with steps("working"):
            working = await working_memory(parts, caller, params.task_id, degraded)
    conditions = {name: value for name, value in params.conditions().items() if name != "task_id"}
    k = min(MAX_MEMORIES, max(MIN_MEMORIES, params.max_tokens // TOKENS_A_MEMORY))
    found = await Search(parts, caller, params, conditions, steps).run(k)
    held = {entry.memory_id for entry in working}
    entries = [_task_entry(entry) for entry in working]
    entries += [_found_entry(record) for ranked, record in found.ranked if ranked.memory_id not in held]
    with steps("format"):
        built = build_context(entries, params.max_tokens, parts.count_tokens)
    used = [line.entry.memory_id for line in built.lines]
    return ContextResult(
        context=built.text,
        token_count=built.token_count,
        memory_ids=used,
        memories=[summarised(*each, explain=True) for each in found.ranked if each[0].memory_id in used]
        if params.explain
        else None,
        receipt=found.receipt.model_copy(
            update={
                "candidates": {**found.receipt.candidates, "working": len(working)},
                "dropped": [*found.receipt.dropped, *_losses(built.shortened_count, built.dropped_count)],
                "degraded": [*degraded, *found.receipt.degraded],
                "timings_ms": steps.timings_ms,
            }
        ),
    )


def _task_entry(entry: WorkingEntry) -> ContextEntry:
    return ContextEntry(entry.memory_id, TASK, entry.timestamp, entry.speaker, entry.content, entry.content)


def _found_entry(record: MemoryRecord) -> ContextEntry:
    section = PAST if record.memory_type in _PAST_TYPES else KNOWLEDGE
    return ContextEntry(
        record.memory_id, section, record.timestamp, record.speaker, record.content, record.summary
    )


def _losses(shortened: int, dropped: int) -> list[Dropped]:
    losses = {"shortened_to_summary": shortened, "beyond_max_tokens": dropped}
    return [Dropped(reason=reason, count=count) for reason, count in losses.items() if count]
