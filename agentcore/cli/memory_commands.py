"""Commands on memories: store, find, list and prune; read, change or delete one by its id."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import FAILED, MEMORY_ID, app, counted, fail, is_confirmed, printable, say, say_more, show
from agentcore.cli.calls import answer, ask, call
from agentcore.client import MemoryClient
from agentcore.errors import NotFound
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import Interaction, MemoryRecord, MemorySummary, MemoryType, Receipt, ScoreTerm, time_valid
from agentcore.memory.params.changes import (
    FeedbackParams,
    HistoryEntry,
    HistoryParams,
    RevertParams,
    UpdateParams,
    Updates,
    Verdict,
)
from agentcore.memory.params.memories import (
    DEFAULT_SHARE,
    CountParams,
    DeleteParams,
    GetContextParams,
    GetParams,
    LayerStats,
    ListParams,
    PruneParams,
    RetrieveParams,
    StatsResult,
    StoreParams,
)

MemoryId = Annotated[
    UUID,
    typer.Argument(
        parser=options.memory_id,
        metavar="memory_id",
        help="The memory's id, as `agentcore list` prints it.",
        show_default=False,
    ),
]
AN_ID = "0198c0de-0000-7000-8000-000000000000"
_VALUE = "What is known of it"
LISTED_CHARS, SHOWN_CHARS, CHANGE_CHARS = 200, 1_000, 160
# The number of selected memories whose texts a dry run shows.
DESCRIBED = 50


@app.command(
    "store",
    "agentcore store 'Ada prefers tea' --tag drinks --importance 0.8",
    "agentcore store 'how to deploy?' --response 'make deploy' --task release-7",
    "agentcore store 'the key rotates on Mondays' --type semantic --ttl 30d",
    "git log -1 --format=%B | agentcore store - --session work",
)
@options.client
@options.fields(
    StoreParams,
    ("memory_type", "pinned", "idempotency_key", "force"),
    pinned="Never prune it, never let it expire.",
    force="Store it even if it would be rejected or is a duplicate.",
)
@options.fields(
    StoreParams,
    (
        "importance",
        "tags",
        "speaker",
        "session_id",
        "task_id",
        "user_id",
        "namespace",
        "timestamp",
        "ttl_seconds",
        "metadata",
        "external_id",
    ),
    panel=_VALUE,
    metadata="Of your own.",
)
def store(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What to remember; - reads it from stdin.")],
    response: Annotated[
        str | None, typer.Option(help="The agent's answer; text and answer form an interaction.")
    ] = None,
) -> None:
    """Store a text. Prints the memory's id."""
    said = sys.stdin.read() if text == "-" else text
    source: dict[str, Any] = (
        {"content": said} if response is None else {"interaction": Interaction(query=said, response=response)}
    )
    stored = call(context, MemoryApi.store, options.given(context, StoreParams, **source))
    if options.printed_as_json(context, stored):
        pass
    elif stored.success:
        typer.echo(stored.memory_id)
        say(stored.status)
        if stored.flagged:
            say(f"flagged as {', '.join(stored.flags)}: contexts leave it out")
        for old in stored.superseded:
            say(f"superseded {old}: agentcore get {old} shows it")
        if stored.superseded_by is not None:
            say(f"superseded by {stored.superseded_by}, which is of a later time")
    else:
        say(f"rejected: {stored.reason} (--force stores it all the same)")
    if not stored.success:
        raise typer.Exit(FAILED)


@app.command(
    "retrieve",
    "agentcore retrieve 'what does Ada drink?'",
    "agentcore retrieve 'the failed release' -k 10 --task release-7 --explain",
    "agentcore retrieve 'plans' --after 2w --type episodic --json",
)
@options.client
@options.filters(RetrieveParams)
@options.fields(RetrieveParams, ("k", "min_score", "min_fit", "asked_at", "as_of", "explain"))
def retrieve(context: typer.Context, query: Annotated[str, typer.Argument(help="What is asked.")]) -> None:
    """Search memories, best first."""
    found = answer(context, MemoryApi.retrieve)
    if found.memories:
        header = ("score", "cosine", "when", "who", "memory")
        show(header, result_rows(found.memories, explained=context.params["explain"]))
    else:
        say(_nothing_found(found.receipt))
    _warn_of(found.receipt)


