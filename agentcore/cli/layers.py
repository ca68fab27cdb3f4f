"""layers show, set: how an agent's layers forget."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from agentcore.cli import options
from agentcore.cli.app import MEMORIES, app, examples, out
from agentcore.cli.connection import ask
from agentcore.memory.models import MemoryType
from agentcore.memory.params.layers import ConfigureParams, LayerRules, SettingsParams, SettingsResult

layers = typer.Typer(no_args_is_help=True, help="How layers forget.")
app.add_typer(layers, name="layers", rich_help_panel=MEMORIES)


@layers.callback(epilog=examples("agentcore layers show", "agentcore layers set episodic --ttl 15d"))
def layer() -> None:
    """How an agent's layers forget: time to live, extension by use, capacity."""


@layers.command("show", epilog=examples("agentcore layers show", "agentcore layers show --json"))
def show(
    context: typer.Context,
    as_json: options.AsJson = False,
    url: options.Url = None,
    token: options.Token = None,
    agent: options.Agent = None,
) -> None:
    """What holds for the agent; what is set for it alone bears a star."""
    result = ask(context, lambda memory: memory.settings(SettingsParams()))
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
    else:
        out.print(_table(result))


@layers.command("set", epilog=examples(
    "agentcore layers set episodic --ttl 15d --extend-after-uses 10 --token $ADMIN_TOKEN",
    "agentcore layers set semantic --capacity 50000 --token $ADMIN_TOKEN",
    "agentcore layers set episodic --reset --token $ADMIN_TOKEN",
))
def set_rules(
    context: typer.Context,
    layer: Annotated[MemoryType, typer.Argument(help="Which layer.", show_default=False)],
    ttl_seconds: Annotated[int | None, typer.Option(
        "--ttl", parser=options.seconds_or_none, metavar="TIME",
        help="What is stored without a time of its own lives so long: 24h, 15d; 0 for ever.")] = None,
    extend_after_uses: Annotated[int | None, typer.Option(
        help="Used so often within its life, a memory gets its time again; 0: never.")] = None,
    capacity: Annotated[int | None, typer.Option(help="Memories it holds; 0: unlimited.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="First back to what the service has.")] = False,
    url: options.Url = None,
    token: options.Token = None,
    agent: options.Agent = None,
) -> None:
    """Give one layer of the agent rules of its own; needs a token with the scope memory:admin."""
    rules = options.given(context, LayerRules)
    if reset:
        rules = LayerRules.model_validate(
            {**dict.fromkeys(LayerRules.model_fields), **rules.model_dump(exclude_unset=True)})
    if not rules.model_fields_set:
        raise typer.BadParameter("give --ttl, --extend-after-uses, --capacity or --reset", ctx=context)
    params = ConfigureParams(layers={layer: rules})
    out.print(_table(ask(context, lambda memory: memory.configure(params))))


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
