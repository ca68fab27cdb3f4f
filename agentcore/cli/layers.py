"""layers show, set: how an agent's layers forget."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from agentcore.cli import options
from agentcore.cli.app import MEMORIES, examples, group, say, show
from agentcore.cli.calls import ask
from agentcore.cli.times import seconds_or_none
from agentcore.memory.models import MemoryType
from agentcore.memory.params.layers import ConfigureParams, LayerRules, SettingsParams, SettingsResult

layers = group("layers", MEMORIES, "agentcore layers show", "agentcore layers set episodic --ttl 15d")


@layers.command("show", epilog=examples("agentcore layers show", "agentcore layers show --json"))
@options.client
def show_rules(
    context: typer.Context,
) -> None:
    """The rules of the agent; what is set for it alone has a star."""
    result = ask(context, lambda memory: memory.settings(SettingsParams()))
    _print(context, result)


@layers.command("set", epilog=examples(
    "agentcore layers set episodic --ttl 15d --extend-after-uses 10 --token $ADMIN_TOKEN",
    "agentcore layers set semantic --capacity 50000 --token $ADMIN_TOKEN",
    "agentcore layers set episodic --reset --token $ADMIN_TOKEN",
))
@options.client
def set_rules(
    context: typer.Context,
    layer: Annotated[MemoryType, typer.Argument(help="Which layer.", show_default=False)],
    ttl_seconds: Annotated[int | None, typer.Option(
        "--ttl", parser=seconds_or_none, metavar="TIME",
        help="What is stored without a time to live gets this one: 24h, 15d, 1y; 0 for ever.")] = None,
    extend_after_uses: Annotated[int | None, typer.Option(
        help="Used so often within its life, a memory gets its time again; 0: never.")] = None,
    capacity: Annotated[int | None, typer.Option(help="Memories it holds; 0: unlimited.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="First back to what the service has.")] = False,
) -> None:
    """Give one layer of the agent rules of its own; needs a token with the scope memory:admin."""
    rules = options.given(context, LayerRules)
    if reset:
        rules = LayerRules.model_validate(
            {**dict.fromkeys(LayerRules.model_fields), **rules.model_dump(exclude_unset=True)})
    if not rules.model_fields_set:
        raise typer.BadParameter("give --ttl, --extend-after-uses, --capacity or --reset", ctx=context)
    params = ConfigureParams(layers={layer: rules})
    _print(context, ask(context, lambda memory: memory.configure(params)))


def _print(context: typer.Context, result: SettingsResult) -> None:
    if options.printed_as_json(context, result):
        return
    show(_table(result))
    for warning in result.warnings:
        if warning.startswith("layers"):
            say(warning)


def _table(result: SettingsResult) -> Table:
    table = Table("layer", "lives", "again after uses", "capacity", box=None, pad_edge=False)
    for layer, rules in result.layers.items():
        own = result.own.get(layer, LayerRules())
        values = (rules.ttl_seconds, rules.extend_after_uses, rules.capacity)
        names = ("ttl_seconds", "extend_after_uses", "capacity")
        table.add_row(layer.value, *(
            _shown(name, value or 0) + ("*" if getattr(own, name) is not None else "")
            for name, value in zip(names, values, strict=True)))
    return table


def _shown(name: str, value: int) -> str:
    if value == 0:
        return {"ttl_seconds": "for ever", "extend_after_uses": "never", "capacity": "unlimited"}[name]
    return f"{value:,} s" if name == "ttl_seconds" else f"{value:,}"
