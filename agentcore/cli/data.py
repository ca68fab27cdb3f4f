"""The commands that speak to a running service: store, retrieve, context, list, prune."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import typer
from rich.table import Column, Table
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import FAILED, MEMORIES, app, counted, examples, printable, say, show
from agentcore.cli.calls import ask
from agentcore.cli.times import moment, seconds
from agentcore.memory.models import Interaction, MemorySummary, MemoryType, Receipt, ScoreTerm, time_valid
from agentcore.memory.params.memories import (
    DEFAULT_SHARE,
    GetContextParams,
    LayerStats,
    ListParams,
    ListResult,
    PruneParams,
    PruningStrategyName,
    RetrieveParams,
    StoreParams,
)

Order = Literal["timestamp", "importance", "access_count"]

_VALUE = "What is known of it"
LISTED_CHARS, SHOWN_CHARS = 200, 1_000


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore store 'Ada prefers tea' --tag drinks --importance 0.8",
    "agentcore store 'how to deploy?' --response 'make deploy' --task release-7",
    "agentcore store 'the key rotates on Mondays' --type semantic --ttl 30d",
    "git log -1 --format=%B | agentcore store - --session work",
))
@options.client
def store(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What to remember; - reads it from stdin.")],
    response: Annotated[str | None, typer.Option(
        help="The answer that was given: the two together are an interaction.")] = None,
    memory_type: Annotated[MemoryType | None, typer.Option(
        "--type", metavar="LAYER", help="working, episodic (if absent), semantic or procedural.")] = None,
    importance: Annotated[float | None, typer.Option(metavar="0..1", rich_help_panel=_VALUE)] = None,
    tags: Annotated[list[str] | None, typer.Option(
        "--tag", help="May be repeated.", rich_help_panel=_VALUE)] = None,
    speaker: Annotated[str | None, typer.Option(metavar="NAME", rich_help_panel=_VALUE)] = None,
    session_id: Annotated[str | None, typer.Option("--session", metavar="ID", rich_help_panel=_VALUE)] = None,
    task_id: Annotated[str | None, typer.Option("--task", metavar="ID", rich_help_panel=_VALUE)] = None,
    user_id: Annotated[str | None, typer.Option("--user", metavar="ID", rich_help_panel=_VALUE)] = None,
    namespace: Annotated[str | None, typer.Option(metavar="NAME", rich_help_panel=_VALUE)] = None,
    timestamp: Annotated[datetime | None, typer.Option(
        "--time", parser=moment, metavar="TIME", help="When it happened; now if absent.",
        rich_help_panel=_VALUE)] = None,
    ttl_seconds: Annotated[int | None, typer.Option(
        "--ttl", parser=seconds, metavar="TIME", help="It expires after: 90s, 15m, 24h, 30d, 2w, 1y.",
        rich_help_panel=_VALUE)] = None,
    metadata: Annotated[dict[str, Any] | None, typer.Option(
        parser=options.json_object, metavar="JSON", help="Of your own.", rich_help_panel=_VALUE)] = None,
    external_id: Annotated[str | None, typer.Option(
        metavar="ID", help="Your own id of it.", rich_help_panel=_VALUE)] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Never prune it, never let it expire.")] = False,
    idempotency_key: Annotated[str | None, typer.Option(
        metavar="KEY", help="The same key stores nothing twice.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Store what would be held back.")] = False,
) -> None:
    """Remember a text. Prints the memory's id."""
    said = sys.stdin.read() if text == "-" else text
    if response is None:
        params = options.given(context, StoreParams, content=said)
    else:
        params = options.given(context, StoreParams, interaction=Interaction(query=said, response=response))
    stored = ask(context, lambda memory: memory.store(params))
    if options.printed_as_json(context, stored):
        pass
    elif stored.success:
        typer.echo(stored.memory_id)
        say(stored.status)
        for old in stored.superseded:
            say(f"superseded {old}: agentcore get {old} shows it")
        if stored.superseded_by is not None:
            say(f"superseded by {stored.superseded_by}, which is of a later time")
    else:
        say(f"rejected: {stored.reason} (--force stores it all the same)")
    if not stored.success:
        raise typer.Exit(FAILED)


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore retrieve 'what does Ada drink?'",
    "agentcore retrieve 'the failed release' -k 10 --task release-7 --explain",
    "agentcore retrieve 'plans' --after 2w --type episodic --json",
))
@options.client
@options.filters()
def retrieve(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What is asked.")],
    k: Annotated[int, typer.Option("-k", "--k", help="How many at most.")] = 5,
    min_score: options.MinScore = None,
    min_fit: options.MinFit = None,
    asked_at: options.AskedAt = None,
    as_of: options.AsOf = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say where each score came from.")] = False,
) -> None:
    """Find the memories that matter for a query, best first."""
    params = options.given(context, RetrieveParams)
    found = ask(context, lambda memory: memory.retrieve(params))
    if options.printed_as_json(context, found):
        return
    if found.memories:
        show(results_table(found.memories, explained=explain))
    else:
        say(_silence(found.receipt))
    _warn_of(found.receipt)


