"""Sessions: add a conversation, end it, summarize it, clear it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import COMPACTION, PERIOD_TAG, SUMMARY_TAG
from agentcore.memory.deriving.session_summaries import Ended, at_the_end
from agentcore.memory.forgetting import removing
from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.params.memories import DeleteParams, RefusedStore, StoreParams, StoreResult
from agentcore.memory.params.sessions import (
    ROLE_IMPORTANCE,
    AddSessionParams,
    ClearParams,
    EndSessionParams,
    Message,
    RefusedMessage,
)
from agentcore.memory.parts import MemoryParts
from agentcore.memory.summaries.grounding import Spoken, remnants
from agentcore.memory.summaries.summarizing import Source, Summary, summarize
from agentcore.memory.writing.storing import Storing

MOST_SUMMARISED = 1_000
# Parameters that apply to each message.
OF_SESSION = ("session_id", "user_id", "namespace", "task_id", "tags", "force", "keep_reasoning")
# Minimum importance or accesses of a working memory that is promoted at the end of its session.
PROMOTED_IMPORTANCE, PROMOTED_USES = 0.7, 3


async def add(parts: MemoryParts, caller: Caller, params: AddSessionParams) -> tuple[list[StoreResult], list[str]]:
    """Returns the results in order, and what was unavailable. Raises DependencyUnavailable."""
    items = [_refused(message) or _item(params, message) for message in params.messages]
    storing = Storing(parts, caller, items)
    return await storing.run(), storing.degraded


def _refused(message: Message) -> RefusedStore | None:
    if not isinstance(message, RefusedMessage):
        return None
    return RefusedStore(problem=message.problem, given=message.given, is_wrong=message.is_wrong)


def _item(params: AddSessionParams, message: Message) -> StoreParams:
    importance = message.importance
    if importance is None:
        importance = ROLE_IMPORTANCE.get(message.role.casefold())
    given: dict[str, Any] = {
        "content": message.content,
        "speaker": message.name or message.role,
        "timestamp": message.timestamp,
        "importance": importance,
        "metadata": {**message.metadata, "role": message.role},
        "external_id": message.message_id,
        **{name: getattr(params, name) for name in OF_SESSION},
    }
    if message.message_id is not None:
        key = "\x1f".join(("message", params.session_id, message.message_id))
        given["idempotency_key"] = hashlib.sha256(key.encode()).hexdigest()
    if "ttl_seconds" in params.model_fields_set:
        given["ttl_seconds"] = params.ttl_seconds
    return StoreParams(**given | _as_compaction(params, message))


def _as_compaction(params: AddSessionParams, message: Message) -> dict[str, Any]:
    if message.compacted_until is None:
        return {}
    began = message.compacted_from and message.compacted_from.isoformat()
    compaction = {"from": began, "until": message.compacted_until.isoformat()}
    return {
        "memory_type": MemoryType.SEMANTIC,
        "tags": [*params.tags, SUMMARY_TAG],
        "metadata": {**message.metadata, "role": message.role, COMPACTION: compaction},
        "supersede": False,
    }


async def end(parts: MemoryParts, caller: Caller, params: EndSessionParams) -> Ended:
    """Promotes or ends working memories, and summarizes new messages. Raises DependencyUnavailable."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        rows = await transaction.life.end_session(
            params.session_id,
            importance=PROMOTED_IMPORTANCE,
            uses=PROMOTED_USES,
            episodic_ttl_seconds=parts.default_ttls.get(MemoryType.EPISODIC.value),
            token_id=caller.token_id,
            trace_id=caller.trace_id,
        )
        await transaction.clusters.enqueue_late(row["memory_id"] for row in rows if row["promoted"])
    tasks = sorted({row["task_id"] for row in rows if row["task_id"] is not None})
    await parts.working.forget(caller.agent_id, tasks)
    promoted = sum(row["promoted"] for row in rows)
    made = Ended()
    if params.summarize:
        made = await at_the_end(parts, caller, params.session_id, params.max_tokens)
    return replace(made, promoted_count=promoted, ended_count=len(rows) - promoted)


async def read(parts: MemoryParts, caller: Caller, conditions: Mapping[str, Any]) -> list[MemoryRecord]:
    rows = await parts.storage.page(
        caller.agent_id,
        conditions,
        order_by="timestamp",
        descending=True,
        place=None,
        after_id=None,
        limit=MOST_SUMMARISED,
    )
    records = await parts.storage.get(caller.agent_id, [row["memory_id"] for row in rows])
    return sorted(records.values(), key=lambda record: (record.timestamp, record.memory_id))


async def summary_of(
    parts: MemoryParts, caller: Caller, conditions: Mapping[str, Any], max_tokens: int
) -> tuple[Summary, int]:
    """Returns a summary of the newest MOST_SUMMARISED memories and of older summaries; the number read."""
    conditions = {**conditions, "unflagged": True}
    records = await read(parts, caller, conditions)
    if len(records) == MOST_SUMMARISED and _tells_of_episodes(conditions):
        tags = {"memory_types": [MemoryType.SEMANTIC.value], "tags": [PERIOD_TAG, SUMMARY_TAG]}
        stored = await read(parts, caller, {**conditions, **tags})
        records = [*{each.memory_id: each for each in (*stored, *records)}.values()]
    sources = [
        Source(each.memory_id, each.timestamp, each.speaker, each.content, each.relevance_score)
        for each in _without_repetitions(records)
    ]
    return await asyncio.to_thread(summarize, sources, max_tokens, parts.count_tokens), len(records)


def _tells_of_episodes(conditions: Mapping[str, Any]) -> bool:
    return "tags" not in conditions and "episodic" in conditions.get("memory_types", ["episodic"])


def _without_repetitions(records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    there, told = {each.memory_id: each for each in records}, []
    for each in records:
        sources = _sources(each)
        spoken = [Spoken(there[one].speaker, there[one].content, ()) for one in sources & there.keys()]
        content = remnants(each.content, spoken) if spoken else each.content
        if not sources or (content and not sources <= there.keys()):
            told.append(each.model_copy(update={"content": content}))
    return told


def _sources(record: MemoryRecord) -> set[UUID]:
    return {UUID(each) for each in record.provenance.get("sources", ())}


async def clear(parts: MemoryParts, caller: Caller, params: ClearParams) -> removing.Deleted:
    what = params.model_dump(exclude_none=True, exclude={"confirm"})
    return await removing.delete(parts, caller, DeleteParams(**what, confirm=True))
