"""The SummaryProvider protocol, its implementations and their table; those without a model are fallbacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from agentcore.errors import AgentCoreError, DependencyUnavailable
from agentcore.limits import MAX_TEXT_CHARS
from agentcore.memory.language.llm_text import MEMORY_BYTES, REQUEST_BYTES, size_bytes
from agentcore.memory.language.text import collapse
from agentcore.memory.llm import Said, Summariser, SummaryRequest, WrittenSummary
from agentcore.memory.models import JsonObject
from agentcore.memory.summaries.grounding import SourceTexts, as_read, checked, tokens_of_text
from agentcore.memory.summaries.summarizing import Source, pieces, segments, summarize
from agentcore.summary_rules import SummaryRules

MOST_TOPICS, TOPIC_CHARS = 5, 80
EXTRACTED, AS_SAID, CALLER = "extractive", "passthrough", "caller"
NO_MODEL = "this service has no language model"
TOO_LONG = "it was longer than a memory may be, and is cut"


class ModelFailed(DependencyUnavailable):
    """A model failed on these messages."""

    def __init__(self, failure: DependencyUnavailable, segment: Sequence[Message]) -> None:
        super().__init__(failure.message, data=failure.data)
        self.memory_ids = [each.memory_id for each in segment]


@dataclass(frozen=True)
class Message:
    """A message of a session. A superseded one (`told` False) is covered by the summary, but not quoted."""

    memory_id: UUID
    version: int
    said_at: datetime
    speaker: str | None
    text: str
    importance: float
    told: bool = True

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True)
class Compaction:
    """The caller's own summary of what was said from `began` (None: the start) to `ended`."""

    memory_id: UUID
    text: str
    began: datetime | None
    ended: datetime

    def covers(self, message: Message) -> bool:
        return (self.began is None or self.began <= message.said_at) and message.said_at <= self.ended


@dataclass(frozen=True)
class Conversation:
    """The messages of a session to summarize, oldest first."""

    messages: Sequence[Message]
    compactions: Sequence[Compaction] = ()


@dataclass(frozen=True)
class SessionSummary:
    """A summary of these messages. Empty text: nothing to say. `memory_id`: it is stored already."""

    text: str
    covers: Sequence[Message]
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
        """Metadata of how it was made."""
        told = {"by": self.by, "prompt": self.prompt, "degraded": self.degraded, "topics": [*self.topics]}
        return {name: value for name, value in told.items() if value}


class SummaryProvider(Protocol):
    """Summarizes the pending messages of a session."""

    def summaries(self, conversation: Conversation) -> AsyncIterator[SessionSummary]:
        """Yields summaries that together cover all messages. Raises DependencyUnavailable: retry later."""


@dataclass(frozen=True)
class ProviderParts:
    """Inputs of a provider. `gives_up` says whether to fall back after a model's failure."""

    agent_id: str
    rules: SummaryRules
    count_tokens: Callable[[str], int]
    summariser: Summariser | None
    gives_up: Callable[[AgentCoreError], bool]


class ExtractiveSummaryProvider:
    """Selects the most informative sentences of the messages."""

    def __init__(self, parts: ProviderParts) -> None:
        self._parts = parts

    async def summaries(self, conversation: Conversation) -> AsyncIterator[SessionSummary]:
        for segment in _segments(conversation.messages, self._parts.rules):
            yield await self.extracted(segment)

    async def extracted(self, segment: Sequence[Message], degraded: str | None = None) -> SessionSummary:
        """Returns the summary of one segment."""
        rules, sources = self._parts.rules, sources_of(segment)
        made = await asyncio.to_thread(summarize, sources, rules.max_tokens, self._parts.count_tokens)
        return SessionSummary(made.text, segment, EXTRACTED, degraded=degraded)


