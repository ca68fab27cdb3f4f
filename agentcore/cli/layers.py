"""layers, consolidate, llm: an agent's settings for forgetting, summaries and language models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from agentcore.cli import options
from agentcore.cli.app import app, counted, group, say, show
from agentcore.cli.calls import answer, call
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import ConfigureParams, ConsolidateParams, LayerRules, SettingsResult
from agentcore.summary_rules import SummaryRules

layers = group("layers", "agentcore layers show", "agentcore layers set episodic --ttl 15d")


@layers.command("show", "agentcore layers show", "agentcore layers show --json")
@options.client
def show_rules(context: typer.Context) -> None:
    """Show the agent's rules. A star marks rules of its own."""
    _print_rules(answer(context, MemoryApi.settings))


@layers.command(
    "set",
    "agentcore layers set episodic --ttl 15d --extend-after-uses 10 --token $ADMIN_TOKEN",
    "agentcore layers set semantic --capacity 50000 --token $ADMIN_TOKEN",
    "agentcore layers set episodic --reset --token $ADMIN_TOKEN",
)
@options.client
@options.option("reset", False, "--reset", help="Reset to the service's rules first.")
@options.fields(
    LayerRules,
    ("extend_after_uses", "capacity"),
    extend_after_uses="Number of uses within its TTL that restart a memory's TTL; 0: never.",
    capacity="Maximum number of memories; 0: unlimited.",
)
@options.option(
    "ttl_seconds",
    None,
    "--ttl",
    parser=options.seconds_or_none,
    metavar="TIME",
    help="TTL of memories stored without one: 24h, 15d, 1y; 0: never expire.",
)
def set_rules(
    context: typer.Context, layer: Annotated[MemoryType, typer.Argument(help="The layer.", show_default=False)]
) -> None:
    """Set the agent's own rules for a layer; requires a token with the scope memory:admin."""
    rules = options.given(context, LayerRules)
    if context.params["reset"]:
        rules = LayerRules.model_validate(
            {**dict.fromkeys(LayerRules.model_fields), **rules.model_dump(exclude_unset=True)}
        )
    if not rules.model_fields_set:
        raise typer.BadParameter("pass --ttl, --extend-after-uses, --capacity or --reset", ctx=context)
    params = ConfigureParams(layers={layer: rules})
    _print_rules(answer(context, MemoryApi.configure, params))


def _print_rules(result: SettingsResult) -> None:
    show(("layer", "TTL", "restarts after uses", "capacity"), _rows(result))
    for warning in result.warnings:
        if warning.startswith("layers"):
            say(warning)


def _rows(result: SettingsResult) -> Iterator[Sequence[str]]:
    for layer, rules in result.layers.items():
        own = result.own.get(layer, LayerRules())
        cells = {
            "ttl_seconds": f"{rules.ttl_seconds:,} s" if rules.ttl_seconds else "never expire",
            "extend_after_uses": f"{rules.extend_after_uses:,}" if rules.extend_after_uses else "never",
            "capacity": f"{rules.capacity:,}" if rules.capacity else "unlimited",
        }
        stars = ("" if getattr(own, name) is None else "*" for name in cells)
        yield layer.value, *(cell + star for cell, star in zip(cells.values(), stars, strict=True))


models = group("llm", "agentcore llm show", "agentcore llm set --facts on --summaries llm")


@models.command("show", "agentcore llm show", "agentcore llm show --json")
@options.client
def show_llm(context: typer.Context) -> None:
    """Show the agent's settings for language models and today's use of them."""
    _print_llm(context, call(context, MemoryApi.settings))


