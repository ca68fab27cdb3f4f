"""The forms of other systems by name, and their files as numbered lines: a new form is a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from io import BufferedIOBase
from typing import Any

from pydantic import ValidationError

from agentcore.cli.imports.json_stream import BadJson, elements
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

    A number counts what the file holds, also what is left out: of the same file it is always the same.
    """
    for number, (piece, end) in enumerate(_pieces(form_named(name), sources, now), start=1):
        if isinstance(piece, LeftOut):
            leave_out(number, piece)
        elif isinstance(piece, Broken):
            yield NumberedLine(number, end, None, "", piece.problem)
        else:
            yield _line(name, piece, number, end, more)


def _pieces(form: Form, sources: Sequence[BufferedIOBase], now: datetime) -> Iterator[tuple[Piece, int]]:
    before = 0
    for source in sources:
        end = 0
        try:
            for element in elements(source, form.arrays):
                end = element.end
                if element.problem is not None:
                    yield Broken(element.problem), before + end
                    continue
                try:
                    for piece in form.parse(element.name, element.value, now):
                        yield piece, before + end
                except RecursionError:
                    yield Broken("is nested too deeply"), before + end
        except BadJson as problem:
            yield Broken(f"{problem}: nothing after it could be read"), before + end
        before += end


def _line(name: str, found: Found, number: int, end: int, more: Mapping[str, Any]) -> NumberedLine:
    key = f"import:{name}:{key_of(found.key, *more.values())}"
    try:
        return NumberedLine(number, end, Line.model_validate({**more, **found.line}), key)
    except ValidationError as error:
        return NumberedLine(number, end, None, "", problem_of(error))
