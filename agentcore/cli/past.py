"""history, revert, feedback: what was changed in a memory, the way back, and how it served."""

from __future__ import annotations

import json
from typing import Annotated
from uuid import UUID

import typer
from rich.table import Table
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import MEMORIES, app, examples, fail, printable, say, show
from agentcore.cli.calls import ask
from agentcore.memory.params.changes import (
    FeedbackParams,
    HistoryParams,
    HistoryResult,
    RevertParams,
    Verdict,
)

MemoryId = Annotated[UUID, typer.Argument(help="The memory's id.", show_default=False)]
_SHOWN_CHARS = 160


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore history 0198c0de-0000-7000-8000-000000000000",
    "agentcore history 0198c0de-0000-7000-8000-000000000000 --json",
))
@options.client
def history(
    context: typer.Context,
    memory_id: MemoryId,
    limit: options.Limit = 50,
    cursor: Annotated[int | None, typer.Option(help="Where the page before ended.")] = None,
) -> None:
    """What was changed in a memory, when and by whom, the latest first."""
    params = options.given(context, HistoryParams)
    page = ask(context, lambda memory: memory.history(params))
    if options.printed_as_json(context, page):
        return
    if page.changes:
        show(_table(page))
    else:
        say(f"never changed since it was stored ({page.created_at:%Y-%m-%d %H:%M})")
    if page.next_cursor is not None:
        say(f"more with --cursor {page.next_cursor}")


def _table(page: HistoryResult) -> Table:
    table = Table("version", "when (UTC)", "what", "before", "after", box=None, pad_edge=False)
    for change in page.changes:
        table.add_row(
            str(change.version or ""), f"{change.changed_at:%Y-%m-%d %H:%M:%S}", change.operation,
            _fields(change.before), _fields(change.after))
    return table


def _fields(fields: dict[str, object] | None) -> Text:
    written = json.dumps(fields, ensure_ascii=False) if fields else ""
    return Text(printable(written if len(written) <= _SHOWN_CHARS else written[: _SHOWN_CHARS - 3] + "..."))


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore revert 0198c0de-0000-7000-8000-000000000000",
    "agentcore revert 0198c0de-0000-7000-8000-000000000000 2"))
@options.client
def revert(
    context: typer.Context,
    memory_id: MemoryId,
    version: Annotated[int | None, typer.Argument(
        help="The version to go back to. Default: the one before the last change.", show_default=False)
    ] = None,
) -> None:
    """Take the last change of a memory back, or all since a version."""
    if version is None:
        newest = HistoryParams(memory_id=memory_id, limit=1)
        current = ask(context, lambda memory: memory.history(newest)).version
        if current == 1:
            fail("the memory was never changed: there is nothing to revert")
        params = RevertParams(memory_id=memory_id, version=current - 1, if_version=current)
    else:
        params = options.given(context, RevertParams)
    reverted = ask(context, lambda memory: memory.revert(params))
    if options.printed_as_json(context, reverted):
        return
    for note in reverted.receipt.degraded:
        say(note)
    say(f"version {reverted.version} has what version {params.version} had")


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore feedback 0198c0de-0000-7000-8000-000000000000 helpful",
    "agentcore feedback 0198c0de-0000-7000-8000-000000000000 wrong --note 'she moved away'",
))
@options.client
def feedback(
    context: typer.Context,
    memory_id: MemoryId,
    verdict: Annotated[Verdict, typer.Argument(help="How it served.", show_default=False)],
    note: Annotated[str | None, typer.Option(help="Why; kept in its history.")] = None,
) -> None:
    """Say how a memory served: it moves the memory's relevance score."""
    params = options.given(context, FeedbackParams)
    judged = ask(context, lambda memory: memory.feedback(params))
    if not options.printed_as_json(context, judged):
        say(f"relevance {judged.relevance_score:.3f}")
