"""Checks every name and number in a model's text against the sources; drops unsupported claims. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from agentcore.memory.everyday import everyday_share
from agentcore.memory.language.entities import NEVER_NAMES, OPENING_WORDS, find_entities
from agentcore.memory.language.llm_text import capped, within, without_reasoning, without_thoughts
from agentcore.memory.language.moments import mentioned
from agentcore.memory.language.text import STOP_WORDS, collapse, fold, sentences, words
from agentcore.memory.lexical import terms
from agentcore.memory.scoring import is_assistant
from agentcore.memory.statements.values import NUMBER_WORDS
from agentcore.memory.summaries.summarizing import Source, summarize

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


TOLD_SHARE = 2 / 3
MOST_FACTS, FACT_CHARS = 12, 400
UNGROUNDED = "it told of names or numbers that nobody said"
LOST = "it told of no name and no number that was said"

Count = Callable[[str], int]


@dataclass(frozen=True)
class Checked:
    """A summary and its facts, all in the room they were given; no text where nothing of it is of use.

    `degraded` says why there is none, or that something was left out.
    """

    text: str
    facts: Sequence[str] = ()
    degraded: str | None = None

    @property
    def content(self) -> str:
        """As it is kept."""
        return "\n".join([self.text, *(f"- {fact}" for fact in self.facts)])


def as_read(sources: Sequence[Source]) -> list[Source]:
    """What a model is given of them: each capped, and without what an assistant thought aloud."""
    return [replace(each, content=capped(_said(each))) for each in sources]


def _said(source: Source) -> str:
    if is_assistant(source.speaker):
        return without_thoughts(source.content)
    # An interaction has both sides, and names no speaker.
    return source.content if source.speaker is not None else without_reasoning(source.content)


def told_tokens(max_tokens: int) -> int:
    """How many tokens of a summary's room are for the model's own words."""
    return max(1, int(max_tokens * TOLD_SHARE))


def checked(
    text: str, facts: Sequence[str], heard: Heard, sources: Sequence[Source], max_tokens: int, count: Count
) -> Checked:
    """The model's words and facts as far as they hold, with the evidence they lost.

    `heard` is what the `sources` say. Where room is short the last of its facts go.
    """
    told, left_out = heard.sentences(without_thoughts(text))
    if not told:
        return Checked("", degraded=UNGROUNDED)
    room = told_tokens(max_tokens)
    said, kept = within(told, room, count), _facts(facts, heard)
    evidence = _evidence(sources, max_tokens - room, count)
    if not _speak_of_it(evidence, _Told("\n".join([said, *kept]))):
        return Checked("", degraded=LOST)
    while True:
        lost = _lost(evidence, _Told("\n".join([said, *kept])))
        found = Checked(said, [*kept, *lost], UNGROUNDED if left_out else None)
        if not kept or count(found.content) <= max_tokens:
            return found
        kept.pop()


def _speak_of_it(evidence: Sequence[_Evidence], told: _Told) -> bool:
    return not evidence or any(each.has_part_in(told) for each in evidence)


def _lost(evidence: Sequence[_Evidence], told: _Told) -> list[str]:
    return [each.line for each in evidence if not each.stands_in(told)]


def _facts(facts: Sequence[str], heard: Heard) -> list[str]:
    told = (collapse(without_thoughts(each))[:FACT_CHARS] for each in facts)
    held = {each.casefold(): each for each in told if each and heard.holds(each)}
    return list(held.values())[:MOST_FACTS]


class _Told:
    def __init__(self, text: str) -> None:
        self.words = {*words(text)}
        self.numbers = numbers_told(text)


@dataclass(frozen=True)
class _Evidence:
    line: str
    names: Sequence[frozenset[str]]
    numbers: set[str]

    def stands_in(self, told: _Told) -> bool:
        """A name does where a word of it does, a number as it is: 5 May 2023 asks for May, 5 and 2023."""
        named = all(not name.isdisjoint(told.words) for name in self.names)
        return named and self.numbers <= told.numbers

    def has_part_in(self, told: _Told) -> bool:
        """Whether any of it stands there."""
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
    """What a source that is there says now, if it holds, and all that it said before or no longer holds."""

    speaker: str | None
    now: str
    before: Sequence[str]


def remnants(summary: str, there: Iterable[Spoken]) -> str:
    """The lines of a summary made of sentences that are of none of the sources that are there."""
    said = {line for each in there for text in (each.now, *each.before) for line in _lines(each, text)}
    return _without(summary, said)


def without_stale(summary: str, there: Iterable[Spoken]) -> str:
    """The lines of any summary but for sentences that were said, and no longer are."""
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
