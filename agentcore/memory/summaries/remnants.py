"""What a summary says of sources that are not there any more: it is kept when the summary is made anew. Pure.

A source in the archive, or expired, can be read no more. Lines that no source which is there has ever said
are taken for its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentcore.memory.language.text import sentences


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
