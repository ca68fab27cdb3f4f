"""Connection to one service, and the bearer token."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx
from anyio import to_thread

from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    ClientClosed,
    ConfigurationError,
    DependencyUnavailable,
    NotAuthorised,
    RateLimited,
    TooLarge,
    from_wire,
)

ENDPOINT = "/api/v1/jsonrpc"
Body = Mapping[str, Any]
# The request was not sent, so even a call that is not idempotent may be retried.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_USER_INFO = re.compile(r"(\w+://)?[^/?#]*@")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


# Sends a JSON-RPC request with a token and a traceparent; returns its `result` or raises its error.
Send = Callable[[Body, str, str | None], Awaitable[Any]]


class Connection:
    def __init__(self, url: str, *, timeout_seconds: float, transport: httpx.AsyncBaseTransport | None = None) -> None:
        base = url.rstrip("/").removesuffix(ENDPOINT)
        if _USER_INFO.match(base):
            # httpx would send them instead of the token, and logs and receipts would contain them.
            raise ConfigurationError(
                ["The service's URL names a user or a password: leave it out; the token alone says who asks."]
            )
        if not base.startswith(("http://", "https://")):
            raise ConfigurationError([f"The service's URL starts with http:// or https:// (got {url!r})."])
        self.url = base
        self._timeout_seconds = timeout_seconds
        # A proxy of the environment is for other hosts: it cannot reach this machine's loopback.
        direct = {f"all://{host}": None for host in _LOOPBACK} if transport is None else None
        try:
            self._http = httpx.AsyncClient(base_url=base, timeout=timeout_seconds, transport=transport, mounts=direct)
        except httpx.InvalidURL as cause:
            raise ConfigurationError([f"The service's URL {url!r} is not a URL: {cause}."]) from cause

    async def close(self) -> None:
        """Closes the connections; later requests raise ClientClosed."""
        await self._http.aclose()

    def must_be_open(self) -> None:
        """Raises ClientClosed if it is closed."""
        if self._http.is_closed:
            raise ClientClosed

    async def send(self, body: Body, token: str, traceparent: str | None) -> Any:
        """Returns the result of one call; raises its error."""
        return result_of(await self.post(dict(body), token, traceparent), self.url)

    async def post(self, payload: Any, token: str, traceparent: str | None) -> httpx.Response:
        """Returns the service's response; raises DependencyUnavailable if there is none."""
        self.must_be_open()
        headers = {"Authorization": f"Bearer {token}"}
        if traceparent is not None:
            headers["traceparent"] = traceparent
        try:
            return await self._http.post(ENDPOINT, json=payload, headers=headers)
        except httpx.TimeoutException as cause:
            raise DependencyUnavailable(
                f"The service at {self.url} did not answer within {self._timeout_seconds:g} s."
            ) from cause
        except httpx.RequestError as cause:
            reason = str(cause) or type(cause).__name__
            if not isinstance(cause, NOT_SENT):
                raise DependencyUnavailable(
                    f"No whole answer came from {self.url} ({reason}): the connection was lost on the way."
                ) from cause
            raise DependencyUnavailable(
                f"No service answers at {self.url} ({reason}). fix: start `agentcore serve` there, or set "
                "the address: AGENTCORE_URL for the commands and open_memory(), else the client's url."
            ) from cause


# For responses that are not JSON-RPC: a proxy sent them, the service was not reached.
_BY_STATUS: Mapping[int, type[AgentCoreError]] = {
    401: AuthenticationFailed,
    403: NotAuthorised,
    413: TooLarge,
    429: RateLimited,
}


def result_of(response: httpx.Response, url: str) -> Any:
    """Returns the `result` of a response; raises its error, also if it is not JSON-RPC."""
    answer = _json(response)
    found = _outcome(answer if isinstance(answer, dict) else {}, response, url)
    if isinstance(found, AgentCoreError):
        raise found
    return found


