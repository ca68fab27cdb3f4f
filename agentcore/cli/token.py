"""token: makes what opens one agent's memory."""

from __future__ import annotations

from typing import Annotated

import typer

from agentcore.cli import options
from agentcore.cli.app import SERVICE, app, examples
from agentcore.cli.calls import DEFAULT_SCOPES
from agentcore.cli.connection import token_for
from agentcore.cli.times import seconds
from agentcore.config import load_settings
from agentcore.memory.api import SCOPES, Scope

DAY_SECONDS = 86_400


def _scope(text: str) -> Scope:
    for scope in SCOPES:
        if text in (scope, scope.removeprefix("memory:")):
            return scope
    raise typer.BadParameter(f"{text!r} is none of {', '.join(SCOPES)}")


@app.command(rich_help_panel=SERVICE, epilog=examples(
    "agentcore token --agent my-agent",
    "agentcore token --agent reader --scope memory:read --ttl 30d",
    "export AGENTCORE_TOKEN=$(agentcore token --agent my-agent)",
))
@options.with_json
def token(
    context: typer.Context,
    agent: Annotated[str, typer.Option("--agent", metavar="ID", help="Whose memory it opens.")],
    scopes: Annotated[list[str] | None, typer.Option(
        "--scope", parser=_scope, metavar="SCOPE",
        help="memory:read, memory:write or memory:admin; may be repeated. Absent: read and write.")] = None,
    ttl: Annotated[int | None, typer.Option(
        "--ttl", parser=seconds, metavar="TIME",
        help="How long it is valid: 3600, 15m, 24h (if absent), 30d, 1y.")] = None,
    new: Annotated[bool, typer.Option(
        "--new", help="Make the secret where no service ever ran: one started there later takes the token."
    )] = False,
) -> None:
    """Print a token that opens one agent's memory; nothing else goes to stdout.

    It is made with JWT_SECRET_KEY, else with the secret of the embedded
    service's home; where none is there yet, only with --new.
    """
    settings = load_settings()
    made = token_for(settings, agent, scopes or DEFAULT_SCOPES, ttl or DAY_SECONDS, make_home=new)
    if not options.printed_as_json(context, {"token": made, "agent_id": agent}):
        typer.echo(made)
