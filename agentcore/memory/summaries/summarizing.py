"""Extractive summaries, segments of conversations, and calendar periods. Pure.

SumBasic (Nenkova and Vanderwende, 2005): a sentence's value is the mean probability of its words, squared
after use; here also weighted by importance.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

from agentcore.memory.language.llm_text import truncate_tokens
from agentcore.memory.language.rejection import rejection
from agentcore.memory.language.text import sentences
from agentcore.memory.lexical import terms
from agentcore.summary_rules import PeriodUnit

# A pause of this length starts a new segment once the current one has so many messages.
PAUSE, FEWEST_MESSAGES = timedelta(minutes=30), 4
# Sentences with fewer terms ("Paco is ill.") are used only if space is left.
LEAST_TERMS = 3
MOST_SENTENCES = 4_000

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Source:
    """A memory to summarize. A superseded one is covered by the summary, but not quoted."""

    memory_id: UUID
    timestamp: datetime
    speaker: str | None
    content: str
    importance: float
    version: int = 0
    current: bool = True

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.content}" if self.speaker else self.content


@dataclass(frozen=True)
class Summary:
    text: str
    token_count: int
    memory_ids: Sequence[UUID]


@dataclass(frozen=True)
class _Sentence:
    source: Source
    place: int
    text: str
    terms: frozenset[str]

    @property
    def telling(self) -> bool:
        return len(self.terms) >= LEAST_TERMS

    @property
    def line(self) -> str:
        return f"{self.source.speaker}: {self.text}" if self.source.speaker else self.text


def summarize(sources: Sequence[Source], max_tokens: int, count: Callable[[str], int]) -> Summary:
    """Returns the best sentences within `max_tokens` by time; if none fits, the start of the best one."""
    chosen = _fitting(_best_first(_worth_saying(sources)), max_tokens, count)
    chosen.sort(key=lambda each: each.place)
    # Only a sentence that does not fit is selected alone.
    text = truncate_tokens("\n".join(each.line for each in chosen), max_tokens, count)
    memory_ids = list(dict.fromkeys(each.source.memory_id for each in chosen)) if text else []
    return Summary(text, count(text) if text else 0, memory_ids)


def _fitting(found: Iterator[_Sentence], max_tokens: int, count: Callable[[str], int]) -> list[_Sentence]:
    passed: list[_Sentence] = []
    chosen: list[_Sentence] = []
    room = max_tokens
    for each in found:
        tokens = count(each.line + "\n")
        if tokens > room:
            passed = passed or [each]
            continue
        room -= tokens
        chosen.append(each)
        if not room:
            break
    return chosen or passed


def _best_first(waiting: list[_Sentence]) -> Iterator[_Sentence]:
    """Yields the best sentence given those before it; reweighs only the top: values only fall."""
    frequencies = Counter(term for each in waiting for term in each.terms)
    total = sum(frequencies.values())
    probability = {term: times / total for term, times in frequencies.items()}

    def weighed(each: _Sentence) -> tuple[bool, float, int]:
        return not each.telling, -_worth(each, probability), each.place

    heap = [(weighed(each), each) for each in waiting]
    heapify(heap)
    while heap:
        before, best = heappop(heap)
        now = weighed(best)
        if now != before:
            heappush(heap, (now, best))
            continue
        yield best
        for term in best.terms:
            probability[term] **= 2


def _worth(sentence: _Sentence, probability: dict[str, float]) -> float:
    mean = sum(probability[term] for term in sentence.terms) / len(sentence.terms)
    return mean * (0.5 + sentence.source.importance)


def _worth_saying(sources: Sequence[Source]) -> list[_Sentence]:
    """Returns the sentences that state something, by time; of equal ones the last."""
    ordered = sorted(sources, key=lambda source: (source.timestamp, source.memory_id))
    found: dict[frozenset[str], _Sentence] = {}
    for source in ordered:
        for text in sentences(source.content):
            said = frozenset(terms(text))
            if _states(text, said):
                found[said] = _Sentence(source, len(found), text, said)
    latest = list(found.values())[-MOST_SENTENCES:]
    places = {source.memory_id: place for place, source in enumerate(ordered)}
    latest.sort(key=lambda each: (places[each.source.memory_id], each.source.content.find(each.text)))
    return [_Sentence(each.source, place, each.text, each.terms) for place, each in enumerate(latest)]


def _states(text: str, said: Set[str]) -> bool:
    if len(said) < 2 or text.endswith("?"):
        return False
    return len(said) >= LEAST_TERMS or rejection(text) is None


def digest_of(said: Iterable[tuple[UUID, bytes, bool]]) -> str:
    """Returns a digest of (id, content hash, is current) of the sources, independent of order."""
    told = sorted(f"{memory_id}:{bytes(words).hex()}:{holds}" for memory_id, words, holds in said)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def shared(values: Iterable[_Value]) -> _Value | None:
    """Returns the value that all sources share, None if they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def segments(messages: Sequence[Source], max_messages: int) -> Iterator[Sequence[Source]]:
    """Splits messages into segments of at most `max_messages`, at pauses; long segments evenly."""
    for talk in _talks(messages):
        count = -(-len(talk) // max_messages)
        bounds = [len(talk) * place // count for place in range(count + 1)]
        yield from (talk[begin:end] for begin, end in pairwise(bounds))


def _talks(messages: Sequence[Source]) -> list[list[Source]]:
    talks: list[list[Source]] = []
    for message in messages:
        talk = talks[-1] if talks else []
        if not talk or (len(talk) >= FEWEST_MESSAGES and message.timestamp - talk[-1].timestamp >= PAUSE):
            talks.append([message])
        else:
            talk.append(message)
    if len(talks) > 1 and len(talks[-1]) < FEWEST_MESSAGES:
        talks[-2:] = [talks[-2] + talks[-1]]
    return talks


def pieces(messages: Sequence[Source], sizes: Sequence[int], most: int) -> Iterator[Sequence[Source]]:
    """Splits messages into pieces of at most `most`; a larger message is alone."""
    piece: list[Source] = []
    size = 0
    for message, own in zip(messages, sizes, strict=True):
        if piece and size + own > most:
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += own
    if piece:
        yield piece


_DAY_CHARS = len("2026-11-22")


@dataclass(frozen=True)
class Period:
    """A day ("2026-11-22"), week ("2026-W47") or month ("2026-11"): from `starts` to before `ends`, UTC."""

    unit: PeriodUnit
    label: str
    starts: datetime
    ends: datetime


def period_of(unit: PeriodUnit, moment: datetime) -> Period:
    """Returns the period of a moment. Raises OverflowError beyond the year 9999."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "day":
        return Period(unit, day.date().isoformat(), day, day + timedelta(days=1))
    if unit == "week":
        year, week, weekday = day.isocalendar()
        starts = day - timedelta(days=weekday - 1)
        return Period(unit, f"{year:04}-W{week:02}", starts, starts + timedelta(days=7))
    starts = day.replace(day=1)
    ends = (starts + timedelta(days=31)).replace(day=1)
    return Period(unit, starts.date().isoformat()[:7], starts, ends)


def period_named(label: str) -> Period:
    """Returns the period of a label. Raises ValueError, OverflowError."""
    if "W" in label:
        return period_of("week", datetime.strptime(f"{label}-1", "%G-W%V-%u").replace(tzinfo=UTC))
    whole = len(label) == _DAY_CHARS
    moment = datetime.fromisoformat(label if whole else f"{label}-01").replace(tzinfo=UTC)
    return period_of("day" if whole else "month", moment)
