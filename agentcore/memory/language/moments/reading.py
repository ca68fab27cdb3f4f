"""The times of a whole text: windows, and the span a memory speaks of. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from itertools import islice

from agentcore.memory.language.moments.names import Found, Stance
from agentcore.memory.language.moments.periods import DAY, GRAINS, Grain, Period
from agentcore.memory.language.moments.phrases import begins, moment
from agentcore.memory.language.moments.words import Said
from agentcore.memory.models import FIRST_YEAR, LAST_YEAR

EARLIEST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
LATEST = datetime(LAST_YEAR, 12, 31, tzinfo=UTC)
READ_CHARS = 32_768
# Times further apart are not one time: of those the most precise counts.
JOINED_DAYS = 31
# A text with more times all over the calendar is about none of them.
TOLD_TIMES = 4
# Of a text with very many times only the first are read.
MOST_WINDOWS, MOST_TOLD = 8, 64

_OPEN = frozenset({"since", "before", "after", "until", "till", "by"})
_RANGES = {"between": frozenset({"and"}), "from": frozenset({"to", "until", "till", "through"})}


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time, `start` included and `end` not, in UTC, and the words that name it.

    `grain` says how precise the words are; "range" for a stretch of several.
    """

    start: datetime
    end: datetime
    phrase: str
    grain: Grain


def windows(query: str, now: datetime) -> tuple[Window, ...]:
    """The first times a question speaks of, at most `MOST_WINDOWS`; its days are those of the zone of `now`.

    "Since", "before", "after" and "until" open a window to one side: to today, `EARLIEST` or `LATEST`.
    """
    said = Said(query[:READ_CHARS])
    stance = Stance(now.date())
    found = []
    for period, at, after in islice(_periods(said, stance, open_sides=True), MOST_WINDOWS):
        with suppress(OverflowError, ValueError):
            start, end = _moments(period, now)
            if start < end:
                found.append(Window(start, end, said.phrase(at, after), period.grain))
    return tuple(found)


def mentioned(content: str, timestamp: datetime) -> tuple[datetime, datetime] | None:
    """The span of time that words said at `timestamp` speak of, in UTC; None where they name no other.

    Several times near each other are one span; of a few others the most precise counts, then the first. What
    only says now ("today", "this week") names none.
    """
    said, stance = Said(content[:READ_CHARS]), Stance(timestamp.date(), states=True)
    periods = [
        period
        for period, _, _ in islice(_periods(said, stance, open_sides=False), MOST_TOLD)
        if not period.present
    ]
    if not periods:
        return None
    whole = Period(min(each.start for each in periods), max(each.end for each in periods), "range")
    if whole.end - whole.start > JOINED_DAYS * DAY:
        if len(periods) > TOLD_TIMES:
            return None
        whole = min(periods, key=lambda each: (GRAINS.index(each.grain), each.end - each.start))
    with suppress(OverflowError, ValueError):
        start, end = _moments(whole, timestamp)
        return (start, end) if start < end else None
    return None


def _moments(period: Period, now: datetime) -> tuple[datetime, datetime]:
    start = datetime.combine(period.start, time.min, now.tzinfo).astimezone(UTC)
    end = datetime.combine(period.end, time.min, now.tzinfo).astimezone(UTC)
    return max(start, EARLIEST), min(end, LATEST)


def _periods(said: Said, stance: Stance, *, open_sides: bool) -> Iterator[tuple[Period, int, int]]:
    at = 0
    while at < len(said):
        word, found = said.lower(at), None
        if word in _RANGES or (open_sides and word in _OPEN):
            found = _range(said, at, stance) if word in _RANGES else _open(said, at, stance)
        if found is None and begins(word):
            found = moment(said, at, stance)
        if found is None:
            at += 1
        else:
            period, after = found
            yield period, at, after
            at = after


def _open(said: Said, at: int, stance: Stance) -> Found | None:
    relation = said.lower(at)
    found = moment(said, at + 1, replace(stance, named=True))
    if found is None:
        return None
    period, after = found
    match relation:
        case "since":
            bounds = period.start, max(stance.today + DAY, period.end)
        case "before":
            bounds = EARLIEST.date(), period.start
        case "after":
            bounds = period.end, LATEST.date()
        case _:
            bounds = EARLIEST.date(), period.end
    return Period(*bounds, "range"), after


def _range(said: Said, at: int, stance: Stance) -> Found | None:
    named = replace(stance, named=True)
    first = moment(said, at + 1, named)
    if first is None or said.lower(first[1]) not in _RANGES[said.lower(at)]:
        return None
    second = moment(said, first[1] + 1, named)
    if second is None:
        return None
    begun, ended = _in_order(said, at + 1, first, second, named)
    if begun.start >= ended.end:
        return None
    return Period(begun.start, ended.end, "range"), second[1]


def _in_order(said: Said, at: int, first: Found, second: Found, stance: Stance) -> tuple[Period, Period]:
    begun, ended = first[0], second[0]
    if ended.floating and not begun.floating:
        later = moment(said, first[1] + 1, replace(stance, today=begun.start, coming=True))
        return begun, later[0] if later else ended
    if begun.floating:
        earlier = moment(said, at, replace(stance, today=ended.start, coming=False))
        return earlier[0] if earlier else begun, ended
    return begun, ended
