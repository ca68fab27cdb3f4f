"""Calendar arithmetic in whole days. Pure; raises OverflowError or ValueError outside the calendar."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal

Grain = Literal["day", "weekend", "week", "month", "quarter", "season", "year", "range"]
Unit = Literal["day", "weekend", "week", "month", "quarter", "year"]
Which = Literal["latest", "last", "this", "next", "coming"]
# In order of precision.
GRAINS: tuple[Grain, ...] = ("day", "weekend", "week", "month", "quarter", "season", "year", "range")

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
SATURDAY = 5
# 29 February comes back after eight years at the latest.
YEARS_ROUND = 8
_HALF_DAYS: Mapping[Unit, int] = {"week": 3, "weekend": 3, "month": 15, "quarter": 45, "year": 183}
# The first month of each, as the northern half of the world has them.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


@dataclass(frozen=True, slots=True)
class Period:
    """Days from `start` up to, not including, `end`.

    `floating`: the text does not fix it, as "in May" does not say of which year. `present`: it says no more
    than now, as "today" and "this week" do.
    """

    start: date
    end: date
    grain: Grain
    floating: bool = False
    present: bool = False


def day(of: date) -> Period:
    """That day."""
    return Period(of, of + DAY, "day")


def week(of: date) -> Period:
    """The week with that day, from Monday on."""
    monday = of - of.weekday() * DAY
    return Period(monday, monday + WEEK, "week")


def weekend(of: date) -> Period:
    """Saturday and Sunday of the week with that day."""
    saturday = of + (SATURDAY - of.weekday()) * DAY
    return Period(saturday, saturday + 2 * DAY, "weekend")


def months(year: int, first: int, count: int, grain: Grain) -> Period:
    """So many months from the first day of one on."""
    start = date(year, first, 1)
    return Period(start, shifted(start, count), grain)


def month(year: int, number: int) -> Period:
    """A month, 1 to 12."""
    return months(year, number, 1, "month")


def quarter(year: int, number: int) -> Period:
    """A quarter, 1 to 4."""
    return months(year, 3 * number - 2, 3, "quarter")


def season(year: int, name: str) -> Period:
    """A season by its name; a winter has the year in which it begins."""
    return months(year, SEASONS[name], 3, "season")


def whole_year(number: int) -> Period:
    """A year."""
    return months(number, 1, 12, "year")


def unit(of: date, name: Unit) -> Period:
    """The day, weekend, week, month, quarter or year with that day."""
    match name:
        case "day":
            return day(of)
        case "weekend":
            return weekend(of)
        case "week":
            return week(of)
        case "month":
            return month(of.year, of.month)
        case "quarter":
            return quarter(of.year, (of.month + 2) // 3)
        case _:
            return whole_year(of.year)


def shifted(of: date, count: int) -> date:
    """The day so many months later; the month's last day where that month has no such day."""
    ordinal = of.year * 12 + of.month - 1 + count
    year, number = divmod(ordinal, 12)
    last = calendar.monthrange(year, number + 1)[1]
    return date(year, number + 1, min(of.day, last))


def moved(of: date, count: int, name: Unit) -> date:
    """The day so many units later; negative for earlier."""
    match name:
        case "day":
            return of + count * DAY
        case "week" | "weekend":
            return of + count * WEEK
        case "month":
            return shifted(of, count)
        case "quarter":
            return shifted(of, 3 * count)
        case _:
            return shifted(of, 12 * count)


def around(today: date, nearest: int, farthest: int, name: Unit) -> Period:
    """What "three weeks ago" means: the day, or half a unit before it to half a unit after it."""
    first, last = moved(today, farthest, name), moved(today, nearest, name)
    first, last = min(first, last), max(first, last)
    if name == "day":
        return Period(first, last + DAY, "day" if first == last else "range")
    half = _HALF_DAYS[name] * DAY
    return Period(first - half, last + half + DAY, name if first == last else "range")


def rolling(today: date, count: int, name: Unit) -> Period:
    """The last so many units up to today, or the next ones from today on where negative."""
    if count >= 0:
        return Period(moved(today, -count, name), today + DAY, "range")
    return Period(today, moved(today, -count, name) + DAY, "range")


def beside(today: date, name: Unit, count: int) -> Period:
    """The unit so many units before (negative) or after the one of today."""
    return unit(moved(unit(today, name).start, count, name), name)


def weekday(today: date, number: int, which: Which) -> Period:
    """A day of the week, 0 to 6: the nearest before or after today; "next" is that of next week."""
    back = (today.weekday() - number) % 7
    match which:
        case "latest" | "last":
            return day(today - (back or 7) * DAY)
        case "this":
            return day(today + (-back % 7) * DAY)
        case "next":
            return day(week(today).start + WEEK + number * DAY)
        case _:
            return day(today + (-back % 7 or 7) * DAY)


def recurring(make: Callable[[int], Period | None], today: date, which: Which) -> Period | None:
    """Of what comes once a year: the latest begun, the last ended, this year's, the next to begin or end."""
    if which == "this":
        return make(today.year)
    back = which in ("latest", "last")
    for period in _occurrences(make, today.year, -1 if back else 1):
        fits = {
            "latest": period.start <= today,
            "last": period.end <= today,
            "next": period.start > today,
            "coming": period.end > today,
        }
        if fits[which]:
            return period
    return None


def _occurrences(make: Callable[[int], Period | None], year: int, step: int) -> Iterator[Period]:
    for distance in range(-1, YEARS_ROUND + 1):
        period = make(year + distance * step)
        if period is not None:
            yield period


def part(whole: Period, name: str) -> Period:
    """The early, mid or late third of a period."""
    days = (whole.end - whole.start).days
    first, second = whole.start + days // 3 * DAY, whole.start + 2 * days // 3 * DAY
    match name:
        case "early":
            return replace(whole, end=max(first, whole.start + DAY))
        case "mid":
            return replace(whole, start=first, end=max(second, first + DAY))
        case _:
            return replace(whole, start=min(second, whole.end - DAY))
