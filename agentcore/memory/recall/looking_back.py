"""Looking back: whether a query surely asks of the past, so that what held before may answer it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentcore.memory.language.past import READ_CHARS, sign_of_the_past
from agentcore.memory.ranking.candidates import Span


@dataclass(frozen=True)
class LookingBack:
    """Why superseded memories are searched beside what holds, and of which times.

    `phrase` are the query's words that say so. Without `spans` any time is meant; with them what is
    superseded must have held in one.
    """

    phrase: str
    spans: Sequence[Span] | None = None

    def told(self) -> Mapping[str, Any]:
        """What the receipt says of it."""
        if self.spans is None:
            return {"phrase": self.phrase}
        return {
            "phrase": self.phrase,
            "held_in": [[start.isoformat(), end.isoformat()] for start, end in self.spans],
        }


def looking_back(query: str, named: Sequence[tuple[str, Span]], now: datetime) -> LookingBack | None:
    """What the query asks of the past, by a sign of it or by times that were over before `now`.

    `named` are the times it names, each with the words. A long prompt, such as a log, names times of all
    sorts.
    """
    if len(query) > READ_CHARS:
        return None
    sign = sign_of_the_past(query)
    if sign is not None:
        return LookingBack(sign)
    over = [(phrase, span) for phrase, span in named if span[1] <= now]
    if not over:
        return None
    return LookingBack("; ".join(dict.fromkeys(phrase for phrase, _ in over)), [span for _, span in over])