def _nothing_found(receipt: Receipt) -> str:
    held = sum(each.count for each in receipt.dropped if each.reason == "nothing_fits")
    if not held:
        return "nothing found"
    matches = counted(held, "weak match", "weak matches")
    return f"nothing fits (probability {receipt.fit}); {matches} dropped, --min-fit 0 shows them"


@app.command(
    "context",
    "agentcore context 'plan breakfast with Ada' --max-tokens 500",
    "agentcore context 'go on' --task release-7 > prompt.txt",
    "agentcore context 'plan breakfast' --format json --model gpt-4",
)
@options.client
@options.filters(GetContextParams)
@options.fields(
    GetContextParams,
    ("max_tokens", "format", "model", "encoding", "min_score", "min_fit", "asked_at", "as_of"),
    max_tokens="How many tokens it may take.",
)
def get_context(
    context: typer.Context, query: Annotated[str, typer.Argument(help="What the prompt is about.")]
) -> None:
    """Build a prompt-ready context inside a token budget. Prints it; its token count goes to stderr."""
    built = answer(context, MemoryApi.get_context)
    typer.echo(printable(built.context) if sys.stdout.isatty() else built.context)
    memories = counted(len(built.memory_ids), "memory", "memories")
    say(f"{built.token_count} tokens of {context.params['max_tokens']}, from {memories}")
    _warn_of(built.receipt)


@app.command(
    "list",
    "agentcore list --limit 20",
    "agentcore list --order-by importance --type semantic",
    "agentcore list --session monday --ascending --json",
)
@options.client
@options.filters(ListParams)
@options.fields(ListParams, ("order_by", "descending", "limit", "cursor"), order_by="By what.")
def list_memories(context: typer.Context) -> None:
    """List memories page by page, by time, importance or access count.

    A memory that a newer one superseded is marked so.
    """
    page = answer(context, MemoryApi.list)
    if page.memories:
        show((MEMORY_ID, "layer", "when", "who", "memory"), map(_listed, page.memories))
    else:
        say("no memories")
    say_more(page.next_cursor)


@app.command(
    "prune",
    "agentcore prune episodic --dry-run                   what would go",
    "agentcore prune episodic --target 20%",
    "agentcore prune semantic --strategy oldest_first --target 500",
)
@options.client
@options.fields(PruneParams, ("dry_run",), dry_run="List the memories that would go; remove none.")
@options.fields(
    PruneParams,
    ("strategy", "target"),
    defaults=False,
    strategy="Which memories go first. Absent: as the service is configured.",
    target="How many go: 500, or 20%. Absent: down to the capacity, else the lowest 20 %.",
)
def prune(
    context: typer.Context, memory_layer: Annotated[MemoryType, typer.Argument(help="The layer to prune.")]
) -> None:
    """Archive and remove memories of a layer."""
    params = options.given(context, PruneParams)
    pruned = answer(context, MemoryApi.prune, params)
    word = "would go" if pruned.dry_run else "archived and removed"
    typer.echo(f"{word}: {len(pruned.memory_ids) if pruned.dry_run else pruned.pruned_count}")
    if not pruned.memory_ids:
        layer = call(context, MemoryApi.stats).layers[memory_layer]
        say(_why_none(layer, DEFAULT_SHARE if params.target is None else params.target))
    if not pruned.complete:
        say("The call's time ran out: run the same again for the rest.")
    if pruned.dry_run:
        _print_selected(context, pruned.memory_ids)


def _print_selected(context: typer.Context, memory_ids: Sequence[UUID]) -> None:
    async def records(memory: MemoryClient) -> list[MemoryRecord]:
        found = []
        for each in memory_ids[:DESCRIBED]:
            with suppress(NotFound):  # deleted meanwhile
                found.append((await memory.get(GetParams(memory_id=each))).memory)
        return found

    for record in ask(context, records) if memory_ids else ():
        typer.echo(f"{record.memory_id}  {record.timestamp:%Y-%m-%d}  {_one_line(record.content)}")
    for memory_id in memory_ids[DESCRIBED:]:
        typer.echo(memory_id)


def _why_none(layer: LayerStats, target: float) -> str:
    if layer.count == layer.pinned:
        return "every memory of the layer is pinned" if layer.count else "the layer contains no memories"
    if isinstance(target, float) and layer.count * target < 1:
        memories = counted(layer.count, "memory", "memories")
        return f"{target * 100:g} % of {memories} is less than one: --target 1 takes one"
    return "nothing can go now: what is not pinned is in use by another call"


