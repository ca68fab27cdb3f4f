"""import and export: memories in and out as JSONL, in pieces, however many there are."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO
from uuid import UUID

import typer
from pydantic import ValidationError
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from agentcore.cli import options
from agentcore.cli.app import FAILED, MEMORIES, app, counted, err, examples, fail, say
from agentcore.cli.connection import ask
from agentcore.cli.lines import BadLine, Line, NumberedLine, alias_line, line_of, read_lines, store_params
from agentcore.cli.tally import Tally
from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError, InvalidParams, JsonRpcErrorCode, NotFound, TooLarge
from agentcore.memory.alias_params import MAX_ALIASES, KnownAlias, ListAliasesParams, SetAliasParams
from agentcore.memory.change_params import UpdateParams, Updates
from agentcore.memory.models import Link, MemoryRecord
from agentcore.memory.params import (
    MAX_LINKS_A_CALL,
    GetParams,
    ListParams,
    StoreBatchParams,
    StoreParams,
    StoreResult,
)

STDIN = STDOUT = Path("-")
BATCH_LINES = 250
BATCH_CHARS = 1_000_000
PAGE = 250
REPORTED_LINES = 20
TOLD_EVERY_LINES = 10_000
PATIENT_ATTEMPTS = 8
BATCH_TIMEOUT_SECONDS = 300.0

# What one line may be guilty of; anything else would fail every other line as well.
_OF_ONE_LINE = (InvalidParams, TooLarge)


class Import:
    """One run over one file: lines are gathered, stored in batches, and counted."""

    def __init__(self, memory: MemoryClient, tally: Tally, *, strict: bool, forced: bool) -> None:
        self._memory = memory
        self._tally = tally
        self._strict = strict
        self._forced = forced
        self._ids: dict[UUID, UUID] = {}
        self._links: list[tuple[UUID, list[Link]]] = []
        self._waiting: list[tuple[NumberedLine, StoreParams]] = []
        self._superseded: list[NumberedLine] = []
        self._waits = True
        self._chars = 0

    async def take(self, numbered: NumberedLine) -> None:
        """Take one line; a full batch is stored."""
        line = numbered.line
        if line is None:
            await self._refuse(numbered.number, numbered.problem or "is no line")
            return
        if isinstance(line, SetAliasParams):
            await self._name(numbered.number, line)
            return
        if self._waits and self._is_unknown(line.superseded_by):
            self._superseded.append(numbered)  # what replaced it comes later, and has no id yet
            return
        if self._is_unknown(line.parent_memory_id):
            await self.flush()  # its parent may be waiting, without an id yet
        await self._queue(numbered, line)

    async def _queue(self, numbered: NumberedLine, line: Line) -> None:
        """Let it wait for its batch, if it can be stored."""
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

    async def _name(self, number: int, alias: SetAliasParams) -> None:
        try:
            await self._memory.set_alias(alias)
        except InvalidParams as error:
            await self._refuse(number, error.message)
        else:
            self._tally.aliases += 1

    async def flush(self) -> None:
        """Store what waits."""
        waiting, self._waiting, self._chars = self._waiting, [], 0
        if waiting:
            await self._store(waiting)
            self._tally.last_line = waiting[-1][0].number

    async def finish(self) -> None:
        """Store what is left: what was superseded comes after what replaced it, if the file holds that."""
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
        """Tie what was imported as it was tied before: at the end, since a link may point to a later line."""
        lost = sum([await self._tie(memory_id, links) for memory_id, links in self._links])
        if lost:
            say(f"links left out, since one of the two memories is not there: {lost}")

    async def _tie(self, memory_id: UUID, links: Sequence[Link]) -> int:
        """Add those of the links that the memory lacks; how many could not be added."""
        # What this file does not hold the agent may have.
        wanted = [link.model_copy(update={"target_id": self._ids.get(link.target_id, link.target_id)})
                  for link in links]
        try:
            held = (await self._memory.get(GetParams(memory_id=memory_id))).memory.links
        except NotFound:
            return len(wanted)
        # Two lines that became one memory are not tied to themselves.
        missing = [link for link in wanted if link.target_id != memory_id and not _is_held(link, held)]
        lost = 0
        for start in range(0, len(missing), MAX_LINKS_A_CALL):
            lost += await self._add(memory_id, missing[start : start + MAX_LINKS_A_CALL])
        return lost

    async def _add(self, memory_id: UUID, links: list[Link]) -> int:
        try:
            await self._memory.update(UpdateParams(memory_id=memory_id, updates=Updates(links=links)))
        except NotFound:
            # One of them leads to a memory that was deleted since: halve until it stands alone.
            if len(links) == 1:
                return 1
            middle = len(links) // 2
            return await self._add(memory_id, links[:middle]) + await self._add(memory_id, links[middle:])
        return 0

    async def _store(self, waiting: list[tuple[NumberedLine, StoreParams]]) -> None:
        try:
            stored = await self._memory.store_batch(StoreBatchParams(items=[params for _, params in waiting]))
        except _OF_ONE_LINE as error:
            # The whole request was refused: halve it until the lines at fault stand alone.
            if len(waiting) == 1:
                await self._refuse(waiting[0][0].number, error.message)
                return
            middle = len(waiting) // 2
            await self._store(waiting[:middle])
            await self._store(waiting[middle:])
            return
        refused = [(line.number, result.reason or "cannot be stored")
                   for (line, _), result in zip(waiting, stored.results, strict=True) if _is_refused(result)]
        for (line, _), result in zip(waiting, stored.results, strict=True):
            if not _is_refused(result):
                self._note(line, result)
        for number, reason in refused:
            await self._refuse(number, reason)

    def _note(self, numbered: NumberedLine, result: StoreResult) -> None:
        self._tally.count(result)
        line = numbered.line
        if not isinstance(line, Line) or result.memory_id is None:
            return
        if line.memory_id is not None:
            self._ids[line.memory_id] = result.memory_id
        if line.links:
            self._links.append((result.memory_id, line.links))

    async def _refuse(self, number: int, problem: str) -> None:
        self._tally.outcomes["failed"] += 1
        if self._strict:
            await self.flush()
            raise InvalidParams(f"line {number}: {problem}")
        if self._tally.outcomes["failed"] <= REPORTED_LINES:
            say(f"line {number}: {problem}")
        elif self._tally.outcomes["failed"] == REPORTED_LINES + 1:
            say("more lines failed; only their number is told from here on")


def _is_held(link: Link, held: Sequence[Link]) -> bool:
    """Whether the tie is there already; the database keeps a weight as a float of 32 bits."""
    return any(each.target_id == link.target_id and each.relation == link.relation
               and math.isclose(each.weight, link.weight, rel_tol=1e-6) for each in held)


def _is_refused(result: StoreResult) -> bool:
    """Whether the line itself is at fault; a conflict of its own key means that it was stored before."""
    return result.code not in (None, JsonRpcErrorCode.CONFLICT)


@app.command("import", rich_help_panel=MEMORIES, epilog=examples(
    "agentcore import conversation.jsonl",
    "agentcore export --namespace work | agentcore import - --agent another",
    "",
    "A line: {\"role\": \"user\", \"text\": \"...\", \"time\": \"2026-05-01T09:30:00Z\",",
    "         \"session\": \"monday\"}",
    "Needed is text alone. Known besides: speaker, task, user, namespace, tags,",
    "memory_type, importance, metadata, external_id, pinned, ttl_seconds,",
    "expires_at, force, valid_from, valid_to, superseded_by, embedding,",
    "memory_id and links to other lines' memory_ids:",
    "[{\"target_id\": \"...\", \"relation\": \"follows\", \"weight\": 0.5}],",
    "and what else export writes. A line may also set an alias:",
    "{\"alias\": \"k8s\", \"means\": \"Kubernetes\"}",
))
def import_lines(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSONL file; - reads stdin.")],
    strict: Annotated[bool, typer.Option(
        "--strict", help="Stop at the first line that cannot be stored.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Store also what would be held back.")] = False,
    url: options.Url = None,
    token: options.Token = None,
    agent: options.Agent = None,
) -> None:
    """Store a conversation, one memory a line.

    After a break, run the same command again: it goes on where it stopped, and
    nothing is stored twice.
    """
    if file != STDIN and (not file.exists() or file.is_dir()):
        raise typer.BadParameter(f"{file} is no file", ctx=context)
    tally = Tally()

    async def run(memory: MemoryClient) -> None:
        importing = Import(memory, tally, strict=strict, forced=force)
        with _source(file) as (source, size), _progress(size) as advance:
            for numbered in read_lines(source):
                await importing.take(numbered)
                advance(numbered)
            await importing.finish()
            await importing.link()

    try:
        ask(context, run, max_attempts=PATIENT_ATTEMPTS, timeout_seconds=BATCH_TIMEOUT_SECONDS)
    except AgentCoreError as error:
        if tally.outcomes.total() == 0:
            raise
        tally.report()
        again = "Mend it, and run" if strict and isinstance(error, InvalidParams) else "Run"
        fail(f"stopped after line {tally.last_line}: {error.message.rstrip('.')}. {again} the same command "
             "again to go on: nothing is stored twice.")
    tally.report()
    if tally.outcomes["failed"]:
        raise typer.Exit(FAILED)


@app.command("export", rich_help_panel=MEMORIES, epilog=examples(
    "agentcore export memories.jsonl",
    "agentcore export memories.jsonl --overwrite",
    "agentcore export --type semantic | wc -l",
))
def export_lines(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(
        help="Where to write; stdout if absent, or -.", dir_okay=False, writable=True,
        allow_dash=True)] = None,
    overwrite: Annotated[bool, typer.Option(
        "--overwrite", help="Replace the file if it is there, once all is written.")] = False,
    memory_types: options.MemoryTypes = None,
    task_id: options.TaskId = None,
    session_id: options.SessionId = None,
    user_id: options.UserId = None,
    namespace: options.Namespace = None,
    after: options.After = None,
    before: options.Before = None,
    tags: options.Tags = None,
    min_importance: options.MinImportance = None,
    url: options.Url = None,
    token: options.Token = None,
    agent: options.Agent = None,
) -> None:
    """Write memories as JSONL, oldest first, in the form that import reads.

    Without a filter the aliases that were set come after them.
    Not carried: what is derived from the text (the embedder's vectors too),
    access counts, history and ids.
    """
    params = options.given(
        context, ListParams, order_by="timestamp", descending=False, limit=PAGE, vectors=True)
    file = None if file == STDOUT else file

    async def run(memory: MemoryClient) -> tuple[int, int]:
        count = aliases = 0
        with _target(file, overwrite=overwrite) as target:
            async for record in _all(memory, params):
                target.write(json.dumps(line_of(record), ensure_ascii=False).encode() + b"\n")
                count += 1
            if not params.conditions():
                for alias in await _set_aliases(memory):
                    target.write(json.dumps(alias_line(alias), ensure_ascii=False).encode() + b"\n")
                    aliases += 1
        return count, aliases

    count, aliases = ask(context, run, max_attempts=PATIENT_ATTEMPTS)
    named = f" and {counted(aliases, 'alias', 'aliases')}" if aliases else ""
    say(f"exported {counted(count, 'memory', 'memories')}{named}{'' if file is None else f' to {file}'}")


async def _all(memory: MemoryClient, params: ListParams) -> AsyncIterator[MemoryRecord]:
    while True:
        page = await memory.list(params)
        for record in page.memories:
            yield record
        if page.next_cursor is None:
            return
        params = params.model_copy(update={"cursor": page.next_cursor})


async def _set_aliases(memory: MemoryClient) -> list[KnownAlias]:
    """Those that were set: what memories teach follows from them."""
    params = ListAliasesParams(limit=MAX_ALIASES)
    found: list[KnownAlias] = []
    while True:
        page = await memory.list_aliases(params)
        found += [each for each in page.aliases if each.memory_id is None]
        if page.next_cursor is None:
            return found
        params = params.model_copy(update={"cursor": page.next_cursor})


@contextmanager
def _source(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    if file == STDIN:
        yield sys.stdin.buffer, None
        return
    try:
        with file.open("rb") as source:
            yield source, os.fstat(source.fileno()).st_size or None
    except OSError as cause:
        raise AgentCoreError(f"Cannot read {file}: {cause.strerror or cause}.") from cause


@contextmanager
def _target(file: Path | None, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Where an export goes: a file is there when it is whole, and open to its owner alone."""
    if file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    whole = file.resolve()
    if whole.exists() and not whole.is_file():
        raise AgentCoreError(f"{file} is no file.")
    if whole.exists() and not overwrite:
        raise AgentCoreError(f"{file} is there already: name another file, or replace it with --overwrite.")
    draft = whole.with_name(f".{whole.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            yield target
        draft.replace(whole)
    except OSError as cause:
        raise AgentCoreError(f"Cannot write {file}: {cause.strerror or cause}.") from cause
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _progress(size: int | None) -> Iterator[Callable[[NumberedLine], None]]:
    """A bar on a terminal; elsewhere a line now and then."""
    if not err.is_terminal:
        yield _tell_now_and_then
        return
    lines = TextColumn("{task.fields[lines]} lines")
    with Progress(lines, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=err,
                  transient=True) as progress:
        task = progress.add_task("import", total=size, lines=0)
        yield lambda numbered: progress.update(task, completed=numbered.end, lines=numbered.number)


def _tell_now_and_then(numbered: NumberedLine) -> None:
    if numbered.number % TOLD_EVERY_LINES == 0:
        say(f"{numbered.number} lines")
