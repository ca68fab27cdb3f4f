"""The way to one service: a connection pool, one POST a call, and what failed on the way as our errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

import httpx

from agentcore.client.answers import result_of
from agentcore.errors import ClientClosed, ConfigurationError, DependencyUnavailable

ENDPOINT = "/api/v1/jsonrpc"
Body = Mapping[str, Any]
# The request never left this process, so even a call that must not run twice may be tried again.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_USER_INFO = re.compile(r"(\w+://)?[^/?#]*@")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Sender(Protocol):
    """Sends a JSON-RPC request and gives its result."""

    async def send(self, body: Body, token: str, traceparent: str | None) -> Any:
        """The request's `result`; raises its error."""


class Connection:
    """One service's endpoint, with its connections."""

    def __init__(self, url: str, *, timeout_seconds: float,
                 transport: httpx.AsyncBaseTransport | None = None) -> None:
        base = url.rstrip("/").removesuffix(ENDPOINT)
        if _USER_INFO.match(base):
            # httpx would send them instead of the token, and they would stand in logs and receipts.
            raise ConfigurationError([
                "The service's URL names a user or a password: leave it out; the token alone says who asks."])
        if not base.startswith(("http://", "https://")):
            raise ConfigurationError([f"The service's URL starts with http:// or https:// (got {url!r})."])
        self.url = base
        self._timeout_seconds = timeout_seconds
        # A proxy of the environment is for other hosts: it cannot reach this machine's loopback.
        direct = {f"all://{host}": None for host in _LOOPBACK} if transport is None else None
        try:
            self._http = httpx.AsyncClient(base_url=base, timeout=timeout_seconds, transport=transport,
                                           mounts=direct)
        except httpx.InvalidURL as cause:
            raise ConfigurationError([f"The service's URL {url!r} is not a URL: {cause}."]) from cause

    async def close(self) -> None:
        """Close the connections; what is sent afterwards raises ClientClosed."""
        await self._http.aclose()

    def must_be_open(self) -> None:
        """Raises ClientClosed once it is closed."""
        if self._http.is_closed:
            raise ClientClosed

    async def send(self, body: Body, token: str, traceparent: str | None) -> Any:
        """One call's result; raises its error."""
        return result_of(await self.post(dict(body), token, traceparent), self.url)

    async def post(self, payload: Any, token: str, traceparent: str | None) -> httpx.Response:
        """Whatever the service answers; raises DependencyUnavailable where it does not."""
        self.must_be_open()
        headers = {"Authorization": f"Bearer {token}"}
        if traceparent is not None:
            headers["traceparent"] = traceparent
        try:
            return await self._http.post(ENDPOINT, json=payload, headers=headers)
        except httpx.TimeoutException as cause:
            raise DependencyUnavailable(
                f"The service at {self.url} did not answer within {self._timeout_seconds:g} s.") from cause
        except httpx.RequestError as cause:
            reason = str(cause) or type(cause).__name__
            if not isinstance(cause, NOT_SENT):
                raise DependencyUnavailable(
                    f"No whole answer came from {self.url} ({reason}): the connection was lost on the way."
                ) from cause
            raise DependencyUnavailable(
                f"No service answers at {self.url} ({reason}): does `agentcore serve` run there? "
                "AGENTCORE_URL names another place to the command line.") from cause
