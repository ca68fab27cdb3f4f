"""From what was typed and configured to a client, and to the secret that tokens are made with."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import stamina.instrumentation
import typer
from stamina.instrumentation import RetryDetails

from agentcore.auth import mint_token
from agentcore.cli.app import say
from agentcore.client import MemoryClient, TokenSource
from agentcore.config import Settings, load_settings
from agentcore.embedded import Home, default_home
from agentcore.errors import ConfigurationError, RateLimited

OWN_TOKEN_SECONDS = 600
TOLD_WAIT_SECONDS = 1.0
DEFAULT_SCOPES: Sequence[str] = ("memory:read", "memory:write")

ResultT = TypeVar("ResultT")


def token_for(settings: Settings, agent_id: str, scopes: Sequence[str], ttl_seconds: int, *,
              make_home: bool = False, users: Sequence[str | None] = ()) -> str:
    """A fresh token for an agent, noted in the home; raises ConfigurationError where there is no secret."""
    token = mint_token(_secret(settings, make_home=make_home), agent_id, scopes, ttl_seconds,
                       issuer=settings.jwt_issuer, audience=settings.jwt_audience, users=users)
    _note_minting(Home(settings.agentcore_home or default_home()), agent_id, scopes, ttl_seconds)
    return token


def _note_minting(home: Home, agent_id: str, scopes: Sequence[str], ttl_seconds: int) -> None:
    """Whoever mints a token acts for its agent: who did, for whom and how long stands in log/tokens.jsonl."""
    if not home.path.is_dir():
        return
    note = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "user_id": os.geteuid(),
            "agent_id": agent_id, "scopes": list(scopes), "ttl_seconds": ttl_seconds}
    home.append(home.directory(home.log) / "tokens.jsonl", json.dumps(note))


def signing_secret_at_hand(settings: Settings) -> str:
    """The secret of the service's tokens; raises ConfigurationError where it is not here."""
    return _secret(settings, make_home=False)


def _secret(settings: Settings, *, make_home: bool) -> str:
    if settings.jwt_algorithm != "HS256":
        raise ConfigurationError([
            f"JWT_ALGORITHM={settings.jwt_algorithm}: tokens come from whoever holds the private key of "
            "JWT_JWKS_URL. Ask there for one, and set AGENTCORE_TOKEN."])
    if settings.jwt_secret_key is not None:
        return settings.jwt_secret_key.get_secret_value()
    home = Home(settings.agentcore_home or default_home())
    # A service on an external database has a secret of its own setting, never the home's.
    makes_one = make_home and settings.database_url is None
    with home.explained():
        kept = (home.secrets / "jwt").exists()
    if not kept and not makes_one:
        raise ConfigurationError([
            f"No secret to make a token with: {home.path} holds none. Set AGENTCORE_TOKEN to a token of the "
            "service, JWT_SECRET_KEY to its secret, or AGENTCORE_HOME to its home on this machine. Before "
            "the first start of a service there, agentcore token --new makes the secret."])
    if not kept:
        say(f"made a new secret in {home.path}: only a service on this home takes its tokens")
    return home.secret("jwt")


def ask(context: typer.Context, question: Callable[[MemoryClient], Awaitable[ResultT]], *,
        max_attempts: int = 3, timeout_seconds: float = 60.0,
        scopes: Sequence[str] = DEFAULT_SCOPES) -> ResultT:
    """Ask the service that the command's --url, --token and --agent name; `scopes` with --agent."""
    stamina.instrumentation.set_on_retry_hooks([_tell_of_waiting])

    async def asked() -> ResultT:
        client = opened(context, max_attempts=max_attempts, timeout_seconds=timeout_seconds, scopes=scopes)
        async with client:
            return await question(client)

    return asyncio.run(asked())


def _tell_of_waiting(details: RetryDetails) -> None:
    """A rate limit may hold a command up for a minute; what else is tried again is told where it fails."""
    if isinstance(details.caused_by, RateLimited) and details.wait_for >= TOLD_WAIT_SECONDS:
        say(f"the rate limit is reached: trying again in {details.wait_for:.0f} s")


def opened(context: typer.Context, *, max_attempts: int, timeout_seconds: float,
           scopes: Sequence[str] = DEFAULT_SCOPES) -> MemoryClient:
    """A client for the command's --url, --token and --agent, else for the settings."""
    url, token, agent = (context.params.get(name) for name in ("url", "token", "agent"))
    if token is not None and agent is not None:
        raise typer.BadParameter("give either --token or --agent", ctx=context)
    settings = load_settings()
    return MemoryClient(url or settings.agentcore_url, _token_source(settings, token, agent, scopes),
                        max_attempts=max_attempts, timeout_seconds=timeout_seconds)


def _token_source(
    settings: Settings, token: str | None, agent: str | None, scopes: Sequence[str]
) -> TokenSource:
    if token is not None:
        return token
    if agent is not None:
        return lambda: token_for(settings, agent, scopes, OWN_TOKEN_SECONDS)
    if settings.agentcore_token is not None:
        return settings.agentcore_token.get_secret_value()
    raise ConfigurationError([
        "No token: set AGENTCORE_TOKEN (`agentcore token --agent my-agent` prints one), or add "
        "--agent my-agent where the embedded service's home is on this machine."])
