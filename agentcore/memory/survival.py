"""What a summary in a model's words keeps of what was said: names, numbers and dates must survive. Pure.

The evidence are the sentences that extraction would choose for a third of the room. What of it the model's
words lost stands below them, verbatim; a model that kept no name and no number of it spoke of something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentcore.memory.entities import find_entities
from agentcore.memory.llm_text import numbers_of, within
from agentcore.memory.summarizing import Source, summarize
from agentcore.memory.text import words

TOLD_SHARE = 2 / 3


@dataclass(frozen=True)
class Checked:
    """A summary and its facts, all in the room they were given. `told`: the model's words are of use."""

    text: str
    facts: Sequence[str]
    told: bool

    @property
    def content(self) -> str:
        """As it is kept."""
        return "\n".join([self.text, *(f"- {fact}" for fact in self.facts)])


def told_tokens(max_tokens: int) -> int:
    """How many tokens of a summary's room are for the model's own words."""
    return max(1, int(max_tokens * TOLD_SHARE))


def checked(
    text: str, facts: Sequence[str], sources: Sequence[Source], max_tokens: int, count: Callable[[str], int]
) -> Checked:
    """The model's words and facts with the evidence they lost; where room is short its last facts go."""
    room = told_tokens(max_tokens)
    text, kept = within(text, room, count), [*facts]
    evidence = _evidence(sources, max_tokens - room, count)
    told = not evidence or any(each.has_part_in(_Told("\n".join([text, *facts]))) for each in evidence)
    while True:
        said = _Told("\n".join([text, *kept]))
        lost = [each.line for each in evidence if not each.stands_in(said)]
        found = Checked(text, [*kept, *lost], told)
        if not kept or count(found.content) <= max_tokens:
            return found
        kept.pop()


class _Told:
    """The words and the numbers of what a model told."""

    def __init__(self, text: str) -> None:
        self.words = {*words(text)}
        self.numbers = numbers_of(text)


@dataclass(frozen=True)
class _Evidence:
    """A sentence with names, each as its words, or with numbers."""

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


def _evidence(sources: Sequence[Source], max_tokens: int, count: Callable[[str], int]) -> list[_Evidence]:
    speakers = [each.speaker for each in sources if each.speaker is not None and each.speaker[:1].isupper()]
    lines = summarize(sources, max_tokens, lambda line: count(f"- {line}")).text.splitlines()
    found = [
        _Evidence(line, [each for name in names if (each := frozenset(words(name)))], numbers_of(line))
        for line, names in zip(lines, find_entities(lines, (), speakers), strict=True)
    ]
    return [each for each in found if each.names or each.numbers]
