"""A file that holds no memory a line, told before it is read: it would fail on every line of it."""

from __future__ import annotations

from contextlib import suppress
from io import BufferedReader

from agentcore.cli.imports.forms import FORMS
from agentcore.cli.imports.json_stream import BadJson, elements
from agentcore.cli.imports.likely import likely_form
from agentcore.errors import AgentCoreError

_ZIP = b"PK\x03\x04"


def refuse_other_forms(source: BufferedReader) -> None:
    """Raises AgentCoreError where the file begins as no line does; else all of it stays to be read."""
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