def _warn_of(receipt: Receipt) -> None:
    for part in receipt.degraded:
        say(f"note: {part}")


def result_rows(memories: Sequence[MemorySummary], *, explained: bool = False) -> Iterator[Sequence[str | Text]]:
    """Yields a row for each memory; marks those that a newer one probably supersedes."""
    ranks = {memory.memory_id: rank for rank, memory in enumerate(memories, 1)}
    for memory in memories:
        valid, newer = time_valid(memory), memory.outdated_by and ranks.get(memory.outdated_by)
        earlier = f"[earlier, see result {newer}] " if newer else "[earlier] "
        outdated = earlier * (memory.outdated_by is not None)
        text = Text(f"[valid {valid}] " * bool(valid) + outdated + "[flagged] " * memory.flagged)
        text.append(_beginning(printable(memory.content)))
        if explained and memory.terms:
            text.append(f"\n{_reasons(memory.terms)}", style="dim")
        when = f"{memory.timestamp:%Y-%m-%d}"
        yield _figure(memory.score), _figure(memory.similarity), when, memory.speaker or "", text


def _reasons(terms: Mapping[str, ScoreTerm]) -> str:
    giving = sorted(terms.items(), key=lambda named: -abs(named[1].contribution))
    return "  ".join(
        f"{name} {term.contribution:.3f} = {term.weight:.2f} x {term.value:.2f}"
        for name, term in giving
        if round(term.contribution, 3)
    )


def _beginning(content: str) -> str:
    left_out = len(content) - SHOWN_CHARS
    return content if left_out <= 0 else f"{content[:SHOWN_CHARS]}… ({left_out:,} more characters: --json)"


def _one_line(content: str) -> str:
    text = " ".join(printable(content).split())
    return text if len(text) <= LISTED_CHARS else f"{text[:LISTED_CHARS]}…"


def _listed(record: MemoryRecord) -> Sequence[str]:
    mark = "[superseded] " * (record.superseded_by is not None) + "[flagged] " * record.flagged
    when = f"{record.timestamp:%Y-%m-%d}"
    layer = record.memory_type.value
    return str(record.memory_id), layer, when, record.speaker or "", mark + _one_line(record.content)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


@app.command("get", f"agentcore get {AN_ID}")
@options.client
def get(context: typer.Context, memory_id: MemoryId) -> None:
    """Show one memory with all fields."""
    record = call(context, MemoryApi.get).memory
    if options.printed_as_json(context, record):
        return
    typer.echo(printable(record.content))
    show((), _fields(record))


@app.command(
    "update",
    f"agentcore update {AN_ID} --content 'Ada prefers coffee'",
    f"agentcore update {AN_ID} --importance 0.9 --tag drinks --pinned",
)
@options.client
@options.fields(
    Updates,
    ("content", "context", "importance", "tags", "pinned", "ttl_seconds", "metadata"),
    content="The corrected text.",
    importance="How important it is from now on.",
    tags="All its tags from now on; may be repeated.",
    metadata="Merged into its metadata.",
    pinned="Whether it is kept from pruning and expiry.",
)
def update(command: typer.Context, memory_id: MemoryId) -> None:
    """Correct a memory or append to it; its history keeps the earlier version."""
    if not options.typed_fields(command, Updates):
        raise typer.BadParameter(
            "no change is given: pass --content, --add, --importance, --tag, --pinned, --not-pinned, "
            "--ttl or --metadata",
            ctx=command,
        )
    params = UpdateParams(memory_id=memory_id, updates=options.given(command, Updates))
    version = answer(command, MemoryApi.update, params).version
    say(f"version {version}; to revert: agentcore revert {memory_id} {version - 1}")