@models.command(
    "set",
    "agentcore llm set --facts on --token $ADMIN_TOKEN",
    "agentcore llm set --summaries llm --trigger user_turns --user-turns 10 --token $ADMIN_TOKEN",
    "agentcore llm set --summaries extractive --period week --token $ADMIN_TOKEN",
    "agentcore llm set --summaries none --token $ADMIN_TOKEN",
)
@options.client
@options.fields(
    SummaryRules,
    ("provider", "trigger", "user_turns", "message_count", "inactivity_seconds", "period", "max_tokens", "prompt"),
    defaults=False,
    provider="Of sessions: extractive, llm, compaction_aware, passthrough, none, or the service's default.",
    trigger="user_turns, message_count, inactivity, compaction or session_end.",
    user_turns="Number of user turns, for that trigger.",
    message_count="Number of messages, for that trigger.",
    period="day, week or month: also summarize the session summaries of each.",
    max_tokens="Maximum of one summary.",
    prompt="Instructions for summaries by a model.",
)
@options.fields(ConfigureParams, ("extract_facts",))
def set_llm(context: typer.Context) -> None:
    """Change the agent's settings for language models; requires the scope memory:admin."""
    facts, provider = context.params["extract_facts"], context.params["provider"]
    rules = options.given(context, SummaryRules)
    if rules.model_fields_set and provider is None:
        raise typer.BadParameter("pass --summaries with its other options", ctx=context)
    if facts is None and provider is None:
        raise typer.BadParameter("pass --facts or --summaries", ctx=context)
    params = ConfigureParams(extract_facts=facts, summaries=None if provider is None else rules)
    _print_llm(context, call(context, MemoryApi.configure, params))


def _print_llm(context: typer.Context, result: SettingsResult) -> None:
    shown = {"extract_facts", "summaries", "llm_use", "warnings"}
    if options.printed_as_json(context, result.model_dump(mode="json", include=shown)):
        return
    rules, used = result.summaries, result.llm_use
    typer.echo(f"facts: {'on' if result.extract_facts else 'off'}")
    if rules is None:
        typer.echo("summaries: at a session's end, by extraction")
    else:
        by_period = "" if rules.period is None else f", by {rules.period}"
        typer.echo(f"summaries: {rules.provider}, {_when(rules)}{by_period}, {rules.max_tokens} tokens each")
        if rules.prompt is not None:
            typer.echo(f"prompt: {' '.join(rules.prompt.split())}")
    budget = f" of {used.tokens_a_day:,}" if used.tokens_a_day else ""
    typer.echo(
        f"today: {used.requests:,} requests, {used.tokens:,}{budget} tokens, {used.cost:.4f}, {used.refused:,} refused"
    )
    for warning in result.warnings:
        say(warning)


def _when(rules: SummaryRules) -> str:
    numbers = {
        "user_turns": f" {rules.user_turns}",
        "message_count": f" {rules.message_count}",
        "inactivity": f" {rules.inactivity_seconds} s",
    }
    return rules.trigger + numbers.get(rules.trigger, "")


@app.command(
    "consolidate",
    "agentcore consolidate --dry-run                      the clusters and their summaries",
    "agentcore consolidate --archive-sources --after-days 90",
    "agentcore consolidate --automatic on --token $ADMIN_TOKEN",
)
@options.client
@options.fields(ConfigureParams, ("consolidate",))
@options.fields(
    ConsolidateParams,
    ("dry_run", "again", "archive_sources", "archive_sources_after_days"),
    dry_run="Say what would be made.",
    again="Look at every episodic memory again.",
    archive_sources="Then archive old sources whose summary stands.",
    archive_sources_after_days="How old a source must be for that.",
)
def consolidate(context: typer.Context) -> None:
    """Summarize clusters of similar episodic memories, with links to their sources."""
    if context.params["consolidate"] is not None:
        changed = ConfigureParams(consolidate=context.params["consolidate"])
        settings = answer(context, MemoryApi.configure, changed)
        say(f"consolidation in the background is {'on' if settings.consolidate else 'off'}")
        return
    done = answer(context, MemoryApi.consolidate)
    for cluster in done.clusters:
        typer.echo(f"{cluster.memory_id or 'would be made'}: of {len(cluster.source_ids)} memories")
        typer.echo("  " + cluster.summary.replace("\n", "\n  "))
    say(
        f"{counted(len(done.clusters), 'summary', 'summaries')} of {done.looked_at_count} looked at, "
        f"{done.archived_count} archived"
    )
    young = sum(each.count for each in done.receipt.dropped if each.reason == "too_young")
    if young:
        say(f"{counted(young, 'memory is', 'memories are')} younger than a day, and left for later")
    if not done.complete:
        say("There is more: run the same again for the rest, without --again.")
