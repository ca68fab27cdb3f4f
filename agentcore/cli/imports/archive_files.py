"""The files of an export: the one that is named, or those inside a zip archive that hold its records."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import cast
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from agentcore.cli.imports.pieces import Form
from agentcore.errors import AgentCoreError

STDIN = Path("-")
MAX_UNPACKED_BYTES = 8 * 1_073_741_824
_ENCRYPTED = 1


@dataclass(frozen=True)
class Opened:
    """The files to read, in order, their bytes together where known, and the files that are not read."""

    sources: list[BufferedIOBase]
    size: int | None
    others: list[str] = field(default_factory=list)


@contextmanager
def opened(file: Path, form: Form) -> Iterator[Opened]:
    """The export's files until the block ends. Raises AgentCoreError."""
    with ExitStack() as stack:
        if file == STDIN:
            yield Opened([cast(BufferedIOBase, sys.stdin.buffer)], None)
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
    """How many bytes these unpack to. Raises AgentCoreError where they are not to be read."""
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
