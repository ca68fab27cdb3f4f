"""What of the memories fits a token budget, and the context it makes. Pure: the caller counts tokens.

What fits stands in full, the best first; what does not is shortened to the sentences that tell most of the
query, or left out. Inside a section memories stand as they were said: by session and time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal
from uuid import UUID

from agentcore.memory.context_lines import (
    ANY_TIME,
    TASK,
    ContextEntry,
    ContextLine,
    in_order,
    said,
    sections,
    stretch_of,
    time_of,
)
from agentcore.memory.extraction import MOST_CHARACTERS_PER_TOKEN, extract
from agentcore.memory.fencing import quoted
from agentcore.memory.rendering import FORMS, Form
from agentcore.memory.text import normal_form

CountTokens = Callable[[str], int]
WORKING_SHARE = 0.5
# So many of the best that a search found come before anything else, also where they belong to the task.
BEST_FOUND = 3
# A memory shortened takes no more than this of the room, and is not worth less than so many tokens.
SHORTENED_SHARE = 0.4
LEAST_SHORTENED_TOKENS = 24
# A period's summary is of sessions', those of messages.
SUMMARY_LEVELS = 2
# Shortening takes time: of what did not fit so many are tried for the room that is left.
TRIED_SHORTENED = 8
# Behind the best, a text longer than this must be better to stand before a shorter one; decision 0031.
LONG_CHARS = 800
LONG_EXPONENT = 0.2
Loss = Literal["beyond_max_tokens", "same_text", "told_by_parent", "told_by_sources"]


@dataclass(frozen=True)
class Context:
    """The finished text, its exact token count, and what became of each memory: `left_out` says why."""

    text: str
    token_count: int
    lines: Sequence[ContextLine]
    left_out: Sequence[tuple[UUID, Loss]]

    @property
    def shortened(self) -> list[UUID]:
        """Those that do not stand in full, in the order of the text."""
        return [line.entry.memory_id for line in self.lines if line.shortened]


@dataclass(frozen=True)
class Manner:
    """How a context is made: its form, the query's terms, and the share of the room for what was found.

    `distinct`: what was found says nothing in the words of another.
    """

    form: Form = field(default_factory=lambda: FORMS["markdown"])
    query_terms: Set[str] = frozenset()
    found_share: float = 1.0
    distinct: bool = True


PLAIN = Manner()


def build_context(
    entries: Sequence[ContextEntry], max_tokens: int, count: CountTokens, manner: Manner = PLAIN
) -> Context:
    """Fill the budget with these memories, the most important first; the text never exceeds `max_tokens`.

    First the best that were found, if the task holds them; then the task, with them no more than half of the
    budget; then what else was found; then the rest of the task; last, shortened, what was found and too long.
    """
    unlike = _unlike(entries) if manner.distinct else entries
    filling = _Filling(max_tokens, cache(count), manner, unlike)
    _fill(filling, unlike, manner.found_share)
    lines = filling.lines
    text, tokens = _counted(lines, manner.form, count)
    while tokens > max_tokens:
        _drop(lines, tokens - max_tokens)
        text, tokens = _counted(lines, manner.form, count)
    if not lines:
        text, tokens = _nothing(manner.form, max_tokens, count)
    there = {line.entry.memory_id for line in lines}
    new = {entry.memory_id for entry in unlike}
    telling = {line.entry.memory_id for line in lines if not line.shortened}
    telling |= filling.told_by(telling)
    left_out = [
        (entry.memory_id, _loss(entry, new, telling))
        for entry in entries
        if entry.memory_id not in there
    ]
    return Context(text, tokens, in_order(lines), left_out)


def _loss(entry: ContextEntry, new: Set[UUID], telling: Set[UUID]) -> Loss:
    if entry.memory_id not in new:
        return "same_text"
    if entry.memory_id in telling:
        return "told_by_sources"
    return "told_by_parent" if entry.parent_id in telling else "beyond_max_tokens"


def compress_memory_sequence(
    entries: Sequence[ContextEntry], max_tokens: int, count: CountTokens, manner: Manner = PLAIN
) -> list[ContextLine]:
    """The lines that fit, in the order given: each memory in full, else shortened, else not at all."""
    filling = _Filling(max_tokens, count, manner, entries)
    filling.add(entries, filling.room)
    return filling.lines


class _Filling:
    """The lines chosen so far, the most important first, and the room that is left."""

    def __init__(
        self, max_tokens: int, count: CountTokens, manner: Manner, entries: Sequence[ContextEntry]
    ) -> None:
        self.lines: list[ContextLine] = []
        self.room = max_tokens - count(manner.form.frame)
        self._count = count
        self._form = manner.form
        self._terms = manner.query_terms
        self._headed: set[Any] = set()
        self._facts: dict[UUID, list[ContextEntry]] = {}
        for entry in entries:
            if entry.parent_id is not None:
                self._facts.setdefault(entry.parent_id, []).append(entry)
        self._summaries = [each for each in entries if each.sources]
        self._summarised = {source for each in self._summaries for source in each.sources}

    def told_by(self, telling: Set[UUID]) -> set[UUID]:
        """The summaries all of whose sources are among these, or are such summaries."""
        told: set[UUID] = set()
        for _ in range(SUMMARY_LEVELS if self._summaries else 0):
            known = telling | told
            told |= {each.memory_id for each in self._summaries if each.sources <= known}
        return told

    def add(self, entries: Iterable[ContextEntry], room: int) -> None:
        """Each in full, else by facts read from it or a summary of it, else shortened, in `room` tokens."""
        kept = self.room - room
        for entry in self.waiting(entries):
            if self._stands(entry):
                continue
            free = self.room - kept
            ways = self._add_in_full, self._add_facts, self._add_summary
            if not any(add(entry, free) for add in ways):
                self._add_shortened(entry, min(free, int(SHORTENED_SHARE * room)))

    def add_in_full(self, entries: Iterable[ContextEntry], room: int) -> None:
        """Those that fit in full in no more than `room` tokens together."""
        kept = self.room - room
        for entry in self.waiting(entries):
            if not self._stands(entry):
                self._add_in_full(entry, self.room - kept)

    def waiting(self, entries: Iterable[ContextEntry]) -> list[ContextEntry]:
        """Those that are not there yet."""
        taken = {line.entry.memory_id for line in self.lines}
        return [entry for entry in entries if entry.memory_id not in taken]

    def _stands(self, entry: ContextEntry) -> bool:
        """Whether a fact is there, or what it was read from is there in full; or all that a summary is of."""
        if entry.sources:
            return entry.memory_id in self.told_by(self._telling())
        return entry.parent_id is not None and any(
            line.entry.memory_id == entry.memory_id
            or (line.entry.memory_id == entry.parent_id and not line.shortened)
            for line in self.lines
        )

    def _add_in_full(self, entry: ContextEntry, room: int) -> bool:
        """Whether it fits; it takes the place of the facts read from it."""
        told = []
        if entry.memory_id in self._facts:
            told = [line for line in self.lines if line.entry.parent_id == entry.memory_id]
        freed = sum(self._count(self._form.memory(said(line.entry, line.text))) for line in told)
        room += freed
        # Counting takes time: what is surely too long is not counted.
        if entry.content_tokens > room or len(entry.content) > max(0, room) * MOST_CHARACTERS_PER_TOKEN:
            return False
        if not self._add_text(entry, entry.content, room, shortened=False):
            return False
        if told:
            self.lines = [line for line in self.lines if line not in told]
            self.room += freed
        if entry.memory_id in self._summarised:
            self._drop_told()
        return True

    def _add_facts(self, entry: ContextEntry, room: int) -> bool:
        """Whether a fact read from it is there, now or already."""
        kept = self.room - room
        facts = self._facts.get(entry.memory_id, [])
        for fact in self.waiting(facts):
            self._add_in_full(fact, self.room - kept)
        return len(self.waiting(facts)) < len(facts)

    def _add_summary(self, entry: ContextEntry, room: int) -> bool:
        """Whether a summary of it is there, now or already; of the best, sentences say more."""
        best = entry.rank is not None and entry.rank < BEST_FOUND
        if best or entry.memory_id not in self._summarised:
            return False
        summaries = [each for each in self._summaries if entry.memory_id in each.sources]
        waiting = self.waiting(summaries)
        return len(waiting) < len(summaries) or any(self._add_in_full(each, room) for each in waiting)

    def _telling(self) -> set[UUID]:
        return {line.entry.memory_id for line in self.lines if not line.shortened}

    def _drop_told(self) -> None:
        """Take away the summaries that add nothing any more to what stands there."""
        told = self.told_by(self._telling())
        for line in [each for each in self.lines if each.entry.memory_id in told]:
            self.lines.remove(line)
            self.room += self._count(self._form.memory(said(line.entry, line.text)))

    def _add_shortened(self, entry: ContextEntry, room: int) -> bool:
        head = self._count(self._form.memory(said(entry, ""))) + self._heading_tokens(entry)
        if room - head < LEAST_SHORTENED_TOKENS // 2:
            return False
        text = extract(entry.content, self._terms, room - head, self._count)
        if text and self._add_text(entry, text, room, shortened=True):
            return True
        fits = len(entry.summary) <= room * MOST_CHARACTERS_PER_TOKEN
        return fits and self._add_text(entry, entry.summary, room, shortened=True)

    def _add_text(self, entry: ContextEntry, text: str, room: int, *, shortened: bool) -> bool:
        line = quoted(text)
        tokens = self._count(self._form.memory(said(entry, line))) + self._heading_tokens(entry)
        if tokens > room:
            return False
        self._headed |= {entry.section, stretch_of(entry)}
        self.lines.append(ContextLine(entry, line, tokens, shortened=shortened))
        self.room -= tokens
        return True

    def _heading_tokens(self, entry: ContextEntry) -> int:
        tokens = 0
        if entry.section not in self._headed:
            tokens += self._count(self._form.heading(entry.section))
        if stretch_of(entry) not in self._headed:
            tokens += self._count(self._form.time(time_of(entry.section, ANY_TIME)))
        return tokens


def _fill(filling: _Filling, entries: Sequence[ContextEntry], found_share: float) -> None:
    working = [entry for entry in entries if entry.section == TASK]
    # Sorting is stable: what was not found stays as it came, the newest first.
    working.sort(key=lambda entry: len(entries) if entry.rank is None else entry.rank)
    found = [entry for entry in entries if entry.section != TASK]
    whole = filling.room
    filling.add((each for each in working if each.rank is not None and each.rank < BEST_FOUND), filling.room)
    filling.add(working, filling.room - int(whole * (1 - WORKING_SHARE)))
    free = int(filling.room * found_share)
    kept = filling.room - free
    filling.add(found[:BEST_FOUND], filling.room - kept)
    filling.add_in_full(_shorter_first(found[BEST_FOUND:]), filling.room - kept)
    filling.add(working, filling.room)
    filling.add(filling.waiting(found)[:TRIED_SHORTENED], filling.room - kept)


def _unlike(entries: Sequence[ContextEntry]) -> list[ContextEntry]:
    """Of those found with the same words of the same speaker the first; the task's stay as they are."""
    said: set[tuple[str, str | None]] = set()
    kept: list[ContextEntry] = []
    for entry in entries:
        words = normal_form(entry.content), entry.speaker
        if entry.section == TASK or words not in said:
            kept.append(entry)
        said.add(words)
    return kept


def _shorter_first(found: Sequence[ContextEntry]) -> list[ContextEntry]:
    """By the worth of each place, a long text's divided: for its room several shorter ones may stand."""

    def worth(entry: ContextEntry) -> float:
        return float(entry.worth / max(1.0, len(entry.content) / LONG_CHARS) ** LONG_EXPONENT)

    return sorted(found, key=worth, reverse=True)


def _drop(lines: list[ContextLine], excess_tokens: int) -> None:
    """Take the least important lines that hold this many tokens, so that a count or two suffice."""
    while lines and excess_tokens > 0:
        excess_tokens -= lines.pop().tokens


def _counted(lines: Sequence[ContextLine], form: Form, count: CountTokens) -> tuple[str, int]:
    if not lines:
        return "", 0
    text = form.whole(sections(in_order(lines)))
    return text, count(text)


def _nothing(form: Form, max_tokens: int, count: CountTokens) -> tuple[str, int]:
    """A document of the form without a memory, where that fits; else no text at all."""
    tokens = count(form.nothing) if form.nothing else 0
    return (form.nothing, tokens) if tokens <= max_tokens else ("", 0)
