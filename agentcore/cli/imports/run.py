"""The import of another system's export: read, passed over as far as it was stored before, stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from agentcore.cli.app import say
from agentcore.cli.importing import Import
from agentcore.cli.imports.archive_files import opened
from agentcore.cli.imports.forms import form_named, numbered_lines
from agentcore.cli.imports.pieces import LeftOut
from agentcore.cli.imports.position import Position
from agentcore.cli.progress import progress
from agentcore.cli.tally import Tally
from agentcore.client import MemoryClient


async def import_export(
    memory: MemoryClient, file: Path, form: str, tally: Tally, *, strict: bool, forced: bool,
    state: Path | None, more: Mapping[str, str],
) -> None:
    """Store what the file holds; `more` is said of every record that does not say it itself.

    With a `state` it begins behind the last record that was stored from this file before.
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
        # Of the record that is being read more may come: the next run reads it again.
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
