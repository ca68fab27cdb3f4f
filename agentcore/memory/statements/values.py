"""Tokenizes statements and normalizes values: "1 am" is 01:00, "five" 5, "310k" 310000."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from agentcore.memory.language.text import fold
from agentcore.memory.statements.statement_words import CONNECTORS

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
)
_DAY = r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?)"
_COUNTED = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
"""
NUMBER_WORDS = {word: value for value, word in enumerate(_COUNTED.split())} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
    "thousand": 1_000,
    "dozen": 12,
}
_SCALES = {"k": 1_000, "thousand": 1_000, "m": 1_000_000, "million": 1_000_000, "bn": 10**9, "billion": 10**9}
_UNITS = {
    "megabytes": "mb",
    "megabyte": "mb",
    "gigabytes": "gb",
    "gigabyte": "gb",
    "eur": "euro",
    "usd": "dollar",
    "gbp": "pound",
    "kilometre": "km",
    "kilometer": "km",
    "kilogram": "kg",
    "percent": "%",
    "min": "minute",
    "sec": "second",
    "no": "number",
    "postgresql": "postgres",
    "takes": "take",
}
_SIGNS = {"$": "dollar", "\u20ac": "euro", "\u00a3": "pound", "\u00a5": "yen"}
_TOKEN = re.compile(
    rf"(?P<url>(?:https?://|git@)\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    rf"|(?P<iso>\d{{4}}-\d\d-\d\d)"
    rf"|(?P<date>(?:{_DAY},? )?"
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?)"
    rf"(?!\d)(?:,? \d{{4}}\b)?|{_MONTH}(?: \d{{4}})?\b)"
    rf"|(?P<ordinal>\d{{1,2}}(?:st|nd|rd|th)\b)"
    rf"|(?P<time>\d{{1,2}}:\d\d(?: ?[ap]\.?m\b\.?)?|\d{{1,2}} ?[ap]\.?m\b\.?"
    rf"|\b(?:noon|midnight)\b|\d{{1,2}} o'clock)"
    rf"|(?P<weekday>\b{_DAY}\b)"
    rf"|(?P<phone>\+\d[\d ()-]{{6,18}}\d)"
    rf"|(?P<version>\bv?\d+(?:\.\d+){{2,}}\b)"
    rf"|(?P<number>(?<![\w.-])[$\u20ac\u00a3\u00a5]?\d[\d,]*(?:\.\d+)?"
    rf"(?: ?(?:k|m|bn|thousand|million|billion))?"
    rf"(?![\w-]|\.\w))"
    rf"|(?P<identifier>\b(?=[\w./:-]*[\d_])[A-Za-z0-9_][\w./:-]*[\w]|\b\w+(?:[./:]\w[\w-]*)+)"
    rf"|(?P<quoted>\"[^\"]{{1,80}}\"|\u201c[^\u201d]{{1,80}}\u201d)"
    rf"|(?P<percent>%)"
    rf"|(?P<word>[^\W_][\w'&-]*)"
)
_ARTICLES = frozenset({"the", "The", "a", "an", "An"})
TYPED = frozenset({"url", "date", "time", "weekday", "phone", "version", "number", "identifier", "ordinal"})


@dataclass(frozen=True, slots=True)
class Token:
    """A word or value: its kind, and its canonical form for comparison."""

    kind: str
    canon: str


def canonical(word: str) -> str:
    """Folds a word and strips possessive and plural endings."""
    bare = fold(word.strip(".,:!?\"'()")).replace("\u2019", "'")
    bare = bare.removesuffix("'s").removesuffix("'")
    bare = _UNITS.get(bare, bare)
    if len(bare) > 3 and bare.endswith("s") and not bare.endswith(("ss", "us", "is")):
        bare = bare[:-1]
    return _UNITS.get(bare, bare)


