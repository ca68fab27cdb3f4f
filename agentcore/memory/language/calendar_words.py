"""Calendar arithmetic in whole days, and the English words for times. Pure.

Raises OverflowError or ValueError outside the calendar.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal, NamedTuple

Grain = Literal["day", "weekend", "week", "month", "quarter", "season", "year", "range"]
Unit = Literal["day", "weekend", "week", "month", "quarter", "year"]
Which = Literal["latest", "last", "this", "next", "coming"]
# In order of precision.
GRAINS: tuple[Grain, ...] = ("day", "weekend", "week", "month", "quarter", "season", "year", "range")

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
SATURDAY = 5
_MONTHS_IN: Mapping[Unit, int] = {"month": 1, "quarter": 3, "year": 12}
_HALF_DAYS: Mapping[Unit, int] = {"week": 3, "weekend": 3, "month": 15, "quarter": 45, "year": 183}
# The first month of each, in the northern hemisphere.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


@dataclass(frozen=True, slots=True)
class Period:
    """Days from `start` up to, not including, `end`.

    `floating`: not fixed by the text ("in May"). `present`: it only names the present ("today").
    """

    start: date
    end: date
    grain: Grain
    floating: bool = False
    present: bool = False


def day(of: date) -> Period:
    return Period(of, of + DAY, "day")


def week(of: date) -> Period:
    """Returns the week of that day, from Monday."""
    monday = of - of.weekday() * DAY
    return Period(monday, monday + WEEK, "week")


def weekend(of: date) -> Period:
    saturday = of + (SATURDAY - of.weekday()) * DAY
    return Period(saturday, saturday + 2 * DAY, "weekend")


def months(year: int, first: int, count: int, grain: Grain) -> Period:
    """Returns `count` months from the first day of a month."""
    start = date(year, first, 1)
    return Period(start, shifted(start, count), grain)


def month(year: int, number: int) -> Period:
    return months(year, number, 1, "month")


def quarter(year: int, number: int) -> Period:
    return months(year, 3 * number - 2, 3, "quarter")


def season(year: int, name: str) -> Period:
    """A winter belongs to the year in which it begins."""
    return months(year, SEASONS[name], 3, "season")


def whole_year(number: int) -> Period:
    return months(number, 1, 12, "year")


def unit(of: date, name: Unit) -> Period:
    match name:
        case "day":
            return day(of)
        case "weekend":
            return weekend(of)
        case "week":
            return week(of)
        case _:
            count = _MONTHS_IN[name]
            return months(of.year, (of.month - 1) // count * count + 1, count, name)


def shifted(of: date, count: int) -> date:
    """Returns the day `count` months later, or the month's last day."""
    ordinal = of.year * 12 + of.month - 1 + count
    year, number = divmod(ordinal, 12)
    last = calendar.monthrange(year, number + 1)[1]
    return date(year, number + 1, min(of.day, last))


def moved(of: date, count: int, name: Unit) -> date:
    """Returns the day `count` units later; negative for earlier."""
    if name in _MONTHS_IN:
        return shifted(of, count * _MONTHS_IN[name])
    return of + count * (DAY if name == "day" else WEEK)


def around(today: date, nearest: int, farthest: int, name: Unit) -> Period:
    """Returns the span of "three weeks ago": plus and minus half a unit."""
    first, last = moved(today, farthest, name), moved(today, nearest, name)
    first, last = min(first, last), max(first, last)
    if name == "day":
        return Period(first, last + DAY, "day" if first == last else "range")
    half = _HALF_DAYS[name] * DAY
    return Period(first - half, last + half + DAY, name if first == last else "range")


def rolling(today: date, count: int, name: Unit) -> Period:
    """Negative `count`: the next units from today."""
    if count >= 0:
        return Period(moved(today, -count, name), today + DAY, "range")
    return Period(today, moved(today, -count, name) + DAY, "range")


def beside(today: date, name: Unit, count: int) -> Period:
    """Returns the unit `count` units after today's."""
    return unit(moved(unit(today, name).start, count, name), name)


def weekday(today: date, number: int, which: Which) -> Period:
    """Returns a weekday, 0 to 6; "next" is in the next week."""
    ahead = (number - today.weekday()) % 7
    match which:
        case "latest" | "last":
            return day(today + (ahead - 7) * DAY)
        case "this":
            return day(today + ahead * DAY)
        case "next":
            return day(week(today).start + WEEK + number * DAY)
        case _:
            return day(today + (ahead or 7) * DAY)


