"""Writes a summary from its sources, which it locks in the version that was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable
from agentcore.memory.api import Caller
from agentcore.memory.columns import StoredMemory
from agentcore.memory.consequences.following import relink_superseded
from agentcore.memory.consequences.pending_work import after_deletion
from agentcore.memory.deriving.summary_providers import AS_SAID, EXTRACTED, SessionSummary, SummaryWriter
from agentcore.memory.intake import Draft
from agentcore.memory.models import SUMMARY_RELATION, JsonObject, Link, MemoryType
from agentcore.memory.params.memories import StoreParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import LlmWork
from agentcore.memory.rows.memory_rows import Change, Row
from agentcore.memory.storage import MemoryTransaction, NewMemory, mint_memory_id
from agentcore.memory.summaries.grounding import Spoken, remnants, without_stale
from agentcore.memory.summaries.summarizing import Source, digest_of
from agentcore.memory.writing.changing import Changing, NewText, Wanted
from agentcore.memory.writing.document_vectors import vector_columns
from agentcore.summary_rules import SummaryRules

REFRESHED = "refresh"
SOURCES_GONE = "some of what it is of is not there any more; what it said of that is kept"
# Metadata that the service sets; all else is the caller's.
_OF_ITS_MAKING = ("by", "prompt", "degraded", "topics")


@dataclass(frozen=True)
class SummaryState:
    """A summary (None: to be created) and its existing sources, oldest first.

    `waiting`: pending memories to dequeue. `asking`: those a model is asked about, in vain `since`.
    """

    row: Row | None
    sources: Sequence[Row]
    rules: SummaryRules | None
    work: LlmWork
    waiting: Sequence[UUID]
    asking: Sequence[UUID]
    since: datetime

    @property
    def current_sources(self) -> list[Row]:
        return [row for row in self.sources if row["superseded_by"] is None]

    @property
    def named(self) -> set[str]:
        return set() if self.row is None else {*self.row["provenance"].get("sources", [])}

    @property
    def is_whole(self) -> bool:
        return self.named <= {str(row["memory_id"]) for row in self.sources}

    @property
    def digest(self) -> str:
        return digest_of((row["memory_id"], row["content_hash"], row["superseded_by"] is None) for row in self.sources)

    @property
    def stays(self) -> bool:
        """Whether it was made of exactly these sources, or a caller has changed its content."""
        if self.row is None:
            return False
        by_caller = self.row["reworded_by"] not in (None, REFRESHED)
        return by_caller or self.row["provenance"].get("of") == self.digest

    @property
    def versions(self) -> dict[UUID, int]:
        rows = [*self.sources, *([] if self.row is None else [self.row])]
        return {row["memory_id"]: row["version"] for row in rows}


@dataclass(frozen=True)
class NewSummary:
    summary: SessionSummary
    metadata: Mapping[str, Any]
    provenance: Mapping[str, Any]
    timestamp: datetime
    links: Sequence[Link] = field(default_factory=tuple)


class SummaryUpdate(Changing):
    operation = REFRESHED

    def __init__(self, parts: MemoryParts, caller: Caller, state: SummaryState, row: Row, new: NewSummary) -> None:
        super().__init__(parts, caller, row["memory_id"], row["version"])
        self._state = state
        self._new = new

    async def _wanted(self, row: StoredMemory) -> Wanted:
        sources = [str(each["memory_id"]) for each in self._state.current_sources]
        return Wanted(
            content=self._new.summary.content,
            columns={"metadata": dict(self._new.metadata)},
            links=self._new.links,
            told={"sources": sources, **self._new.summary.history},
        )

    async def _new_text(self, row: StoredMemory, content: str | None) -> NewText | None:
        text = await super()._new_text(replace(row, timestamp=self._new.timestamp), content)
        if text is not None and self._new.summary.key_facts:
            text[0].columns.facts = [*self._new.summary.key_facts]
        return text

    async def _prepare(self, transaction: MemoryTransaction, found: StoredMemory, wanted: Wanted) -> None:
        # Its new links lead to its sources, which are locked here.
        await claim(transaction, self._state)
        await transaction.summaries.update_provenance(self.memory_id, self._new.provenance, self._new.timestamp)


async def claim(transaction: MemoryTransaction, state: SummaryState, to_delete: Sequence[UUID] = ()) -> None:
    """Locks the sources and dequeues the pending memories. Raises Conflict if either changed."""
    changing = [] if state.row is None else [state.row["memory_id"]]
    locked = await transaction.summaries.lock(to_delete=to_delete, to_change=changing, no_change=state.versions)
    if any(locked.get(memory_id) != version for memory_id, version in state.versions.items()):
        raise Conflict("Some of what this summary is of was changed meanwhile.")
    if not await transaction.summaries.dequeue(state.work, state.waiting):
        raise Conflict("Somebody has made this summary meanwhile.")


async def drafted(
    parts: MemoryParts, caller: Caller, summary: SessionSummary, provenance: JsonObject, **values: Any
) -> Draft | None:
    """Returns a new summary with its vector, None if there is none to store. `values`: of StoreParams."""
    if not summary.text or summary.memory_id is not None:
        return None
    values["metadata"] = {**values["metadata"], **summary.origin}
    params = StoreParams(
        content=summary.content, memory_type=MemoryType.SEMANTIC, force=True, supersede=False, **values
    )
    draft = parts.draft(params, caller)
    draft.columns.text.facts = [*summary.key_facts] or draft.columns.text.facts
    draft.columns.provenance |= provenance
    [draft.columns.vector], _ = await vector_columns(parts, [draft.derived.embedding_text])
    return draft


async def insert(
    transaction: MemoryTransaction, caller: Caller, summary: SessionSummary, draft: Draft | None
) -> UUID | None:
    """Stores a new summary, or the links of a caller's own one; returns its id."""
    source_ids = [each.memory_id for each in summary.covers]
    # Superseded sources are linked, too: they may become current again.
    links = [Link(target_id=each, relation=SUMMARY_RELATION) for each in source_ids]
    memory_id, version = summary.memory_id, None
    if draft is not None:
        memory_id, version = mint_memory_id(), 1
        await transaction.insert([NewMemory(memory_id, draft.columns, links)])
    elif memory_id is not None:
        await transaction.links.add(memory_id, links)
    if memory_id is not None:
        after = {"sources": [*map(str, source_ids)], **summary.history}
        change = Change(memory_id, "summarise", version, caller.token_id, caller.trace_id, {}, after)
        await transaction.history.append(change)
    return memory_id


