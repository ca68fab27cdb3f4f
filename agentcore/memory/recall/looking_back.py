"""Detects historical queries, which superseded memories may answer. Pure.

By a time in the query that was over when it was asked, or by the sample of `ranking/historical.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentcore.memory.ranking.candidates import Span

# A longer prompt, such as a log, names times of all sorts.
READ_CHARS = 300
# The minimum probability at which the vector alone makes a query historical.
HISTORICAL_THRESHOLD = 0.8


@dataclass(frozen=True)
class LookingBack:
    """Why superseded memories are searched, too, and those of which times.

    `phrase`: the words of the query that name the times `spans`, in one of which a superseded memory must be
    valid; None: any, because the query is historical with this `probability`.
    """

    phrase: str | None
    spans: Sequence[Span] | None = None
    probability: float | None = None

    def told(self) -> Mapping[str, Any]:
        """Returns what the receipt states of it."""
        if self.spans is None:
            return {"probability": round(self.probability or 0.0, 2)}
        return {
            "phrase": self.phrase,
            "held_in": [[start.isoformat(), end.isoformat()] for start, end in self.spans],
        }


def is_short(query: str) -> bool:
    """Returns whether the query is short enough for historical detection."""
    return len(query) <= READ_CHARS


def looking_back(
    query: str, named: Sequence[tuple[str, Span]], now: datetime, probability: float = 0.0
) -> LookingBack | None:
    """Returns what superseded memories a query asks for: by times before `now`, or by its probability.

    `named` are the times it names, each with the words.
    """
    if not is_short(query):
        return None
    over = [(phrase, span) for phrase, span in named if span[1] <= now]
    if not over:
        return LookingBack(None, probability=probability) if probability >= HISTORICAL_THRESHOLD else None
    return LookingBack("; ".join(dict.fromkeys(phrase for phrase, _ in over)), [span for _, span in over])
