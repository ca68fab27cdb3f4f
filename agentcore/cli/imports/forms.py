"""The forms of other systems by name, and their files as numbered lines: a new form is a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from io import BufferedIOBase
from typing import Any

from pydantic import ValidationError

from agentcore.cli.imports.json_stream import BadJson, Element, elements
from agentcore.cli.imports.likely import hint
from agentcore.cli.imports.pieces import Broken, Form, Found, LeftOut, Piece, key_of
from agentcore.cli.lines import Line, NumberedLine, problem_of
from agentcore.registry import resolve

_HERE = "agentcore.cli.imports"
# name -> module:form.
FORMS: Mapping[str, str] = {
    "chatgpt": f"{_HERE}.chatgpt:FORM",
    "claude": f"{_HERE}.claude:FORM",
    "kagent": f"{_HERE}.kagent:FORM",
    "langgraph": f"{_HERE}.langgraph:FORM",
    "mem0": f"{_HERE}.mem0:FORM",
}


def form_named(name: str) -> Form:
    """The form of that name, or of the path `module:attribute`. Raises ConfigurationError."""
    form: Form = resolve(name, FORMS, kind="form of an import")
    return form


def numbered_lines(
    name: str, sources: Sequence[BufferedIOBase], *, now: datetime, more: Mapping[str, Any],
    leave_out: Callable[[int, LeftOut], None],
) -> Iterator[NumberedLine]:
    """A line for each memory to be, and for each that cannot be; `more` is said of all that do not say it.

    A number counts the records of the file, whatever became of them: of the same file it is always the same.
    A record of several memories, such as a conversation, gives them all its number.
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
