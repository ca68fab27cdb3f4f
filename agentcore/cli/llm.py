"""llm show, set: what language models are used for, and what they cost."""

from __future__ import annotations

from typing import Annotated

import typer

from agentcore.cli import options
from agentcore.cli.app import MEMORIES, examples, group, say
from agentcore.cli.calls import ask
from agentcore.cli.times import seconds_or_none
from agentcore.memory.params.layers import ConfigureParams, SettingsParams, SettingsResult
from agentcore.summary_rules import SummaryRules

models = group("llm", MEMORIES, "agentcore llm show", "agentcore llm set --facts on --summaries llm")


@models.command("show", epilog=examples("agentcore llm show", "agentcore llm show --json"))
@options.client
def show(
    context: typer.Context,
) -> None:
    """What the agent wishes of models, and what they cost it today."""
    result = ask(context, lambda memory: memory.settings(SettingsParams()))
    _tell(context, result)


@models.command("set", epilog=examples(
    "agentcore llm set --facts on --token $ADMIN_TOKEN",
    "agentcore llm set --summaries llm --trigger user_turns --user-turns 10 --token $ADMIN_TOKEN",
    "agentcore llm set --summaries extractive --period week --token $ADMIN_TOKEN",
    "agentcore llm set --summaries none --token $ADMIN_TOKEN",
))
@options.client
def set_wishes(
    context: typer.Context,
    facts: Annotated[str | None, typer.Option(
        metavar="on|off", help="Read new episodic memories for facts.")] = None,
    provider: Annotated[str | None, typer.Option(
        "--summaries", metavar="PROVIDER",
        help="Of sessions: extractive, llm, compaction_aware, passthrough, none, or the service's "
        "default.")] = None,
    trigger: Annotated[str | None, typer.Option(
        help="user_turns, message_count, inactivity, compaction or session_end.")] = None,
    user_turns: Annotated[int | None, typer.Option(help="Of the user, for that trigger.")] = None,
    message_count: Annotated[int | None, typer.Option(help="Messages, for that trigger.")] = None,
    inactivity_seconds: Annotated[int | None, typer.Option(
        "--inactivity", parser=seconds_or_none, metavar="TIME",
        help="Without a message, for that trigger: 30m.")] = None,
    period: Annotated[str | None, typer.Option(
        help="day, week or month: what was summarised of sessions gets a summary for each, too.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Of one summary.")] = None,
    prompt: Annotated[str | None, typer.Option(help="What a model's summaries are to be like.")] = None,
) -> None:
    """Change what models do for the agent; needs a token with the scope memory:admin."""
    if facts not in (None, "on", "off"):
        raise typer.BadParameter("give --facts on or --facts off", ctx=context)
    rules = options.given(context, SummaryRules)
    if rules.model_fields_set and provider is None:
        raise typer.BadParameter("give --summaries with the rest of its rules", ctx=context)
    if facts is None and provider is None:
        raise typer.BadParameter("give --facts or --summaries", ctx=context)
    params = ConfigureParams(
        extract_facts=None if facts is None else facts == "on",
        summaries=rules if provider is not None else None,
    )
    _tell(context, ask(context, lambda memory: memory.configure(params)))


def _tell(context: typer.Context, result: SettingsResult) -> None:
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
    typer.echo(f"today: {used.requests:,} requests, {used.tokens:,}{budget} tokens, {used.cost:.4f}, "
               f"{used.refused:,} refused")
    for warning in result.warnings:
        say(warning)


def _when(rules: SummaryRules) -> str:
    numbers = {
        "user_turns": f" {rules.user_turns}",
        "message_count": f" {rules.message_count}",
        "inactivity": f" {rules.inactivity_seconds} s",
    }
    return rules.trigger + numbers.get(rules.trigger, "")
