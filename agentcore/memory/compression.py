"""Fits memories into a token budget and builds the context. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Literal
from uuid import UUID

from agentcore.memory.contexts.filling import (
    BEST_FOUND,
    PLAIN,
    CountTokens,
    Filling,
    Manner,
    clearly_meant,
    newest_first,
)
from agentcore.memory.contexts.rendering import TASK, ContextEntry, ContextLine, Format, in_order, sections
from agentcore.memory.contexts.shortening import told_by_others
from agentcore.memory.language.text import normal_form

WORKING_SHARE = 0.5
# Shortening is slow: limits how many memories are shortened for the remaining budget.
TRIED_SHORTENED = 8
# After the top hits, texts longer than this rank below shorter ones of equal score; decision 0031.
LONG_CHARS = 800
LONG_EXPONENT = 0.2
# First words that distinguish most texts.
BEGINNING_WORDS = 12
TOLD_ONCE_ROUNDS = 2
Loss = Literal["beyond_max_tokens", "same_text", "told_by_parent", "told_by_sources", "told_by_others"]


@dataclass(frozen=True)
class Context:
    """The text, its token count, its lines, and the omitted memories with the reason."""

    text: str
    token_count: int
    lines: Sequence[ContextLine]
    left_out: Sequence[tuple[UUID, Loss]]

    @property
    def shortened(self) -> list[UUID]:
        """Memories that are not included in full, in the order of the text."""
        return [line.entry.memory_id for line in self.lines if line.shortened or line.has_duplicates_removed]


def build_context(
    entries: Sequence[ContextEntry],
    max_tokens: int,
    count: CountTokens,
    manner: Manner = PLAIN,
    replacements: Sequence[ContextEntry] = (),
) -> Context:
    """Fills the budget with these memories, best first; the text never exceeds `max_tokens`.

    1. Entries of the task that a clear query refers to, then the task's window; with hits, at most half of the budget.
    2. Hits in full, and summaries from `replacements` of those that do not fit.
    3. Shortened entries of the task in full.
    4. Hits that are too long, shortened.

    Sentences in several lines are deduplicated, and the freed budget is refilled.
    """
    unlike = _unlike(entries) if manner.distinct else entries
    filling = Filling(max_tokens, cache(count), manner, [*unlike, *replacements])
    _fill(filling, unlike, replacements, manner)
    lines, text, tokens = _within(filling, max_tokens, count, manner)
    there = {line.entry.memory_id for line in lines}
    new = {entry.memory_id for entry in unlike}
    telling = {line.entry.memory_id for line in lines if not line.shortened}
    telling |= filling.told_by(telling)
    repeated = told_by_others(filling.told, lines, filling.reading) if filling.told else set()
    left_out = [
        (entry.memory_id, _loss(entry, new, telling, repeated)) for entry in entries if entry.memory_id not in there
    ]
    return Context(text, tokens, in_order(lines), left_out)


def _within(
    filling: Filling, max_tokens: int, count: CountTokens, manner: Manner
) -> tuple[list[ContextLine], str, int]:
    """Returns the lines, the text and its tokens, without the last lines that exceed the budget."""
    lines = filling.lines
    text, tokens = _counted(lines, manner.form, count)
    while tokens > max_tokens:
        excess = tokens - max_tokens
        while lines and excess > 0:
            excess -= lines.pop().tokens
        # Restores sentences that were deduplicated against a dropped line.
        lines = filling.once(lines) if manner.distinct else lines
        text, tokens = _counted(lines, manner.form, count)
    if not lines:
        text, tokens = manner.form.empty, count(manner.form.empty)
    return (lines, text, tokens) if tokens <= max_tokens else (lines, "", 0)


def _loss(entry: ContextEntry, new: Set[UUID], telling: Set[UUID], repeated: Set[UUID]) -> Loss:
    if entry.memory_id not in new:
        return "same_text"
    if entry.memory_id in telling:
        return "told_by_sources"
    if entry.parent_id in telling:
        return "told_by_parent"
    return "told_by_others" if entry.memory_id in repeated else "beyond_max_tokens"


def compress_memory_sequence(
    entries: Sequence[ContextEntry], max_tokens: int, count: CountTokens, manner: Manner = PLAIN
) -> list[ContextLine]:
    """Returns the lines that fit, in the given order: in full, else shortened, else omitted."""
    filling = Filling(max_tokens, count, manner, entries)
    filling.add(entries, filling.room)
    return filling.lines


def _fill(
    filling: Filling, entries: Sequence[ContextEntry], replacements: Sequence[ContextEntry], manner: Manner
) -> None:
    working = [entry for entry in entries if _is_working(entry)]
    found = [entry for entry in entries if not _is_working(entry)]
    best_score = max((entry.score for entry in entries), default=0.0)
    meant = clearly_meant(working, best_score) if manner.clear else []
    by_id = {entry.memory_id for entry in meant}
    window = newest_first([entry for entry in working if entry.memory_id not in by_id])
    others = int(filling.room * (1 - WORKING_SHARE)) if found else 0
    filling.add(meant[:BEST_FOUND], filling.room)
    filling.add(meant, (filling.room - others) // (2 if window else 1))
    filling.add_window(window, filling.room - others)
    kept = filling.room - int(filling.room * manner.found_share)
    filling.add(found[:BEST_FOUND], filling.room - kept)
    behind = _shorter_first(found[BEST_FOUND:])
    filling.add_in_full(behind, filling.room - kept)
    filling.add_replacements(replacements, entries, filling.room - kept)
    filling.expand(window, filling.room)
    filling.add([*meant, *window], filling.room)
    filling.add(filling.waiting(found)[:TRIED_SHORTENED], filling.room - kept)
    if manner.distinct:
        _tell_once(filling, found, behind, kept)


def _tell_once(filling: Filling, found: Sequence[ContextEntry], behind: Sequence[ContextEntry], kept: int) -> None:
    for _ in range(TOLD_ONCE_ROUNDS):
        if not filling.tell_once():
            return
        filling.add_in_full(behind, filling.room - kept)
        filling.add(filling.waiting(found)[:TRIED_SHORTENED], filling.room - kept)
    filling.tell_once()


def _is_working(entry: ContextEntry) -> bool:
    return entry.section == TASK and not entry.outside_window


def _unlike(entries: Sequence[ContextEntry]) -> list[ContextEntry]:
    begun: dict[tuple[str, str | None], list[ContextEntry]] = {}
    for entry in entries:
        begun.setdefault((_beginning(entry.content), entry.speaker), []).append(entry)
    repeated: set[UUID] = set()
    for alike in begun.values():
        said: set[str] = set()
        # Normalizing whole texts is slow; a unique beginning makes a text unique.
        for entry in alike if len(alike) > 1 else ():
            words = normal_form(entry.content)
            if words in said and not _is_working(entry):
                repeated.add(entry.memory_id)
            said.add(words)
    return [entry for entry in entries if entry.memory_id not in repeated]


def _beginning(content: str) -> str:
    start = " ".join(content.split(None, BEGINNING_WORDS)[:BEGINNING_WORDS])
    return " ".join(normal_form(start).split()[:BEGINNING_WORDS])


def _shorter_first(found: Sequence[ContextEntry]) -> list[ContextEntry]:
    def score(entry: ContextEntry) -> float:
        return float(entry.score / max(1.0, len(entry.content) / LONG_CHARS) ** LONG_EXPONENT)

    return sorted(found, key=score, reverse=True)


def _counted(lines: Sequence[ContextLine], form: Format, count: CountTokens) -> tuple[str, int]:
    if not lines:
        return "", 0
    text = form.render(sections(in_order(lines)))
    return text, count(text)
