"""Enqueues new messages to be compared with earlier ones; the pending rows count, not the jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentcore.memory.models import MemoryType
from agentcore.memory.parts import MemoryParts
from agentcore.memory.scoring import is_assistant
from agentcore.memory.storage import MemoryTransaction, NewMemory

RELATE_MESSAGES = "relate_messages"
# A longer text is a document, not a message: its beginning tells little of what it changes.
LONGEST_CHARS = 4_000
_TYPES = frozenset({MemoryType.EPISODIC.value, MemoryType.SEMANTIC.value})
_SAID = frozenset({"content", "interaction"})


async def queue_relations(
    transaction: MemoryTransaction, parts: MemoryParts, memories: Sequence[NewMemory]
) -> None:
    """Enqueues the messages among these new memories. One of a transaction's last acts."""
    pending = [each.memory_id for each in memories if is_message(each.columns)]
    if parts.relations is not None and pending:
        await transaction.relations.queue(pending)
        await transaction.jobs.enqueue(RELATE_MESSAGES)


def is_message(columns: Mapping[str, Any]) -> bool:
    """Whether a memory is what somebody said or noted, rather than derived, an assistant's or a document."""
    said = columns["parent_memory_id"] is None and columns["provenance"].get("form") in _SAID
    lasts = columns["memory_type"] in _TYPES and not columns["flagged"]
    short = len(columns["content"]) <= LONGEST_CHARS
    return said and lasts and short and not is_assistant(columns["speaker"])
