"""Looks at AGENTCORE_TOKEN as the service would, as far as that is possible from here."""

from __future__ import annotations

import time

import jwt

from agentcore.auth import SharedSecret, TokenRules, TokenVerifier
from agentcore.config import Settings
from agentcore.doctor import verdicts
from agentcore.doctor.verdicts import Check
from agentcore.embedded import Home
from agentcore.errors import AuthenticationFailed

ELSEWHERE = "The token's signature is wrong."


async def own_token(settings: Settings, home: Home) -> Check:
    """Its verdict; the signature alone is not looked at where no secret is at hand."""
    if settings.agentcore_token is None:
        return Check("token", None, "AGENTCORE_TOKEN is not set; commands need it, or --agent")
    token = settings.agentcore_token.get_secret_value()
    try:
        secret = _secret(settings, home)
        if secret is not None:
            rules = TokenRules("HS256", settings.jwt_issuer, settings.jwt_audience)
            await TokenVerifier(rules, SharedSecret(secret)).verify(f"Bearer {token}")
        claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": True})
    except AuthenticationFailed as refused:
        more = f" It is of another home than {home.path}." if refused.message == ELSEWHERE else ""
        return verdicts.token(refused.message + more, "", "", 0)
    except jwt.ExpiredSignatureError:
        return verdicts.token("The token has expired.", "", "", 0)
    except jwt.PyJWTError:
        return verdicts.token("The token is malformed.", "", "", 0)
    scopes = claims.get("scope") or ""
    told = scopes if isinstance(scopes, str) else " ".join(map(str, scopes))
    return verdicts.token(None, str(claims.get("sub")), told, float(claims.get("exp", 0)) - time.time())


def _secret(settings: Settings, home: Home) -> str | None:
    if settings.jwt_algorithm != "HS256":
        return None
    if settings.jwt_secret_key is not None:
        return settings.jwt_secret_key.get_secret_value()
    if settings.database_url is not None or not (home.secrets / "jwt").exists():
        return None
    return home.secret("jwt")
