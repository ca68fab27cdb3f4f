"""get, update, delete, history, revert, feedback: one memory by its id; count, stats: how many there are."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.table import Table
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import MEMORIES, app, counted, examples, fail, printable, say, show
from agentcore.cli.calls import ask
from agentcore.cli.times import seconds
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.changes import (
    FeedbackParams,
    HistoryParams,
    HistoryResult,
    RevertParams,
    UpdateParams,
    Updates,
    Verdict,
)
from agentcore.memory.params.memories import CountParams, DeleteParams, GetParams, StatsResult

MemoryId = Annotated[UUID, typer.Argument(
    parser=options.memory_id, metavar="memory_id", help="The memory's id, as `agentcore list` prints it.",
    show_default=False)]
AN_ID = "0198c0de-0000-7000-8000-000000000000"
_SHOWN_CHARS = 160


@app.command(rich_help_panel=MEMORIES, epilog=examples(f"agentcore get {AN_ID}"))
@options.client
def get(
    context: typer.Context,
    memory_id: MemoryId,
) -> None:
    """Show one memory, whole."""
    record = ask(context, lambda memory: memory.get(GetParams(memory_id=memory_id))).memory
    if options.printed_as_json(context, record):
        return
    typer.echo(printable(record.content))
    show(_fields(record))


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    f"agentcore update {AN_ID} --content 'Ada prefers coffee'",
    f"agentcore update {AN_ID} --importance 0.9 --tag drinks --pinned",
))
@options.client
def update(
    context: typer.Context,
    memory_id: MemoryId,
    content: Annotated[str | None, typer.Option(help="The corrected text.")] = None,
    added: Annotated[str | None, typer.Option("--add", help="What is added below the text.")] = None,
    importance: Annotated[float | None, typer.Option(metavar="0..1")] = None,
    tags: Annotated[list[str] | None, typer.Option(
        "--tag", help="All its tags from now on; may be repeated.")] = None,
    pinned: Annotated[bool | None, typer.Option(
        "--pinned/--not-pinned", help="Whether it is kept from pruning and expiry.")] = None,
    ttl_seconds: Annotated[int | None, typer.Option(
        "--ttl", parser=seconds, metavar="TIME", help="It expires after: 90s, 15m, 30d, 1y.")] = None,
    metadata: Annotated[dict[str, Any] | None, typer.Option(
        parser=options.json_object, metavar="JSON", help="Merged into its metadata.")] = None,
) -> None:
    """Correct a memory, or add to it; what it was stays in its history."""
    given = [content, added, importance, tags or None, pinned, ttl_seconds, metadata]
    if all(each is None for each in given):
        raise typer.BadParameter(
            "nothing to change is given: --content, --add, --importance, --tag, --pinned, --not-pinned, "
            "--ttl or --metadata", ctx=context)
    updates = options.given(context, Updates, **({} if added is None else {"context": added}))
    changed = ask(context, lambda memory: memory.update(UpdateParams(memory_id=memory_id, updates=updates)))
    if not options.printed_as_json(context, changed):
        say(f"version {changed.version}; agentcore revert {memory_id} {changed.version - 1} takes it back")


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    f"agentcore delete {AN_ID}", f"agentcore delete {AN_ID} --yes"))
@options.client
def delete(
    context: typer.Context,
    memory_ids: Annotated[list[UUID], typer.Argument(
        parser=options.memory_id, metavar="memory_ids", help="The memories' ids.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete memories for good, without a copy in the archive."""
    if not yes:
        say(f"Delete {counted(len(memory_ids), 'memory', 'memories')}? Nothing brings it back. [y/N]")
        if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
            fail("nothing was deleted")
    deleted = ask(context, lambda memory: memory.delete(DeleteParams(memory_ids=memory_ids)))
    if not options.printed_as_json(context, deleted):
        say(f"{deleted.deleted_count} deleted")
    if not deleted.deleted_count:
        fail("no such memory")


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore count",
    "agentcore count --type semantic --user ada",
    "agentcore count --after 7d --json",
))
@options.client
@options.filters()
def count(
    context: typer.Context,
    consistent: Annotated[bool, typer.Option(
        "--consistent", help="Count on the primary database, not on a replica.")] = False,
) -> None:
    """Count the memories that match; superseded ones count, archived ones do not."""
    params = options.given(context, CountParams)
    counted_memories = ask(context, lambda memory: memory.count(params))
    if not options.printed_as_json(context, counted_memories):
        typer.echo(counted_memories.count)


@app.command(rich_help_panel=MEMORIES, epilog=examples("agentcore stats", "agentcore stats --json"))
@options.client
def stats(
    context: typer.Context,
) -> None:
    """How much the agent remembers, by layer."""
    counts = ask(context, lambda memory: memory.stats())
    if options.printed_as_json(context, counts):
        return
    show(_layers(counts))
    say(f"{counts.total} in all, {counts.links} links, {counts.archived} in the archive")


def _fields(record: MemoryRecord) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    told = record.model_dump(mode="json", exclude={"content", "summary", "content_hash", "embedding"})
    for name, value in told.items():
        if value not in (None, [], {}, ""):
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            table.add_row(name, Text(printable(written)))
    return table


def _layers(counts: StatsResult) -> Table:
    table = Table("layer", "memories", "capacity", "pinned", "oldest", "newest", box=None, pad_edge=False)
    for layer, each in counts.layers.items():
        oldest, newest = ("-" if when is None else f"{when:%Y-%m-%d}" for when in (each.oldest, each.newest))
        capacity = f"{each.capacity:,}" if each.capacity else "unlimited"
        table.add_row(layer.value, f"{each.count:,}", capacity, f"{each.pinned:,}", oldest, newest)
    return table


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    f"agentcore history {AN_ID}",
    f"agentcore history {AN_ID} --json",
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
        show(_history(page))
    else:
        say(f"never changed since it was stored ({page.created_at:%Y-%m-%d %H:%M})")
    if page.next_cursor is not None:
        say(f"more with --cursor {page.next_cursor}")


def _history(page: HistoryResult) -> Table:
    table = Table("version", "when (UTC)", "what", "before", "after", box=None, pad_edge=False)
    for change in page.changes:
        table.add_row(
            str(change.version or ""), f"{change.changed_at:%Y-%m-%d %H:%M:%S}", change.operation,
            _changed(change.before), _changed(change.after))
    return table


def _changed(fields: dict[str, object] | None) -> Text:
    written = json.dumps(fields, ensure_ascii=False) if fields else ""
    return Text(printable(written if len(written) <= _SHOWN_CHARS else written[: _SHOWN_CHARS - 3] + "..."))


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    f"agentcore revert {AN_ID}",
    f"agentcore revert {AN_ID} 2"))
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
    f"agentcore feedback {AN_ID} helpful",
    f"agentcore feedback {AN_ID} wrong --note 'she moved away'",
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
