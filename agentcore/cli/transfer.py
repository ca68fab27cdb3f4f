"""import and export: streams memories as JSONL, any number of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from agentcore.cli import INTERRUPTED, options
from agentcore.cli.app import FAILED, MEMORIES, app, counted, examples, fail, say
from agentcore.cli.calls import ask
from agentcore.cli.importing import Import, Tally, progress
from agentcore.cli.imports.export_files import STDIN, standard_input
from agentcore.cli.imports.pieces import hint
from agentcore.cli.imports.run import import_export, refuse_other_forms
from agentcore.cli.lines import line_of, read_lines
from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError, InvalidParams
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import ListParams

STDOUT = Path("-")
PAGE = 250
PATIENT_ATTEMPTS = 8
BATCH_TIMEOUT_SECONDS = 300.0
_OTHERS = "What another system exported"


@app.command("import", rich_help_panel=MEMORIES, epilog=examples(
    "agentcore import conversation.jsonl",
    "agentcore export --namespace work | agentcore import - --agent another",
    "agentcore import --from chatgpt export.zip --user ada --report left-out.json",
    "",
    "A line: {\"role\": \"user\", \"text\": \"...\", \"time\": \"2026-05-01T09:30:00Z\",",
    "         \"session\": \"monday\"}",
    "Needed is text alone. Known besides: speaker, task, user, namespace, tags,",
    "memory_type, importance, metadata, external_id, pinned, ttl_seconds,",
    "expires_at, force, valid_from, valid_to, superseded_by, embedding,",
    "memory_id and links to other lines' memory_ids:",
    "[{\"target_id\": \"...\", \"relation\": \"follows\", \"weight\": 0.5}],",
    "and what else export writes.",
))
@options.client
def import_lines(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSONL file, or with --from an export; - reads stdin.")],
    strict: Annotated[bool, typer.Option(
        "--strict", help="Stop at the first line that cannot be stored.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Store also what would be held back.")] = False,
    form: Annotated[str | None, typer.Option(
        "--from", metavar="FORM", rich_help_panel=_OTHERS,
        help="What made the file: chatgpt, claude, kagent, langgraph or mem0.")] = None,
    report: Annotated[Path | None, typer.Option(
        "--report", metavar="FILE", dir_okay=False, rich_help_panel=_OTHERS,
        help="Write there, as JSON, what was left out and why.")] = None,
    state: Annotated[Path | None, typer.Option(
        "--state", metavar="FILE", dir_okay=False, rich_help_panel=_OTHERS,
        help="Keep there how far it came, and begin there the next time.")] = None,
    user: Annotated[str | None, typer.Option(
        "--user", metavar="ID", rich_help_panel=_OTHERS,
        help="Whose it is, where the file does not say.")] = None,
    namespace: Annotated[str | None, typer.Option(
        "--namespace", metavar="NAME", rich_help_panel=_OTHERS,
        help="Where it belongs, where the file does not say.")] = None,
) -> None:
    """Store a conversation, one memory a line, or what another system exported.

    After a break, run the same command again: it goes on where it stopped, and
    nothing is stored twice.
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
        await import_export(
            memory, file, form or "", tally, strict=strict, forced=force, state=state, more=more)

    with _reported(tally, report, unit="line" if form is None else "record", strict=strict):
        ask(context, lines if form is None else exported, max_attempts=PATIENT_ATTEMPTS,
            timeout_seconds=BATCH_TIMEOUT_SECONDS)
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


@app.command("export", rich_help_panel=MEMORIES, epilog=examples(
    "agentcore export memories.jsonl",
    "agentcore export memories.jsonl --overwrite",
    "agentcore export --type semantic | wc -l",
))
@options.client
@options.filters(ListParams, without=("entities", "keywords"))
def export_lines(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(
        help="Where to write; stdout if absent, or -.", dir_okay=False, writable=True,
        allow_dash=True)] = None,
    overwrite: Annotated[bool, typer.Option(
        "--overwrite", help="Replace the file if it is there, once all is written.")] = False,
) -> None:
    """Write memories as JSONL, oldest first, in the form that import reads.

    Not carried: what is derived from the text (the embedder's vectors too),
    access counts, history and ids.
    """
    params = options.given(
        context, ListParams, order_by="timestamp", descending=False, limit=PAGE, vectors=True)
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
