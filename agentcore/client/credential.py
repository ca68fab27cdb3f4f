"""The bearer token of a client: asked for when first needed, and again when the service refuses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agentcore.errors import AuthenticationFailed

TokenSource = str | Callable[[], str | Awaitable[str]]


class Credential:
    """Where the token comes from; `renewable` where it can be asked for again."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._token: str | None = None
        self._lock = asyncio.Lock()
        self.renewable = callable(source)

    async def token(self, refused: str | None = None) -> str:
        """The token to use; `refused` is the one the service did not accept, if any."""
        async with self._lock:
            if self._token is None or self._token == refused:
                self._token = _checked(await self._fetch())
            return self._token

    async def _fetch(self) -> str:
        if isinstance(self._source, str):
            return self._source
        given = self._source()
        return given if isinstance(given, str) else await given


def _checked(token: str) -> str:
    stripped = token.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise AuthenticationFailed("The token is not a JWT: it is empty, or holds characters no token has.")
    return stripped
