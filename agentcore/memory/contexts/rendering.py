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
class RenderedMemory:
    """A rendered memory.

    `newer`: line number of the memory that probably makes it outdated; 0 if that is not in the context.
    """

    number: int
    speaker: str
    text: str
    valid: str = ""
    newer: int | None = None


@dataclass(frozen=True)
class TimeGroup:
    time: str
    memories: Sequence[RenderedMemory]


@dataclass(frozen=True)
class Section:
    title: str
    time_groups: Sequence[TimeGroup]


@dataclass(frozen=True)
class TextFormat:
    """A heading per section, a line per time and per memory, inside the fence."""

    title_prefix: str
    title_suffix: str
    envelope: str = f"{OPENING}\n{NOTICE}\n{CLOSING}\n"
    empty: str = ""

    def heading(self, title: str) -> str:
        return f"\n{self.title_prefix}{title}{self.title_suffix}\n"

    def time(self, time: str) -> str:
        return f"{time}\n"

    def memory(self, memory: RenderedMemory) -> str:
        return f"{memory.number}. {_mark(memory)}{memory.speaker}{': ' if memory.speaker else ''}{memory.text}\n"

    def render(self, sections: Sequence[Section]) -> str:
        lines = [f"{OPENING}\n{NOTICE}\n"]
        for section in sections:
            lines.append(self.heading(section.title))
            for group in section.time_groups:
                lines += [self.time(group.time), *(self.memory(each) for each in group.memories)]
        return "".join([*lines, f"{CLOSING}\n"])


def _mark(memory: RenderedMemory) -> str:
    if memory.valid:
        return f"[valid {memory.valid}] "
    if memory.newer is None:
        return ""
    return f"[earlier, see {memory.newer}] " if memory.newer else "[earlier] "


class JsonFormat:
    """One JSON object: the notice, then the non-empty sections; JSON strings serve as the fence."""

    envelope = json.dumps({"notice": NOTICE})
    empty = json.dumps({"notice": NOTICE}, separators=(",", ":"))

    def heading(self, title: str) -> str:
        return _compact({title: []})

    def time(self, time: str) -> str:
        return _compact({"time": time, "memories": []}) + ","

    def memory(self, memory: RenderedMemory) -> str:
        return _compact(_fields(memory)) + ","

    def render(self, sections: Sequence[Section]) -> str:
        document: JsonObject = {"notice": NOTICE}
        for section in sections:
            document[section.title] = [
                {"time": group.time, "memories": [_fields(each) for each in group.memories]}
                for group in section.time_groups
            ]
        return _compact(document)


def _fields(memory: RenderedMemory) -> JsonObject:
    speaker = {"speaker": memory.speaker} if memory.speaker else {}
    valid: JsonObject = {"valid": memory.valid} if memory.valid else {}
    if memory.newer is not None:
        valid["outdated_by"] = memory.newer or None
    return {"n": memory.number, **speaker, **valid, "text": memory.text}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# `heading`, `time`, `memory` and `envelope` serve to count tokens; `empty` is the empty context.
Format = TextFormat | JsonFormat
FORMATS: dict[str, Format] = {"markdown": TextFormat("## ", ""), "text": TextFormat("", ":"), "json": JsonFormat()}


TASK, PAST, KNOWLEDGE = "Current Task Context", "Relevant Past Interactions", "Relevant Knowledge"
SECTIONS = (TASK, PAST, KNOWLEDGE)
# Samples to count tokens: numbers below 1,000 are one token, and all times have the same length.
SAMPLE_NUMBER = 100
ANY_TIME = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)


@dataclass(frozen=True)
class ContextEntry:
    """A candidate memory of a context.

    `content_tokens`: 0 if unknown. `rank` (from 0) and `score`: of the hit; None and 0 if not found.
    `parent_id`: the source of a fact; `sources`: of a summary. `importance`: 1 if pinned. `outside_window`: belongs
    to the task, but not to its task window. `valid`: validity dates of a superseded memory. `passage`: offsets of
    the matching passage.
    """

    memory_id: UUID
    section: str
    timestamp: datetime
    speaker: str | None
    content: str
    summary: str
    content_tokens: int = 0
    rank: int | None = None
    score: float = 0.0
    session_id: str | None = None
    parent_id: UUID | None = None
    sources: Set[UUID] = frozenset()
    importance: float = 0.5
    outside_window: bool = False
    valid: str = ""
    outdated_by: UUID | None = None
    passage: tuple[int, int] | None = None


@dataclass(frozen=True)
class ContextLine:
    """A memory in the context. The first line of a section or time group includes the tokens of the heading.

    `unquoted_text`: the text before quoting; `has_duplicates_removed`: sentences that other lines contain were removed.
    """

    entry: ContextEntry
    text: str
    tokens: int
    shortened: bool
    unquoted_text: str = ""
    has_duplicates_removed: bool = False


def sections(ordered: Sequence[ContextLine]) -> list[Section]:
    numbers = {line.entry.memory_id: number for number, line in enumerate(ordered, 1)}
    found = []
    for title, lines in groupby(ordered, key=lambda line: line.entry.section):
        time_groups = groupby(lines, key=lambda line: time_group_key(line.entry))
        found.append(Section(title, [_time_group(list(group), numbers) for _, group in time_groups]))
    return found


def _time_group(lines: Sequence[ContextLine], numbers: dict[UUID, int]) -> TimeGroup:
    first = lines[0].entry
    memories = [render_memory(line.entry, line.text, numbers[line.entry.memory_id], numbers) for line in lines]
    return TimeGroup(time_of(first.section, first.timestamp), memories)


def render_memory(
    entry: ContextEntry, text: str, number: int = SAMPLE_NUMBER, numbers: Mapping[UUID, int] | None = None
) -> RenderedMemory:
    """Renders a memory. `numbers`: of the memories in the context; None: any, to count tokens."""
    newer = None
    if entry.outdated_by is not None:
        newer = SAMPLE_NUMBER if numbers is None else numbers.get(entry.outdated_by, 0)
    return RenderedMemory(number, quoted(entry.speaker or ""), text, entry.valid, newer)


def time_of(section: str, moment: datetime) -> str:
    """Formats the time above a time group: the day only for knowledge."""
    return moment.strftime("%Y-%m-%d" if section == KNOWLEDGE else "%Y-%m-%d %H:%M")


def time_group_key(entry: ContextEntry) -> tuple[Any, ...]:
    """Returns the grouping key: the day for knowledge, else session and hour."""
    day = entry.timestamp.date()
    if entry.section == KNOWLEDGE:
        return entry.section, day
    return entry.section, entry.session_id, day, entry.timestamp.hour


def in_order(lines: Sequence[ContextLine]) -> list[ContextLine]:
    """Sorts by section, then by session and day, each by its start."""
    began: dict[tuple[Any, ...], datetime] = {}
    for line in lines:
        session_day = _session_day(line.entry)
        began[session_day] = min(began.get(session_day, line.entry.timestamp), line.entry.timestamp)

    def place(line: ContextLine) -> tuple[Any, ...]:
        entry, session_day = line.entry, _session_day(line.entry)
        return SECTIONS.index(entry.section), began[session_day], str(session_day[1]), entry.timestamp, entry.memory_id

    return sorted(lines, key=place)


def _session_day(entry: ContextEntry) -> tuple[Any, ...]:
    session = None if entry.section == KNOWLEDGE else entry.session_id
    return entry.section, session, entry.timestamp.date()
