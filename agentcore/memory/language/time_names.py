"""Parses named times: "7 May 2023", "2023-05-07", "in May", "on Monday", "Q1", "at Christmas". Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from agentcore.memory.language.calendar_words import (
    DAY,
    DOUBTFUL_MONTHS,
    DOUBTFUL_WORDS,
    FULL_MONTHS,
    FULL_WEEKDAYS,
    HYPHENS,
    MONTH_PREPOSITIONS,
    MONTHS,
    PREPOSITIONS,
    SEASONS,
    WEEKDAYS,
    Period,
    Said,
    Which,
    day,
    month,
    quarter,
    recurring,
    season,
    weekday,
    whole_year,
    word_set,
)

FIRST_NAMED_YEAR, LAST_NAMED_YEAR = 1900, 2199
_ISO = re.compile(
    r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})(?:T[0-9]{2}:[0-9:.]{2,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
    r"(?![\w/]|[-.:]\w)"
)
_SLASHED = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})(?![\w/]|[-.:]\w)")
_SUFFIXES = frozenset({"st", "nd", "rd", "th"})
SAME_DAY = frozenset({"morning", "afternoon", "evening", "night"})
_SAME_DAYS = frozenset(f"{part}s" for part in SAME_DAY)
_BEFORE_YEARS = word_set("in since during before after until till by early mid late circa around")
_BEFORE_QUARTERS = _BEFORE_YEARS | {"last", "this", "next"}
_BEFORE_DAYS = word_set("on since before after until till by from to for")
_BEFORE_SEASONS = word_set("in since before until by early mid late")
# Between the first and the last day of a range.
_TO = HYPHENS | word_set("\u2013 \u2014 to until till through")
# A day without a year may be a coming one up to this many days ahead.
NEAR_DAYS = 100
MONTHS_OF_YEAR = 12
# 29 February recurs within eight years.
YEARS_AROUND = 8
# Black Friday is a separate holiday, "every Friday" no single day.
_OTHER_DAYS = word_set("every each black good ash super taco cyber palm bloody casual man freaky")
HOLIDAYS: Mapping[tuple[str, ...], tuple[int, int, int]] = {
    ("christmas", "eve"): (12, 24, 1),
    ("christmas", "day"): (12, 25, 1),
    ("christmas",): (12, 24, 3),
    ("new", "year", "eve"): (12, 31, 1),
    ("new", "years", "eve"): (12, 31, 1),
    ("new", "year", "day"): (1, 1, 1),
    ("new", "years", "day"): (1, 1, 1),
    ("boxing", "day"): (12, 26, 1),
    ("valentine", "day"): (2, 14, 1),
    ("valentines", "day"): (2, 14, 1),
    ("halloween",): (10, 31, 1),
}


@dataclass(frozen=True, slots=True)
class Stance:
    """The speaker's point in time. `coming`: floating times are in the future; None: decide by the sentence.

    `named`: a preceding word announced a time, so "may" and "2023" are times. `states`: no question, so a weekday is
    the next one, unless the sentence is about the past.
    """

    today: date
    coming: bool | None = None
    named: bool = False
    states: bool = False


Found = tuple[Period, int]
Rule = Callable[[Said, int, Stance], Found | None]


def which_one(said: Said, at: int, stance: Stance) -> Which:
    coming = said.ahead(at) if stance.coming is None else stance.coming
    return "coming" if coming else "latest"


def yearly(said: Said, at: int, stance: Stance, which: Which) -> Found | None:
    """Parses a month, a season or a holiday."""
    name = said.lower(at)
    if name in FULL_MONTHS:
        if which == "this" and name in DOUBTFUL_WORDS and not said.capital(at):
            return None
        return _once(lambda year: month(year, MONTHS[name]), stance, which, at + 1)
    if name in SEASONS:
        return _once(lambda year: season(year, name), stance, which, at + 1)
    holiday = _holiday_at(said, at)
    return None if holiday is None else _once(holiday[0], stance, which, holiday[1])


def _once(make: Callable[[int], Period], stance: Stance, which: Which, after: int) -> Found:
    return replace(recurring(make, stance.today, which), floating=which in ("latest", "coming")), after


def _holiday_at(said: Said, at: int) -> tuple[Callable[[int], Period], int] | None:
    for words, dates in HOLIDAYS.items():
        if all(said.lower(at + place) == word for place, word in enumerate(words)):
            return partial(_holiday, dates=dates), at + len(words)
    return None


def _holiday(year: int, *, dates: tuple[int, int, int]) -> Period:
    number, first, count = dates
    start = date(year, number, first)
    return Period(start, start + count * DAY, "day" if count == 1 else "range")


def day_of_month(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "on the 3rd", but not "the 3rd attempt"."""
    number = said.number(at + 1, digits=2)
    fits = stance.named or said.lower(at - 1) in _BEFORE_DAYS
    if number is None or not fits or not _is_ordinal(said, at + 2) or not said.after_time(at + 3):
        return None
    found = _nearest(_days_of_month(number, stance.today, 3), said, at, stance)
    return None if found is None else (replace(day(found), floating=True), at + 3)


