"""Renders a context of quoted texts as markdown, plain text or JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from agentcore.memory.contexts.fencing import CLOSING, NOTICE, OPENING, quoted
from agentcore.memory.models import JsonObject


@dataclass(frozen=True)
class Said:
    """A rendered memory. `newer`: the number of one that probably changes it; 0 if that is not there."""

    number: int
    speaker: str
    text: str
    valid: str = ""
    newer: int | None = None


@dataclass(frozen=True)
class Stretch:
    time: str
    memories: Sequence[Said]


@dataclass(frozen=True)
class Section:
    title: str
    stretches: Sequence[Stretch]


@dataclass(frozen=True)
class Lines:
    """A heading per section, a line per time and per memory, inside the fence."""

    before_title: str
    behind_title: str
    frame: str = f"{OPENING}\n{NOTICE}\n{CLOSING}\n"
    nothing: str = ""

    def heading(self, title: str) -> str:
        return f"\n{self.before_title}{title}{self.behind_title}\n"

    def time(self, time: str) -> str:
        return f"{time}\n"

    def memory(self, said: Said) -> str:
        return f"{said.number}. {_mark(said)}{said.speaker}{': ' if said.speaker else ''}{said.text}\n"

    def whole(self, sections: Sequence[Section]) -> str:
        lines = [f"{OPENING}\n{NOTICE}\n"]
        for section in sections:
            lines.append(self.heading(section.title))
            for stretch in section.stretches:
                lines += [self.time(stretch.time), *(self.memory(each) for each in stretch.memories)]
        return "".join([*lines, f"{CLOSING}\n"])


def _mark(said: Said) -> str:
    if said.valid:
        return f"[valid {said.valid}] "
    if said.newer is None:
        return ""
    return f"[earlier, see {said.newer}] " if said.newer else "[earlier] "


class Json:
    """One JSON object: the notice, then the non-empty sections; JSON strings serve as the fence."""

    frame = json.dumps({"notice": NOTICE})
    nothing = json.dumps({"notice": NOTICE}, separators=(",", ":"))

    def heading(self, title: str) -> str:
        return _compact({title: []})

    def time(self, time: str) -> str:
        return _compact({"time": time, "memories": []}) + ","

    def memory(self, said: Said) -> str:
        return _compact(_fields(said)) + ","

    def whole(self, sections: Sequence[Section]) -> str:
        told: JsonObject = {"notice": NOTICE}
        for section in sections:
            told[section.title] = [
                {"time": stretch.time, "memories": [_fields(each) for each in stretch.memories]}
                for stretch in section.stretches
            ]
        return _compact(told)


def _fields(said: Said) -> JsonObject:
    speaker = {"speaker": said.speaker} if said.speaker else {}
    valid: JsonObject = {"valid": said.valid} if said.valid else {}
    if said.newer is not None:
        valid["outdated_by"] = said.newer or None
    return {"n": said.number, **speaker, **valid, "text": said.text}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# `heading`, `time`, `memory` and `frame` serve to count tokens; `nothing` is the empty context.
Form = Lines | Json
FORMS: dict[str, Form] = {"markdown": Lines("## ", ""), "text": Lines("", ":"), "json": Json()}


TASK, PAST, KNOWLEDGE = "Current Task Context", "Relevant Past Interactions", "Relevant Knowledge"
SECTIONS = (TASK, PAST, KNOWLEDGE)
# Samples to count tokens: numbers below 1,000 are one token, and all times have the same length.
ANY_NUMBER = 100
ANY_TIME = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)


@dataclass(frozen=True)
class ContextEntry:
    """A candidate memory of a context.

    `content_tokens`: 0 if unknown. `rank`: position among the hits from 0, None if not found; `worth`: its score.
    `parent_id`: of a fact; `sources`: of a summary. `importance`: 1 if pinned. `outside`: of the task, but no
    longer in its working memory. `valid`: days of a superseded one. `passage`: offsets of the match.
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
    """A memory in the context. The first line of a section or stretch includes the tokens of the heading.

    `said`: the text before quoting; `told_elsewhere`: sentences that other lines contain were removed.
    """

    entry: ContextEntry
    text: str
    tokens: int
    shortened: bool
    said: str = ""
    told_elsewhere: bool = False


def sections(ordered: Sequence[ContextLine]) -> list[Section]:
    numbers = {line.entry.memory_id: number for number, line in enumerate(ordered, 1)}
    found = []
    for title, lines in groupby(ordered, key=lambda line: line.entry.section):
        stretches = groupby(lines, key=lambda line: stretch_of(line.entry))
        found.append(Section(title, [_stretch(list(stretch), numbers) for _, stretch in stretches]))
    return found


def _stretch(lines: Sequence[ContextLine], numbers: dict[UUID, int]) -> Stretch:
    first = lines[0].entry
    memories = [said(line.entry, line.text, numbers[line.entry.memory_id], numbers) for line in lines]
    return Stretch(time_of(first.section, first.timestamp), memories)


def said(entry: ContextEntry, text: str, number: int = ANY_NUMBER, numbers: Mapping[UUID, int] | None = None) -> Said:
    """Renders a memory. `numbers`: of the memories in the context; None: any, to count tokens."""
    newer = None
    if entry.outdated_by is not None:
        newer = ANY_NUMBER if numbers is None else numbers.get(entry.outdated_by, 0)
    return Said(number, quoted(entry.speaker or ""), text, entry.valid, newer)


def time_of(section: str, moment: datetime) -> str:
    """Formats the time above a stretch: the day only for knowledge."""
    return moment.strftime("%Y-%m-%d" if section == KNOWLEDGE else "%Y-%m-%d %H:%M")


def stretch_of(entry: ContextEntry) -> tuple[Any, ...]:
    """Returns the grouping key: the day for knowledge, else session and hour."""
    day = entry.timestamp.date()
    if entry.section == KNOWLEDGE:
        return entry.section, day
    return entry.section, entry.session_id, day, entry.timestamp.hour


def in_order(lines: Sequence[ContextLine]) -> list[ContextLine]:
    """Sorts by section, then by session and day, each by its start."""
    began: dict[tuple[Any, ...], datetime] = {}
    for line in lines:
        talk = _talk(line.entry)
        began[talk] = min(began.get(talk, line.entry.timestamp), line.entry.timestamp)

    def place(line: ContextLine) -> tuple[Any, ...]:
        entry, talk = line.entry, _talk(line.entry)
        return SECTIONS.index(entry.section), began[talk], str(talk[1]), entry.timestamp, entry.memory_id

    return sorted(lines, key=place)


def _talk(entry: ContextEntry) -> tuple[Any, ...]:
    session = None if entry.section == KNOWLEDGE else entry.session_id
    return entry.section, session, entry.timestamp.date()
