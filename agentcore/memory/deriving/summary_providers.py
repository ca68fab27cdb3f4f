"""Writes summaries: by extraction, by a language model, verbatim, or from the caller's own summaries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from agentcore.errors import DependencyUnavailable
from agentcore.limits import MAX_TEXT_CHARS
from agentcore.memory.consequences.pending_work import gives_up
from agentcore.memory.language.llm_text import MEMORY_BYTES, REQUEST_BYTES, size_bytes
from agentcore.memory.language.text import collapse
from agentcore.memory.llm import SourceText, Summariser, SummaryRequest, WrittenSummary
from agentcore.memory.models import JsonObject
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.summaries.grounding import Checked, SourceTexts, as_read, checked, tokens_of_text
from agentcore.memory.summaries.summarizing import Source, pieces, segments, summarize
from agentcore.summary_rules import SummaryRules

MOST_TOPICS, TOPIC_CHARS = 5, 80
# Providers of SummaryRules; `by` of a summary of the first two. Others ask a model.
EXTRACTED, AS_SAID, BY_LLM = "extractive", "passthrough", "llm"
# `by` of a caller's own summary.
CALLER = "caller"
NO_MODEL = "this service has no language model"
TOO_LONG = "it was longer than a memory may be, and is cut"


class ModelFailed(DependencyUnavailable):
    def __init__(self, failure: DependencyUnavailable, segment: Sequence[Source]) -> None:
        super().__init__(failure.message, data=failure.data)
        self.memory_ids = [each.memory_id for each in segment]


@dataclass(frozen=True)
class Compaction:
    """The caller's own summary of what was said from `began` (None: the start) to `ended`."""

    memory_id: UUID
    text: str
    began: datetime | None
    ended: datetime

    def covers(self, message: Source) -> bool:
        return (self.began is None or self.began <= message.timestamp) and message.timestamp <= self.ended


@dataclass(frozen=True)
class SessionSummary:
    """A summary of these messages. Empty text: nothing to say. `memory_id`: it is stored already."""

    text: str
    covers: Sequence[Source]
    by: str
    topics: Sequence[str] = ()
    key_facts: Sequence[str] = ()
    prompt: str | None = None
    degraded: str | None = None
    memory_id: UUID | None = None

    @property
    def content(self) -> str:
        """The text with its key facts, cut to the maximum length of a memory."""
        return "\n".join([self.text, *(f"- {fact}" for fact in self.key_facts)])[:MAX_TEXT_CHARS]

    @property
    def origin(self) -> JsonObject:
        told = {"by": self.by, "prompt": self.prompt, "degraded": self.degraded, "topics": [*self.topics]}
        return {name: value for name, value in told.items() if value}

    @property
    def history(self) -> JsonObject:
        degraded = {} if self.degraded is None else {"degraded": self.degraded}
        return {"by": self.by, **degraded}


def _of_caller(
    messages: Sequence[Source], compactions: Sequence[Compaction]
) -> tuple[list[SessionSummary], list[Source]]:
    """Returns the caller's own summaries, and the messages that none of them covers."""
    found, rest = [], list(messages)
    for compaction in compactions:
        covered = [each for each in rest if compaction.covers(each)]
        if covered:
            found.append(SessionSummary(compaction.text, covered, CALLER, memory_id=compaction.memory_id))
            rest = [each for each in rest if not compaction.covers(each)]
    return found, rest


