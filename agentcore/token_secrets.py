"""The secrets of HS256 tokens, as JWT_SECRET_KEY or the home's own file contains them. Pure."""

from __future__ import annotations

import json
import secrets

MIN_SECRET_BYTES = 32
# 32 random hexadecimal digits have fewer less than once in ten million.
MIN_DISTINCT_BYTES = 8
_FIX = "make one with `openssl rand -hex 32`."


def new_secret() -> str:
    """Returns a secret of 256 random bits."""
    return secrets.token_hex(32)


def read_secrets(text: str) -> list[str]:
    """Returns the secrets of a JSON list of texts, else the whole text as the only one.

    The first signs, all verify. Raises ValueError with a fix, which quotes no secret.
    """
    found = _listed(text) if text.lstrip().startswith("[") else [text]
    for number, secret in enumerate(found, 1):
        problem = _problem(secret.encode())
        if problem is not None:
            which = f" ({number} of {len(found)})" if len(found) > 1 else ""
            raise ValueError(f"JWT_SECRET_KEY{which} {problem}: {_FIX}")
    return found


def _listed(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise ValueError(
            'JWT_SECRET_KEY begins with [ and is no JSON list of secrets: write ["new secret", "old secret"].'
        )
    return found


def _problem(secret: bytes) -> str | None:
    if len(secret) < MIN_SECRET_BYTES:
        return f"is shorter than {MIN_SECRET_BYTES} bytes"
    if len(set(secret)) < MIN_DISTINCT_BYTES:
        return f"has fewer than {MIN_DISTINCT_BYTES} different bytes"
    if any(secret[period:] == secret[:-period] for period in range(1, len(secret) // 2 + 1)):
        return "repeats one short pattern"
    return None
