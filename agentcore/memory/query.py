"""What is asked: a vague query is completed from the turns before it, one for the present weighs time more.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from agentcore.memory.lexical import terms
from agentcore.memory.params import Turn
from agentcore.memory.scoring import RetrievalWeights

VAGUE_TERMS = 2
JOINED_TURNS = 2
# How much more recency counts where the query asks how things stand now.
PRESENT_FACTOR = 6.0
_PRESENT = re.compile(
    r"\b(?:now|nowadays|currently|current|presently|latest|newest|most recent|most recently|these days|today"
    r"|at present|at the moment|still|so far|up to date)\b",
    re.IGNORECASE,
)


def complete(query: str, history: Sequence[Turn]) -> str:
    """The query, with the last user turns before it where it says too little by itself ("how much?")."""
    if len(terms(query)) > VAGUE_TERMS:
        return query
    earlier = [turn.content for turn in history if turn.role == "user"][-JOINED_TURNS:]
    return "\n".join([*earlier, query])


def weighed(query: str, weights: RetrievalWeights) -> RetrievalWeights:
    """The weights for this query: "what is the budget now?" wants the newest of what fits."""
    if _PRESENT.search(query) is None:
        return weights
    return replace(weights, recency=PRESENT_FACTOR * weights.recency)
