"""Fills a context's budget with memories in full, by their summary, or shortened. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agentcore.memory.contexts.fencing import quoted
from agentcore.memory.contexts.rendering import (
    ANY_TIME,
    FORMATS,
    ContextEntry,
    ContextLine,
    Format,
    render_memory,
    time_group_key,
    time_of,
)
from agentcore.memory.contexts.shortening import MOST_CHARACTERS_PER_TOKEN, Reading, extract, without_repetitions

# Number of top hits that precede all other entries.
BEST_FOUND = 3
# Minimum share of the best score of further hits that a clear query refers to.
CLEAR_SHARE = 0.7
# A note of importance 1 ranks like a default one with this factor fewer newer notes.
IMPORTANCE_SPAN = 16.0
_PLAIN_IMPORTANCE = 0.5
CountTokens = Callable[[str], int]
# Limits of a shortened memory: maximum share of the budget, minimum tokens.
SHORTENED_SHARE = 0.4
LEAST_SHORTENED_TOKENS = 24
# Share for older notes, shortened, if a task's notes exceed their budget.
OLDER_SHARE = 0.3
# Minimum number of missing sources that a summary replaces.
LEAST_SUMMARISED = 2
# Messages, session summaries, period summaries.
SUMMARY_LEVELS = 2


@dataclass(frozen=True)
class Manner:
    """Options of a context. `found_share`: the share of the budget for hits.

    `distinct`: hits contain no near duplicates. `clear`: the query is specific and a hit answers it.
    """

    form: Format = field(default_factory=lambda: FORMATS["markdown"])
    query_terms: Set[str] = frozenset()
    found_share: float = 1.0
    distinct: bool = True
    clear: bool = True


PLAIN = Manner()


class Filling:
    def __init__(self, max_tokens: int, count: CountTokens, manner: Manner, entries: Sequence[ContextEntry]) -> None:
        self.lines: list[ContextLine] = []
        self.room = max_tokens - count(manner.form.envelope)
        self._count = count
        self._form = manner.form
        self._terms = manner.query_terms
        self._headed: set[Any] = set()
        self.told: list[ContextEntry] = []
        self.reading = Reading(entries)
        self._facts: dict[UUID, list[ContextEntry]] = {}
        for entry in entries:
            if entry.parent_id is not None:
                self._facts.setdefault(entry.parent_id, []).append(entry)
        self._summaries = [each for each in entries if each.sources]
        self._summarised = {source for each in self._summaries for source in each.sources}

    def told_by(self, telling: Set[UUID]) -> set[UUID]:
        """Returns the summaries whose sources are all among these, directly or by other such summaries."""
        told: set[UUID] = set()
        for _ in range(SUMMARY_LEVELS if self._summaries else 0):
            known = telling | told
            told |= {each.memory_id for each in self._summaries if each.sources <= known}
        return told

    def add(self, entries: Iterable[ContextEntry], room: int) -> None:
        """Adds each entry within `room` tokens: in full, by its facts, by a summary, or shortened."""
        kept = self.room - room
        for entry in self.waiting(entries):
            if self._stands(entry):
                continue
            free = self.room - kept
            self._add(entry, free, min(free, int(SHORTENED_SHARE * room)))

    def _add(self, entry: ContextEntry, room: int, room_shortened: int) -> None:
        ways = self._add_in_full, self._add_facts, self._add_summary
        if not any(add(entry, room) for add in ways):
            self._add_shortened(entry, room_shortened)

    def add_in_full(self, entries: Iterable[ContextEntry], room: int) -> None:
        """Adds the entries that fit in full, within `room` tokens together."""
        kept = self.room - room
        for entry in self.waiting(entries):
            if not self._stands(entry):
                self._add_in_full(entry, self.room - kept)

    def add_replacements(
        self, replacements: Sequence[ContextEntry], entries: Sequence[ContextEntry], room: int
    ) -> None:
        """Adds fallback summaries of missing entries in full, by descending score, within `room` tokens."""
        kept = self.room - room
        missing = {entry.memory_id: entry.score for entry in self.waiting(entries)}
        scores = [
            (sum(missing[each] for each in of), place)
            for place, summary in enumerate(replacements)
            if len(of := summary.sources & missing.keys()) >= LEAST_SUMMARISED
        ]
        for _, place in sorted(scores, key=lambda each: (-each[0], each[1])):
            if not self._stands(replacements[place]):
                self._add_in_full(replacements[place], self.room - kept)

    def add_window(self, notes: Sequence[ContextEntry], room: int) -> None:
        """Adds a task's notes within `room` tokens: the first in full, the rest shortened to equal sizes."""
        kept = self.room - room
        waiting = self.waiting(notes)
        in_full = kept if self._fit(waiting, room) else kept + int(OLDER_SHARE * room)
        for place, note in enumerate(waiting):
            if self._add_in_full(note, self.room - in_full):
                continue
            if self.room - in_full < room // 2:
                self._add_in_pieces(waiting[place:], kept, room)
                return
            # A single note that is too long for an almost empty window.
            self._add_in_pieces([note], kept, int(SHORTENED_SHARE * room))

    def _fit(self, notes: Sequence[ContextEntry], room: int) -> bool:
        needed = 0
        for note in notes:
            needed += self._tokens(note, "") + (note.content_tokens or len(note.content))
            if needed > room:
                return False
        return True

    def _add_in_pieces(self, notes: Sequence[ContextEntry], kept: int, most: int) -> None:
        for place, note in enumerate(notes):
            free = self.room - kept
            if free < LEAST_SHORTENED_TOKENS // 2:
                return
            piece = min(free, most, max(LEAST_SHORTENED_TOKENS, free // (len(notes) - place)))
            self._add(note, piece, piece)

    def expand(self, notes: Sequence[ContextEntry], room: int) -> None:
        """Replaces shortened notes by their full text, within `room` further tokens."""
        kept = self.room - room
        wanted = {note.memory_id for note in notes}
        for place, line in enumerate(self.lines):
            free = self.room - kept + line.tokens
            if not line.shortened or line.entry.memory_id not in wanted or self._too_long(line.entry, free):
                continue
            content, text = line.entry.content, quoted(line.entry.content)
            more = self._tokens(line.entry, text) - self._tokens(line.entry, line.text)
            if more <= self.room - kept:
                self.lines[place] = ContextLine(
                    line.entry, text, line.tokens + more, shortened=False, unquoted_text=content
                )
                self.room -= more
        in_full = wanted & self._telling()
        self._drop([line for line in self.lines if line.entry.parent_id in in_full])
        self._drop_told()

    def waiting(self, entries: Iterable[ContextEntry]) -> list[ContextEntry]:
        """Returns the entries that are neither added nor dropped as duplicates."""
        taken = {line.entry.memory_id for line in self.lines} | {entry.memory_id for entry in self.told}
        return [entry for entry in entries if entry.memory_id not in taken]

    def _stands(self, entry: ContextEntry) -> bool:
        if entry.sources:
            there = any(line.entry.memory_id == entry.memory_id for line in self.lines)
            return there or entry.memory_id in self.told_by(self._telling())
        return entry.parent_id is not None and any(
            line.entry.memory_id == entry.memory_id or (line.entry.memory_id == entry.parent_id and not line.shortened)
            for line in self.lines
        )

    def _add_in_full(self, entry: ContextEntry, room: int) -> bool:
        facts: list[ContextLine] = []
        if entry.memory_id in self._facts:
            facts = [line for line in self.lines if line.entry.parent_id == entry.memory_id]
        room += sum(self._tokens(line.entry, line.text) for line in facts)
        if self._too_long(entry, room) or not self._add_text(entry, entry.content, room, shortened=False):
            return False
        self._drop(facts)
        if entry.memory_id in self._summarised:
            self._drop_told()
        return True

    def _too_long(self, entry: ContextEntry, room: int) -> bool:
        # Counting is slow: skip it for texts that certainly exceed the budget.
        return entry.content_tokens > room or len(entry.content) > max(0, room) * MOST_CHARACTERS_PER_TOKEN

    def _add_facts(self, entry: ContextEntry, room: int) -> bool:
        kept = self.room - room
        facts = self._facts.get(entry.memory_id, [])
        for fact in self.waiting(facts):
            self._add_in_full(fact, self.room - kept)
        return len(self.waiting(facts)) < len(facts)

    def _add_summary(self, entry: ContextEntry, room: int) -> bool:
        """Returns whether a summary replaces it; never for top hits."""
        best = entry.rank is not None and entry.rank < BEST_FOUND
        if best or entry.memory_id not in self._summarised:
            return False
        summaries = [each for each in self._summaries if entry.memory_id in each.sources and each not in self.told]
        waiting = self.waiting(summaries)
        return len(waiting) < len(summaries) or any(self._add_in_full(each, room) for each in waiting)

    def _telling(self) -> set[UUID]:
        return {line.entry.memory_id for line in self.lines if not line.shortened}

    def _drop_told(self) -> None:
        told = self.told_by(self._telling())
        self._drop([line for line in self.lines if line.entry.memory_id in told])

    def _drop(self, lines: Iterable[ContextLine]) -> None:
        for line in lines:
            self.lines.remove(line)
            self.room += self._tokens(line.entry, line.text)

    def _add_shortened(self, entry: ContextEntry, room: int) -> bool:
        head = self._tokens(entry, "") + self._heading_tokens(entry)
        if room - head < LEAST_SHORTENED_TOKENS // 2:
            return False
        text = extract(entry.content, self._terms, room - head, self._count, entry.passage)
        if text and self._add_text(entry, text, room, shortened=True):
            return True
        fits = len(entry.summary) <= room * MOST_CHARACTERS_PER_TOKEN
        return fits and self._add_text(entry, entry.summary, room, shortened=True)

    def _add_text(self, entry: ContextEntry, text: str, room: int, *, shortened: bool) -> bool:
        line = quoted(text)
        tokens = self._tokens(entry, line) + self._heading_tokens(entry)
        if tokens > room:
            return False
        self._headed |= {entry.section, time_group_key(entry)}
        self.lines.append(ContextLine(entry, line, tokens, shortened=shortened, unquoted_text=text))
        self.room -= tokens
        return True

    def tell_once(self) -> bool:
        """Removes sentences that other lines contain (`shortening.py`); returns whether that frees tokens."""
        before = self.room
        kept = {line.entry.memory_id: line for line in self.once(self.lines)}
        for line in self.lines:
            now = kept.get(line.entry.memory_id)
            # The heading above a line stays counted.
            self.room += self._tokens(line.entry, line.text) if now is None else line.tokens - now.tokens
            if now is None:
                self.told.append(line.entry)
        self.lines = [*kept.values()]
        return self.room > before

    def once(self, lines: Sequence[ContextLine]) -> list[ContextLine]:
        return without_repetitions(lines, self._tokens, self.reading)

    def _tokens(self, entry: ContextEntry, line: str) -> int:
        return self._count(self._form.memory(render_memory(entry, line)))

    def _heading_tokens(self, entry: ContextEntry) -> int:
        heading = "" if entry.section in self._headed else self._form.heading(entry.section)
        time = "" if time_group_key(entry) in self._headed else self._form.time(time_of(entry.section, ANY_TIME))
        return sum(self._count(text) for text in (heading, time) if text)


def clearly_meant(notes: Sequence[ContextEntry], best_score: float) -> list[ContextEntry]:
    """Returns the notes that a specific query asks for, best first; `best_score`: the best score found."""
    found = [
        (note.rank, place)
        for place, note in enumerate(notes)
        if note.rank is not None and (note.rank < BEST_FOUND or note.score >= CLEAR_SHARE * best_score > 0)
    ]
    return [notes[place] for _, place in sorted(found)]


def newest_first(notes: Sequence[ContextEntry]) -> list[ContextEntry]:
    """Sorts by age (number of newer notes) divided by a weight from importance; the newest is always first."""
    moments = sorted({note.timestamp for note in notes}, reverse=True)
    ages = {moment: age for age, moment in enumerate(moments)}

    def place(note: ContextEntry) -> tuple[float, float]:
        weight = IMPORTANCE_SPAN ** ((note.importance - _PLAIN_IMPORTANCE) / _PLAIN_IMPORTANCE)
        return ages[note.timestamp] / weight, -note.importance

    return sorted(notes, key=place)
