"""Detects historical queries, which superseded memories may answer. Pure.

By the sample of historical queries (`ranking/historical.py`) in any language, by signs in English.

`ranking/opposition.py` handles what only may ask about the past ("who was ...").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentcore.memory.ranking.candidates import Span

# A longer prompt speaks of many things.
READ_CHARS = 300
# The minimum probability at which the vector alone makes a query historical.
HISTORICAL_THRESHOLD = 0.8

_THEN = r"\b(?:was|were|did|had|used)\b(?:[^?.!;]{0,120}\s)?"
_END = r"(?=\s*(?:[?!.]|$))"
_WHOSE = r"(?:my|our|his|her|their|the|[\w-]+['’]s)"  # noqa: RUF001 - as it is typed, too
# Not a name: times, however they are capitalised.
_TIMES = r"""(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august
|september|october|november|december|christmas|easter|halloween|thanksgiving|new\ year|ramadan|q[1-4]|i)\b"""
# What each may stand before without asking for what held: "the previous message", "an old friend".
_OF_A_TALK = r"""(?:message|question|answer|conversation|chat|session|turn|reply|response|request|prompt|page
|step)s?"""
_OLD = r"""(?:address|number|phone(?:\ number)?|e-?mail(?:\ address)?|job|boss|manager|plan|price|budget
|deadline|name|flat|apartment|office|employer|limit|version|value|landlord|doctor|dentist)"""
_STATES = r"(?:be|have|live|like|love|hate|work|own|visit|belong|earn|weigh|smoke)"
_CHANGED = r"(?:changed|switched|moved|raised|lowered|replaced|renamed|updated|upgraded|migrated|promoted)"
_CHANGE = r"(?:change|switch|rise|raise|update|upgrade|replacement|rename|migration)"
_NO_CLAUSE = r"(?:(?!\b(?:when|if|because|so|while|although|and|but|that|since)\b)[^?.!;,]){0,80}"
_ASKED = r"""^\W*(?:what|which|who|whom|whose|where|is|are|am|do|does|was|were|has|have
|isn't|aren't|doesn't|don't)\b"""

_SIGNS = tuple(
    re.compile(pattern, re.IGNORECASE | re.VERBOSE)
    for pattern in (
        # Before whom: a name, at the end or with what it did.
        rf"{_THEN}(?P<sign>before\s+(?!{_TIMES})(?-i:[A-Z])[\w'-]+(?:\s+(?-i:[A-Z])[\w'-]+)?)"
        rf"(?:\s+(?:came|started|joined|arrived|began|took\s+over))?{_END}",
        rf"{_THEN}(?P<sign>before(?:\s+(?:that|this|now|then|him|her|them|it))?){_END}",
        rf"{_THEN}(?P<sign>before\s+(?:the|that)\s+(?:last\s+)?{_CHANGE}){_END}",
        rf"{_THEN}(?P<sign>before\s+(?:\w+\s+){{1,3}}{_CHANGED})\b",
        # "As previously agreed" tells, and asks for nothing.
        rf"(?<!as\s)\b(?P<sign>previous(?:ly)?)\b(?!\s+{_OF_A_TALK}\b)(?!\s+to\b)",
        r"\b(?P<sign>former)\s+(?!and\b|or\b|of\b|is\b|was\b|one\b)[a-z]",
        r"\b(?P<sign>formerly)\b",
        rf"\b(?:my|our|his|her|their|[\w-]+['’]s)\s+(?P<sign>old)\s+{_OLD}\b",  # noqa: RUF001
        # What one is used to, or what somebody used to cut the bread, is no past.
        r"(?<!get\s)(?<!got\s)(?<!is\s)(?<!are\s)(?<!was\s)(?<!were\s)(?<!been\s)(?<!getting\s)"
        rf"\b(?P<sign>used\s+to\s+{_STATES})\b",
        rf"\bdid\b[^?.!;]{{1,60}}\s(?P<sign>use\s+to\s+{_STATES})\b",
        rf"{_THEN}(?P<sign>at\s+first){_END}",
        rf"{_THEN}(?P<sign>originally)\b(?!\s+from\b)",
        rf"\b(?:was|were)\s+{_WHOSE}\s+(?P<sign>original|initial|earlier)\s+[a-z]",
        rf"^\W*(?:who|what|where|which|how)\b[^?.!;]{{0,40}}{_THEN}(?P<sign>earlier){_END}",
        rf"{_ASKED}{_NO_CLAUSE}\b(?P<sign>no\s+longer)\b",
        rf"{_ASKED}{_NO_CLAUSE}(?:n't|\bnot|\bno)\b{_NO_CLAUSE}\b(?P<sign>any\s?more|any\s+longer){_END}",
        rf"^\W*(?:isn't|aren't|doesn't|don't)\b{_NO_CLAUSE}\b(?P<sign>any\s?more|any\s+longer){_END}",
        r"\b(?P<sign>since\s+when)\b",
        rf"\b(?P<sign>how\s+(?:often\s+)?(?:did|has|have|had)\b[^?.!;,]{{1,80}}\s(?:changed?|evolved?)"
        rf"(?:\s+over\s+(?:time|the\s+(?:last\s+|past\s+)?(?:years|months|weeks)))?)(?:\s+since\b[^?.!;]*)?{_END}",
    )
)


def sign_of_the_past(query: str) -> str | None:
    """The words by which a query surely asks for what held before, or none."""
    return next(_signs(query), None) if is_short(query) else None


def is_short(query: str) -> bool:
    """Returns whether the query is short enough for historical detection."""
    return len(query) <= READ_CHARS


def _signs(query: str) -> Iterator[str]:
    found = (pattern.search(query) for pattern in _SIGNS)
    return (" ".join(each["sign"].split()) for each in found if each is not None)


@dataclass(frozen=True)
class LookingBack:
    """Why superseded memories are searched beside what holds, and of which times.

    `phrase` are the query's words that say so, or None if its vector does, with this `probability`. Without
    `spans` any time is meant; with them what is superseded must have been valid in one.
    """

    phrase: str | None
    spans: Sequence[Span] | None = None
    probability: float | None = None

    def told(self) -> Mapping[str, Any]:
        """What the receipt says of it."""
        if self.probability is not None:
            return {"probability": round(self.probability, 2)}
        if self.spans is None:
            return {"phrase": self.phrase}
        return {
            "phrase": self.phrase,
            "held_in": [[start.isoformat(), end.isoformat()] for start, end in self.spans],
        }


def looking_back(
    query: str, named: Sequence[tuple[str, Span]], now: datetime, probability: float = 0.0
) -> LookingBack | None:
    """Returns what the query asks of the past: by a sign, by times before `now`, or by its probability.

    `named` are the times it names, each with the words. A long prompt, such as a log, names times of all
    sorts.
    """
    if not is_short(query):
        return None
    sign = sign_of_the_past(query)
    if sign is not None:
        return LookingBack(sign)
    over = [(phrase, span) for phrase, span in named if span[1] <= now]
    if not over:
        return LookingBack(None, probability=probability) if probability >= HISTORICAL_THRESHOLD else None
    return LookingBack("; ".join(dict.fromkeys(phrase for phrase, _ in over)), [span for _, span in over])
