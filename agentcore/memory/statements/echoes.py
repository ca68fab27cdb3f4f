"""Whether somebody's words only repeat what another has just stated: "Noted, your boss is Henrik". Pure.

In doubt they do not: what says anything else beside it, asks, or speaks of whoever repeats it is no echo.
"""

from __future__ import annotations

import re
from datetime import timedelta

from agentcore.memory.statements.statements import Statement, Told, plain, read, same_speaker

# What repeats it is said soon.
ECHO_WINDOW = timedelta(minutes=10)
_HEARD = re.compile(
    r"^(?:(?:noted|got it|ok|okay|understood|thanks|thank you|alright|all right|great|perfect|i see)"
    r"\s*[,.!:;\u2013\u2014-]+\s*)+",
    re.IGNORECASE,
)
_KEPT = re.compile(
    r"[.!]\s+(?:i(?:'ll| will|'ve| have) (?:remember(?:ed)?|note(?:d)?|save(?:d)?|keep|kept) "
    r"(?:that|this|it)(?: (?:down|in mind))?|(?:thanks|thank you) for (?:telling me|letting me know))[.!]*$",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
_TURNED = (
    (re.compile(r"\byou are\b", re.IGNORECASE), "I am"),
    (re.compile(r"\byour\b", re.IGNORECASE), "my"),
    (re.compile(r"\byou\b", re.IGNORECASE), "I"),
)


def echoes(stated: Told, said: Told) -> bool:
    """Whether `said` is nothing but what `stated` says, soon behind it, in the words of another."""
    if not _answers(stated, said) or "?" in said.content:
        return False
    repeated = plain(_HEARD.sub("", _KEPT.sub(".", plain(said.content) + ".")))
    if _OWN.search(repeated):
        return False
    for pattern, turned in _TURNED:
        repeated = pattern.sub(turned, repeated)
    was, now = _alone(stated.content), _alone(repeated)
    return was is not None and now is not None and _told(was) == _told(now)


def _answers(stated: Told, said: Told) -> bool:
    if stated.session_id is None or not stated.speaker or not said.speaker or same_speaker(stated, said):
        return False
    soon = stated.timestamp <= said.timestamp <= stated.timestamp + ECHO_WINDOW
    return soon and _talk(stated) == _talk(said)


def _talk(told: Told) -> tuple[str | None, ...]:
    return told.session_id, told.user_id, told.task_id


def _alone(text: str) -> Statement | None:
    reading = read(text)
    alone = reading.whole and not reading.adds and len(reading.statements) == 1
    return reading.statements[0] if alone else None


def _told(said: Statement) -> tuple[object, ...]:
    tail = [token.canon for token in said.tail]
    dropped = [token.canon for token in said.dropped]
    return said.subject, said.verb, tail, said.own, said.negated, said.changed, dropped, said.request
