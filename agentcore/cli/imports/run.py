"""Imports another system's export: selects the format, numbers its records, resumes after the last run."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentcore.cli.app import say
from agentcore.cli.importing import Import, Tally, progress
from agentcore.cli.imports.export_files import BadJson, Element, elements, opened
from agentcore.cli.imports.pieces import Broken, Form, Found, LeftOut, Piece, hint, key_of, likely_form
from agentcore.cli.lines import Line, NumberedLine, problem_of
from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError
from agentcore.registry import resolve

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
    name: str, sources: Sequence[BufferedIOBase], *, now: datetime, more: Mapping[str, Any],
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


def _pieces(
    name: str, sources: Sequence[BufferedIOBase], now: datetime
) -> Iterator[tuple[int, Piece, int]]:
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
    memory: MemoryClient, file: Path, form: str, tally: Tally, *, strict: bool, forced: bool,
    state: Path | None, more: Mapping[str, str],
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