@app.command("delete", f"agentcore delete {AN_ID}", f"agentcore delete {AN_ID} --yes")
@options.client
def delete(
    context: typer.Context,
    memory_ids: Annotated[
        list[UUID],
        typer.Argument(parser=options.memory_id, metavar="memory_ids", help="The memories' ids.", show_default=False),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete memories permanently, without an archived copy."""
    if not yes and not is_confirmed(f"Delete {counted(len(memory_ids), 'memory', 'memories')}?"):
        fail("nothing was deleted")
    deleted = call(context, MemoryApi.delete, DeleteParams(memory_ids=memory_ids))
    if not options.printed_as_json(context, deleted):
        say(f"{deleted.deleted_count} deleted")
    if not deleted.deleted_count:
        fail("no such memory")


@app.command(
    "count", "agentcore count", "agentcore count --type semantic --user ada", "agentcore count --after 7d --json"
)
@options.client
@options.filters(CountParams)
@options.fields(CountParams, ("consistent",), consistent="Count on the primary database, not on a replica.")
def count(context: typer.Context) -> None:
    """Count the memories that match; superseded ones count, archived ones do not."""
    typer.echo(answer(context, MemoryApi.count).count)


@app.command("stats", "agentcore stats", "agentcore stats --json")
@options.client
def stats(context: typer.Context) -> None:
    """Show the number of memories by layer."""
    counts = answer(context, MemoryApi.stats)
    show(("layer", "memories", "capacity", "pinned", "oldest", "newest"), _layers(counts))
    say(f"{counts.total} in all, {counts.links} links, {counts.archived} in the archive")


def _fields(record: MemoryRecord) -> Iterator[Sequence[str]]:
    values = record.model_dump(mode="json", exclude={"content", "summary", "content_hash", "embedding"})
    for name, value in values.items():
        if value not in (None, [], {}, ""):
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _layers(counts: StatsResult) -> Iterator[Sequence[str]]:
    for layer, each in counts.layers.items():
        oldest, newest = ("-" if when is None else f"{when:%Y-%m-%d}" for when in (each.oldest, each.newest))
        capacity = f"{each.capacity:,}" if each.capacity else "unlimited"
        yield layer.value, f"{each.count:,}", capacity, f"{each.pinned:,}", oldest, newest


@app.command("history", f"agentcore history {AN_ID}", f"agentcore history {AN_ID} --json")
@options.client
@options.fields(HistoryParams, ("limit", "cursor"))
def history(context: typer.Context, memory_id: MemoryId) -> None:
    """Show the changes of a memory, the latest first."""
    page = answer(context, MemoryApi.history)
    if page.changes:
        show(("version", "when (UTC)", "what", "before", "after"), map(_changed, page.changes))
    else:
        say(f"never changed since it was stored ({page.created_at:%Y-%m-%d %H:%M})")
    say_more(page.next_cursor)


def _changed(change: HistoryEntry) -> Sequence[str]:
    when = f"{change.changed_at:%Y-%m-%d %H:%M:%S}"
    return str(change.version or ""), when, change.operation, _short(change.before), _short(change.after)


def _short(fields: dict[str, object] | None) -> str:
    written = json.dumps(fields, ensure_ascii=False) if fields else ""
    return written if len(written) <= CHANGE_CHARS else written[: CHANGE_CHARS - 3] + "..."


@app.command("revert", f"agentcore revert {AN_ID}", f"agentcore revert {AN_ID} 2")
@options.client
def revert(
    context: typer.Context,
    memory_id: MemoryId,
    version: Annotated[
        int | None,
        typer.Argument(help="The version to restore. Default: the one before the last change.", show_default=False),
    ] = None,
) -> None:
    """Revert a memory's last change, or all changes since a version."""
    if version is None:
        newest = HistoryParams(memory_id=memory_id, limit=1)
        current = call(context, MemoryApi.history, newest).version
        if current == 1:
            fail("the memory was never changed: there is nothing to revert")
        params = RevertParams(memory_id=memory_id, version=current - 1, if_version=current)
    else:
        params = options.given(context, RevertParams)
    reverted = answer(context, MemoryApi.revert, params)
    for note in reverted.receipt.degraded:
        say(note)
    say(f"version {reverted.version} has what version {params.version} had")


@app.command(
    "feedback", f"agentcore feedback {AN_ID} helpful", f"agentcore feedback {AN_ID} wrong --note 'she moved away'"
)
@options.client
@options.fields(FeedbackParams, ("note",), note="Why; kept in its history.")
def feedback(
    context: typer.Context,
    memory_id: MemoryId,
    verdict: Annotated[Verdict, typer.Argument(help="How it served.", show_default=False)],
) -> None:
    """Rate a memory's usefulness: changes its relevance score."""
    say(f"relevance {answer(context, MemoryApi.feedback).relevance_score:.3f}")