def _days_of_month(number: int, today: date, count: int) -> list[date]:
    """Returns the days of this number in the `count` months around today."""
    first, found = today.year * 12 + today.month - 1, []
    for month_at in range(first - count + 1, first + count):
        with suppress(ValueError):
            found.append(date(month_at // 12, month_at % 12 + 1, number))
    return found


def _nearest(days: Sequence[date], said: Said, at: int, stance: Stance) -> date | None:
    """Selects the next, the latest, or, without a tense, the nearer day."""
    coming = next(filter(stance.today.__le__, days), None)
    latest = next(filter(stance.today.__ge__, reversed(days)), None)
    if which_one(said, at, stance) == "coming":
        return coming
    if coming is None or latest is None or stance.coming is not None:
        return latest
    days_ahead, days_ago = (coming - stance.today).days, (stance.today - latest).days
    is_nearer = days_ahead < days_ago and not said.is_past(at)
    return coming if days_ahead <= NEAR_DAYS and (is_nearer or said.is_set_for(at)) else latest


def _is_ordinal(said: Said, at: int) -> bool:
    return said.lower(at) in _SUFFIXES and said.glued(at)


def month_name(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "May 7th, 2023", "May 2023", "in May"."""
    number = MONTHS[said.lower(at)]
    if said.number(at - 1, digits=2) is not None:
        # `day_first` has already rejected the number before as a day of this month.
        return None
    after = _after_month(said, at)
    named_day = said.number(after, digits=2)
    if named_day is not None and not said.glued(after):
        return _month_and_day(said, at, after, (number, named_day), stance)
    if dated := _year_after(said, after, (",", "of")):
        return month(dated[0], number), dated[1]
    name = said.lower(at)
    fits = stance.named or said.lower(at - 1) in MONTH_PREPOSITIONS
    if name not in FULL_MONTHS or (name in DOUBTFUL_MONTHS and not fits):
        return None
    return yearly(said, at, stance, which_one(said, at, stance))


def _after_month(said: Said, at: int) -> int:
    dotted = said.lower(at) not in FULL_MONTHS and said.lower(at + 1) == "."
    return at + 2 if dotted else at + 1


def _month_and_day(said: Said, at: int, after: int, dates: tuple[int, int], stance: Stance) -> Found | None:
    ordinal = _is_ordinal(said, after + 1)
    end = after + 1 + ordinal
    last = _last_of_range(said, end)
    dated = _dated(said, end if last is None else last[1], dates, stance, at)
    if dated is None:
        return None
    if days := _range_of(dated, last):
        return days
    if dated[1] > end or ordinal or said.lower(at) not in DOUBTFUL_WORDS:
        return dated
    return dated if stance.named or said.lower(at - 1) in PREPOSITIONS or said.after_time(end) else None


def _range_of(first: Found, last: tuple[int, int] | None) -> Found | None:
    period, after = first
    if last is None or last[0] <= period.start.day:
        return None
    with suppress(ValueError):
        return replace(period, end=period.start.replace(day=last[0]) + DAY, grain="range"), after
    return None


def _last_of_range(said: Said, at: int) -> tuple[int, int] | None:
    """Returns the number after "to" and the position after it."""
    number = said.number(at + 1, digits=2)
    after = at + 2 + _is_ordinal(said, at + 2)
    is_month = said.lower(after + (said.lower(after) == "of")) in MONTHS
    if said.lower(at) not in _TO or number is None or is_month or not said.after_time(after):
        return None
    return number, after


def _dated(said: Said, at: int, dates: tuple[int, int], stance: Stance, named_at: int) -> Found | None:
    if dated := _year_after(said, at, (",", "of")):
        return day(date(dated[0], *dates)), dated[1]
    days = []
    for each in range(stance.today.year - YEARS_AROUND, stance.today.year + YEARS_AROUND + 1):
        with suppress(ValueError):
            days.append(date(each, *dates))
    found = _nearest(days, said, named_at, stance)
    return None if found is None else (replace(day(found), floating=True), at)


def _year_at(said: Said, at: int) -> int | None:
    year = said.number(at)
    if year is None or not FIRST_NAMED_YEAR <= year <= LAST_NAMED_YEAR:
        return None
    follower = said.word(at + 1)
    return None if said.glued(at + 1) and (follower.lower.isalnum() or follower.lower in "%_$") else year


def _year_after(said: Said, at: int, signs: tuple[str, ...]) -> tuple[int, int] | None:
    """Returns the year here or after one of these signs, and the position after it."""
    year_at = at + 1 if said.lower(at) in signs else at
    year = _year_at(said, year_at)
    return None if year is None else (year, year_at + 1)


def written_date(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "2023-05-07", with or without a time of day, and unambiguous slashed dates."""
    start = said.word(at).start
    if start and (said.text[start - 1].isalnum() or said.text[start - 1] in "-_./:"):
        return None
    if found := _ISO.match(said.text, start):
        return day(date(int(found[1]), int(found[3]), int(found[4]))), said.place_from(at, found.end())
    if found := _SLASHED.match(said.text, start):
        first, second, year = int(found[1]), int(found[2]), int(found[3])
        number, named_day = (second, first) if first > 12 else (first, second)
        if first == second or max(first, second) > 12:
            return day(date(year, number, named_day)), said.place_from(at, found.end())
    return None


def day_first(said: Said, at: int, stance: Stance, named_at: int | None = None) -> Found | None:
    """Parses "7 May 2023", "the 7th of May". `named_at`: the first word, if that is not the day."""
    number, after = said.number(at, digits=2), at + 1
    ordinal = _is_ordinal(said, after)
    after += ordinal + (said.lower(after + ordinal) == "of")
    name = "" if said.glued(after) else said.lower(after)
    if number is None or name not in MONTHS:
        return None
    end = _after_month(said, after)
    dated = _dated(said, end, (MONTHS[name], number), stance, at if named_at is None else named_at)
    if dated is None or dated[1] > end or ordinal or _is_surely_month(said, after, stance):
        return dated
    return dated if said.before(at) in PREPOSITIONS else None


def _is_surely_month(said: Said, at: int, stance: Stance) -> bool:
    return stance.named or said.capital(at) or said.lower(at) not in DOUBTFUL_WORDS


def days_first(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "14 to 16 January", "the 7th-9th of May 2023", "between 3 and 5 June"."""
    number = said.number(at, digits=2)
    sign = at + 1 + _is_ordinal(said, at + 1)
    joins = said.lower(sign) in _TO or (said.lower(sign) == "and" and said.before(at) == "between")
    if number is None or not joins:
        return None
    last = day_first(said, sign + 1 + (said.lower(sign + 1) == "the"), stance, at)
    if last is None or last[0].start.day <= number:
        return None
    return replace(last[0], start=last[0].start.replace(day=number), grain="range"), last[1]


def bare_year(said: Said, at: int, stance: Stance) -> Found | None:
    year = _year_at(said, at)
    fits = stance.named or said.lower(at - 1) in _BEFORE_YEARS
    if year is None or not fits or _hangs_on_other(said, at):
        return None
    surely = said.glued(at) and not said.glued(at + 1)
    return (whole_year(year), at + 1) if surely or said.after_time(at + 1) else None


def _hangs_on_other(said: Said, at: int) -> bool:
    part = said.lower(at - 1) in HYPHENS and said.lower(at - 2) in ("early", "mid", "late")
    return said.glued(at) and not part


def week_day(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "on Monday"; "Monday, 5 June" is that day of June."""
    name = said.lower(at)
    short = name not in FULL_WEEKDAYS
    if short and not (said.capital(at) and (stance.named or said.lower(at - 1) == "on")):
        return None
    if _is_other_day(said, at):
        return None
    after = at + 2 if said.lower(at + 1) in SAME_DAY else at + 1
    dated = _date_at(said, after + 1 if said.lower(after) in (",", "the") else after, stance)
    if dated is not None:
        return dated
    return _day_of_month_on(said, at, after, stance) or (_floating_weekday(said, at, stance), after)


def _day_of_month_on(said: Said, at: int, after: int, stance: Stance) -> Found | None:
    """Parses "Friday the 4th"."""
    number_at = after + (said.lower(after) == "the")
    number = said.number(number_at, digits=2)
    if number is None or not _is_ordinal(said, number_at + 1):
        return None
    days = _days_of_month(number, stance.today, MONTHS_OF_YEAR)
    found = _nearest([each for each in days if each.weekday() == WEEKDAYS[said.lower(at)]], said, at, stance)
    return None if found is None else (replace(day(found), floating=True), number_at + 2)


def _floating_weekday(said: Said, at: int, stance: Stance) -> Period:
    which = which_one(said, at, stance)
    if stance.states and stance.coming is None and (said.is_set_for(at) or not said.is_past(at)):
        which = "coming"
    return replace(weekday(stance.today, WEEKDAYS[said.lower(at)], which), floating=True)


def _is_other_day(said: Said, at: int) -> bool:
    before = said.lower(at - 1)
    if before in _OTHER_DAYS or said.lower(at + 1) in _SAME_DAYS:
        return True
    return at > 1 and said.capital(at - 1) and before not in PREPOSITIONS and said.lower(at - 2) not in ".!?:"


def _date_at(said: Said, at: int, stance: Stance) -> Found | None:
    dated = month_name(said, at, stance) if said.lower(at) in MONTHS else day_first(said, at, stance)
    return dated if dated is not None and dated[0].grain == "day" else None


def season_name(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "summer of 2022", "in the winter"; "spring" may be a coil."""
    name, dated = said.lower(at), _year_after(said, at + 1, ("of",))
    if dated and said.after_time(dated[1]):
        return season(dated[0], name), dated[1]
    if not stance.named and said.before(at) not in _BEFORE_SEASONS:
        return None
    if name in ("spring", "fall") and _is_other_spring(said, at):
        return None
    return yearly(said, at, stance, which_one(said, at, stance))


def _is_other_spring(said: Said, at: int) -> bool:
    if said.capital(at) and said.lower(at) == "spring":
        return True
    return not said.after_time(at + 1) or said.before(at) in ("before", "since")


def quarter_name(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "Q1 2024", "in Q3"."""
    number = said.number(at + 1, digits=1)
    if number not in (1, 2, 3, 4) or not said.glued(at + 1) or _hangs_on_other(said, at):
        return None
    if dated := _year_after(said, at + 2, ("of", "/", "-", ",")):
        return quarter(dated[0], number), dated[1]
    if not stance.named and said.lower(at - 1) not in _BEFORE_QUARTERS:
        return None
    if said.glued(at + 2) and said.lower(at + 2).isalnum():
        return None
    return _once(lambda year: quarter(year, number), stance, which_one(said, at, stance), at + 2)


def holiday_name(said: Said, at: int, stance: Stance) -> Found | None:
    """Parses "at Christmas", "on New Year's Eve", but not "Christmas tree"."""
    holiday = _holiday_at(said, at)
    if holiday is None:
        return None
    make, after = holiday
    if dated := _year_after(said, after, ("of",)):
        return make(dated[0]), dated[1]
    if after == at + 1 and not stance.named and said.lower(at - 1) not in PREPOSITIONS:
        return None
    return _once(make, stance, which_one(said, at, stance), after)
