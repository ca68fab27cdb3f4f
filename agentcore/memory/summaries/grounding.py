"""Checks every name and number in a model's text against the sources; drops unsupported claims. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from agentcore.memory.language.entities import NEVER_NAMES, OPENING_WORDS
from agentcore.memory.language.moments import mentioned
from agentcore.memory.language.text import STOP_WORDS, collapse, fold, sentences, words
from agentcore.memory.lexical import everyday_share, terms
from agentcore.memory.statements.values import NUMBER_WORDS
from agentcore.memory.summaries.summarizing import Source

# A word of another form is the same: "German" stands in "Germany".
_SAME_LETTERS = 4
# Where so many long words inside sentences are capitalised, and so few are small words of English, capitals
# tell no names, as in German.
_MOST_CAPITALS, _LEAST_ENGLISH = 0.22, 0.2
_LONG_WORD = 4
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*")
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE = re.compile(
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b\.?(?:,? \d{{4}})?"
    rf"|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\b{_MONTH}\.? \d{{4}}",
    re.IGNORECASE,
)
_OF_TELLING = """
agent assistant client conversation customer decision decisions discussion participant participants plan plans
speaker speakers summary topic topics user users
"""
_ORDINARY = STOP_WORDS | OPENING_WORDS | NEVER_NAMES | frozenset(_OF_TELLING.split())


def numbers_of(text: str) -> set[str]:
    """The numbers of a text: 40,000 and 40000 are the same, 1.5 and 15 are not; 2026-06-01 tells of 2026."""
    found: Iterable[str] = _NUMBER.findall(text)
    return {_plain(each) for each in found}


def numbers_told(text: str) -> set[str]:
    """The same with those that are written as words: "two dogs" are 2."""
    return numbers_of(text) | {str(NUMBER_WORDS[each]) for each in words(text) if each in NUMBER_WORDS}


def _plain(number: str) -> str:
    if _THOUSANDS.fullmatch(number):
        number = re.sub("[.,]", "", number)
    return number.replace(",", ".").lstrip("0") or "0"


class Heard:
    """What was said, by whom and when."""

    def __init__(self, sources: Sequence[Source]) -> None:
        texts = [each.content for each in sources]
        speakers = [each.speaker for each in sources if each.speaker is not None]
        self._words = {*words("\n".join([*texts, *speakers]))}
        self._numbers = set().union(*map(numbers_told, texts))
        self._dates = self._numbers.union(*map(_dates, sources))
        self._beginnings = {word[:_SAME_LETTERS] for word in self._words}
        self._capitals_tell = _capitals_tell(texts)

    def holds(self, claim: str) -> bool:
        """Whether every number and every name of the claim was said; days and years may be those of dates."""
        dates = " ".join(_DATE.findall(claim))
        rest = _DATE.sub(" ", claim)
        if not (numbers_of(dates) <= self._dates and numbers_of(rest) <= self._numbers):
            return False
        return not self._capitals_tell or all(map(self._said, _names(rest)))

    def sentences(self, text: str) -> tuple[str, int]:
        """The sentences of a text that hold, and how many were left out."""
        found = [collapse(each) for each in sentences(text)]
        kept = [each for each in found if self.holds(each)]
        return " ".join(kept), len(found) - len(kept)

    def _said(self, name: str) -> bool:
        parts = words(name)
        return all(part in self._words or self._begins(part) for part in parts)

    def _begins(self, part: str) -> bool:
        if len(part) < _SAME_LETTERS or part[:_SAME_LETTERS] not in self._beginnings:
            return False
        return any(each.startswith(part) or part.startswith(each) for each in self._long_words())

    def _long_words(self) -> Iterator[str]:
        return (each for each in self._words if len(each) >= _SAME_LETTERS)


def _names(claim: str) -> Iterator[str]:
    for place, match in enumerate(_WORD.finditer(claim)):
        word = match.group()
        plain = fold(word).removesuffix("'s").removesuffix("\u2019s")
        if not word[0].isupper() or plain in NEVER_NAMES:
            continue
        if place > 0 or not _is_ordinary(plain):
            yield plain


def _is_ordinary(word: str) -> bool:
    return word in _ORDINARY or any(everyday_share(term) > 0 for term in terms(word))


def _dates(source: Source) -> set[str]:
    days = [source.timestamp]
    span = mentioned(source.content, source.timestamp)
    if span is not None:
        days += [span[0], span[1] - timedelta(seconds=1)]
    return {str(number) for day in days for number in (day.year, day.month, day.day)}


def _capitals_tell(texts: Sequence[str]) -> bool:
    inside = [
        word for text in texts for sentence in sentences(text) for word in _WORD.findall(sentence)[1:]
    ]
    long_words = [word for word in inside if len(word) >= _LONG_WORD]
    capitals = sum(1 for word in long_words if word[0].isupper())
    english = sum(1 for word in inside if word.casefold() in STOP_WORDS)
    return capitals <= _MOST_CAPITALS * len(long_words) or english >= _LEAST_ENGLISH * len(inside)
