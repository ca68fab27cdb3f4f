"""How far an import is: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from agentcore.cli.app import err, say
from agentcore.cli.lines import NumberedLine

TOLD_EVERY_LINES = 10_000


@contextmanager
def progress(size: int | None, units: str) -> Iterator[Callable[[NumberedLine], None]]:
    """What to call for each line of a file of so many bytes; `units` is what its lines are called."""
    if not err.is_terminal:
        yield lambda numbered: _tell_now_and_then(numbered, units)
        return
    lines = TextColumn("{task.fields[lines]} " + units)
    with Progress(lines, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=err,
                  transient=True) as bar:
        task = bar.add_task("import", total=size, lines=0)
        yield lambda numbered: bar.update(task, completed=numbered.end, lines=numbered.number)


def _tell_now_and_then(numbered: NumberedLine, units: str) -> None:
    if numbered.number % TOLD_EVERY_LINES == 0:
        say(f"{numbered.number} {units}")
