"""Opens the files of an import: stdin, a file, or the files in a zip archive that contain its records."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from agentcore.cli.imports.pieces import Form
from agentcore.errors import AgentCoreError

STDIN = Path("-")
MAX_UNPACKED_BYTES = 8 * 1_073_741_824
_ENCRYPTED = 1


class _Interruptible(RawIOBase):
    """A file wrapper for a coroutine of asyncio.run: Ctrl-C also interrupts a read that blocks.

    asyncio turns the first Ctrl-C into a cancellation, which a coroutine does not see while it blocks.
    """

    def __init__(self, source: BufferedIOBase) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        """Reads available bytes, at least one. Raises KeyboardInterrupt, also for a Ctrl-C just before."""
        view = memoryview(target)
        with _raising_ctrl_c():
            raw = self._source.read1(len(view))
        view[: len(raw)] = raw
        return len(raw)


@contextmanager
def _raising_ctrl_c() -> Iterator[None]:
    usual = signal.getsignal(signal.SIGINT)
    if usual == signal.SIG_IGN:  # inherited, as in the background of a script
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def standard_input() -> BufferedReader:
    """Returns stdin for a coroutine of asyncio.run: Ctrl-C also interrupts a read that blocks."""
    return BufferedReader(_Interruptible(cast(BufferedIOBase, sys.stdin.buffer)))


@dataclass(frozen=True)
class Opened:
    """The files to read, in order, their total size if known, and the names of the other files."""

    sources: list[BufferedIOBase]
    size: int | None
    others: list[str] = field(default_factory=list)


@contextmanager
def opened(file: Path, form: Form) -> Iterator[Opened]:
    """Opens the export's files until the block ends. Raises AgentCoreError."""
    with ExitStack() as stack:
        if file == STDIN:
            yield Opened([standard_input()], None)
            return
        try:
            raw = stack.enter_context(file.open("rb"))
            size = os.fstat(raw.fileno()).st_size
            if not is_zipfile(raw):
                raw.seek(0)
                found = Opened([raw], size)
            else:
                found = _inside(stack.enter_context(ZipFile(raw)), file, form, stack)
        except BadZipFile as cause:
            raise AgentCoreError(f"Cannot read {file}: its zip archive is damaged ({cause}).") from cause
        except OSError as cause:
            raise AgentCoreError(f"Cannot read {file}: {cause.strerror or cause}.") from cause
        yield found


def _inside(archive: ZipFile, file: Path, form: Form, stack: ExitStack) -> Opened:
    if form.members is None:
        raise AgentCoreError(f"{file} is a zip archive: unpack it, and import the JSON file in it.")
    wanted = re.compile(rf"(?:.*/)?{form.members}", re.IGNORECASE)
    infos = sorted((each for each in archive.infolist() if not each.is_dir()), key=lambda each: each.filename)
    members = [info for info in infos if wanted.fullmatch(info.filename)]
    size = _checked_size(file, members)
    others = [info.filename for info in infos if info not in members]
    return Opened([_member(archive, info, stack) for info in members], size, others)


def _checked_size(file: Path, members: Sequence[ZipInfo]) -> int:
    """Returns the unpacked size. Raises AgentCoreError if it is too large or a file is encrypted."""
    if not members:
        raise AgentCoreError(f"{file} holds no conversations.json: is it the whole export?")
    size = sum(info.file_size for info in members)
    if size > MAX_UNPACKED_BYTES:
        raise AgentCoreError(f"{file} would unpack to {size} bytes; {MAX_UNPACKED_BYTES} is the most.")
    if any(info.flag_bits & _ENCRYPTED for info in members):
        raise AgentCoreError(f"{file} is encrypted: unpack it, and import the JSON file in it.")
    return size


def _member(archive: ZipFile, info: ZipInfo, stack: ExitStack) -> BufferedIOBase:
    return cast(BufferedIOBase, stack.enter_context(archive.open(info)))
