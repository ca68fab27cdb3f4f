"""Which of a task's notes come first: what the query clearly means, then the newest, weighed by importance.

Pure. A sliding window: who does not ask for something of the task goes on from where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentcore.memory.contexts.context_lines import ContextEntry

# So many of the best that a search found come before anything else, also where they belong to the task.
BEST_FOUND = 3
# Behind these, what is worth nearly as much as the best is meant, too.
CLEAR_SHARE = 0.7
# A note of full importance stands where one of plain importance would that has so many times fewer behind it.
IMPORTANCE_SPAN = 16.0
_PLAIN_IMPORTANCE = 0.5


def clearly_meant(notes: Sequence[ContextEntry], best_worth: float) -> list[ContextEntry]:
    """Those that a clear query asks for, best first; `best_worth` is that of the best found anywhere."""
    found = [
        (note.rank, place)
        for place, note in enumerate(notes)
        if note.rank is not None and (note.rank < BEST_FOUND or note.worth >= CLEAR_SHARE * best_worth > 0)
    ]
    return [notes[place] for _, place in sorted(found)]


def newest_first(notes: Sequence[ContextEntry]) -> list[ContextEntry]:
    """By age, counted in newer notes, less for what is important, more for what is not; then by importance.

    The newest is always first. Of the same time the one given first is before the other.
    """
    moments = sorted({note.timestamp for note in notes}, reverse=True)
    ages = {moment: age for age, moment in enumerate(moments)}

    def place(note: ContextEntry) -> tuple[float, float]:
        weight = IMPORTANCE_SPAN ** ((note.importance - _PLAIN_IMPORTANCE) / _PLAIN_IMPORTANCE)
        return ages[note.timestamp] / weight, -note.importance

    return sorted(notes, key=place)