def _silence(receipt: Receipt) -> str:
    held = sum(each.count for each in receipt.dropped if each.reason == "nothing_fits")
    if not held:
        return "nothing found"
    matches = counted(held, "weak match", "weak matches")
    return f"nothing fits (probability {receipt.fit}); {matches} held back, --min-fit 0 shows them"


@app.command("context", rich_help_panel=MEMORIES, epilog=examples(
    "agentcore context 'plan breakfast with Ada' --max-tokens 500",
    "agentcore context 'go on' --task release-7 > prompt.txt",
    "agentcore context 'plan breakfast' --format json --model gpt-4",
))
@options.client
@options.filters(without=("task_id",))
def get_context(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What the prompt is about.")],
    max_tokens: Annotated[int, typer.Option(help="How many tokens it may take.")] = 2_000,
    task_id: Annotated[str | None, typer.Option(
        "--task", metavar="ID", help="The task whose working memory comes first.")] = None,
    format: Annotated[str, typer.Option(
        metavar="FORM", help="markdown, text or json; --json prints the whole answer instead.")] = "markdown",
    model: Annotated[str | None, typer.Option(
        metavar="MODEL", help="Count tokens as this model does.")] = None,
    encoding: Annotated[str | None, typer.Option(
        metavar="NAME", help="Count tokens in this encoding: o200k_base or cl100k_base.")] = None,
    min_score: options.MinScore = None,
    min_fit: options.MinFit = None,
    asked_at: options.AskedAt = None,
    as_of: options.AsOf = None,
) -> None:
    """Build a prompt-ready context inside a token budget. Prints it; its token count goes to stderr."""
    params = options.given(context, GetContextParams)
    built = ask(context, lambda memory: memory.get_context(params))
    if options.printed_as_json(context, built):
        return
    typer.echo(printable(built.context) if sys.stdout.isatty() else built.context)
    memories = counted(len(built.memory_ids), "memory", "memories")
    say(f"{built.token_count} tokens of {max_tokens}, from {memories}")
    _warn_of(built.receipt)


