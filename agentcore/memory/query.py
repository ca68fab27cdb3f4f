"""What is asked: a vague query is completed from the turns before it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentcore.memory.lexical import terms
from agentcore.memory.params import Turn

VAGUE_TERMS = 2
JOINED_TURNS = 2


def complete(query: str, history: Sequence[Turn]) -> str:
    """The query, with the last user turns before it where it says too little by itself ("how much?")."""
    if len(terms(query)) > VAGUE_TERMS:
        return query
    earlier = [turn.content for turn in history if turn.role == "user"][-JOINED_TURNS:]
    return "\n".join([*earlier, query])
