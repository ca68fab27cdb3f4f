"""Turns times in a text ("last week", "in May 2023", "between the 3rd and Friday") into spans. English; pure.

Ambiguous forms are ignored: 7/5/2023 (two days), 1.2.2023 (a version), a bare "may" or "march".
A month or weekday alone is the latest begun; in a sentence about the future, the next. Unless the sentence is about the
past, a day of a month without a year is the nearer one, and a weekday in a statement the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from itertools import islice

from agentcore.memory.language.calendar_words import (
    COUNTS,
    DAY,
    GRAINS,
    HYPHENS,
    MONTHS,
    PREPOSITIONS,
    SATURDAY,
    SEASONS,
    UNITS,
    WEEKDAYS,
    Grain,
    Period,
    Said,
    Unit,
    Which,
    around,
    beside,
    day,
    moved,
    part,
    rolling,
    unit,
    weekday,
)
from agentcore.memory.language.time_names import (
    HOLIDAYS,
    SAME_DAY,
    Found,
    Rule,
    Stance,
    bare_year,
    day_first,
    day_of_month,
    days_first,
    holiday_name,
    month_name,
    quarter_name,
    season_name,
    week_day,
    which_one,
    written_date,
    yearly,
)
from agentcore.memory.models import FIRST_YEAR, LAST_YEAR

TUESDAY = 1
_WHICH: Mapping[str, Which] = {
    "last": "last", "past": "last", "previous": "last", "this": "this", "next": "next", "coming": "coming",
    "upcoming": "coming",
}  # fmt: skip
_PARTS = {
    "early": "early", "beginning": "early", "start": "early", "mid": "mid", "middle": "mid", "late": "late",
    "end": "late",
}  # fmt: skip


def moment(said: Said, at: int, stance: Stance) -> Found | None:
    """Returns the time named from this word on, and the position after it."""
    lower = said.lower(at)
    rules = _RULES.get(lower) or (_NUMBER_RULES if lower.isdecimal() else ())
    for rule in rules:
        # Out of the calendar: 30 February, 9,000 years ago.
        with suppress(OverflowError, ValueError):
            found = rule(said, at, stance)
            if found is not None:
                return found
    return None


def _near_today(said: Said, at: int, stance: Stance) -> Found | None:
    distance = {"yesterday": -1, "tomorrow": 1}.get(said.lower(at), 0)
    after = at + 2 if said.lower(at + 1) in SAME_DAY else at + 1
    return replace(day(stance.today + distance * DAY), present=distance == 0), after


def _relative(said: Said, at: int, stance: Stance) -> Found | None:
    word, name_at = said.lower(at), at + 1
    if word == "this" and said.lower(name_at) in ("past", "coming"):
        word, name_at = said.lower(name_at), name_at + 1
    which, name = _WHICH[word], said.lower(name_at)
    if name in SAME_DAY:
        return _part_of_day(which, name, name_at, stance)
    if name in UNITS:
        period = _unit(word, name, said, at, stance)
        return None if period is None else (period, name_at + 1)
    if name in WEEKDAYS:
        after = name_at + 2 if said.lower(name_at + 1) in SAME_DAY else name_at + 1
        return weekday(stance.today, WEEKDAYS[name], which), after
    return _rolling(said, name_at, stance, which) or yearly(said, name_at, stance, which)


def _rolling(said: Said, at: int, stance: Stance, which: Which) -> Found | None:
    counted = _count(said, at)
    if counted is None or which == "this":
        return None
    (_, count), of, after = counted
    return rolling(stance.today, count if which == "last" else -count, of), after


def _part_of_day(which: Which, name: str, at: int, stance: Stance) -> Found | None:
    if which == "this":
        return replace(day(stance.today), present=True), at + 1
    return (day(stance.today - DAY), at + 1) if (which, name) == ("last", "night") else None


def _unit(word: str, name: str, said: Said, at: int, stance: Stance) -> Period | None:
    of, today = UNITS[name], stance.today
    if name != of or (of == "day" and word != "past"):
        return None
    if word == "this":
        return _this(of, said, at, stance)
    if word == "past" and of != "weekend":
        return rolling(today, 1, of)
    return beside(today, of, -1 if _WHICH[word] == "last" else 1)


def _this(of: Unit, said: Said, at: int, stance: Stance) -> Period:
    if of != "weekend":
        return replace(unit(stance.today, of), present=True)
    over = stance.today.weekday() <= TUESDAY and which_one(said, at, stance) == "latest"
    return beside(stance.today, of, -1 if over else 0)


def _count(said: Said, at: int) -> tuple[tuple[int, int], Unit, int] | None:
    if said.lower(at) == "a" and said.lower(at + 1) in ("couple", "few"):
        at += 1
    number = said.number(at, digits=3)
    counts = COUNTS.get(said.lower(at)) if number is None else (number, number)
    at += 2 if said.lower(at + 1) == "of" else 1
    name = UNITS.get(said.lower(at))
    return None if counts is None or name is None or counts[0] == 0 else (counts, name, at + 1)


def _counted(said: Said, at: int, stance: Stance) -> Found | None:
    counted = _count(said, at)
    if counted is None:
        return None
    (fewest, most), name, after = counted
    match said.lower(after), said.lower(after + 1):
        case ("ago", "today") if fewest == most:
            return day(moved(stance.today, -most, name)), after + 2
        case ("ago", _):
            return around(stance.today, -fewest, -most, name), after + 1
        case ("from", "now"):
            return around(stance.today, fewest, most, name), after + 2
    return None


def _ahead(said: Said, at: int, stance: Stance) -> Found | None:
    counted = _count(said, at + 1)
    if counted is None or which_one(said, at, stance) != "coming":
        return None
    (fewest, most), name, after = counted
    return around(stance.today, fewest, most, name), after


def _unit_beside(said: Said, at: int, stance: Stance) -> Found | None:
    name, relation = UNITS.get(said.lower(at + 1)), said.lower(at + 2)
    if name is None or relation not in ("before", "after", "of") or said.lower(at + 3) in ("the", "last"):
        return None
    found = moment(said, at + 3, replace(stance, named=True))
    if found is None:
        return None
    fixed, after = found
    if relation == "of":
        return (unit(fixed.start, name), after) if fixed.grain == "day" else None
    if name == "weekend":
        return beside(fixed.start, name, -1 if relation == "before" else 1), after
    if relation == "before":
        return replace(fixed, start=moved(fixed.start, -1, name), end=fixed.start, grain=name), after
    return replace(fixed, start=fixed.end, end=moved(fixed.end, 1, name), grain=name), after


def _the(said: Said, at: int, stance: Stance) -> Found | None:
    found = (
        _set_phrase(said, at, stance)
        or _the_weekend(said, at, stance)
        or days_first(said, at + 1, stance)
        or day_of_month(said, at, stance)
        or _unit_beside(said, at, stance)
    )
    return found if found or said.lower(at + 1) == "the" else moment(said, at + 1, stance)


def _set_phrase(said: Said, at: int, stance: Stance) -> Found | None:
    match said.lower(at + 1), said.lower(at + 2), said.lower(at + 3):
        case ("day", "before", "yesterday"):
            return day(stance.today - 2 * DAY), at + 4
        case ("day", "after", "tomorrow"):
            return day(stance.today + 2 * DAY), at + 4
        case ("other", "day", _):
            return Period(stance.today - 7 * DAY, stance.today, "range"), at + 3
        case (name, "before", "last") if name in UNITS:
            return beside(stance.today, UNITS[name], -2), at + 4
    return None


def _the_weekend(said: Said, at: int, stance: Stance) -> Found | None:
    if said.lower(at + 1) != "weekend" or not (stance.named or said.lower(at - 1) in PREPOSITIONS):
        return None
    gone = which_one(said, at, stance) == "latest" and stance.today.weekday() < SATURDAY
    return replace(beside(stance.today, "weekend", -1 if gone else 0), floating=True), at + 2


def _part_of(said: Said, at: int, stance: Stance) -> Found | None:
    which, after = _PARTS[said.lower(at)], at + 1
    if said.lower(at) not in ("early", "mid", "late"):
        if said.lower(after) != "of":
            return None
        of = UNITS.get(said.lower(after + 2), "day") if said.lower(after + 1) == "the" else "day"
        if of != "day":
            return part(unit(stance.today, of), which), after + 3
    after += said.lower(after) in HYPHENS | {"in", "of"}
    # Limits the recursion for "the early the early ...".
    nested = said.lower(after) == "the" or said.lower(after) in _PARTS
    whole = None if nested else moment(said, after, replace(stance, named=True))
    if whole is None or whole[0].grain in ("day", "range"):
        return None
    return replace(part(whole[0], which), present=False), whole[1]


_NUMBER_RULES: tuple[Rule, ...] = (written_date, _counted, days_first, day_first, bare_year)
_LEADS: tuple[tuple[frozenset[str], tuple[Rule, ...]], ...] = (
    (frozenset({"today", "tonight", "yesterday", "tomorrow"}), (_near_today,)),
    (frozenset(_WHICH), (_relative,)),
    (frozenset(COUNTS), (_counted,)),
    (frozenset({"in"}), (_ahead,)),
    (frozenset({"the"}), (_the,)),
    (frozenset(_PARTS), (_part_of,)),
    (frozenset(MONTHS), (month_name,)),
    (frozenset(WEEKDAYS), (week_day,)),
    (frozenset(SEASONS), (season_name,)),
    (frozenset({"q"}), (quarter_name,)),
    (frozenset(words[0] for words in HOLIDAYS), (holiday_name,)),
)
_RULES: Mapping[str, tuple[Rule, ...]] = {lead: rules for leads, rules in _LEADS for lead in leads}


EARLIEST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
LATEST = datetime(LAST_YEAR, 12, 31, tzinfo=UTC)
READ_CHARS = 32_768
# Times further apart are not merged: the most precise is used.
JOINED_DAYS = 31
# A text with more separate times is about none of them.
TOLD_TIMES = 4
# Only the first times of a text are parsed.
MOST_WINDOWS, MOST_TOLD = 8, 64

_OPEN = frozenset({"since", "before", "after", "until", "till", "by"})
_RANGES = {"between": frozenset({"and"}), "from": frozenset({"to", "until", "till", "through"})}


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time in UTC, half-open, and the words that name it; `grain`: their precision."""

    start: datetime
    end: datetime
    phrase: str
    grain: Grain


def windows(query: str, now: datetime) -> tuple[Window, ...]:
    """Returns the first times that a question names, in UTC; days are in the zone of `now`.

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
    """Returns the span, in UTC, that words said at `timestamp` mention; None if they mention none.

    Times near each other are one span; of a few others the most precise is used, then the first. Words for the present
    ("today") do not count.
    """
    said, stance = Said(content[:READ_CHARS]), Stance(timestamp.date(), states=True)
    periods = [
        period for period, _, _ in islice(_periods(said, stance, open_sides=False), MOST_TOLD) if not period.present
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
    start, end = (datetime.combine(each, time.min, now.tzinfo).astimezone(UTC) for each in (period.start, period.end))
    return max(start, EARLIEST), min(end, LATEST)


def _periods(said: Said, stance: Stance, *, open_sides: bool) -> Iterator[tuple[Period, int, int]]:
    at = 0
    while at < len(said):
        word, found = said.lower(at), None
        if word in _RANGES or (open_sides and word in _OPEN):
            found = _range(said, at, stance) if word in _RANGES else _open(said, at, stance)
        found = found or moment(said, at, stance)
        if found is None:
            at += 1
        else:
            yield found[0], at, found[1]
            at = found[1]


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
