"""Stores lines in batches, restores their links, shows progress, and reports the outcome."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import typer
from pydantic import ValidationError
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from agentcore.cli.app import err, say
from agentcore.cli.lines import BadLine, Line, NumberedLine, store_params
from agentcore.errors import InvalidParams, JsonRpcErrorCode, NotAuthorised, NotFound, TooLarge
from agentcore.limits import MAX_LINKS_A_CALL
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import Link
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import GetParams, StoreBatchParams, StoreParams, StoreResult

OUTCOMES = ("stored", "existing", "reinforced", "rejected", "failed")
PLACES_A_REASON = 1_000


@dataclass
class Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    # By reason: the first places in the file.
    places: dict[str, list[str]] = field(default_factory=dict)
    last_line: int = 0

    def count(self, result: StoreResult) -> None:
        # A conflict: the key was stored before.
        again = result.code == JsonRpcErrorCode.CONFLICT
        self.outcomes["existing" if again else result.status] += 1
        if result.status == "rejected" and not again:
            self.reasons[result.reason or "no reason given"] += 1

    def leave_out(self, reason: str, place: str) -> None:
        self.left_out[reason] += 1
        self._note(reason, place)

    def fail(self, number: int, problem: str) -> None:
        self.failures[problem] += 1
        self._note(problem, f"record {number}")

    def _note(self, reason: str, place: str) -> None:
        places = self.places.setdefault(reason, [])
        if len(places) < PLACES_A_REASON:
            places.append(place)

    def report(self) -> None:
        typer.echo(", ".join(f"{name} {self.outcomes[name]}" for name in OUTCOMES))
        for reason, count in self.reasons.most_common():
            typer.echo(f"  rejected {count}: {reason}")
        for reason, count in self.left_out.most_common():
            typer.echo(f"  left out {count}: {reason}")

    def as_json(self) -> Mapping[str, Any]:
        """Returns the report for a file: with the places, without texts of memories."""
        return {
            **{name: self.outcomes[name] for name in OUTCOMES},
            "left_out": dict(self.left_out.most_common()),
            "rejected_because": dict(self.reasons.most_common()),
            "failed_because": dict(self.failures.most_common()),
            "places": self.places,
        }


# Without a terminal, progress is a message after this many lines.
REPORT_EVERY_LINES = 10_000


@contextmanager
def progress(size: int | None, units: str) -> Iterator[Callable[[NumberedLine], None]]:
    """Yields a function to call for each line of a file of `size` bytes; `units` names the lines."""
    columns = (TextColumn("{task.fields[lines]} " + units), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("import", total=size, lines=0)

        def report(numbered: NumberedLine) -> None:
            bar.update(task, completed=numbered.end, lines=numbered.number)
            if not err.is_terminal and numbered.number % REPORT_EVERY_LINES == 0:
                say(f"{numbered.number} {units}")

        yield report


BATCH_LINES = 250
BATCH_CHARS = 1_000_000
# Lines with an id that are looked up: if none is there, the file is not an export of this agent.
LOOKED_UP_LINES = 20
REPORTED_LINES = 20

# Errors that a single line can cause; any other would fail for every line.
_OF_ONE_LINE = (InvalidParams, TooLarge)


class Import:
    """Imports one file. `unit` names its lines; `passed` is called with the last stored line."""

    def __init__(
        self,
        memory: MemoryApi,
        tally: Tally,
        *,
        strict: bool,
        forced: bool,
        unit: str = "line",
        passed: Callable[[int], None] = lambda number: None,
    ) -> None:
        self._memory = memory
        self._tally = tally
        self._strict = strict
        self._forced = forced
        self._unit = unit
        self._passed = passed
        self._ids: dict[UUID, UUID] = {}
        self._links: list[tuple[UUID, list[Link]]] = []
        self._waiting: list[tuple[NumberedLine, StoreParams]] = []
        self._superseded: list[NumberedLine] = []
        self._waits = True
        self._chars = 0
        self._looked_up = 0
        self._is_own_export = False

    async def take(self, numbered: NumberedLine) -> None:
        """Adds a line to the batch; stores a full batch."""
        line = numbered.line
        if line is None:
            await self._refuse(numbered.number, numbered.problem or "is no line")
            return
        if line.memory_id is not None and await self._is_there(line.memory_id):
            self._tally.outcomes["existing"] += 1
            self._ids[line.memory_id] = line.memory_id
            if line.links:
                self._links.append((line.memory_id, line.links))
            return
        if self._waits and self._is_unknown(line.superseded_by):
            self._superseded.append(numbered)  # its successor comes later, and has no id yet
            return
        if self._is_unknown(line.parent_memory_id):
            await self.flush()  # its parent may be pending, without an id yet
        await self._queue(numbered, line)

    async def _is_there(self, memory_id: UUID) -> bool:
        """Returns whether the agent has this memory: importing its own export would store all of it twice.

        False with a token that may only write.
        """
        if not self._is_own_export and self._looked_up >= LOOKED_UP_LINES:
            return False
        self._looked_up += 1
        try:
            await self._memory.get(GetParams(memory_id=memory_id))
        except (NotAuthorised, NotFound):
            return False
        self._is_own_export = True
        return True

    async def _queue(self, numbered: NumberedLine, line: Line) -> None:
        try:
            params = store_params(line, numbered.key, now=datetime.now(UTC), ids=self._ids)
        except (BadLine, ValidationError) as problem:
            await self._refuse(numbered.number, str(problem))
            return
        if self._forced:
            params = params.model_copy(update={"force": True})
        self._waiting.append((numbered, params))
        self._chars += len(line.text)
        if len(self._waiting) >= BATCH_LINES or self._chars >= BATCH_CHARS:
            await self.flush()

    def _is_unknown(self, memory_id: UUID | None) -> bool:
        return memory_id is not None and memory_id not in self._ids

    async def flush(self) -> None:
        waiting, self._waiting, self._chars = self._waiting, [], 0
        if waiting:
            await self._store(waiting)
            self._tally.last_line = waiting[-1][0].number
            self._passed(self._tally.last_line)

    async def finish(self) -> None:
        """Stores the remaining lines, superseded ones after their successors."""
        await self.flush()
        before = 0
        while self._superseded:
            waiting, self._superseded = self._superseded, []
            self._waits = len(waiting) != before
            before = len(waiting)
            for numbered in waiting:
                await self.take(numbered)
            await self.flush()

    async def link(self) -> None:
        """Restores links at the end, since a link may point to a later line."""
        lost = sum([await self._tie(memory_id, links) for memory_id, links in self._links])
        if lost:
            say(f"links left out, since one of the two memories is not there: {lost}")

    async def _tie(self, memory_id: UUID, links: Sequence[Link]) -> int:
        # The target may be in the agent's memory even if this file does not contain it.
        wanted = [
            link.model_copy(update={"target_id": self._ids.get(link.target_id, link.target_id)}) for link in links
        ]
        try:
            held = (await self._memory.get(GetParams(memory_id=memory_id))).memory.links
        except NotFound:
            return len(wanted)
        # Two lines may have become one memory: no link to itself.
        missing = [link for link in wanted if link.target_id != memory_id and not _is_held(link, held)]
        lost = 0
        for start in range(0, len(missing), MAX_LINKS_A_CALL):
            lost += await self._add(memory_id, missing[start : start + MAX_LINKS_A_CALL])
        return lost

    async def _add(self, memory_id: UUID, links: list[Link]) -> int:
        try:
            await self._memory.update(UpdateParams(memory_id=memory_id, updates=Updates(links=links)))
        except NotFound:
            # One target was deleted meanwhile: the others are added one by one.
            return 1 if len(links) == 1 else sum([await self._add(memory_id, [link]) for link in links])
        return 0

    async def _store(self, waiting: list[tuple[NumberedLine, StoreParams]]) -> None:
        try:
            stored = await self._memory.store_batch(StoreBatchParams(items=[params for _, params in waiting]))
        except _OF_ONE_LINE as error:
            # The whole request was refused: bisect to isolate the invalid lines.
            if len(waiting) == 1:
                await self._refuse(waiting[0][0].number, error.message)
                return
            middle = len(waiting) // 2
            await self._store(waiting[:middle])
            await self._store(waiting[middle:])
            return
        refused = []
        for (line, _), result in zip(waiting, stored.results, strict=True):
            # A conflict is no refusal: the key was stored before.
            if result.code in (None, JsonRpcErrorCode.CONFLICT):
                self._note(line, result)
            else:
                refused.append((line.number, result.reason or "cannot be stored"))
        for number, reason in refused:
            await self._refuse(number, reason)

    def _note(self, numbered: NumberedLine, result: StoreResult) -> None:
        self._tally.count(result)
        line = numbered.line
        if line is None or result.memory_id is None:
            return
        if line.memory_id is not None:
            self._ids[line.memory_id] = result.memory_id
        if line.links:
            self._links.append((result.memory_id, line.links))

    async def _refuse(self, number: int, problem: str) -> None:
        self._tally.outcomes["failed"] += 1
        if self._strict:
            await self.flush()
            raise InvalidParams(f"{self._unit} {number}: {problem}")
        self._tally.fail(number, problem)
        if self._tally.outcomes["failed"] <= REPORTED_LINES:
            say(f"{self._unit} {number}: {problem}")
        elif self._tally.outcomes["failed"] == REPORTED_LINES + 1:
            say(f"more {self._unit}s failed; from here on only their number is printed")


def _is_held(link: Link, held: Sequence[Link]) -> bool:
    """Compares weights loosely: the database stores them as 32-bit floats."""
    return any(
        each.target_id == link.target_id
        and each.relation == link.relation
        and math.isclose(each.weight, link.weight, rel_tol=1e-6)
        for each in held
    )
