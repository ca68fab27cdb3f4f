"""import and export: streams memories as JSONL, any number of them; imports another system's export.

For an export it selects the format, numbers its records, and resumes after the last run.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from pydantic import ValidationError

from agentcore.cli import INTERRUPTED, options
from agentcore.cli.app import FAILED, MEMORIES, app, counted, examples, fail, say
from agentcore.cli.calls import ask
from agentcore.cli.importing import Import, Tally, progress
from agentcore.cli.imports import Broken, Form, Found, LeftOut, Piece, hint, key_of, likely_form
from agentcore.cli.imports.export_files import STDIN, BadJson, Element, elements, opened, standard_input
from agentcore.cli.lines import Line, NumberedLine, line_of, problem_of, read_lines
from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError, InvalidParams
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import ListParams
from agentcore.registry import resolve

STDOUT = Path("-")
PAGE = 250
PATIENT_ATTEMPTS = 8
BATCH_TIMEOUT_SECONDS = 300.0
_OTHERS = "What another system exported"
_User = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="ID", rich_help_panel=_OTHERS, help="User of memories for which the file names none."
    ),
]
_Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        rich_help_panel=_OTHERS,
        help="Namespace of memories for which the file names none.",
    ),
]


@app.command(
    "import",
    rich_help_panel=MEMORIES,
    epilog=examples(
        "agentcore import conversation.jsonl",
        "agentcore export --namespace work | agentcore import - --agent another",
        "agentcore import --from chatgpt export.zip --user ada --report left-out.json",
        "",
        'A line: {"role": "user", "text": "...", "time": "2026-05-01T09:30:00Z",',
        '         "session": "monday"}',
        "Needed is text alone. Known besides: speaker, task, user, namespace, tags,",
        "memory_type, importance, metadata, external_id, pinned, ttl_seconds,",
        "expires_at, force, valid_from, valid_to, superseded_by, embedding,",
        "memory_id and links to other lines' memory_ids:",
        '[{"target_id": "...", "relation": "follows", "weight": 0.5}],',
        "and what else export writes.",
    ),
)
@options.client
def import_lines(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSONL file, or with --from an export; - reads stdin.")],
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that cannot be stored.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also store small talk and duplicates.")] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORM",
            rich_help_panel=_OTHERS,
            help="Format of the file: chatgpt, claude, kagent, langgraph or mem0.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            dir_okay=False,
            rich_help_panel=_OTHERS,
            help="Write a JSON report of skipped parts to this file.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            dir_okay=False,
            rich_help_panel=_OTHERS,
            help="Save the position in this file, and resume from it the next time.",
        ),
    ] = None,
    user: _User = None,
    namespace: _Namespace = None,
) -> None:
    """Store a conversation, one memory a line, or what another system exported.

    After an interruption, run the same command again: it resumes, and stores
    nothing twice.
    """
    given = {"user": user, "namespace": namespace}
    more = {name: value for name, value in given.items() if value is not None}
    _check(context, file, form, state, beside=bool(report or state or more))
    tally = Tally()

    async def lines(memory: MemoryClient) -> None:
        importing = Import(memory, tally, strict=strict, forced=force)
        with _source(file) as (source, size), progress(size, "lines") as advance:
            refuse_other_forms(source)
            for numbered in read_lines(source, hint=hint):
                await importing.take(numbered)
                advance(numbered)
            await importing.finish()
            await importing.link()

    async def exported(memory: MemoryClient) -> None:
        await import_export(memory, file, form or "", tally, strict=strict, forced=force, state=state, more=more)

    with _reported(tally, report, unit="line" if form is None else "record", strict=strict):
        ask(
            context,
            lines if form is None else exported,
            max_attempts=PATIENT_ATTEMPTS,
            timeout_seconds=BATCH_TIMEOUT_SECONDS,
        )
    if not options.printed_as_json(context, tally.as_json()):
        tally.report()
    if tally.outcomes["failed"]:
        raise typer.Exit(FAILED)


@contextmanager
def _reported(tally: Tally, report: Path | None, *, unit: str, strict: bool) -> Iterator[None]:
    """Reports the progress of an import that failed, and always writes the report."""
    again = "the same command again to go on: nothing is stored twice."
    try:
        yield
    except KeyboardInterrupt:
        tally.report()
        fail(f"stopped after {unit} {tally.last_line} by Ctrl-C. Run {again}", INTERRUPTED)
    except AgentCoreError as error:
        if tally.outcomes.total() == 0:
            raise
        tally.report()
        first = "Fix it, and run" if strict and isinstance(error, InvalidParams) else "Run"
        fail(f"stopped after {unit} {tally.last_line}: {error.message.rstrip('.')}. {first} {again}")
    finally:
        _write_report(report, tally)


def _check(context: typer.Context, file: Path, form: str | None, state: Path | None, *, beside: bool) -> None:
    if file != STDIN and (not file.exists() or file.is_dir()):
        raise typer.BadParameter(f"{file} is no file", ctx=context)
    if form is None and beside:
        raise typer.BadParameter("--report, --state, --user and --namespace go with --from", ctx=context)
    if file == STDIN and state is not None:
        raise typer.BadParameter("--state needs a file, not stdin", ctx=context)


def _write_report(report: Path | None, tally: Tally) -> None:
    if report is not None:
        with _target(report, overwrite=True) as target:
            target.write(json.dumps(tally.as_json(), indent=2, ensure_ascii=False).encode() + b"\n")


@app.command(
    "export",
    rich_help_panel=MEMORIES,
    epilog=examples(
        "agentcore export memories.jsonl",
        "agentcore export memories.jsonl --overwrite",
        "agentcore export --type semantic | wc -l",
    ),
)
@options.client
@options.filters(ListParams, without=("entities", "keywords"))
def export_lines(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="Where to write; stdout if absent, or -.", dir_okay=False, writable=True, allow_dash=True),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it is there, once all is written.")
    ] = False,
) -> None:
    """Write memories as JSONL, oldest first, in the form that import reads.

    Not included: values derived from the text (also vectors), access counts
    and history. An import assigns new ids.
    """
    params = options.given(context, ListParams, order_by="timestamp", descending=False, limit=PAGE, vectors=True)
    file = None if file == STDOUT else file

    async def run(memory: MemoryClient) -> int:
        count = 0
        with _target(file, overwrite=overwrite) as target:
            async for record in _all(memory, params):
                target.write(json.dumps(line_of(record), ensure_ascii=False).encode() + b"\n")
                count += 1
        return count

    count = ask(context, run, max_attempts=PATIENT_ATTEMPTS)
    say(f"exported {counted(count, 'memory', 'memories')}{'' if file is None else f' to {file}'}")


async def _all(memory: MemoryClient, params: ListParams) -> AsyncIterator[MemoryRecord]:
    while True:
        page = await memory.list(params)
        for record in page.memories:
            yield record
        if page.next_cursor is None:
            return
        params = params.model_copy(update={"cursor": page.next_cursor})


@contextmanager
def _source(file: Path) -> Iterator[tuple[BufferedReader, int | None]]:
    if file == STDIN:
        yield standard_input(), None
        return
    try:
        with file.open("rb") as source:
            yield source, os.fstat(source.fileno()).st_size or None
    except OSError as cause:
        raise AgentCoreError(f"Cannot read {file}: {cause.strerror or cause}.") from cause


@contextmanager
def _target(file: Path | None, *, overwrite: bool) -> Iterator[BinaryIO]:
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


_HERE = "agentcore.cli.imports"
# name -> module:form.
FORMS: Mapping[str, str] = {
    "chatgpt": f"{_HERE}.conversations:CHATGPT",
    "claude": f"{_HERE}.conversations:CLAUDE",
    "kagent": f"{_HERE}.memory_stores:KAGENT",
    "langgraph": f"{_HERE}.memory_stores:LANGGRAPH",
    "mem0": f"{_HERE}.memory_stores:MEM0",
}


def form_named(name: str) -> Form:
    """Returns the format with this name, or at the path `module:attribute`. Raises ConfigurationError."""
    form: Form = resolve(name, FORMS, kind="form of an import")
    return form


def numbered_lines(
    name: str,
    sources: Sequence[BufferedIOBase],
    *,
    now: datetime,
    more: Mapping[str, Any],
    leave_out: Callable[[int, LeftOut], None],
) -> Iterator[NumberedLine]:
    """Yields a line for each memory, or its problem; `more` are defaults for missing fields.

    Numbers count the records of the file, also skipped ones: they are stable for the same file. Memories of
    one record, such as a conversation, share its number.
    """
    for number, piece, end in _pieces(name, sources, now):
        if isinstance(piece, LeftOut):
            leave_out(number, piece)
        elif isinstance(piece, Broken):
            yield NumberedLine(number, end, None, "", piece.problem, cut_off=piece.cut_off)
        else:
            yield _line(name, piece, number, end, more)


def _pieces(name: str, sources: Sequence[BufferedIOBase], now: datetime) -> Iterator[tuple[int, Piece, int]]:
    form = form_named(name)
    number = before = 0
    for source in sources:
        end = 0
        try:
            for element in elements(source, form.arrays):
                number, end = number + 1, element.end
                for piece in _parsed(form, element, now):
                    yield number, _hinted(piece, element.value, name), before + end
        except BadJson as problem:
            number += 1
            cut = Broken(f"{problem}: nothing after it could be read", cut_off=True)
            yield number, cut, before + end
        before += end


def _parsed(form: Form, element: Element, now: datetime) -> Iterator[Piece]:
    if element.problem is not None:
        yield Broken(element.problem)
        return
    try:
        yield from form.parse(element.name, element.value, now)
    except RecursionError:
        yield Broken("is nested too deeply")


def _hinted(piece: Piece, value: Any, name: str) -> Piece:
    return Broken(f"{piece.problem}{hint(value, read_as=name)}") if isinstance(piece, Broken) else piece


def _line(name: str, found: Found, number: int, end: int, more: Mapping[str, Any]) -> NumberedLine:
    key = f"import:{name}:{key_of(found.key, *sorted(more.items()))}"
    try:
        return NumberedLine(number, end, Line.model_validate({**more, **found.line}), key)
    except ValidationError as error:
        return NumberedLine(number, end, None, "", problem_of(error))


_ZIP = b"PK\x03\x04"


def refuse_other_forms(source: BufferedReader) -> None:
    """Raises AgentCoreError if the file is no JSONL; otherwise consumes no input."""
    begins = source.peek(1).removeprefix(b"\xef\xbb\xbf").lstrip()
    if begins.startswith(_ZIP):
        raise AgentCoreError(f"The file is a zip archive, not a memory a line: {_advice(None)}")
    first, *rest = begins.split(b"\n", 1)
    if begins.startswith(b"[") or (first.strip() == b"{" and rest):
        kind = "array" if begins.startswith(b"[") else "object"
        raise AgentCoreError(f"The file is one JSON {kind}, not a memory a line: {_advice(_likely(source))}")


def _advice(likely: str | None) -> str:
    if likely is not None:
        return f"it looks like an export of {likely}: add --from {likely}."
    *names, last = sorted(FORMS)
    return f"if another system exported it, say which with --from {', '.join(names)} or {last}."


def _likely(source: BufferedReader) -> str | None:
    with suppress(BadJson):
        for element in elements(source, ()):
            return likely_form(element.value)
    return None


BEGINNING_BYTES = 65_536


class Position:
    """The last record of a file up to which all is stored; 0 for another or a changed file.

    Without a state file it is always 0.
    """

    def __init__(self, kept: Path | None, file: Path, **how: Any) -> None:
        self._kept = kept
        self._most: float = math.inf
        if kept is None:
            return
        with file.open("rb") as source:
            beginning = hashlib.sha256(source.read(BEGINNING_BYTES)).hexdigest()
        self._of = {"bytes": file.stat().st_size, "beginning": beginning, **how}

    def read(self) -> int:
        """Returns the number of that record. Raises AgentCoreError."""
        if self._kept is None:
            return 0
        try:
            held = json.loads(self._kept.read_bytes())
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as cause:
            raise AgentCoreError(f"Cannot read {self._kept}: it is no state of an import.") from cause
        position = held.get("position") if isinstance(held, dict) else None
        if not isinstance(position, int):
            raise AgentCoreError(f"Cannot read {self._kept}: it is no state of an import.")
        return position if held == {**self._of, "position": position} else 0

    def stay_before(self, number: int) -> None:
        """Limits the position to before this record: the next run reads it again."""
        self._most = min(self._most, number - 1)

    def write(self, number: int) -> None:
        """Writes the position atomically."""
        if self._kept is None:
            return
        number = int(min(number, self._most))
        draft = self._kept.with_name(f".{self._kept.name}.part")
        try:
            draft.write_text(json.dumps({**self._of, "position": number}), encoding="utf-8")
            draft.replace(self._kept)
        except OSError as cause:
            raise AgentCoreError(f"Cannot write {self._kept}: {cause.strerror or cause}.") from cause


async def import_export(
    memory: MemoryClient,
    file: Path,
    form: str,
    tally: Tally,
    *,
    strict: bool,
    forced: bool,
    state: Path | None,
    more: Mapping[str, str],
) -> None:
    """Stores the records of the file; `more` are defaults for missing fields.

    With a `state` it resumes after the last record that was stored from this file.
    """
    position = Position(state, file, form=form, forced=forced, **more)
    done = last = position.read()
    if done:
        say(f"going on after record {done}")

    def leave_out(number: int, piece: LeftOut) -> None:
        nonlocal last
        if number > done:
            last = number
            tally.leave_out(piece.reason, f"record {number} {piece.place}".rstrip())

    def passed(number: int) -> None:
        # The current record may have more memories: the next run reads it again.
        position.write(min(number, last - 1))

    importing = Import(memory, tally, strict=strict, forced=forced, unit="record", passed=passed)
    with opened(file, form_named(form)) as export, progress(export.size, "records") as advance:
        for other in export.others:
            tally.leave_out("another file of the export", other)
        lines = numbered_lines(form, export.sources, now=datetime.now(UTC), more=more, leave_out=leave_out)
        for numbered in lines:
            if numbered.cut_off:
                position.stay_before(numbered.number)
            if numbered.number > done:
                last = numbered.number
                await importing.take(numbered)
                advance(numbered)
        await importing.finish()
    position.write(last)