@dataclass(frozen=True)
class SummaryWriter:
    """Summarizes by these rules. `failing_since`: when requests to the model first failed."""

    parts: MemoryParts
    agent_id: str
    rules: SummaryRules
    failing_since: datetime

    async def of_session(
        self, messages: Sequence[Source], compactions: Sequence[Compaction], *, only_compacted: bool = False
    ) -> AsyncIterator[SessionSummary]:
        """Yields summaries that together cover all messages, the caller's own first.

        `only_compacted`: other messages stay pending. Raises DependencyUnavailable: retry later.
        """
        # Only `llm` summarizes again what the caller's own summaries cover.
        own, rest = _of_caller(messages, compactions if self.rules.provider != BY_LLM else ())
        for summary in own:
            yield summary
        if only_compacted and self.rules.provider != BY_LLM:
            return
        if self.rules.provider == AS_SAID:
            for segment in self._verbatim_pieces(rest):
                yield self._as_said(segment)
            return
        for talk in segments(rest, self.rules.max_messages):
            for segment in requests_of(talk):
                by_code = self.rules.provider == EXTRACTED
                yield await (self.extracted(segment) if by_code else self.by_model(segment))

    async def in_one(self, messages: Sequence[Source], provider: str) -> SessionSummary:
        """Returns one summary of all messages. Raises DependencyUnavailable: retry later."""
        if provider == EXTRACTED:
            return await self.extracted(messages)
        if provider != AS_SAID:
            return await self._in_one_by_model(messages)
        if len([*self._verbatim_pieces(_current(messages))]) > 1:
            return await self.extracted(messages)
        return self._as_said(messages)

    async def extracted(self, segment: Sequence[Source], degraded: str | None = None) -> SessionSummary:
        most, count = self.rules.max_tokens, self.parts.count_tokens
        made = await asyncio.to_thread(summarize, _current(segment), most, count)
        return SessionSummary(made.text, segment, EXTRACTED, degraded=degraded)

    async def by_model(self, segment: Sequence[Source]) -> SessionSummary:
        """Asks the model once, checks its answer, and falls back to extraction.

        Raises ModelFailed: retry later.
        """
        model = self.parts.summariser
        if model is None:
            return await self.extracted(segment, NO_MODEL)
        read = await asyncio.to_thread(as_read, _current(segment))
        if not any(each.content for each in read):
            return SessionSummary("", segment, model.model)
        said = [SourceText(each.content, each.speaker, each.timestamp) for each in read]
        request = SummaryRequest(tokens_of_text(self.rules.max_tokens), self.rules.prompt)
        try:
            written = await model.summarise(said, request, agent_id=self.agent_id)
        except DependencyUnavailable as failure:
            if not gives_up(failure, self.failing_since, self.parts.clock()):
                raise ModelFailed(failure, segment) from failure
            return await self.extracted(segment, failure.message)
        summary = await asyncio.to_thread(self._supported, model, written, segment, read)
        return summary if summary.text else await self.extracted(segment, summary.degraded)

    def _supported(
        self, model: Summariser, written: WrittenSummary, segment: Sequence[Source], read: Sequence[Source]
    ) -> SessionSummary:
        texts = SourceTexts(read)
        found = self._checked(written.text, written.key_facts, texts, read)
        topics = _distinct(collapse(each)[:TOPIC_CHARS] for each in written.topics if texts.holds(each))
        return SessionSummary(
            found.text,
            segment,
            model.model,
            topics=topics[:MOST_TOPICS],
            key_facts=found.facts,
            prompt=model.prompt,
            degraded=found.degraded,
        )

    def _checked(self, text: str, facts: Sequence[str], texts: SourceTexts, read: Sequence[Source]) -> Checked:
        return checked(text, facts, texts, read, self.rules.max_tokens, self.parts.count_tokens)

    async def _in_one_by_model(self, messages: Sequence[Source]) -> SessionSummary:
        told = messages
        while True:
            made = [await self.by_model(piece) for piece in requests_of(told)]
            if len(made) == 1:
                return made[0] if told is messages else await self._of_all(made[0], messages)
            summaries = [_as_source(each) for each in made if each.text]
            if len(summaries) >= len(told):
                return await self.extracted(messages)
            told = summaries

    async def _of_all(self, made: SessionSummary, messages: Sequence[Source]) -> SessionSummary:
        if made.by == EXTRACTED:
            return await self.extracted(messages, made.degraded)
        read = await asyncio.to_thread(as_read, _current(messages))
        found = await asyncio.to_thread(lambda: self._checked(made.text, made.key_facts, SourceTexts(read), read))
        if not found.text:
            return await self.extracted(messages, found.degraded)
        degraded = made.degraded or found.degraded
        return replace(made, text=found.text, key_facts=found.facts, covers=messages, degraded=degraded)

    def _verbatim_pieces(self, messages: Sequence[Source]) -> Iterator[Sequence[Source]]:
        sizes = [self.parts.count_tokens(each.line) for each in messages]
        return pieces(messages, sizes, self.rules.max_tokens)

    def _as_said(self, segment: Sequence[Source]) -> SessionSummary:
        text = "\n".join(each.line for each in _current(segment))
        degraded = TOO_LONG if len(text) > MAX_TEXT_CHARS else None
        return SessionSummary(text, segment, AS_SAID, degraded=degraded)


def requests_of(messages: Sequence[Source]) -> Iterator[Sequence[Source]]:
    """Splits the messages into pieces that fit one request."""
    return pieces(messages, [min(MEMORY_BYTES, size_bytes(each.line)) for each in messages], REQUEST_BYTES)


def source_of(row: Row) -> Source:
    memory = row["memory_id"], row["timestamp"], row["speaker"], row["content"], row["relevance_score"]
    return Source(*memory, row["version"], row["superseded_by"] is None)


def _current(messages: Sequence[Source]) -> list[Source]:
    return [each for each in messages if each.current]


def _as_source(summary: SessionSummary) -> Source:
    last = summary.covers[-1]
    text = "\n".join([summary.text, *summary.key_facts])
    return Source(last.memory_id, last.timestamp, None, text, 0.5, last.version)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list({text.casefold(): text for text in texts if text}.values())
