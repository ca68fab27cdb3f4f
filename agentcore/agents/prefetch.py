"""Memory for the start of a conversation: fetched once, for the first user turn, and fenced as data.

What it gives goes into the instructions (a system message); it never becomes a turn that nobody spoke.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentcore.agents.holdable import searchable
from agentcore.agents.scope import MemoryScope
from agentcore.memory.api import MemoryApi
from agentcore.memory.empty_results import UNAVAILABLE
from agentcore.memory.params import ContextParams

logger = logging.getLogger(__name__)

PREFETCHED_TOKENS = 800
FENCE = "agent_memory"
_INSTRUCTIONS = ("system", "developer")
# What stands in a memory can neither end the fence nor open another.
_FENCE_INSIDE = re.compile(rf"<(?=\s*/?\s*{FENCE})", re.IGNORECASE)


def fenced(context: str) -> str:
    """The context between marks that say where quoted data begins and ends; empty for an empty one."""
    if not context.strip():
        return ""
    return f"<{FENCE}>\n{_FENCE_INSIDE.sub('(', context).strip()}\n</{FENCE}>"


async def prefetched(
    memory: MemoryApi, message: str, scope: MemoryScope | None = None, *, max_tokens: int = PREFETCHED_TOKENS
) -> str:
    """What memory holds for a first message, fenced; empty where nothing fits, as for a greeting.

    A long message is searched sentence by sentence by the service.
    """
    if not (asked := searchable(message)):
        return ""
    scope = scope or MemoryScope()
    built = await memory.get_context(ContextParams(
        query=asked, task_id=scope.task_id, max_tokens=max_tokens, **scope.filters()))
    return fenced(built.context)


async def with_memory(
    memory: MemoryApi, messages: Sequence[Mapping[str, Any]], scope: MemoryScope | None = None, *,
    max_tokens: int = PREFETCHED_TOKENS,
) -> list[dict[str, Any]]:
    """The messages of a chat, on its first user turn with what memory holds for it; later as they are.

    The block follows the system messages that open the chat, as one more of them. Where memory does not
    answer there is none, and a warning is logged.
    """
    chat = [dict(message) for message in messages]
    first = first_user_text(chat)
    try:
        block = "" if first is None else await prefetched(memory, first, scope, max_tokens=max_tokens)
    except UNAVAILABLE as failure:
        logger.warning("the chat begins without memory: %s", failure.message)
        return chat
    if not block:
        return chat
    opening = next(n for n, message in enumerate(chat) if message.get("role") not in _INSTRUCTIONS)
    return [*chat[:opening], {"role": "system", "content": block}, *chat[opening:]]


def first_user_text(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The text of the only user turn, where nobody has answered yet; else None."""
    turns = [message for message in messages if message.get("role") not in _INSTRUCTIONS]
    if len(turns) != 1 or turns[0].get("role") != "user":
        return None
    content = turns[0].get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping)) or None
