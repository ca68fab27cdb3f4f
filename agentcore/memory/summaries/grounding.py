"""Checks a model's text against its sources; keeps lines of sources that are gone. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from agentcore.memory.language.entities import NEVER_NAMES, OPENING_WORDS, find_entities
from agentcore.memory.language.llm_text import (
    strip_all_reasoning,
    strip_leading_reasoning,
    truncate_bytes,
    truncate_sentences,
)
from agentcore.memory.language.moments import mentioned
from agentcore.memory.language.text import STOP_WORDS, collapse, fold, sentences, words
from agentcore.memory.lexical import everyday_share, terms
from agentcore.memory.scoring import is_assistant
from agentcore.memory.statements.values import NUMBER_WORDS
from agentcore.memory.summaries.summarizing import Source, summarize

# Inflected forms match by prefix: "German" matches "Germany".
_SAME_LETTERS = 4
# With more capitalized and fewer English words, capitals do not mark names (German).
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
    """Returns the numbers of a text: 40,000 equals 40000, 1.5 differs from 15; 2026-06-01 contains 2026."""
    return {_plain(each) for each in _NUMBER.findall(text)}


def _numbers_told(text: str) -> set[str]:
    return numbers_of(text) | {str(NUMBER_WORDS[each]) for each in words(text) if each in NUMBER_WORDS}


def _plain(number: str) -> str:
    if _THOUSANDS.fullmatch(number):
        number = re.sub("[.,]", "", number)
    return number.replace(",", ".").lstrip("0") or "0"


class SourceTexts:
    """The sources of a claim: texts, speakers, times."""

    def __init__(self, sources: Sequence[Source]) -> None:
        texts = [each.content for each in sources]
        speakers = [each.speaker for each in sources if each.speaker is not None]
        self._words = {*words("\n".join([*texts, *speakers]))}
        self._numbers = set().union(*map(_numbers_told, texts))
        self._dates = self._numbers.union(*map(_dates, sources))
        self._beginnings = {word[:_SAME_LETTERS] for word in self._words}
        self._capitals_tell = _capitals_tell(texts)

    def holds(self, claim: str) -> bool:
        """Returns whether the sources contain all numbers and names; dates may be those of timestamps."""
        dates = " ".join(_DATE.findall(claim))
        rest = _DATE.sub(" ", claim)
        if not (numbers_of(dates) <= self._dates and numbers_of(rest) <= self._numbers):
            return False
        return not self._capitals_tell or all(map(self._said, _names(rest)))

    def sentences(self, text: str) -> tuple[str, int]:
        """Returns the supported sentences of a text, and how many were dropped."""
        found = [collapse(each) for each in sentences(text)]
        kept = [each for each in found if self.holds(each)]
        return " ".join(kept), len(found) - len(kept)

    def _said(self, name: str) -> bool:
        parts = words(name)
        return all(part in self._words or self._begins(part) for part in parts)

    def _begins(self, part: str) -> bool:
        if len(part) < _SAME_LETTERS or part[:_SAME_LETTERS] not in self._beginnings:
            return False
        long_words = (each for each in self._words if len(each) >= _SAME_LETTERS)
        return any(each.startswith(part) or part.startswith(each) for each in long_words)


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
    inside = [word for text in texts for sentence in sentences(text) for word in _WORD.findall(sentence)[1:]]
    long_words = [word for word in inside if len(word) >= _LONG_WORD]
    capitals = sum(1 for word in long_words if word[0].isupper())
    english = sum(1 for word in inside if word.casefold() in STOP_WORDS)
    return capitals <= _MOST_CAPITALS * len(long_words) or english >= _LEAST_ENGLISH * len(inside)


TOLD_SHARE = 2 / 3
MOST_FACTS, FACT_CHARS = 12, 400
UNGROUNDED = "it told of names or numbers that nobody said"
LOST = "it told of no name and no number that was said"

Count = Callable[[str], int]


@dataclass(frozen=True)
class Checked:
    """A summary with its facts. Empty text: unusable. `degraded`: why, or that something was dropped."""

    text: str
    facts: Sequence[str] = ()
    degraded: str | None = None

    @property
    def content(self) -> str:
        return "\n".join([self.text, *(f"- {fact}" for fact in self.facts)])


def as_read(sources: Sequence[Source]) -> list[Source]:
    """Returns the sources as a model reads them: cut, and without an assistant's reasoning."""
    return [replace(each, content=truncate_bytes(_said(each))) for each in sources]


