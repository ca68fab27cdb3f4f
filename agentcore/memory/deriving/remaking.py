"""Rewrites a summary from its current sources.

It locks the sources in the version that was read. If another worker was faster, it reads again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable
from agentcore.memory.api import Caller
from agentcore.memory.columns import StoredMemory
from agentcore.memory.consequences.following import relink_superseded
from agentcore.memory.consequences.pending_work import after_deletion, gives_up
from agentcore.memory.deriving.summary_providers import (
    AS_SAID,
    EXTRACTED,
    ExtractiveSummaryProvider,
    LlmSummaryProvider,
    Message,
    PassthroughSummaryProvider,
    ProviderParts,
    SessionSummary,
    requests_of,
    sources_of,
)
from agentcore.memory.models import SUMMARY_RELATION, JsonObject, Link
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import LlmWork
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.summaries.grounding import SourceTexts, Spoken, as_read, checked, remnants, without_stale
from agentcore.memory.summaries.summarizing import digest_of
from agentcore.memory.writing.changing import Changing, NewText, Wanted
from agentcore.summary_rules import SummaryRules

REFRESHED = "refresh"
# The provider that asks a model; the others do not.
BY_LLM = "llm"
SOURCES_GONE = "some of what it is of is not there any more; what it said of that is kept"
# Metadata that the service sets; all else is the caller's.
_OF_ITS_MAKING = ("by", "prompt", "degraded", "topics")


@dataclass(frozen=True)
class SummaryState:
    """A summary (None: still to be created) and those of its sources that exist, oldest first.

    `waiting`: pending memories to dequeue when it is done. `asking`: those a model is asked about, in vain
    `since`.
    """

    row: Row | None
    sources: Sequence[Row]
    rules: SummaryRules | None
    work: LlmWork
    waiting: Sequence[UUID]
    asking: Sequence[UUID]
    since: datetime

    @property
    def reworded(self) -> bool:
        """Whether a caller has changed its content."""
        return self.row is not None and self.row["reworded_by"] not in (None, REFRESHED)

    @property
    def told(self) -> list[Row]:
        """The sources that are current."""
        return [row for row in self.sources if row["superseded_by"] is None]

    @property
    def is_whole(self) -> bool:
        """Whether all its sources exist."""
        named = [] if self.row is None else self.row["provenance"].get("sources", [])
        return {*named} <= {str(row["memory_id"]) for row in self.sources}

    @property
    def digest(self) -> str:
        """Digest of the sources' contents and of which are current."""
        return digest_of((row["memory_id"], row["content_hash"], row["superseded_by"] is None) for row in self.sources)

    @property
    def is_fresh(self) -> bool:
        """Whether it was made of exactly these sources."""
        return self.row is not None and self.row["provenance"].get("of") == self.digest

    @property
    def stays(self) -> bool:
        """Whether nothing is to be done: it is fresh, or its content is a caller's."""
        return self.reworded or self.is_fresh

    @property
    def versions(self) -> dict[UUID, int]:
        """The versions that must be unchanged when it is written."""
        rows = [*self.sources, *([] if self.row is None else [self.row])]
        return {row["memory_id"]: row["version"] for row in rows}


@dataclass(frozen=True)
class NewSummary:
    """New content, metadata, provenance and timestamp of a summary."""

    summary: SessionSummary
    metadata: Mapping[str, Any]
    provenance: Mapping[str, Any]
    timestamp: datetime
    links: Sequence[Link] = field(default_factory=tuple)