def outcomes_of(response: httpx.Response, url: str, ids: Sequence[int]) -> list[Any]:
    """Returns for each id the result or the error. Raises the error of the whole batch."""
    answers = _json(response)
    if not isinstance(answers, list):
        raise_for = _outcome(answers if isinstance(answers, dict) else {}, response, url)
        raise raise_for if isinstance(raise_for, AgentCoreError) else _status_error(response, url)
    by_id = {answer.get("id"): answer for answer in answers if isinstance(answer, dict)}
    return [_outcome(by_id.get(each, {}), response, url) for each in ids]


def _outcome(answer: dict[str, Any], response: httpx.Response, url: str) -> Any:
    if "result" in answer:
        return answer["result"]
    error = answer.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return _status_error(response, url)
    data = dict(error["data"]) if isinstance(error.get("data"), dict) else {}
    if (seconds := _retry_after_seconds(response)) is not None:
        data.setdefault("retry_after_seconds", seconds)
    return from_wire(error["code"], str(error.get("message") or ""), data)


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _status_error(response: httpx.Response, url: str) -> AgentCoreError:
    known = _BY_STATUS.get(response.status_code, DependencyUnavailable)
    doubt = "." if known is not DependencyUnavailable or response.is_server_error else (": is it the memory service?")
    seconds = _retry_after_seconds(response)
    return known(
        f"{url} answered HTTP {response.status_code} without a JSON-RPC answer{doubt}",
        data=None if seconds is None else {"retry_after_seconds": seconds},
    )


def _retry_after_seconds(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


TokenSource = str | Callable[[], str | Awaitable[str]]


class Credential:
    """Provides the token; `renewable` if its source can be called again."""

    def __init__(self, source: TokenSource, timeout_seconds: float) -> None:
        if isinstance(source, str):
            _checked(source)
        elif not callable(source):
            raise TypeError(f"token is a JWT or a callable that gives one, not a {type(source).__name__}")
        self._source = source
        self._timeout_seconds = timeout_seconds
        self._token: str | None = None
        self._asking: asyncio.Task[str] | None = None
        self.renewable = callable(source)

    async def token(self, refused: str | None = None) -> str:
        """Returns the token; `refused` is the one that the service refused.

        Raises AuthenticationFailed, or DependencyUnavailable if its source fails.
        """
        if self._token is not None and self._token != refused:
            return self._token
        if isinstance(self._source, str):
            return _checked(self._source)
        # One fetch shared by all callers: canceling one caller does not cancel it for the others.
        asking = self._asking or self._begin(self._source)
        await asyncio.wait({asking})
        if asking.cancelled():
            raise DependencyUnavailable(self._late())
        failure = asking.exception()
        if failure is None:
            return asking.result()
        if isinstance(failure, AgentCoreError) or not isinstance(failure, Exception):
            raise failure
        raise DependencyUnavailable(f"The source of the token failed with {type(failure).__name__}.") from failure

    def _begin(self, source: Callable[[], Any]) -> asyncio.Task[str]:
        self._asking = asyncio.create_task(self._fetch(source))
        self._asking.add_done_callback(self._end)
        return self._asking

    def _end(self, asked: asyncio.Task[str]) -> None:
        self._asking = None
        if not asked.cancelled() and asked.exception() is None:
            self._token = asked.result()

    async def _fetch(self, source: Callable[[], Any]) -> str:
        try:
            async with asyncio.timeout(self._timeout_seconds) as patience:
                # A source that is not async may block on I/O: it must not block the event loop.
                given = await to_thread.run_sync(source, abandon_on_cancel=True)
                return _checked(await given if inspect.isawaitable(given) else given)
        except TimeoutError as cause:
            if not patience.expired():  # raised by the source, not by this timeout
                raise
            raise DependencyUnavailable(self._late()) from cause

    def _late(self) -> str:
        return f"The source of the token gave none within {self._timeout_seconds:g} s."


def _checked(token: Any) -> str:
    if not isinstance(token, str):
        raise AuthenticationFailed(f"The token is not a JWT: what gives it gave a {type(token).__name__}, not a text.")
    stripped = token.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise AuthenticationFailed("The token is not a JWT: it is empty, or holds characters no token has.")
    return stripped
