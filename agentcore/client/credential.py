"""The bearer token of a client: asked for when first needed, and again when the service refuses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable

from agentcore.errors import AuthenticationFailed

TokenSource = str | Callable[[], str | Awaitable[str]]


class Credential:
    """Where the token comes from; `renewable` where it can be asked for again."""

    def __init__(self, source: TokenSource) -> None:
        if isinstance(source, str):
            _checked(source)
        elif not callable(source):
            raise TypeError(f"token is a JWT or a callable that gives one, not a {type(source).__name__}")
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

    async def _fetch(self) -> object:
        if isinstance(self._source, str):
            return self._source
        given = self._source()
        return await given if isawaitable(given) else given


def _checked(token: object) -> str:
    if not isinstance(token, str):
        raise AuthenticationFailed(f"What gives the token gave a {type(token).__name__}, not a text.")
    stripped = token.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise AuthenticationFailed("The token is not a JWT: it is empty, or holds characters no token has.")
    return stripped