def read_tokens(text: str) -> list[Token]:
    """Returns the tokens of a text in order, without articles."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "word"
        found += _READERS[kind](match.group()) if kind in _READERS else [Token(kind, fold(match.group()))]
    return [token for token in found if token.canon]


def kinds(tokens: Sequence[Token]) -> frozenset[str]:
    """Returns the kinds of the tokens, without connectors; dates, weekdays and ordinals are "date"."""
    return frozenset(
        "date" if token.kind in {"date", "weekday", "ordinal"} else token.kind
        for token in tokens
        if token.canon not in {"to", "and", "at", "of"}
    )


def is_typed(tokens: Sequence[Token]) -> bool:
    """Returns whether a typed value, such as a number or a date, is among the tokens."""
    return not TYPED.isdisjoint(kinds(tokens))


def content(tokens: Sequence[Token]) -> set[str]:
    """Returns the canonical forms of the tokens without connectors."""
    return {token.canon for token in tokens if token.canon not in CONNECTORS}


def folded(text: str) -> str:
    """Returns only letters and digits, folded, to compare spellings."""
    return "".join(char for char in fold(text) if char.isalnum())


def _word(text: str) -> list[Token]:
    lowered = text.lower()
    if text in _ARTICLES:
        return []
    if lowered in NUMBER_WORDS:
        return [Token("number", str(NUMBER_WORDS[lowered]))]
    kind = "name" if text[:1].isupper() and lowered != "i" else "word"
    canon = canonical(text)
    return [Token(kind, {"my": "i", "our": "we", "me": "i", "us": "we"}.get(lowered, canon))]


def _number(text: str) -> list[Token]:
    sign = _SIGNS.get(text[0], "")
    bare = text.lstrip("".join(_SIGNS)).lower().replace(",", "")
    digits = re.match(r"[\d.]+", bare)
    scale = _SCALES.get(bare[digits.end() :].strip(), 1) if digits else 1
    value = float(digits.group().strip(".") or 0) * scale if digits else 0.0
    canon = f"{value:g}" if value < 1e6 else str(int(value)) if isfinite(value) else bare
    return [Token("number", canon), *([Token("word", sign)] if sign else [])]


def _time(text: str) -> list[Token]:
    lowered = text.lower().replace(".", "")
    named = {"noon": 720, "midnight": 0}.get(lowered)
    digits = [int(part) for part in re.findall(r"\d+", lowered)]
    minutes = named if named is not None else digits[0] % 24 * 60 + (digits[1] if len(digits) > 1 else 0)
    if named is None and "p" in lowered and digits[0] < 12:
        minutes += 720
    if named is None and "am" in lowered and digits[0] == 12:
        minutes -= 720
    return [Token("time", str(minutes))]


def _date(text: str) -> list[Token]:
    lowered = text.lower()
    month = next(at for at, name in enumerate(_MONTHS, 1) if re.search(rf"\b{name[:3]}", lowered))
    numbers = re.findall(r"\d+", lowered)
    day = next((number for number in numbers if len(number) <= 2), "0")
    year = next((number for number in numbers if len(number) == 4), "")
    return [Token("date", f"{month}-{int(day)}" + (f"-{year}" if year else ""))]


def _iso(text: str) -> list[Token]:
    year, month, day = text.split("-")
    return [Token("date", f"{int(month)}-{int(day)}-{year}")]


def _identifier(text: str) -> list[Token]:
    return [Token("identifier", fold(text).strip(".:/"))]


_READERS: Mapping[str, Callable[[str], list[Token]]] = {
    "word": _word,
    "number": _number,
    "time": _time,
    "date": _date,
    "iso": _iso,
    "identifier": _identifier,
    "weekday": lambda text: [Token("weekday", text.lower().removesuffix("s"))],
    "quoted": lambda text: [Token("name", fold(text.strip('"\u201c\u201d').rstrip(".,")))],
    "percent": lambda _text: [Token("word", "%")],
    "url": lambda text: [Token("url", fold(text).rstrip(".,;"))],
}