def recurring(make: Callable[[int], Period], today: date, which: Which) -> Period:
    """Returns the yearly occurrence that has begun last, ended last, is this year's, begins or ends next."""
    if which == "this":
        return make(today.year)
    back = which in ("latest", "last")
    years = range(today.year + 1, today.year - 3, -1) if back else range(today.year - 1, today.year + 2)
    return next(period for period in map(make, years) if _fits(period, today, which))


def _fits(period: Period, today: date, which: Which) -> bool:
    match which:
        case "latest":
            return period.start <= today
        case "last":
            return period.end <= today
        case "next":
            return period.start > today
        case _:
            return period.end > today


def part(whole: Period, name: str) -> Period:
    days = (whole.end - whole.start).days
    first, second = whole.start + days // 3 * DAY, whole.start + 2 * days // 3 * DAY
    match name:
        case "early":
            return replace(whole, end=max(first, whole.start + DAY))
        case "mid":
            return replace(whole, start=first, end=max(second, first + DAY))
        case _:
            return replace(whole, start=min(second, whole.end - DAY))


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?|[0-9]+|\S")

_WEEKDAYS = "monday mon|tuesday tue tues|wednesday|thursday thu thur thurs|friday fri|saturday|sunday"
WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAYS.split("|")) for name in names.split()}
_MONTHS = """
january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|
november nov|december dec
"""
MONTHS = {name: number for number, names in enumerate(_MONTHS.split("|"), start=1) for name in names.split()}
_UNITS: tuple[Unit, ...] = ("day", "weekend", "week", "month", "quarter", "year")
UNITS = {form: name for name in _UNITS for form in (name, f"{name}s")}
# Minimum and maximum number.
COUNTS = {
    "a": (1, 1), "an": (1, 1), "one": (1, 1), "two": (2, 2), "three": (3, 3), "four": (4, 4), "five": (5, 5),
    "six": (6, 6), "seven": (7, 7), "eight": (8, 8), "nine": (9, 9), "ten": (10, 10), "eleven": (11, 11),
    "twelve": (12, 12), "couple": (2, 2), "few": (2, 5), "several": (3, 8),
}  # fmt: skip
# Alone they are months only after MONTH_PREPOSITIONS.
DOUBTFUL_MONTHS = frozenset({"march", "april", "may", "june", "august"})
# In lower case, other words even next to a number: "march 10 miles", "the 7 may go".
DOUBTFUL_WORDS = frozenset({"march", "may"})
FULL_MONTHS = word_set("january february march april may june july august september october november december")
FULL_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
MONTH_PREPOSITIONS = word_set("in during since before after until till by of from early mid late")
PREPOSITIONS = MONTH_PREPOSITIONS | word_set("last next over at on for this past")
# Occurs in sentences about the future, not about the past.
_COMING = re.compile(
    r"\b(?:will|won't|shall|gonna|upcoming|tomorrow|planning|plans? to|plan for|hope to|hoping to"
    r"|looking forward|due(?! to)|deadline|scheduled|expires?|do (?:i|we) have|must|have to|has to"
    r"|needs? to|(?:is|are) (?:on|in)|(?:is|are|it's|that's) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:next|coming) \w+|(?<!was )(?<!were )going to|\w+'ll"
    r"|(?:can't|cannot) (?!remember|recall|believe|find|see|think|tell|say)|let's|make it"
    r"|(?:am|are|is|i'm|we're|they're|you're|he's|she's) (?:not |also |all )?"
    r"(?!amaz|interest|excit|bor|char)\w+ing)\b",
    re.IGNORECASE,
)
# Occurs in sentences about the past. Arrangements may be in the future: "booked a car, 18 to 22 May".
_PAST = re.compile(
    r"\b(?!(?:arrang|book|enroll|invit|mov|plann|postpon|prolong|register|reschedul|reserv|schedul|sign)ed\b"
    r"|(?:bought|got)\b[^.!?]{0,20}\b(?:tickets?|invitation|invited)\b)"
    r"(?:ago|ate|been|began|bought|broke|came|did|done|drove|fell|felt|flew|found|gave|gone|got|had|kept|last|left|lost"
    r"|made|met|paid|ran|rang|said|sat|saw|seen|sent|since|slept|spent|spoke|stole|taken|told|took|was|went|were|woke|won"
    r"|wrote|\w{2,}(?<!e)ed)\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(r"\b(?:is|are|it's|that's|there's|starts?|begins?)\b", re.IGNORECASE)
# Before a date they mark it as future: "we moved it to the 4th".
_TOWARDS = frozenset({"for", "to", "by", "until", "till"})
# A question about the past, despite future words: "which runs did I miss that will count?"
_DONE = re.compile(r"\bdid\b", re.IGNORECASE)
# Words that may follow a date; others are what the number counts: "in 2022 files".
_GOING_ON = word_set("""
a about after also am an and are as at because been before between but by can could did do does for from had
has have he her his how i if in into is it its just last left like may me my no not on or our over she should
so still than that the their then there they this those through till to until up us was we went were what
when where which while who why will with would you your made got said told
""")
HYPHENS = frozenset("-\u2010\u2011")
_SENTENCE_ENDS = ".!?\n;"
_SENTENCE_CHARS = 160


class Word(NamedTuple):
    """A word, number or sign, in lower case without "'s", and its offsets."""

    lower: str
    start: int
    end: int


def _bare(word: str) -> str:
    return word.lower().replace("\u2019", "'").removesuffix("'s")


class Said:
    """A text as a list of words; out of range they are empty."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain = text.replace("\u2019", "'")
        self._words = [Word(_bare(found.group()), found.start(), found.end()) for found in _TOKEN.finditer(text)]
        self._count = len(self._words)
        self._nothing = Word("", len(text), len(text))

    def __len__(self) -> int:
        return self._count

    def word(self, at: int) -> Word:
        return self._words[at] if 0 <= at < self._count else self._nothing

    def lower(self, at: int) -> str:
        return self._words[at].lower if 0 <= at < self._count else ""

    def number(self, at: int, digits: int = 4) -> int | None:
        """Returns the number at that position; None if there is none, or a longer one."""
        lower = self.lower(at)
        return int(lower) if lower.isdecimal() and lower.isascii() and len(lower) <= digits else None

    def glued(self, at: int) -> bool:
        return at > 0 and self.word(at - 1).end == self.word(at).start != self.word(at).end

    def capital(self, at: int) -> bool:
        return self.text[self.word(at).start : self.word(at).start + 1].isupper()

    def before(self, at: int) -> str:
        """Returns the word before, skipping "the"."""
        return self.lower(at - 2) if self.lower(at - 1) == "the" else self.lower(at - 1)

    def after_time(self, at: int) -> bool:
        """Returns whether a number before this position can be a date, not a count ("in 2022 files")."""
        word = self.word(at)
        if self.glued(at) and word.lower in (".", "-", "/", ":", "%", ","):
            return not (self.word(at + 1).start == word.end and self.lower(at + 1).isalnum())
        if not word.lower.isalpha() or self.capital(at):
            return not (self.glued(at) and word.lower.isalnum()) and word.lower not in ("%", "$", "_")
        return not self.glued(at) and word.lower in _GOING_ON

    def place_from(self, at: int, end: int) -> int:
        """Returns the position of the first word, from `at` on, that begins at this offset or later."""
        while at < len(self._words) and self._words[at].start < end:
            at += 1
        return at

    def phrase(self, at: int, end: int) -> str:
        return self.text[self.word(at).start : self.word(end - 1).end]

    def ahead(self, at: int) -> bool:
        bounds = self._sentence(at)
        return _COMING.search(self._plain, *bounds) is not None and _DONE.search(self._plain, *bounds) is None

    def is_past(self, at: int) -> bool:
        """Judges by the last verb before the word, else by any of the sentence."""
        (start, end), place = self._sentence(at), self.word(at).start
        past, present = (
            max((found.start() for found in tense.finditer(self._plain, start, place)), default=-1)
            for tense in (_PAST, _PRESENT)
        )
        return past >= present and _PAST.search(self._plain, start, end) is not None

    def is_set_for(self, at: int) -> bool:
        """Returns whether something is scheduled for this date ("moved to 4 May")."""
        return self.before(at) in _TOWARDS and _DONE.search(self._plain, *self._sentence(at)) is None

    def _sentence(self, at: int) -> tuple[int, int]:
        place = self.word(at).start
        first, last = max(0, place - _SENTENCE_CHARS), place + _SENTENCE_CHARS
        start = max(self.text.rfind(sign, first, place) + 1 for sign in _SENTENCE_ENDS)
        ends = [end for sign in _SENTENCE_ENDS if (end := self.text.find(sign, place, last)) >= 0]
        return max(start, first), min(ends, default=last)
