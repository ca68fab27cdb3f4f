"""Streams the records of an export: of an array, of an object that contains arrays, or one per line.

Reads stdin, a file of any size, or the files in a zip archive. One record may have 64 Mi characters.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import re
import signal
import sys
import zlib
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile, ZipFile, is_zipfile

from agentcore.cli.imports import Form
from agentcore.errors import AgentCoreError

STDIN = Path("-")
MAX_UNPACKED_BYTES = 8 * 1_073_741_824


class _InterruptibleInput(RawIOBase):
    """Ctrl-C interrupts a blocking read of stdin; asyncio would only cancel the task."""

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        usual = signal.getsignal(signal.SIGINT)
        if usual != signal.SIG_IGN:  # inherited, as in the background of a script
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # Ctrl-C just before
                raise KeyboardInterrupt
            raw = cast(BufferedReader, sys.stdin.buffer).read1(len(target))
        finally:
            signal.signal(signal.SIGINT, usual)
        target[: len(raw)] = raw
        return len(raw)


@dataclass(frozen=True)
class Opened:
    """The files to read, in order, their total size if known, and the names of the other files."""

    sources: list[BufferedIOBase]
    size: int | None
    others: list[str] = field(default_factory=list)


@contextmanager
def opened(file: Path, form: Form | None) -> Iterator[Opened]:
    """Opens a file, or the files in the zip archive of an export, until the block ends. Raises AgentCoreError."""
    with ExitStack() as stack:
        if file == STDIN:
            yield Opened([BufferedReader(_InterruptibleInput())], None)
            return
        try:
            if form is not None and file.is_file() and is_zipfile(file):
                found = _inside(stack.enter_context(ZipFile(file)), file, form, stack)
            else:
                raw = stack.enter_context(file.open("rb"))
                found = Opened([raw], os.fstat(raw.fileno()).st_size or None)
        except (BadZipFile, RuntimeError) as cause:
            raise AgentCoreError(f"Cannot read {file}: its zip archive is damaged or encrypted ({cause}).") from cause
        except OSError as cause:
            raise AgentCoreError(f"Cannot read {file}: {cause.strerror or cause}.") from cause
        yield found


def _inside(archive: ZipFile, file: Path, form: Form, stack: ExitStack) -> Opened:
    if form.members is None:
        raise AgentCoreError(f"{file} is a zip archive: unpack it, and import the JSON file in it.")
    wanted = re.compile(rf"(?:.*/)?{form.members}", re.IGNORECASE)
    infos = sorted((each for each in archive.infolist() if not each.is_dir()), key=lambda each: each.filename)
    members = [info for info in infos if wanted.fullmatch(info.filename)]
    if not members:
        raise AgentCoreError(f"{file} contains no conversations.json: is it the complete export?")
    size = sum(info.file_size for info in members)
    if size > MAX_UNPACKED_BYTES:
        raise AgentCoreError(f"{file} would unpack to {size} bytes; {MAX_UNPACKED_BYTES} is the most.")
    sources = [cast(BufferedIOBase, stack.enter_context(archive.open(info))) for info in members]
    return Opened(sources, size, [info.filename for info in infos if info not in members])


CHUNK_BYTES = 1_048_576
MAX_RECORD_CHARS = 64 * 1_048_576
# A line up to this length is parsed as one record; a longer one as a part of an array or object.
MAX_LINE_CHARS = 4 * 1_048_576
# An error this close to the end of the buffer may only mean that more input follows.
_NEAR_THE_END = 16
_BLANK = " \t\r\n"
LONG_NUMBER = "holds a number with too many digits"


class BadJson(Exception):
    """The rest of the file is unreadable; the message says why."""


@dataclass(frozen=True)
class Element:
    """A record with the name of its array, if it has one; or the problem with a line.

    `end`: the number of bytes read so far.
    """

    name: str | None
    value: Any
    end: int
    problem: str | None = None


def elements(source: BufferedIOBase, arrays: Container[str]) -> Iterator[Element]:
    """Yields the records of a file; `arrays` names the arrays that contain them. Raises BadJson."""
    text = _Text(source)
    while sign := text.peek():
        yield from _array(text, None) if sign == "[" else _line(text, arrays)


class _Text:
    def __init__(self, source: BufferedIOBase) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder(parse_constant=lambda name: None)  # Python writes NaN, JSON has none
        self._held = ""
        self._at = 0
        self._ended = False
        self.end = 0

    def peek(self) -> str:
        """Returns the next character that is not blank; empty at the end."""
        while True:
            while self._at < len(self._held):
                if self._held[self._at] not in _BLANK:
                    return self._held[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, sign: str) -> None:
        if self.peek() != sign:
            raise BadJson(f"is not JSON: {sign!r} is missing" if self.peek() else "ends in the middle")
        self._at += 1

    def value(self) -> Any:
        self.peek()
        while True:
            found = self._decoded()
            if found is None:
                continue
            value, end = found
            # A number may continue: the buffer may end with "4." of "4.5".
            near = _NEAR_THE_END if isinstance(value, int | float) else 1
            chars = end - self._at
            if len(self._held) - end < near and self._more():
                continue
            self._at += chars
            return value

    def _decoded(self) -> tuple[Any, int] | None:
        """Returns the value that begins here and its end; None if more of it had to be read."""
        try:
            return self._json.raw_decode(self._held, self._at)
        except RecursionError as cause:
            raise BadJson("is nested too deeply") from cause
        except ValueError as cause:
            if not isinstance(cause, json.JSONDecodeError):
                raise BadJson(LONG_NUMBER) from cause
            unfinished = cause.msg.startswith("Unterminated string") or (cause.pos >= len(self._held) - _NEAR_THE_END)
            if unfinished and self._more():
                return None
            raise BadJson("ends in the middle" if unfinished else f"is not JSON: {cause.msg}") from cause

    def line(self) -> str | None:
        """Returns the rest of the line, without consuming it; None if it is too long."""
        while (end := self._held.find("\n", self._at)) < 0:
            if len(self._held) - self._at > MAX_LINE_CHARS:
                return None
            if not self._more():
                end = len(self._held)
                break
        return self._held[self._at : end]

    def following(self, count: int) -> str:
        """Returns the first character of the next line with text, `count` characters from here."""
        place = count
        while True:
            while len(self._held) - self._at <= place:
                if not self._more():
                    return ""
            if (sign := self._held[self._at + place]) not in "\r\n":
                return sign
            place += 1

    def skip(self, count: int) -> None:
        self._at += count

    def _more(self) -> bool:
        """Reads the next chunk, doubled for long values; returns whether there was one."""
        if self._ended:
            return False
        unread = self._held[self._at :]
        if len(unread) > MAX_RECORD_CHARS:
            raise BadJson(f"holds a record of more than {MAX_RECORD_CHARS} characters")
        try:
            raw = self._source.read1(max(CHUNK_BYTES, len(unread)))
            self._ended = not raw
            self._held = unread + self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as cause:
            raise BadJson("is not UTF-8") from cause
        except (OSError, EOFError, zlib.error, BadZipFile, NotImplementedError) as cause:
            raise BadJson(f"cannot be read: {cause}") from cause
        self._at = 0
        self.end += len(raw)
        return not self._ended


def _array(text: _Text, name: str | None) -> Iterator[Element]:
    text.take("[")
    if text.peek() != "]":
        yield Element(name, text.value(), text.end)
        while text.peek() == ",":
            text.take(",")
            yield Element(name, text.value(), text.end)
    text.take("]")


def _line(text: _Text, arrays: Container[str]) -> Iterator[Element]:
    """Yields the records of a line, of a broken line, or of an object of several lines."""
    line = text.line()
    if line is not None:
        value, problem = _line_value(line)
        if isinstance(value, dict):
            text.skip(len(line))
            yield from _of(value, arrays, text.end)
            return
        if text.following(len(line)) == "{":
            text.skip(len(line))
            yield Element(None, None, text.end, problem)
            return
    if text.peek() != "{":
        raise BadJson("is not JSON: neither an object nor an array begins there")
    yield from _object(text, arrays)


def _line_value(line: str) -> tuple[Any, str]:
    try:
        return json.loads(line, parse_constant=lambda name: None), "is not JSON: no object begins there"
    except RecursionError:
        return None, "is nested too deeply"
    except json.JSONDecodeError as cause:
        return None, f"is not JSON: {cause.msg} at character {cause.pos + 1}"
    except ValueError:
        return None, LONG_NUMBER


def _of(value: dict[str, Any], arrays: Container[str], end: int) -> Iterator[Element]:
    named = {name: each for name, each in value.items() if name in arrays and isinstance(each, list)}
    for name, each in named.items():
        yield from (Element(name, record, end) for record in each)
    if not named:
        yield Element(None, value, end)


def _object(text: _Text, arrays: Container[str]) -> Iterator[Element]:
    text.take("{")
    fields: dict[str, Any] = {}
    streamed = False
    while text.peek() != "}":
        name = text.value()
        if not isinstance(name, str):
            raise BadJson("is not JSON: an object's names are texts")
        text.take(":")
        if text.peek() == "[" and name in arrays:
            streamed = True
            yield from _array(text, name)
        else:
            fields[name] = text.value()
        if text.peek() != "}":
            text.take(",")
    text.take("}")
    if not streamed:
        yield Element(None, fields, text.end)
