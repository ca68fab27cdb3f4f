"""Read use cases: a task's working memory, and the context built from it and from search hits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

from agentcore.errors import InvalidParams
from agentcore.memory.api import Caller
from agentcore.memory.compression import Context, build_context
from agentcore.memory.contexts.filling import LEAST_SUMMARISED, CountTokens, Manner
from agentcore.memory.contexts.rendering import FORMATS, KNOWLEDGE, PAST, TASK, ContextEntry
from agentcore.memory.encoding import digest
from agentcore.memory.language.text import normal_form, words
from agentcore.memory.lexical import terms
from agentcore.memory.models import FACT_TAG, Dropped, MemorySummary, MemoryType, Receipt, time_valid
from agentcore.memory.params.memories import MAX_LEFT_OUT, GetContextParams, GetContextResult, LeftOut, Turn
from agentcore.memory.parts import MemoryParts
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import breadth_for
from agentcore.memory.recall.searching import Search, SearchResult, Talk
from agentcore.memory.recall.wording import read_text
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.scoring import is_assistant
from agentcore.memory.tokens import ENCODINGS, encoding_for_model
from agentcore.memory.working import MAX_ENTRIES, WorkingEntry
from agentcore.telemetry import Steps

# With fewer characters per token of the budget, everything may fit.
LEAST_CHARACTERS_PER_TOKEN = 2
MOST_STAND_INS = 16
# Tokens of a short turn, to estimate how many memories to search.
TOKENS_A_MEMORY = 20
MIN_MEMORIES, MAX_MEMORIES = 12, 400
THREAD_ABOVE_CHARS = 50_000
# Minimum answerability of a query that counts as answered by the hits.
CLEAR_FIT = 0.5
# Prefix of a query from which terms are extracted.
QUERY_CHARS = 4_000
# Number of earlier user turns that complete a vague query of a task.
ASKED_BEFORE = 2
NO_REDIS = "working memory: Redis does not answer; read from the rows"
_PAST_TYPES = (MemoryType.EPISODIC, MemoryType.WORKING)


@dataclass(frozen=True)
class TaskMemory:
    """A task's current working memory, newest first.

    `importances`: of all of the task's newest, also those beyond the budget; `goes_on`: there may be older ones.
    """

    entries: Sequence[WorkingEntry] = ()
    importances: Mapping[UUID, float] = field(default_factory=dict)
    goes_on: bool = False

    def holds(self, memory: MemorySummary, task_id: str | None) -> bool:
        return memory.memory_id in self.importances or (self.goes_on and memory.task_id == task_id)


def _is_up_to_date(copied: Sequence[WorkingEntry], newest: Sequence[Row]) -> bool:
    versions = [(row["memory_id"], row["version"]) for row in newest]
    return versions == [(each.memory_id, each.version) for each in copied]


async def working_memory(
    parts: MemoryParts, caller: Caller, task_id: str, conditions: Mapping[str, Any], degraded: list[str]
) -> TaskMemory:
    """Returns a task's newest memories within the budget, then filtered.

    PostgreSQL decides which they are; an up-to-date copy in Redis saves reading their contents.
    """
    copied = await parts.working.recall(caller.agent_id, task_id)
    if copied is not None:
        rows = await _rows(parts, caller, task_id, conditions, whole=False)
        newest = _inside_budget(rows, parts.working.budget_tokens)
        if _is_up_to_date(copied, newest):
            matching = [each for each, row in zip(copied, newest, strict=True) if row["matches"]]
            return _task_memory(rows, matching)
        await parts.working.forget(caller.agent_id, [task_id])
    generation = await parts.working.generation(caller.agent_id)
    rows = await _rows(parts, caller, task_id, conditions, whole=True)
    newest = _inside_budget(rows, parts.working.budget_tokens)
    if newest:
        await _copy(parts, caller, task_id, newest, generation)
    if (rows or copied is not None) and not await parts.working.answers():
        degraded.append(NO_REDIS)
    return _task_memory(rows, [_entry(row) for row in newest if row["matches"]])


def _task_memory(rows: Sequence[Row], entries: Sequence[WorkingEntry]) -> TaskMemory:
    importances = {row["memory_id"]: 1.0 if row["pinned"] else row["relevance_score"] for row in rows}
    return TaskMemory(entries, importances, len(rows) == MAX_ENTRIES)


async def _rows(
    parts: MemoryParts, caller: Caller, task_id: str, conditions: Mapping[str, Any], *, whole: bool
) -> list[Row]:
    return await parts.storage.working_rows(
        caller.agent_id,
        task_id,
        parts.working.ttl_seconds,
        conditions,
        limit=MAX_ENTRIES,
        budget_tokens=parts.working.budget_tokens if whole else None,
    )


async def _copy(
    parts: MemoryParts, caller: Caller, task_id: str, rows: Sequence[Row], generation: bytes | None
) -> None:
    newest = max(row["created_at"] for row in rows)
    ttl_seconds = parts.working.ttl_seconds - (parts.clock() - newest).total_seconds()
    entries = [_entry(row) for row in rows]
    await parts.working.make(caller.agent_id, task_id, entries, int(ttl_seconds), generation)


def _entry(row: Row) -> WorkingEntry:
    return WorkingEntry(
        row["memory_id"],
        row["memory_type"],
        row["content"],
        row["timestamp"],
        row["speaker"],
        row["token_count"],
        row["version"],
        row["summary"] if row["summary"] != row["content"] else "",
    )


def _inside_budget(rows: Sequence[Row], budget_tokens: int) -> list[Row]:
    kept: list[Row] = []
    used = 0
    for row in rows:
        used += row["token_count"]
        if kept and used > budget_tokens:
            break
        kept.append(row)
    return kept


async def _leave_out_flagged(
    parts: MemoryParts, caller: Caller, params: GetContextParams, conditions: dict[str, Any]
) -> int:
    """Adds the condition to leave out flagged memories, unless the caller includes them; returns their number."""
    if params.include_flagged:
        return 0
    flagged = await parts.storage.count_flagged(caller.agent_id, conditions)
    conditions["unflagged"] = True
    return flagged


async def context(parts: MemoryParts, caller: Caller, params: GetContextParams) -> GetContextResult:
    """Builds a context of at most `max_tokens` tokens: task memories first, then search hits.

    Raises InvalidParams for a model whose encoding is not available.
    """
    steps = parts.steps()
    encoding, count = await _counter(parts, params)
    degraded: list[str] = []
    task = TaskMemory()
    conditions = {name: value for name, value in params.conditions().items() if name != "task_id"}
    flagged = await _leave_out_flagged(parts, caller, params, conditions)
    then: dict[str, Any] = {} if params.as_of is None else {"as_of": params.as_of.isoformat()}
    if params.task_id is not None:
        with steps("working"):
            task = await working_memory(parts, caller, params.task_id, {**conditions, **then}, degraded)
    k = min(MAX_MEMORIES, max(MIN_MEMORIES, params.max_tokens // TOKENS_A_MEMORY))
    chars = len(params.query) + sum(len(each.content) for each in task.entries)
    talk = await read_text(lambda: _talk(params, task.entries), chars)
    search = Search(parts, caller, params, conditions, steps, talk)
    found = await search.run(k, _cut_offs(parts, params), breadth_for(k))
    manner = _manner(parts, params, found.receipt)
    entries = _entries(params, task, found)
    with steps("summaries"):
        matching = {**conditions, **(then or {"current": True})}
        summaries = await replacements(parts, caller, entries, matching, params.max_tokens)
    with steps("format"):
        built = await _built(entries, params.max_tokens, count, manner, summaries)
    used = [line.entry.memory_id for line in built.lines]
    parts.accesses.note(caller.agent_id, used, parts.clock())
    return GetContextResult(
        context=built.text,
        token_count=built.token_count,
        memory_ids=used,
        encoding=encoding,
        shortened=built.shortened,
        left_out=[LeftOut(memory_id=each, reason=why) for each, why in built.left_out[:MAX_LEFT_OUT]],
        memories=[each for each in found.memories if each.memory_id in used] if params.explain else None,
        receipt=_receipt(found.receipt, built, manner, degraded, len(task.entries), steps, flagged),
    )


async def _counter(parts: MemoryParts, params: GetContextParams) -> tuple[str, CountTokens]:
    default = parts.token_counters.default
    encoding = params.encoding or default
    if params.model is not None:
        known = encoding_for_model(params.model)
        if known is None:
            raise InvalidParams(
                f"The tokens of the model {params.model!r} cannot be counted here: name an encoding instead, "
                f"{' or '.join(ENCODINGS)}.",
                data={"field": "model"},
            )
        encoding = known
    if encoding == default:
        return encoding, parts.count_tokens
    counter = parts.token_counters.of(encoding)
    await asyncio.to_thread(counter.load)
    return encoding, counter.count


def _manner(parts: MemoryParts, params: GetContextParams, receipt: Receipt) -> Manner:
    """Returns the options of a context; hits of an unanswerable query get less of the budget."""
    cut_offs = _cut_offs(parts, params)
    asks_for_all = params.min_fit is not None or receipt.searched.get("vectors") == "words"
    return Manner(
        FORMATS[params.format],
        frozenset(terms(params.query[:QUERY_CHARS])),
        1.0 if asks_for_all else cut_offs.room(receipt.fit),
        params.distinct,
        # A completed query matches the task's own words whatever it asks.
        (receipt.fit or 0.0) >= CLEAR_FIT and "completed_from_history" not in receipt.searched,
    )


def _receipt(
    found: Receipt,
    built: Context,
    manner: Manner,
    degraded: Sequence[str],
    working_count: int,
    steps: Steps,
    flagged: int,
) -> Receipt:
    searched = found.searched
    left_out = [Dropped(reason="flagged", count=flagged)] if flagged else []
    if manner.found_share < 1:
        searched = {**searched, "room_share": round(manner.found_share, 3)}
    return found.model_copy(
        update={
            "searched": searched,
            "candidates": {**found.candidates, "working": working_count},
            "dropped": [*found.dropped, *_losses(built), *left_out],
            "degraded": [*degraded, *found.degraded],
            "timings_ms": steps.timings_ms,
        }
    )


def _cut_offs(parts: MemoryParts, params: GetContextParams) -> CutOffs:
    """Returns none in a task, whose requests resemble few of the memories they need."""
    return parts.policy.context_cut_offs if params.task_id is None else CutOffs()


def _talk(params: GetContextParams, working: Sequence[WorkingEntry]) -> Talk:
    said = words(params.query)
    own = {each.memory_id for each in working if words(each.content) == said}
    turns: list[Turn] = []
    for each in working:
        if each.memory_id not in own:
            role: Literal["user", "assistant"] = "assistant" if is_assistant(each.speaker) else "user"
            turns.append(Turn(role=role, content=each.content[:QUERY_CHARS]))
        if sum(turn.role == "user" for turn in turns) == ASKED_BEFORE:
            break
    return Talk(own, digest(normal_form(params.query)), turns[::-1])


def _entries(params: GetContextParams, task: TaskMemory, result: SearchResult) -> list[ContextEntry]:
    found = result.memories
    held = {entry.memory_id for entry in task.entries}
    ranks = {memory.memory_id: rank for rank, memory in enumerate(found)}
    # A reranker changes the order only; scores stay with the positions.
    scores = sorted((memory.score or 0.0 for memory in found), reverse=True)
    entries = []
    for entry in task.entries:
        rank = ranks.get(entry.memory_id)
        score = 0.0 if rank is None else scores[rank]
        entries.append(_task_entry(entry, rank, score, task.importances[entry.memory_id]))
    for rank, memory in enumerate(found):
        if memory.memory_id not in held:
            entries.append(_found_entry(memory, rank, scores[rank], of_task=task.holds(memory, params.task_id)))
    return [replace(entry, passage=result.passages.get(entry.memory_id)) for entry in entries]


async def _built(
    entries: Sequence[ContextEntry],
    max_tokens: int,
    count: CountTokens,
    manner: Manner,
    summaries: Sequence[ContextEntry],
) -> Context:
    if sum(len(entry.content) for entry in entries) > THREAD_ABOVE_CHARS:
        return await asyncio.to_thread(build_context, entries, max_tokens, count, manner, summaries)
    return build_context(entries, max_tokens, count, manner, summaries)


def _task_entry(entry: WorkingEntry, rank: int | None, score: float, importance: float) -> ContextEntry:
    return ContextEntry(
        entry.memory_id,
        TASK,
        entry.timestamp,
        entry.speaker,
        entry.content,
        entry.summary or entry.content,
        entry.token_count,
        rank,
        score,
        importance=importance,
    )


def _found_entry(memory: MemorySummary, rank: int, score: float, *, of_task: bool) -> ContextEntry:
    past = PAST if memory.memory_type in _PAST_TYPES else KNOWLEDGE
    return ContextEntry(
        memory.memory_id,
        TASK if of_task else past,
        memory.timestamp,
        memory.speaker,
        memory.content,
        memory.summary,
        rank=rank,
        score=score,
        # A task is grouped as one story across sessions.
        session_id=None if of_task else memory.session_id,
        parent_id=memory.parent_memory_id if FACT_TAG in memory.tags else None,
        sources=memory.sources,
        outside_window=of_task,
        valid=time_valid(memory) or "",
        outdated_by=memory.outdated_by,
    )


def _losses(built: Context) -> list[Dropped]:
    reasons = Counter[str](reason for _, reason in built.left_out)
    losses: dict[str, int] = {"shortened": len(built.shortened), **reasons}
    return [Dropped(reason=reason, count=count) for reason, count in losses.items() if count]


async def replacements(
    parts: MemoryParts, caller: Caller, entries: Sequence[ContextEntry], conditions: Mapping[str, Any], max_tokens: int
) -> list[ContextEntry]:
    """Returns summaries of several entries, unless all entries may fit."""
    said = sum(len(entry.content) for entry in entries)
    if said < max_tokens * LEAST_CHARACTERS_PER_TOKEN:
        return []
    of = [entry.memory_id for entry in entries]
    found = parts.storage.summaries_of(caller.agent_id, of, conditions, LEAST_SUMMARISED, MOST_STAND_INS)
    return [_summary_entry(row) for row in await found]


def _summary_entry(row: Row) -> ContextEntry:
    return ContextEntry(
        row["memory_id"],
        KNOWLEDGE,
        row["timestamp"],
        None,
        row["content"],
        row["summary"],
        row["token_count"],
        sources=frozenset(map(UUID, row["sources"])),
    )