def _said(source: Source) -> str:
    if is_assistant(source.speaker):
        return strip_all_reasoning(source.content)
    # An interaction contains both sides, and has no speaker.
    return source.content if source.speaker is not None else strip_leading_reasoning(source.content)


def tokens_of_text(max_tokens: int) -> int:
    return max(1, int(max_tokens * TOLD_SHARE))


def checked(
    text: str, facts: Sequence[str], texts: SourceTexts, sources: Sequence[Source], max_tokens: int, count: Count
) -> Checked:
    """Returns the supported part of a model's text and facts.

    Sentences that extraction would choose are added if the model lost their names, numbers or dates. If they
    do not fit, the last facts are dropped. `texts` is built from `sources`.
    """
    told, left_out = texts.sentences(strip_all_reasoning(text))
    if not told:
        return Checked("", degraded=UNGROUNDED)
    room = tokens_of_text(max_tokens)
    said, kept = truncate_sentences(told, room, count), _facts(facts, texts)
    evidence = _evidence(sources, max_tokens - room, count)
    told_by_model = _Told("\n".join([said, *kept]))
    if evidence and not any(each.has_part_in(told_by_model) for each in evidence):
        return Checked("", degraded=LOST)
    while True:
        told_by_model = _Told("\n".join([said, *kept]))
        lost = [each.line for each in evidence if not each.stands_in(told_by_model)]
        found = Checked(said, [*kept, *lost], UNGROUNDED if left_out else None)
        if not kept or count(found.content) <= max_tokens:
            return found
        kept.pop()


def _facts(facts: Sequence[str], texts: SourceTexts) -> list[str]:
    told = (collapse(strip_all_reasoning(each))[:FACT_CHARS] for each in facts)
    held = {each.casefold(): each for each in told if each and texts.holds(each)}
    return list(held.values())[:MOST_FACTS]


class _Told:
    def __init__(self, text: str) -> None:
        self.words = {*words(text)}
        self.numbers = _numbers_told(text)


@dataclass(frozen=True)
class _Evidence:
    line: str
    names: Sequence[frozenset[str]]
    numbers: set[str]

    def stands_in(self, told: _Told) -> bool:
        """Returns whether the text contains a word of each name, and each number."""
        named = all(not name.isdisjoint(told.words) for name in self.names)
        return named and self.numbers <= told.numbers

    def has_part_in(self, told: _Told) -> bool:
        named = any(not name.isdisjoint(told.words) for name in self.names)
        return named or not self.numbers.isdisjoint(told.numbers)


def _evidence(sources: Sequence[Source], max_tokens: int, count: Count) -> list[_Evidence]:
    speakers = [each.speaker for each in sources if each.speaker is not None and each.speaker[:1].isupper()]
    lines = summarize(sources, max_tokens, lambda line: count(f"- {line}")).text.splitlines()
    found = [
        _Evidence(line, [each for name in names if (each := frozenset(words(name)))], numbers_of(line))
        for line, names in zip(lines, find_entities(lines, (), speakers), strict=True)
    ]
    return [each for each in found if each.names or each.numbers]


@dataclass(frozen=True)
class Spoken:
    """An existing source: its current content ("" if superseded), and its earlier ones."""

    speaker: str | None
    now: str
    before: Sequence[str]


def remnants(summary: str, there: Iterable[Spoken]) -> str:
    """Returns the lines of an extractive summary that come from none of the existing sources."""
    said = {line for each in there for text in (each.now, *each.before) for line in _lines(each, text)}
    return _without(summary, said)


def without_stale(summary: str, there: Iterable[Spoken]) -> str:
    """Returns the lines of a summary without sentences that a source no longer contains."""
    known = [*there]
    now = {line for each in known for line in _lines(each, each.now)}
    stale = {line for each in known for text in each.before for line in _lines(each, text)}
    return _without(summary, stale - now)


def _without(summary: str, lines: set[str]) -> str:
    return "\n".join(line for line in summary.split("\n") if line.removeprefix("- ") not in lines)


def _lines(spoken: Spoken, text: str) -> set[str]:
    parts = {*sentences(text), *text.split("\n")}
    if spoken.speaker is None:
        return parts
    return parts | {f"{spoken.speaker}: {part}" for part in parts}