@app.command("list", rich_help_panel=MEMORIES, epilog=examples(
    "agentcore list --limit 20",
    "agentcore list --order-by importance --type semantic",
    "agentcore list --session monday --ascending --json",
))
@options.client
@options.filters()
def list_memories(
    context: typer.Context,
    order_by: Annotated[Order, typer.Option(help="By what.")] = "timestamp",
    descending: Annotated[bool, typer.Option(
        "--descending/--ascending", help="Which end comes first.")] = True,
    limit: options.Limit = 50,
    cursor: options.Cursor = None,
) -> None:
    """List memories page by page, by time, importance or access count.

    A memory that a newer one superseded is marked so.
    """
    params = options.given(context, ListParams)
    page = ask(context, lambda memory: memory.list(params))
    if options.printed_as_json(context, page):
        return
    if page.memories:
        show(_page(page))
    else:
        say("no memories")
    if page.next_cursor is not None:
        say(f"there are more: --cursor {page.next_cursor}")


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore prune episodic --dry-run                   what would go",
    "agentcore prune episodic --target 20%",
    "agentcore prune semantic --strategy oldest_first --target 500",
))
@options.client
def prune(
    context: typer.Context,
    memory_layer: Annotated[MemoryType, typer.Argument(help="The layer that is cut back.")],
    strategy: Annotated[PruningStrategyName | None, typer.Option(
        help="Which memories go first. Absent: as the service is configured.")] = None,
    target: Annotated[float | None, typer.Option(
        parser=options.amount, metavar="AMOUNT",
        help="How many go: 500, or 20%. Absent: down to the capacity, else the lowest 20 %.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and take nothing.")] = False,
) -> None:
    """Archive and remove memories of a layer."""
    params = options.given(context, PruneParams)
    pruned = ask(context, lambda memory: memory.prune(params))
    if options.printed_as_json(context, pruned):
        return
    word = "would go" if pruned.dry_run else "archived and removed"
    typer.echo(f"{word}: {len(pruned.memory_ids) if pruned.dry_run else pruned.pruned_count}")
    if not pruned.memory_ids:
        layer = ask(context, lambda memory: memory.stats()).layers[memory_layer]
        say(_why_none(layer, DEFAULT_SHARE if target is None else target))
    if not pruned.complete:
        typer.echo("The call's time ran out: run the same again for the rest.", err=True)
    for memory_id in pruned.memory_ids if pruned.dry_run else ():
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


def results_table(memories: Sequence[MemorySummary], *, explained: bool = False) -> Table:
    """Returns a row for each memory, best first; marks those that a newer one probably makes outdated."""
    table = Table("score", "cosine", "when", "who", "memory", box=None, pad_edge=False)
    ranks = {memory.memory_id: rank for rank, memory in enumerate(memories, 1)}
    for memory in memories:
        valid, newer = time_valid(memory), memory.outdated_by and ranks.get(memory.outdated_by)
        earlier = f"[earlier, see result {newer}] " if newer else "[earlier] "
        outdated = earlier * (memory.outdated_by is not None)
        text = Text(f"[valid {valid}] " * bool(valid) + outdated + "[flagged] " * memory.flagged)
        text.append(_beginning(printable(memory.content)))
        if explained and memory.terms:
            text.append(f"\n{_reasons(memory.terms)}", style="dim")
        table.add_row(_figure(memory.score), _figure(memory.similarity), f"{memory.timestamp:%Y-%m-%d}",
                      Text(printable(memory.speaker or "")), text)
    return table


def _reasons(terms: Mapping[str, ScoreTerm]) -> str:
    """What made the score, the greatest part first; --json shows also what gave nothing."""
    giving = sorted(terms.items(), key=lambda named: -abs(named[1].contribution))
    return "  ".join(f"{name} {term.contribution:.3f} = {term.weight:.2f} x {term.value:.2f}"
                     for name, term in giving if round(term.contribution, 3))


def _beginning(content: str) -> str:
    left_out = len(content) - SHOWN_CHARS
    return content if left_out <= 0 else f"{content[:SHOWN_CHARS]}… ({left_out:,} more characters: --json)"


def _one_line(content: str) -> str:
    text = " ".join(printable(content).split())
    return text if len(text) <= LISTED_CHARS else f"{text[:LISTED_CHARS]}…"


def _page(page: ListResult) -> Table:
    identity = Column("memory_id", no_wrap=True, min_width=36)
    table = Table(identity, "layer", "when", "who", "memory", box=None, pad_edge=False)
    for record in page.memories:
        mark = "[superseded] " * (record.superseded_by is not None) + "[flagged] " * record.flagged
        table.add_row(str(record.memory_id), record.memory_type.value, f"{record.timestamp:%Y-%m-%d}",
                      Text(printable(record.speaker or "")), Text(mark + _one_line(record.content)))
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