class LlmSummaryProvider:
    """Asks a language model; unsupported claims are removed, and lost names and numbers added."""

    def __init__(self, parts: ProviderParts) -> None:
        self._parts = parts
        self._extractive = ExtractiveSummaryProvider(parts)

    async def summaries(self, conversation: Conversation) -> AsyncIterator[SessionSummary]:
        for segment in _segments(conversation.messages, self._parts.rules):
            yield await self.summary(segment)

    async def summary(self, segment: Sequence[Message]) -> SessionSummary:
        """Returns the summary of one request. Raises DependencyUnavailable: retry later."""
        model, parts = self._parts.summariser, self._parts
        if model is None:
            return await self._extractive.extracted(segment, NO_MODEL)
        read = await asyncio.to_thread(as_read, sources_of(segment))
        if not any(each.content for each in read):
            return SessionSummary("", segment, model.model)
        said = [Said(each.content, each.speaker, each.timestamp) for each in read]
        wish = SummaryRequest(tokens_of_text(parts.rules.max_tokens), parts.rules.prompt)
        try:
            written = await model.summarise(said, wish, agent_id=parts.agent_id)
        except DependencyUnavailable as failure:
            if not parts.gives_up(failure):
                raise ModelFailed(failure, segment) from failure
            return await self._extractive.extracted(segment, failure.message)
        summary = await asyncio.to_thread(self._checked, model, written, segment, read)
        return summary if summary.text else await self._extractive.extracted(segment, summary.degraded)

    def _checked(
        self, model: Summariser, written: WrittenSummary, segment: Sequence[Message], read: Sequence[Source]
    ) -> SessionSummary:
        most, count, texts = self._parts.rules.max_tokens, self._parts.count_tokens, SourceTexts(read)
        found = checked(written.text, written.key_facts, texts, read, most, count)
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


class PassthroughSummaryProvider:
    """Stores the messages verbatim, several to a memory."""

    def __init__(self, parts: ProviderParts) -> None:
        self._parts = parts

    async def summaries(self, conversation: Conversation) -> AsyncIterator[SessionSummary]:
        for segment in self._pieces(conversation.messages):
            yield self._as_said(segment)

    async def in_one(self, messages: Sequence[Message]) -> SessionSummary:
        """Returns one summary: verbatim if a memory can contain that, else by extraction."""
        told = [each for each in messages if each.told]
        if len([*self._pieces(told)]) > 1:
            return await ExtractiveSummaryProvider(self._parts).extracted(messages)
        return self._as_said(messages)

    def _pieces(self, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        sizes = [self._parts.count_tokens(each.line) for each in messages]
        return pieces(messages, sizes, self._parts.rules.max_tokens)

    def _as_said(self, segment: Sequence[Message]) -> SessionSummary:
        text = "\n".join(each.line for each in segment if each.told)
        degraded = TOO_LONG if len(text) > MAX_TEXT_CHARS else None
        return SessionSummary(text, segment, AS_SAID, degraded=degraded)


class CompactionAwareSummaryProvider:
    """Uses the caller's own summaries, and another provider for the rest."""

    def __init__(self, rest: SummaryProvider | None) -> None:
        self._rest = rest

    async def summaries(self, conversation: Conversation) -> AsyncIterator[SessionSummary]:
        """Without another provider, messages outside the caller's summaries stay pending."""
        rest = list(conversation.messages)
        for compaction in conversation.compactions:
            covered = [each for each in rest if compaction.covers(each)]
            if covered:
                yield SessionSummary(compaction.text, covered, CALLER, memory_id=compaction.memory_id)
                rest = [each for each in rest if not compaction.covers(each)]
        if rest and self._rest is not None:
            async for summary in self._rest.summaries(replace(conversation, messages=rest, compactions=())):
                yield summary


# By name in the rules. Only `llm` summarizes again what the caller's own summaries cover.
SUMMARY_PROVIDERS: Mapping[str, Callable[[ProviderParts], SummaryProvider]] = {
    "extractive": lambda parts: CompactionAwareSummaryProvider(ExtractiveSummaryProvider(parts)),
    "llm": LlmSummaryProvider,
    "compaction_aware": lambda parts: CompactionAwareSummaryProvider(LlmSummaryProvider(parts)),
    "passthrough": lambda parts: CompactionAwareSummaryProvider(PassthroughSummaryProvider(parts)),
}


def requests_of(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """Splits the messages into pieces that fit one request."""
    return pieces(messages, [min(MEMORY_BYTES, size_bytes(each.line)) for each in messages], REQUEST_BYTES)


def _segments(messages: Sequence[Message], rules: SummaryRules) -> Iterator[Sequence[Message]]:
    for segment in segments(messages, rules.max_messages):
        yield from requests_of(segment)


def sources_of(segment: Sequence[Message]) -> list[Source]:
    """Returns the messages that are current."""
    return [
        Source(each.memory_id, each.said_at, each.speaker, each.text, each.importance) for each in segment if each.told
    ]


def _distinct(texts: Iterator[str]) -> list[str]:
    return list({text.casefold(): text for text in texts if text}.values())
