"""import and export: memories as JSONL, and the exports of other systems, streamed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer
from pydantic import ValidationError

from agentcore.cli import INTERRUPTED, options
from agentcore.cli.app import FAILED, app, counted, fail, say
from agentcore.cli.calls import ask
from agentcore.cli.importing import Import, Tally, progress
from agentcore.cli.imports import Broken, Form, LeftOut, Piece, hint, key_of, likely_form
from agentcore.cli.imports.conversations import CHATGPT, CLAUDE
from agentcore.cli.imports.export_files import STDIN, BadJson, Element, elements, opened
from agentcore.cli.imports.memory_stores import KAGENT, LANGGRAPH, MEM0
from agentcore.cli.lines import Line, NumberedLine, problem_of, read_lines
from agentcore.client import MemoryClient
from agentcore.client.exporting import export_pages
from agentcore.errors import AgentCoreError, InvalidParams
from agentcore.memory.params.memories import ListParams

FORMS: Mapping[str, Form] = {
    "chatgpt": CHATGPT,
    "claude": CLAUDE,
    "kagent": KAGENT,
    "langgraph": LANGGRAPH,
    "mem0": MEM0,
}
_FORM_NAMES = " or ".join(", ".join(FORMS).rsplit(", ", 1))
STDOUT = Path("-")
PATIENT_ATTEMPTS = 8
BATCH_TIMEOUT_SECONDS = 300.0
BEGINNING_BYTES = 65_536
_ZIP = b"PK\x03\x04"
_OTHERS = "What another system exported"


def _form_name(text: str) -> str:
    if text not in FORMS:
        raise typer.BadParameter(f"{text!r} is not one of {_FORM_NAMES}")
    return text


@app.command(
    "import",
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
            parser=_form_name,
            metavar="FORM",
            rich_help_panel=_OTHERS,
            help=f"Format of the file: {_FORM_NAMES}.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            rich_help_panel=_OTHERS,
            help="Write a JSON report of skipped parts to this file.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            rich_help_panel=_OTHERS,
            help="Save the position in this file, and resume from it the next time.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="ID", rich_help_panel=_OTHERS, help="User of memories for which the file names none."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_OTHERS, help="Namespace of memories for which the file names none."
        ),
    ] = None,
) -> None:
    """Store a conversation, one memory a line, or what another system exported.

    After an interruption, the same command resumes and stores nothing twice.
    """
    given = {"user": user, "namespace": namespace}
    more = {name: value for name, value in given.items() if value is not None}
    _check(context, file, form, state, beside=bool(report or state or more))
    tally = Tally()

    async def run(memory: MemoryClient) -> None:
        if form is None:
            await _import_lines(Import(memory, tally, strict=strict, forced=force), file)
            return
        position = Position(state, file, form=form, forced=force, **more)
        importing = Import(memory, tally, strict=strict, forced=force, unit="record", passed=position.write)
        await _import_records(importing, tally, file, form, position, more)

    with _reported(tally, report, unit="line" if form is None else "record", strict=strict):
        ask(context, run, max_attempts=PATIENT_ATTEMPTS, timeout_seconds=BATCH_TIMEOUT_SECONDS)
    if not options.printed_as_json(context, tally.as_json()):
        tally.report()
    if tally.outcomes["failed"]:
        raise typer.Exit(FAILED)


async def _import_lines(importing: Import, file: Path) -> None:
    with opened(file, None) as found, progress(found.size, "lines") as advance:
        source = cast(BufferedReader, found.sources[0])
        refuse_other_forms(source)
        for numbered in read_lines(source, hint=hint):
            await importing.take(numbered)
            advance(numbered)
        await importing.finish()
        await importing.link()


async def _import_records(
    importing: Import, tally: Tally, file: Path, form: str, position: Position, more: Mapping[str, str]
) -> None:
    done = position.read()
    if done:
        say(f"going on after record {done}")
    with opened(file, FORMS[form]) as export, progress(export.size, "records") as advance:
        for other in export.others:
            tally.leave_out("another file of the export", other)
        for numbered in numbered_lines(form, export.sources, now=datetime.now(UTC), more=more):
            position.reached(numbered)
            if numbered.number <= done:
                continue
            if numbered.left_out is not None:
                tally.leave_out(numbered.left_out, f"record {numbered.number} {numbered.place}".rstrip())
                continue
            await importing.take(numbered)
            advance(numbered)
        await importing.finish()
    position.write_last()


@contextmanager
def _reported(tally: Tally, report: Path | None, *, unit: str, strict: bool) -> Iterator[None]:
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
    "agentcore export memories.jsonl",
    "agentcore export memories.jsonl --overwrite",
    "agentcore export --type semantic | wc -l",
)
@options.client
@options.filters(ListParams)
def export_lines(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(help="Where to write; stdout if absent, or -.", dir_okay=False, writable=True, allow_dash=True),
    ] = STDOUT,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it is there, once all is written.")
    ] = False,
) -> None:
    """Write memories as JSONL, oldest first, in the form that import reads.

    Not included: derived values (vectors, too), access counts and history.
    """
    params = options.given(context, ListParams)

    async def run(memory: MemoryClient) -> int:
        count = 0
        with _target(file, overwrite=overwrite) as target:
            async for lines in export_pages(memory, params):
                target.writelines(lines)
                count += len(lines)
        return count

    count = ask(context, run, max_attempts=PATIENT_ATTEMPTS)
    say(f"exported {counted(count, 'memory', 'memories')}{'' if file == STDOUT else f' to {file}'}")


@contextmanager
def _target(file: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    if file == STDOUT:
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


def numbered_lines(
    name: str, sources: Sequence[BufferedIOBase], *, now: datetime, more: Mapping[str, Any]
) -> Iterator[NumberedLine]:
    """Yields the memories of an export; `more` are defaults for missing fields.

    Numbers count the records of the file, skipped ones too. Memories of one record share its number.
    """
    form = FORMS[name]
    number = before = 0
    for source in sources:
        end = 0
        try:
            for element in elements(source, form.arrays):
                number, end = number + 1, element.end
                for piece in _parsed(form, element, now):
                    yield _numbered(name, piece, element.value, number, before + end, more)
        except BadJson as problem:
            number += 1
            yield NumberedLine(number, before + end, problem=f"{problem}: nothing after it could be read", cut_off=True)
        before += end


def _parsed(form: Form, element: Element, now: datetime) -> Iterator[Piece]:
    if element.problem is not None:
        yield Broken(element.problem)
        return
    try:
        yield from form.parse(element.name, element.value, now)
    except RecursionError:
        yield Broken("is nested too deeply")


def _numbered(name: str, piece: Piece, value: Any, number: int, end: int, more: Mapping[str, Any]) -> NumberedLine:
    if isinstance(piece, LeftOut):
        return NumberedLine(number, end, left_out=piece.reason, place=piece.place)
    if isinstance(piece, Broken):
        return NumberedLine(number, end, problem=f"{piece.problem}{hint(value, read_as=name)}")
    key = f"import:{name}:{key_of(piece.key, *sorted(more.items()))}"
    try:
        return NumberedLine(number, end, Line.model_validate({**more, **piece.line}), key)
    except ValidationError as error:
        return NumberedLine(number, end, problem=problem_of(error))


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
    return f"if another system exported it, say which with --from {_FORM_NAMES}."


def _likely(source: BufferedReader) -> str | None:
    with suppress(BadJson):
        for element in elements(source, ()):
            return likely_form(element.value)
    return None


class Position:
    """The last record of a file up to which all is stored, in a state file. 0 without one, or for another file."""

    def __init__(self, state: Path | None, file: Path, **how: Any) -> None:
        self._state = state
        self._current = 0
        self._most: float = math.inf
        if state is None:
            return
        with file.open("rb") as source:
            beginning = hashlib.sha256(source.read(BEGINNING_BYTES)).hexdigest()
        self._of = {"bytes": file.stat().st_size, "beginning": beginning, **how}

    def read(self) -> int:
        """Raises AgentCoreError."""
        if self._state is None:
            return 0
        try:
            stored = json.loads(self._state.read_bytes())
            position = int(stored["position"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, TypeError, KeyError) as cause:
            raise AgentCoreError(f"Cannot read {self._state}: it is no state of an import.") from cause
        return position if stored == {**self._of, "position": position} else 0

    def reached(self, numbered: NumberedLine) -> None:
        """Notes the record that is read. A record that is cut off is read again by the next run."""
        self._current = numbered.number
        if numbered.cut_off:
            self._most = min(self._most, numbered.number - 1)

    def write(self, number: int) -> None:
        """Writes the position. The current record may have more memories: the next run reads it again."""
        self._write(min(number, self._current - 1))

    def write_last(self) -> None:
        self._write(self._current)

    def _write(self, number: int) -> None:
        if self._state is None:
            return
        with _target(self._state, overwrite=True) as target:
            target.write(json.dumps({**self._of, "position": int(min(number, self._most))}).encode())
