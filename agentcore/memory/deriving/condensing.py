"""Telling several memories in few words, with a language model's where it may be asked, else in their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentcore.errors import DependencyUnavailable
from agentcore.memory.language.llm_text import REQUEST_BYTES, size_bytes
from agentcore.memory.llm import Said, SummaryWish
from agentcore.memory.parts import MemoryParts
from agentcore.memory.summaries.grounding import Heard
from agentcore.memory.summaries.summarizing import Source, Summary, summarize
from agentcore.memory.summaries.survival import as_read, checked, told_tokens

TOO_LONG = "it is more than one request to a model holds"


async def condense(
    parts: MemoryParts, agent_id: str, sources: Sequence[Source], max_tokens: int, *, by_model: bool
) -> tuple[Summary, str | None]:
    """A summary of at most so many tokens, and why it is not the model's where it was to be."""
    degraded = None
    if by_model and parts.summariser is not None:
        written, degraded = await _written(parts, agent_id, sources, max_tokens)
        if written is not None:
            return written, None
    return await asyncio.to_thread(summarize, sources, max_tokens, parts.count_tokens), degraded


async def _written(
    parts: MemoryParts, agent_id: str, sources: Sequence[Source], max_tokens: int
) -> tuple[Summary | None, str | None]:
    """The model's summary as far as it holds; else why there is none."""
    if parts.summariser is None:
        return None, None
    if sum(size_bytes(each.content) for each in sources) > REQUEST_BYTES:
        return None, TOO_LONG
    read = await asyncio.to_thread(as_read, sources)
    said = [Said(each.content, each.speaker, each.timestamp) for each in read]
    wish = SummaryWish(told_tokens(max_tokens))
    try:
        written = await parts.summariser.summarise(said, wish, agent_id=agent_id)
    except DependencyUnavailable as failure:
        return None, failure.message
    count = parts.count_tokens
    found = await asyncio.to_thread(lambda: checked(written.text, (), Heard(read), read, max_tokens, count))
    if not found.text:
        return None, found.degraded
    tokens = count(found.content)
    return Summary(found.content, tokens, [each.memory_id for each in sources]), None
