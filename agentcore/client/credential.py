"""The bearer token of a client: asked for when first needed, and again when the service refuses it."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from agentcore.errors import AgentCoreError, AuthenticationFailed, DependencyUnavailable

TokenSource = str | Callable[[], str | Awaitable[str]]


class Credential:
    """Where the token comes from; `renewable` where it can be asked for again."""

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
        """The token to use; `refused` is the one the service did not accept, if any.

        Raises AuthenticationFailed for what is no token, DependencyUnavailable where its source gives none
        within `timeout_seconds`.
        """
        if self._token is not None and self._token != refused:
            return self._token
        if isinstance(self._source, str):
            return _checked(self._source)
        # One question for all who wait: none takes the answer from the others by giving up.
        asking = self._asking or self._begin(self._source)
        await asyncio.wait({asking})
        if asking.cancelled():
            raise DependencyUnavailable(self._late())
        failure = asking.exception()
        if failure is None:
            return asking.result()
        if isinstance(failure, AgentCoreError) or not isinstance(failure, Exception):
            raise failure
        raise DependencyUnavailable(
            f"The source of the token failed with {type(failure).__name__}.") from failure

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
                return _checked(await _given(source))
        except TimeoutError as cause:
            if not patience.expired():  # it is the source that speaks of a time of its own
                raise
            raise DependencyUnavailable(self._late()) from cause

    def _late(self) -> str:
        return f"The source of the token gave none within {self._timeout_seconds:g} s."


async def _given(source: Callable[[], Any]) -> Any:
    # Without `await` it may still wait for a server: not in the way of the event loop.
    given = await _in_thread(source)
    return await given if inspect.isawaitable(given) else given


async def _in_thread(source: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(given: Any, failure: BaseException | None) -> None:
        if answer.done():  # nobody waits any longer
            return
        if failure is None:
            answer.set_result(given)
        else:
            answer.set_exception(failure)

    def call() -> None:
        given: Any = None
        failure: BaseException | None = None
        try:
            given = source()
        except StopIteration as cause:  # which no future takes
            failure = RuntimeError(f"{type(cause).__name__}: it has no more to give")
        except BaseException as cause:
            failure = cause
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, given, failure)

    threading.Thread(target=contextvars.copy_context().run, args=(call,), name="token", daemon=True).start()
    return await answer


def _checked(token: Any) -> str:
    if not isinstance(token, str):
        raise AuthenticationFailed(
            f"The token is not a JWT: what gives it gave a {type(token).__name__}, not a text.")
    stripped = token.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise AuthenticationFailed("The token is not a JWT: it is empty, or holds characters no token has.")
    return stripped
