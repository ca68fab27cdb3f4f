"""Which memory speaks of an event, when that was, and the times that a query then means. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from agentcore.memory.candidates import Candidate, Span
from agentcore.memory.scoring import is_assistant, is_person
from agentcore.memory.text import words

# Of the event's words, the rare ones counting more, a memory must hold so much to be taken for it.
LEAST_COVERAGE = 0.75
# And be so near to it, by cosine: below that the same words mean something else.
LEAST_SIMILARITY = 0.3
# One that does not say when must be about nothing else: who comes back to an event does so at any time.
LEAST_SIMILARITY_UNDATED = 0.5
# What it counts that a memory says when it was, and that a person says it whom the query names.
SAYS_WHEN, IS_NAMED = 0.2, 0.1
# What fits so nearly as well, so much earlier or later, is as likely the event that is meant.
RIVAL_MARGIN = 0.15
RIVAL_DISTANCE = timedelta(days=31)


@dataclass(frozen=True)
class Telling:
    """A memory that speaks of an event, and how well it fits."""

    memory: Candidate
    coverage: float
    fit: float

    @property
    def is_sure(self) -> bool:
        """Whether it may be taken to tell of the event when it was; without a vector all its words say so."""
        if self.memory.event is not None:
            return True
        similarity = self.memory.similarity
        return self.coverage >= 1.0 if similarity is None else similarity >= LEAST_SIMILARITY_UNDATED

    @property
    def span(self) -> Span:
        """The time it names, or else the moment it was said."""
        return self.memory.event or (self.memory.timestamp, self.memory.timestamp)


def teller(
    candidates: Sequence[Candidate], coverage: Callable[[Candidate], float], names: Collection[str]
) -> Telling | None:
    """The memory that fits an event best; None where none fits, or others as well that put it elsewhere.

    `coverage` is the share of the event's words that a memory holds; `names` are words of the query that
    may name who speaks. What an assistant says is about what its user did, or about anything.
    """
    fitting = [
        _telling(each, share, names)
        for each in candidates
        if not is_assistant(each.speaker) and (share := coverage(each)) >= LEAST_COVERAGE and _is_near(each)
    ]
    best = max(fitting, key=lambda each: (each.fit, each.span, each.memory.memory_id), default=None)
    if best is None or not best.is_sure or any(_is_rival(each, best) for each in fitting):
        return None
    return best


def _is_near(candidate: Candidate) -> bool:
    return candidate.similarity is None or candidate.similarity >= LEAST_SIMILARITY


def _telling(candidate: Candidate, share: float, names: Collection[str]) -> Telling:
    said_by = candidate.speaker if is_person(candidate.speaker) else None
    named = said_by is not None and any(part in names for part in words(said_by))
    fit = share + (candidate.similarity or 0.0) + SAYS_WHEN * (candidate.event is not None) + IS_NAMED * named
    return Telling(candidate, share, fit)


def _is_rival(other: Telling, best: Telling) -> bool:
    apart = max(other.span[0] - best.span[1], best.span[0] - other.span[1])
    return other.fit >= best.fit - RIVAL_MARGIN and apart > RIVAL_DISTANCE


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
