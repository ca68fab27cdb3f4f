"""A session's summary, made of its messages' own sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from agentcore.agents.session_memory.messages import (
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
    SummaryStyle,
)
from agentcore.agents.session_memory.selection import said_at
from agentcore.memory.language.llm_text import beginning
from agentcore.memory.models import DEFAULT_IMPORTANCE
from agentcore.memory.summaries.summarizing import Source, summarize

USUAL_CHARS: Mapping[SummaryStyle, int] = {"brief": 400, "detailed": 2_000}


def summary_of(messages: Sequence[SessionMessage], options: SummarizeOptions) -> SessionSummary:
    """The sentences that say most, in the order of their times; given newest first."""
    longest = options.max_length or USUAL_CHARS[options.style]
    text = summed_up(messages, longest, len, named=options.style == "detailed")
    return SessionSummary(content=text, message_count=len(messages), style=options.style)


def summed_up(
    messages: Sequence[SessionMessage], longest: int, measure: Callable[[str], int], *, named: bool
) -> str:
    """The sentences that say most, in the order of their times, no longer by that measure.

    Messages are given newest first. Where no sentence can stand by itself it is the newest message, cut.
    `named`: a sentence stands behind the name or role of who said it.
    """
    sources = [
        Source(
            UUID(int=place), said_at(message), (message.name or message.role) if named else None,
            message.content, DEFAULT_IMPORTANCE if message.importance is None else message.importance)
        for place, message in enumerate(reversed(messages))
    ]
    text = summarize(sources, longest, measure).text
    if not text and messages:
        text = beginning(messages[0].content, longest, measure).strip()
    return text
