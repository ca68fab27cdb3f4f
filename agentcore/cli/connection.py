"""Tokens created on this machine, and the secret that signs them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime

from agentcore.auth import mint_token
from agentcore.cli.app import say
from agentcore.config import Settings
from agentcore.embedded import Home, default_home
from agentcore.errors import ConfigurationError


def token_for(settings: Settings, agent_id: str, scopes: Sequence[str], ttl_seconds: int, *,
              make_home: bool = False, users: Sequence[str | None] = ()) -> str:
    """A fresh token for an agent, noted in the home; raises ConfigurationError where there is no secret."""
    token = mint_token(_secret(settings, make_home=make_home), agent_id, scopes, ttl_seconds,
                       issuer=settings.jwt_issuer, audience=settings.jwt_audience, users=users)
    _note_minting(Home(settings.agentcore_home or default_home()), agent_id, scopes, ttl_seconds, users)
    return token


def _note_minting(
    home: Home, agent_id: str, scopes: Sequence[str], ttl_seconds: int, users: Sequence[str | None]
) -> None:
    if not home.path.is_dir():
        return
    note = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "user_id": os.geteuid(),
            "agent_id": agent_id, "scopes": list(scopes), "ttl_seconds": ttl_seconds,
            **({"users": list(users)} if users else {})}
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
