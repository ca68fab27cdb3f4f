"""How a fact changed: found memories on an axis of time, with what superseded or probably changed them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from starlette.responses import Response

from agentcore.console.visit import Visit, filters, records
from agentcore.errors import InvalidParams
from agentcore.memory.models import SUPERSEDES, MemoryRecord, MemorySummary

TOP_HITS = 10
MAX_ROWS = 40
SLIDER_STEPS = 200
TICKS = 5
ROW_HEIGHT, GROUP_GAP, AXIS_HEIGHT = 46, 18, 24


Span = tuple[datetime, datetime | None]


class Change(NamedTuple):
    """The memory that outdates another one; not `certain`: the search reports it as probable."""

    new: UUID
    certain: bool


@dataclass(frozen=True)
class Row:
    """A bar: when a memory was valid, and its state at the `as_of` of the timeline.

    `state`: future, current, ended, or doubted (probably outdated). Horizontal positions are in per cent of the axis,
    `top` in pixels.
    """

    memory: MemoryRecord
    start: datetime
    end: datetime | None
    state: str
    change: Change | None
    top: int
    left: float
    right: float
    doubted_from: float | None


@dataclass(frozen=True)
class Timeline:
    groups: Sequence[Sequence[Row]]
    start: datetime
    as_of: datetime
    end: datetime
    height: int
    omitted: int

    @property
    def rows(self) -> dict[UUID, Row]:
        return {row.memory.memory_id: row for group in self.groups for row in group}

    @property
    def step(self) -> int:
        return max(1, int((self.end - self.start).total_seconds()) // SLIDER_STEPS)

    @property
    def ticks(self) -> list[tuple[float, datetime]]:
        span = self.end - self.start
        return [(100 * number / (TICKS - 1), self.start + span * number / (TICKS - 1)) for number in range(TICKS)]

    def at(self, moment: datetime) -> float:
        return _place(moment, self.start, self.end)


async def timeline(visit: Visit) -> Response:
    query = visit.text("query")
    shown = await _found(visit, query) if query else None
    template = "timeline_result.html" if visit.wants_fragment else "timeline.html"
    return visit.render(template, query=query, timeline=shown)


async def _found(visit: Visit, query: str) -> Timeline | None:
    """Searches the present and, if an earlier time is given, that time."""
    as_of, now = _as_of(visit), datetime.now(UTC)
    searches = [{}] if as_of is None or as_of >= now else [{}, {"as_of": as_of}]
    asked = {"query": query, "k": TOP_HITS, "distinct": False, **filters(visit)}
    found = await asyncio.gather(*(visit.memory.retrieve(**asked, **times) for times in searches))
    hits = [each for result in found for each in result.memories]
    memories, omitted = await _with_chains(visit, [each.memory_id for each in hits])
    return arranged(memories, hits, as_of or now, now, omitted) if memories else None


def _as_of(visit: Visit) -> datetime | None:
    """Reads ISO 8601, or Unix time in seconds if all are digits (the slider). Raises InvalidParams."""
    given = visit.text("as_of")
    if not given.isdecimal():
        return visit.moment("as_of")
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError) as cause:
        raise InvalidParams("as_of is not a time: write 2026-05-01 or 2026-05-01T17:30.") from cause


async def _with_chains(visit: Visit, memory_ids: Sequence[UUID]) -> tuple[dict[UUID, MemoryRecord], int]:
    """Follows supersession in both directions, breadth first, up to MAX_ROWS memories.

    Returns the memories, and the number of known neighbors that were not read.
    """
    known: dict[UUID, MemoryRecord] = {}
    asked: set[UUID] = set()
    wanted = [*dict.fromkeys(memory_ids)]
    while wanted and len(asked) < MAX_ROWS:
        read = wanted[: MAX_ROWS - len(asked)]
        asked.update(read)
        known |= {each.memory_id: each for each in await records(visit, read)}
        ends = [each.superseded_by for each in known.values()]
        ends += [link.target_id for each in known.values() for link in each.links if link.relation == SUPERSEDES]
        wanted = [*dict.fromkeys(other for other in (*wanted, *ends) if other is not None and other not in asked)]
    return known, len(wanted)


def arranged(
    memories: Mapping[UUID, MemoryRecord], hits: Sequence[MemorySummary], as_of: datetime, now: datetime, omitted: int
) -> Timeline:
    """Places memories on the axis, in groups of those that changes connect; groups with changes first."""
    changes = _changes(memories, hits)
    spans = {key: _span(each, memories) for key, each in memories.items()}
    start = min(begun for begun, _ in spans.values())
    end = max([now, as_of, start + timedelta(minutes=1), *filter(None, (ended for _, ended in spans.values()))])
    axis = _Axis(start, end, as_of)
    top, groups = AXIS_HEIGHT, []
    for members in sorted(_groups(memories, changes), key=lambda group: len(group) == 1):
        rows = []
        for key in sorted(members, key=lambda each: spans[each][0]):
            change = changes.get(key)
            doubted = None if change is None or change.certain else max(spans[key][0], spans[change.new][0])
            rows.append(axis.row(memories[key], spans[key], change, doubted, top))
            top += ROW_HEIGHT
        groups.append(rows)
        top += GROUP_GAP if len(rows) > 1 else 0
    return Timeline(groups, start, as_of, end, top, omitted)


class _Axis(NamedTuple):
    start: datetime
    end: datetime
    as_of: datetime

    def row(self, memory: MemoryRecord, span: Span, change: Change | None, doubted: datetime | None, top: int) -> Row:
        """`doubted`: from when on the memory is probably outdated."""
        # Without its successor, when a superseded memory ended is not known.
        end = span[0] if span[1] is None and memory.superseded_by is not None else span[1]
        state = _state(span[0], end, self.as_of, is_doubted=doubted is not None and doubted <= self.as_of)
        left, right = self._place(span[0]), self._place(span[1] or self.end)
        doubted_from = None if doubted is None else self._place(doubted)
        return Row(memory, *span, state, change, top, left, right, doubted_from)

    def _place(self, moment: datetime) -> float:
        return _place(moment, self.start, self.end)


def _changes(memories: Mapping[UUID, MemoryRecord], hits: Sequence[MemorySummary]) -> dict[UUID, Change]:
    probable = {
        each.memory_id: Change(each.outdated_by, False)
        for each in hits
        if each.outdated_by is not None and {each.memory_id, each.outdated_by} <= memories.keys()
    }
    superseded = (each for each in memories.values() if each.superseded_by is not None)
    return probable | {each.memory_id: Change(each.superseded_by, True) for each in superseded if each.superseded_by}


def _span(memory: MemoryRecord, memories: Mapping[UUID, MemoryRecord]) -> Span:
    """Returns from when and until when a memory was valid. A successor's start ends it if its end is not stored."""
    start = memory.valid_from or memory.timestamp
    end = memory.valid_to
    if end is None and memory.superseded_by is not None and memory.superseded_by in memories:
        successor = memories[memory.superseded_by]
        end = successor.valid_from or successor.timestamp
    return start, None if end is None else max(start, end)


def _state(start: datetime, end: datetime | None, as_of: datetime, *, is_doubted: bool) -> str:
    if start > as_of:
        return "future"
    if end is not None and end <= as_of:
        return "ended"
    return "doubted" if is_doubted else "current"


def _place(moment: datetime, start: datetime, end: datetime) -> float:
    return round(100 * ((moment - start) / (end - start)), 2)


def _groups(memories: Mapping[UUID, MemoryRecord], changes: Mapping[UUID, Change]) -> list[list[UUID]]:
    """Returns the connected components, in the order of the memories; all members of one share a list."""
    group_of = {key: [key] for key in memories}
    for old, change in changes.items():
        one, other = group_of[old], group_of.get(change.new)
        if other is not None and other is not one:
            one += other
            group_of |= dict.fromkeys(other, one)
    return [*{id(group): group for group in group_of.values()}.values()]


TIMELINE_PAGES = (("/timeline", "GET", timeline),)
