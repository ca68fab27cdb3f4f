"""Memories as lines of a context: what each is, and how they stand as a story, by section and time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from agentcore.memory.contexts.fencing import quoted
from agentcore.memory.contexts.rendering import Said, Section, Stretch

TASK, PAST, KNOWLEDGE = "Current Task Context", "Relevant Past Interactions", "Relevant Knowledge"
SECTIONS = (TASK, PAST, KNOWLEDGE)
# Numbers below a thousand are one token, and all times are alike.
ANY_NUMBER = 100
ANY_TIME = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)


@dataclass(frozen=True)
class ContextEntry:
    """A memory that may stand in a context.

    `content_tokens` as it was stored with; 0 means unknown. `rank` is its place among what the search found,
    from 0, None if it was not found; `worth` is the score of that place. `parent_id` is the memory that a
    fact was read from, `sources` what a summary is of. `importance` is from 0 to 1, 1 where it is pinned.
    `outside`: of the task, but no more in its working memory. `valid`: its days, if it is superseded.
    `outdated_by`: a memory that probably changes what it states. `passage`: the offsets of what matched of a
    long memory.
    """

    memory_id: UUID
    section: str
    timestamp: datetime
    speaker: str | None
    content: str
    summary: str
    content_tokens: int = 0
    rank: int | None = None
    worth: float = 0.0
    session_id: str | None = None
    parent_id: UUID | None = None
    sources: Set[UUID] = frozenset()
    importance: float = 0.5
    outside: bool = False
    valid: str = ""
    outdated_by: UUID | None = None
    passage: tuple[int, int] | None = None


@dataclass(frozen=True)
class ContextLine:
    """A memory as it stands in the context, in full or shortened, and how many tokens that takes.

    The first of a section or of a stretch also takes the tokens of the heading. `said` is what was chosen of
    the memory, before it was quoted; `told_elsewhere`: without what of that other lines tell.
    """

    entry: ContextEntry
    text: str
    tokens: int
    shortened: bool
    said: str = ""
    told_elsewhere: bool = False


def sections(ordered: Sequence[ContextLine]) -> list[Section]:
    """The lines as a form tells them, numbered as they stand."""
    numbers = {line.entry.memory_id: number for number, line in enumerate(ordered, 1)}
    return [
        Section(
            title,
            [
                _told(list(stretch), numbers)
                for _, stretch in groupby(lines, key=lambda line: stretch_of(line.entry))
            ],
        )
        for title, lines in groupby(ordered, key=lambda line: line.entry.section)
    ]


def _told(lines: Sequence[ContextLine], numbers: dict[UUID, int]) -> Stretch:
    first = lines[0].entry
    return Stretch(
        time_of(first.section, first.timestamp),
        [said(line.entry, line.text, numbers[line.entry.memory_id], numbers) for line in lines],
    )


def said(
    entry: ContextEntry, text: str, number: int = ANY_NUMBER, numbers: Mapping[UUID, int] | None = None
) -> Said:
    """Returns a memory with its number and speaker, and what marks it as no longer current.

    `numbers`: of the memories in the context; None: any number, to count tokens.
    """
    newer = None
    if entry.outdated_by is not None:
        newer = ANY_NUMBER if numbers is None else numbers.get(entry.outdated_by, 0)
    return Said(number, quoted(entry.speaker or ""), text, entry.valid, newer)


def time_of(section: str, moment: datetime) -> str:
    """The time that stands above a stretch: of knowledge its day."""
    return moment.strftime("%Y-%m-%d" if section == KNOWLEDGE else "%Y-%m-%d %H:%M")


def stretch_of(entry: ContextEntry) -> tuple[Any, ...]:
    """What stands under one time: of knowledge a day's, else a session's within the hour."""
    day = entry.timestamp.date()
    if entry.section == KNOWLEDGE:
        return entry.section, day
    return entry.section, entry.session_id, day, entry.timestamp.hour


def in_order(lines: Sequence[ContextLine]) -> list[ContextLine]:
    """By section, then as a story: a session's day in one piece, each by the time it begins."""
    began: dict[tuple[Any, ...], datetime] = {}
    for line in lines:
        talk = _talk(line.entry)
        began[talk] = min(began.get(talk, line.entry.timestamp), line.entry.timestamp)
    return sorted(
        lines,
        key=lambda line: (
            SECTIONS.index(line.entry.section),
            began[_talk(line.entry)],
            str(_talk(line.entry)[1]),
            line.entry.timestamp,
            line.entry.memory_id,
        ),
    )


def _talk(entry: ContextEntry) -> tuple[Any, ...]:
    session = None if entry.section == KNOWLEDGE else entry.session_id
    return entry.section, session, entry.timestamp.date()
