"""token: creates tokens for one agent's memory. rotate-secret: replaces the secret that signs them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from agentcore.auth import mint_token
from agentcore.cli import options
from agentcore.cli.app import app, fail, say
from agentcore.cli.calls import DEFAULT_SCOPES
from agentcore.config import Settings, load_settings
from agentcore.embedded import Home, default_home
from agentcore.errors import ConfigurationError
from agentcore.memory.api import SCOPES, Scope
from agentcore.structured_settings import new_secret, read_secrets


def token_for(
    settings: Settings,
    agent_id: str,
    scopes: Sequence[str],
    ttl_seconds: int,
    *,
    make_home: bool = False,
    users: Sequence[str | None] = (),
) -> str:
    """Creates a token and logs it in the home. Raises ConfigurationError if there is no secret."""
    token = mint_token(
        signing_secret_at_hand(settings, make_home=make_home),
        agent_id,
        scopes,
        ttl_seconds,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        users=users,
    )
    _note_minting(Home(settings.agentcore_home or default_home()), agent_id, scopes, ttl_seconds, users)
    return token


def _note_minting(
    home: Home, agent_id: str, scopes: Sequence[str], ttl_seconds: int, users: Sequence[str | None]
) -> None:
    if not home.path.is_dir():
        return
    note = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "user_id": os.geteuid(),
        "agent_id": agent_id,
        "scopes": list(scopes),
        "ttl_seconds": ttl_seconds,
        **({"users": list(users)} if users else {}),
    }
    home.append(home.directory(home.log) / "tokens.jsonl", json.dumps(note))


def signing_secret_at_hand(settings: Settings, *, make_home: bool = False) -> str:
    """Returns the secret of the service's tokens. Raises ConfigurationError if it is not available here."""
    if settings.jwt_algorithm != "HS256":
        raise ConfigurationError(
            [
                f"JWT_ALGORITHM={settings.jwt_algorithm}: tokens come from whoever holds the private key of "
                "JWT_JWKS_URL. Ask there for one, and set AGENTCORE_TOKEN."
            ]
        )
    if settings.jwt_secret_key is not None:
        return settings.jwt_secret_key.get_secret_value()
    home = Home(settings.agentcore_home or default_home())
    # A service on an external database uses JWT_SECRET_KEY, never the home's secret.
    makes_one = make_home and settings.database_url is None
    with home.startup_errors():
        kept = (home.secrets / "jwt").exists()
    if not kept and not makes_one:
        raise ConfigurationError(
            [
                f"No secret to make a token with: {home.path} holds none. Set AGENTCORE_TOKEN to a token of the "
                "service, JWT_SECRET_KEY to its secret, or AGENTCORE_HOME to its home on this machine. Before "
                "the first start of a service there, agentcore token --new makes the secret."
            ]
        )
    if not kept:
        say(f"made a new secret in {home.path}: only a service with this home accepts its tokens")
    return home.secret("jwt")


DAY_SECONDS = 86_400


def _scope(text: str) -> Scope:
    for scope in SCOPES:
        if text in (scope, scope.removeprefix("memory:")):
            return scope
    raise typer.BadParameter(f"{text!r} is none of {', '.join(SCOPES)}")


@app.command(
    "token",
    "agentcore token --agent my-agent",
    "agentcore token --agent my-agent --user anna --shared",
    "agentcore token --agent reader --scope memory:read --ttl 30d",
    "export AGENTCORE_TOKEN=$(agentcore token --agent my-agent)",
)
@options.with_json
def token(
    context: typer.Context,
    agent: Annotated[str, typer.Option("--agent", metavar="ID", help="Whose memory it opens.")],
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            parser=_scope,
            metavar="SCOPE",
            help="memory:read, memory:write or memory:admin; may be repeated. Absent: read and write.",
        ),
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option("--user", metavar="ID", help="Bind the token to this user's memories; may be repeated."),
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Bind the token to the memories without a user, or add them to --user.")
    ] = False,
    ttl: Annotated[
        int | None,
        typer.Option(
            "--ttl",
            parser=options.seconds,
            metavar="TIME",
            help="How long it is valid: 3600, 15m, 24h (if absent), 30d, 1y.",
        ),
    ] = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Create the secret in a new home; a service started there later accepts the token."),
    ] = False,
) -> None:
    """Print a token that opens one agent's memory; nothing else goes to stdout.

    It is made with JWT_SECRET_KEY, else with the secret of the embedded
    service's home; where none is there yet, only with --new.
    """
    settings = load_settings()
    made = token_for(
        settings,
        agent,
        scopes or DEFAULT_SCOPES,
        ttl or DAY_SECONDS,
        make_home=new,
        users=[*(users or ()), *([None] if shared else ())],
    )
    if not options.printed_as_json(context, {"token": made, "agent_id": agent}):
        typer.echo(made)


@app.command("rotate-secret", "agentcore rotate-secret", "agentcore rotate-secret --drop-old")
@options.with_json
def rotate_secret(
    context: typer.Context,
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Make none: remove all but the newest secret; their tokens end.")
    ] = False,
) -> None:
    """Make a new secret for tokens in the home; older tokens stay valid.

    Restart the service afterwards. Once the old tokens have expired or were
    replaced, run it with --drop-old and restart again.
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
