"""Prefetches memory for the first user turn of a conversation, fenced as data above the user's words."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentcore.agents.recordable import searchable
from agentcore.agents.scope import MemoryScope
from agentcore.memory.api import UNAVAILABLE, MemoryApi
from agentcore.memory.params.memories import GetContextParams, GetContextResult

logger = logging.getLogger(__name__)

PREFETCHED_TOKENS = 800
_INSTRUCTIONS = ("system", "developer")


class Chat(list[dict[str, Any]]):
    """The messages of a chat; line n of the prefetched context quotes memory `memory_ids[n - 1]`."""

    memory_ids: Sequence[UUID] = ()


def above(context: str, words: str) -> str:
    """Returns the words below their context."""
    return f"{context.strip()}\n\n{words}" if context.strip() else words


async def prefetched(
    memory: MemoryApi, message: str, scope: MemoryScope | None = None, *, max_tokens: int = PREFETCHED_TOKENS
) -> GetContextResult | None:
    """Returns the fenced context for a first message; the context is empty if no memory matches.

    None if the message is blank. The service searches a long message sentence by sentence. `max_tokens`
    includes the fence.
    """
    if not (asked := searchable(message)):
        return None
    scope = scope or MemoryScope()
    return await memory.get_context(
        GetContextParams(query=asked, task_id=scope.task_id, max_tokens=max_tokens, **scope.filters())
    )


async def with_memory(
    memory: MemoryApi,
    messages: Sequence[Mapping[str, Any]],
    scope: MemoryScope | None = None,
    *,
    max_tokens: int = PREFETCHED_TOKENS,
) -> Chat:
    """Returns the messages of a chat with prefetched context in the first user turn; unchanged later.

    The block precedes the user's words. It is for the model only: do not store it as the user's text. If
    memory is unavailable, the messages stay unchanged and a warning is logged.
    """
    chat = Chat(dict(message) for message in messages)
    first = first_user_text(chat)
    try:
        built = None if first is None else await prefetched(memory, first, scope, max_tokens=max_tokens)
    except UNAVAILABLE as failure:
        logger.warning("the chat begins without memory: %s", failure.message)
        return chat
    if built is None or not (block := built.context.strip()):
        return chat
    chat.memory_ids = tuple(built.memory_ids)
    turn = next(message for message in chat if message.get("role") not in _INSTRUCTIONS)
    turn["content"] = _opened(turn["content"], block)
    return chat


def first_user_text(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the text of the only user turn if it has no answer yet; else None."""
    turns = [message for message in messages if message.get("role") not in _INSTRUCTIONS]
    if len(turns) != 1 or turns[0].get("role") != "user":
        return None
    content = turns[0].get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping)) or None


def _opened(content: str | list[Any], block: str) -> str | list[Any]:
    if isinstance(content, str):
        return above(block, content)
    kind = next(part.get("type", "text") for part in content if isinstance(part, Mapping) and "text" in part)
    return [{"type": kind, "text": block}, *content]