async def keep(parts: MemoryParts, caller: Caller, state: SummaryState) -> None:
    """Dequeues and keeps the summary as it is. Raises Conflict."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await claim(transaction, state)


async def write(parts: MemoryParts, caller: Caller, state: SummaryState, row: Row, new: NewSummary | None) -> None:
    """Updates or deletes (None) a summary; an unchanged text keeps its version. Raises Conflict, NotFound."""
    if new is not None and (new.links or (new.summary.content, new.metadata) != (row["content"], row["metadata"])):
        await SummaryUpdate(parts, caller, state, row, new).run()
        return
    memory_id = row["memory_id"]
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await claim(transaction, state, to_delete=[memory_id] if new is None else [])
        if new is not None:
            await transaction.summaries.update_provenance(memory_id, new.provenance, new.timestamp)
            return
        gone = await transaction.delete([memory_id])
        await after_deletion(transaction, parts, await relink_superseded(transaction, caller, gone))


async def new_content(
    parts: MemoryParts, caller: Caller, state: SummaryState, provider: str, messages: Sequence[Source]
) -> SessionSummary:
    """Returns the new content by this provider; empty text: nothing to say. Raises DependencyUnavailable."""
    rules = state.rules or SummaryRules(max_tokens=_budget(state))
    writer = SummaryWriter(parts, caller.agent_id, rules, state.since)
    if state.row is not None and not state.is_whole:
        return await _with_remnants(writer, state, state.row, messages)
    try:
        return await writer.in_one(messages, provider)
    except DependencyUnavailable:
        async with parts.storage.transaction(caller.agent_id) as transaction:
            await transaction.llm.record_failure(state.work, state.asking)
        raise


def metadata_of(row: Row, summary: SessionSummary) -> JsonObject:
    kept = {name: value for name, value in row["metadata"].items() if name not in _OF_ITS_MAKING}
    return {**kept, **summary.origin}


def _budget(state: SummaryState) -> int:
    default: int = SummaryRules().max_tokens
    return default if state.row is None else state.row["provenance"].get("max_tokens", default)


async def _with_remnants(
    writer: SummaryWriter, state: SummaryState, row: Row, messages: Sequence[Source]
) -> SessionSummary:
    """Keeps the lines of sources that are gone, and extracts from the others.

    A model's sentences have no known source: they stay unless withdrawn; changed content is appended.
    """
    spoken, most = [_spoken(each) for each in state.sources], writer.rules.max_tokens
    by_model = row["metadata"].get("by", EXTRACTED) not in (EXTRACTED, AS_SAID)
    kept = (without_stale if by_model else remnants)(row["content"], spoken)
    room = most - writer.parts.count_tokens(kept)
    if by_model:
        changed = _changed(state, row)
        messages = [each for each in messages if each.memory_id in changed]
        room = max(room, most // 2) if room > -most else 0
    rules = writer.rules.model_copy(update={"max_tokens": max(0, room)})
    added = await replace(writer, rules=rules).extracted(messages)
    text = "\n".join(each for each in (kept, added.text) if each)
    by = row["metadata"]["by"] if by_model else EXTRACTED
    return SessionSummary(text, messages, by, degraded=SOURCES_GONE)


def _changed(state: SummaryState, row: Row) -> set[UUID]:
    """Returns the sources changed since the summary, by the numbers that changes get under their locks."""
    return {
        each["memory_id"]
        for each in state.sources
        if str(each["memory_id"]) not in state.named or each["said_at_change"] > row["made_at_change"]
    }


def _spoken(row: Row) -> Spoken:
    if row["superseded_by"] is None:
        return Spoken(row["speaker"], row["content"], row["said_before"])
    return Spoken(row["speaker"], "", [*row["said_before"], row["content"]])