class SummaryUpdate(Changing):
    """Updates a summary in place."""

    operation = REFRESHED

    def __init__(self, parts: MemoryParts, caller: Caller, state: SummaryState, row: Row, new: NewSummary) -> None:
        super().__init__(parts, caller, row["memory_id"], row["version"])
        self._state = state
        self._new = new

    async def _wanted(self, row: StoredMemory) -> Wanted:
        sources = [str(each["memory_id"]) for each in self._state.told]
        told, degraded = {"sources": sources, "by": self._new.summary.by}, self._new.summary.degraded
        return Wanted(
            content=self._new.summary.content,
            columns={"metadata": dict(self._new.metadata)},
            links=self._new.links,
            told=told if degraded is None else {**told, "degraded": degraded},
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


async def claim(transaction: MemoryTransaction, state: SummaryState, going: Sequence[UUID] = ()) -> None:
    """Locks the sources and dequeues the pending memories. Raises Conflict if either changed.

    `going` will be deleted.
    """
    changing = [] if state.row is None else [state.row["memory_id"]]
    held = await transaction.summaries.lock(to_delete=going, to_change=changing, no_change=state.versions)
    if any(held.get(memory_id) != version for memory_id, version in state.versions.items()):
        raise Conflict("Some of what this summary is of was changed meanwhile.")
    if not await transaction.summaries.dequeue(state.work, state.waiting):
        raise Conflict("Somebody has made this summary meanwhile.")


async def keep(parts: MemoryParts, caller: Caller, state: SummaryState) -> None:
    """Dequeues and keeps the summary as it is. Raises Conflict."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await claim(transaction, state)


async def write(parts: MemoryParts, caller: Caller, state: SummaryState, row: Row, new: NewSummary) -> None:
    """Updates a summary; if the text is the same, only its provenance. Raises Conflict, NotFound."""
    if new.links or (new.summary.content, new.metadata) != (row["content"], row["metadata"]):
        await SummaryUpdate(parts, caller, state, row, new).run()
        return
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await claim(transaction, state)
        await transaction.summaries.update_provenance(row["memory_id"], new.provenance, new.timestamp)


async def remove(parts: MemoryParts, caller: Caller, state: SummaryState, row: Row) -> None:
    """Deletes a summary without content. Raises Conflict."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await claim(transaction, state, going=[row["memory_id"]])
        gone = await transaction.delete([row["memory_id"]])
        await after_deletion(transaction, parts, await relink_superseded(transaction, caller, gone))


async def new_content(
    parts: MemoryParts, caller: Caller, state: SummaryState, provider: str, messages: Sequence[Message]
) -> SessionSummary:
    """Returns the new content by this provider; empty text: nothing to say. Raises DependencyUnavailable."""
    rules = state.rules or SummaryRules(max_tokens=_budget(state))
    given = ProviderParts(
        caller.agent_id,
        rules,
        parts.count_tokens,
        parts.summariser,
        lambda failure: gives_up(failure, state.since, parts.clock()),
    )
    if state.row is not None and not state.is_whole:
        return await _with_remnants(given, state, state.row, messages)
    if provider == AS_SAID:
        return await PassthroughSummaryProvider(given).in_one(messages)
    if provider == EXTRACTED:
        return await ExtractiveSummaryProvider(given).extracted(messages)
    try:
        return await _in_one(given, messages)
    except DependencyUnavailable:
        async with parts.storage.transaction(caller.agent_id) as transaction:
            await transaction.llm.record_failure(state.work, state.asking)
        raise


def metadata_of(row: Row, summary: SessionSummary) -> JsonObject:
    """Returns a summary's metadata with the service's part replaced."""
    kept = {name: value for name, value in row["metadata"].items() if name not in _OF_ITS_MAKING}
    return {**kept, **summary.origin}


def ties(sources: Sequence[Row]) -> list[Link]:
    """Returns links from a summary to its sources."""
    return [Link(target_id=row["memory_id"], relation=SUMMARY_RELATION) for row in sources]


def _budget(state: SummaryState) -> int:
    default: int = SummaryRules().max_tokens
    return default if state.row is None else state.row["provenance"].get("max_tokens", default)


async def _in_one(parts: ProviderParts, messages: Sequence[Message]) -> SessionSummary:
    model, told = LlmSummaryProvider(parts), messages
    while True:
        made = [await model.summary(piece) for piece in requests_of(told)]
        if len(made) == 1:
            return made[0] if told is messages else await _of_all(parts, made[0], messages)
        pieces = [_as_message(each) for each in made if each.text]
        if len(pieces) >= len(told):
            return await ExtractiveSummaryProvider(parts).extracted(messages)
        told = pieces


def _as_message(piece: SessionSummary) -> Message:
    last = piece.covers[-1]
    text = "\n".join([piece.text, *piece.key_facts])
    return Message(last.memory_id, last.version, last.said_at, None, text, 0.5)


async def _of_all(parts: ProviderParts, made: SessionSummary, messages: Sequence[Message]) -> SessionSummary:
    by_code = ExtractiveSummaryProvider(parts)
    if made.by == EXTRACTED:
        return await by_code.extracted(messages, made.degraded)
    read = await asyncio.to_thread(as_read, sources_of(messages))
    most, count = parts.rules.max_tokens, parts.count_tokens
    found = await asyncio.to_thread(lambda: checked(made.text, made.key_facts, SourceTexts(read), read, most, count))
    if not found.text:
        return await by_code.extracted(messages, found.degraded)
    degraded = made.degraded or found.degraded
    return replace(made, text=found.text, key_facts=found.facts, covers=messages, degraded=degraded)


async def _with_remnants(
    parts: ProviderParts, state: SummaryState, row: Row, messages: Sequence[Message]
) -> SessionSummary:
    """Adds the verbatim sentences of sources that are gone.

    A model's words cannot be attributed to sources: they stay unless said and withdrawn, and new or changed
    content is appended.
    """
    spoken, most = [_spoken(each) for each in state.sources], parts.rules.max_tokens
    by_model = row["metadata"].get("by", EXTRACTED) not in (EXTRACTED, AS_SAID)
    kept = (without_stale if by_model else remnants)(row["content"], spoken)
    room = most - parts.count_tokens(kept)
    if by_model:
        changed = _changed(state, row)
        messages = [each for each in messages if each.memory_id in changed]
        room = max(room, most // 2) if room > -most else 0
    rules = parts.rules.model_copy(update={"max_tokens": max(0, room)})
    added = await ExtractiveSummaryProvider(replace(parts, rules=rules)).extracted(messages)
    text = "\n".join(each for each in (kept, added.text) if each)
    by = row["metadata"]["by"] if by_model else EXTRACTED
    return SessionSummary(text, messages, by, degraded=SOURCES_GONE)


def _changed(state: SummaryState, row: Row) -> set[UUID]:
    """Returns the sources changed since the summary.

    Changes are numbered while their memories are locked, so one that began before the summary may have a
    later number.
    """
    known = {*row["provenance"].get("sources", [])}
    return {
        each["memory_id"]
        for each in state.sources
        if str(each["memory_id"]) not in known or each["said_at_change"] > row["made_at_change"]
    }


def _spoken(row: Row) -> Spoken:
    holds = row["superseded_by"] is None
    before = row["said_before"] if holds else [*row["said_before"], row["content"]]
    return Spoken(row["speaker"], row["content"] if holds else "", before)
