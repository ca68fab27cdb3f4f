"""Keeps what is supported of a model's summary, and what an earlier one said of sources that are gone. Pure.

Names, numbers and dates that the model lost are added verbatim, from the sentences extraction would choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agentcore.memory.language.entities import find_entities
from agentcore.memory.language.llm_text import capped, within, without_reasoning, without_thoughts
from agentcore.memory.language.text import collapse, sentences, words
from agentcore.memory.scoring import is_assistant
from agentcore.memory.summaries.grounding import Heard, numbers_of, numbers_told
from agentcore.memory.summaries.summarizing import Source, summarize

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
