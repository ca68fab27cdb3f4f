"""token: makes what opens one agent's memory."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agentcore.cli import options
from agentcore.cli.app import SERVICE, app, examples, fail, say
from agentcore.cli.calls import DEFAULT_SCOPES
from agentcore.cli.connection import signing_secret_at_hand, token_for
from agentcore.cli.times import seconds
from agentcore.config import load_settings
from agentcore.embedded import Home, default_home
from agentcore.memory.api import SCOPES, Scope
from agentcore.token_secrets import new_secret, read_secrets

DAY_SECONDS = 86_400


def _scope(text: str) -> Scope:
    for scope in SCOPES:
        if text in (scope, scope.removeprefix("memory:")):
            return scope
    raise typer.BadParameter(f"{text!r} is none of {', '.join(SCOPES)}")


@app.command(rich_help_panel=SERVICE, epilog=examples(
    "agentcore token --agent my-agent",
    "agentcore token --agent my-agent --user anna --shared",
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
    users: Annotated[list[str] | None, typer.Option(
        "--user", metavar="ID",
        help="Bind the token to this user's memories; may be repeated.")] = None,
    shared: Annotated[bool, typer.Option(
        "--shared", help="Bind the token to the memories without a user, or add them to --user.")] = False,
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
    made = token_for(settings, agent, scopes or DEFAULT_SCOPES, ttl or DAY_SECONDS, make_home=new,
                     users=[*(users or ()), *([None] if shared else ())])
    if not options.printed_as_json(context, {"token": made, "agent_id": agent}):
        typer.echo(made)


@app.command("rotate-secret", rich_help_panel=SERVICE, epilog=examples(
    "agentcore rotate-secret", "agentcore rotate-secret --drop-old"))
@options.with_json
def rotate_secret(
    context: typer.Context,
    drop_old: Annotated[bool, typer.Option(
        "--drop-old", help="Make none: remove all but the newest secret; their tokens end.")] = False,
) -> None:
    """Make a new secret for tokens in the home; tokens of the old ones stay valid.

    Restart the service afterwards. Once the old tokens have expired or were
    replaced, run it with --drop-old and restart again. Receipts of erasures
    are not affected.
    """
    settings = load_settings()
    if settings.jwt_secret_key is not None:
        fail('JWT_SECRET_KEY is set: change it to ["new secret", "old secret"], later to the new one')
    kept = read_secrets(signing_secret_at_hand(settings))
    secrets = kept[:1] if drop_old else [new_secret(), *kept]
    home = Home(settings.agentcore_home or default_home())
    home.write(home.secrets / "jwt", json.dumps(secrets))
    if not options.printed_as_json(context, {"home": str(home.path), "secrets": len(secrets)}):
        say(f"{home.path} has {len(secrets)} token secrets, the first signs: restart the service")
