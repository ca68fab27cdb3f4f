"""Which memory speaks of an event, when that was, and the times that a query then means. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from agentcore.memory.language.text import words
from agentcore.memory.ranking.candidates import Mention, Span
from agentcore.memory.scoring import is_assistant, is_person

# Of the event's words, the rare ones counting more, a memory must hold so much to be taken for it.
LEAST_COVERAGE = 0.75
# And be so near to it, by cosine: below that the same words mean something else.
# Without vectors it must hold them all.
LEAST_SIMILARITY = 0.3
# What it counts that a memory says when it was, and that a person says it whom the query names.
SAYS_WHEN, IS_NAMED = 0.2, 0.1
# What fits so nearly as well, so much earlier or later, is as likely the event that is meant; the more so
# beside a memory that does not say when, for people come back to an event at any time.
RIVAL_MARGIN, RIVAL_MARGIN_UNDATED = 0.15, 0.3
RIVAL_DISTANCE = timedelta(days=31)


@dataclass(frozen=True)
class Telling:
    """A memory that speaks of an event, how much of its words it holds, and how well it fits."""

    memory: Mention
    coverage: float
    fit: float

    @property
    def is_near(self) -> bool:
        """Whether it speaks of the event, not just in its words."""
        similarity = self.memory.similarity
        return self.coverage >= 1.0 if similarity is None else similarity >= LEAST_SIMILARITY

    @property
    def span(self) -> Span:
        """The time it names, or else the moment it was said."""
        return self.memory.event or (self.memory.timestamp, self.memory.timestamp)


def teller(
    mentions: Sequence[Mention],
    coverage: Callable[[Mention], float],
    names: Collection[str],
    *,
    of_one_word: bool = False,
) -> Telling | None:
    """The memory that fits an event best; None where none fits, or others as well that put it elsewhere.

    `coverage` is the share of the event's words that a memory holds; `names` are words of the query that
    may name who speaks. What an assistant says is about what its user did, or about anything. An event
    `of_one_word` ("the switch") is spoken of for many reasons: only a memory that says when tells it.
    """
    fitting = [
        _telling(each, share, names)
        for each in mentions
        if not is_assistant(each.speaker) and (share := coverage(each)) >= LEAST_COVERAGE
    ]
    near = [each for each in fitting if each.is_near and (each.memory.event or not of_one_word)]
    best = max(near, key=lambda each: (each.fit, each.span, each.memory.memory_id), default=None)
    return None if best is None or any(_is_rival(each, best) for each in fitting) else best


def _telling(mention: Mention, share: float, names: Collection[str]) -> Telling:
    said_by = mention.speaker if is_person(mention.speaker) else None
    named = said_by is not None and any(part in names for part in words(said_by))
    fit = share + (mention.similarity or 0.0) + SAYS_WHEN * (mention.event is not None) + IS_NAMED * named
    return Telling(mention, share, fit)


def _is_rival(other: Telling, best: Telling) -> bool:
    margin = RIVAL_MARGIN if best.memory.event else RIVAL_MARGIN_UNDATED
    apart = max(other.span[0] - best.span[1], best.span[0] - other.span[1])
    return other.fit >= best.fit - margin and apart > RIVAL_DISTANCE


def narrowed(windows: Sequence[Span], told: Sequence[Sequence[Span]]) -> list[Span]:
    """What the windows of the calendar and the times of each event share; all where that is nothing."""
    shared = list(windows)
    for times in told:
        inside = [
            (max(start, first), min(end, last)) for first, last in shared or times for start, end in times
        ]
        shared = [(first, last) for first, last in inside if first < last]
        if not shared:
            return [*windows, *(time for each in told for time in each)]
    return shared
