"""config and version: settings and version of a service started here."""

from __future__ import annotations

import re
from typing import Any

import typer
from pydantic import SecretStr
from rich.table import Table
from rich.text import Text

from agentcore import __version__
from agentcore.cli import options
from agentcore.cli.app import SERVICE, app, examples, show
from agentcore.config import Settings, load_settings

_USER_INFO = re.compile(r"(?<=://)[^/?#@]*@")
HIDDEN = "(set)"


@app.command(rich_help_panel=SERVICE, epilog=examples("agentcore version", "agentcore version --json"))
@options.with_json
def version(context: typer.Context) -> None:
    """Print the version."""
    if not options.printed_as_json(context, {"version": __version__}):
        typer.echo(f"agentcore {__version__}")


@app.command(rich_help_panel=SERVICE, epilog=examples("agentcore config", "agentcore config --json"))
@options.with_json
def config(context: typer.Context) -> None:
    """Print the settings of a service started here, without secrets.

    They are those of the environment and of the file .env of this directory;
    one that is not the default has a star.
    """
    settings = load_settings()
    values = {name.upper(): _public(getattr(settings, name)) for name in Settings.model_fields}
    if options.printed_as_json(context, values):
        return
    table = Table("setting", "value", box=None, pad_edge=False)
    for name, value in values.items():
        mark = "*" if name.lower() in settings.model_fields_set else ""
        table.add_row(f"{name}{mark}", Text("" if value is None else str(value)))
    show(table)


def _public(value: Any) -> Any:
    """Returns the value for JSON, with secrets hidden and without user and password of URLs."""
    if isinstance(value, SecretStr):
        return HIDDEN
    if value is None or isinstance(value, bool | int | float | dict):
        return value
    return _USER_INFO.sub("", str(value))
