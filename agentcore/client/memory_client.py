"""One agent's memory over HTTP: every method of `MemoryApi`, retried if that is safe."""

from __future__ import annotations

import asyncio
import copy
import functools
import itertools
import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import httpx
import stamina
from pydantic import ValidationError

from agentcore.client.connection import NOT_SENT, Body, Connection, Credential, Send, TokenSource, outcomes_of
from agentcore.errors import (
    AuthenticationFailed,
    ConfigurationError,
    DependencyUnavailable,
    InternalError,
    InvalidParams,
    NotReady,
    RateLimited,
    TooLarge,
)
from agentcore.memory.api import EMPTY_RESULTS, UNAVAILABLE, MemoryApi, Method, P, ParamsT, ResultT, degraded_receipt
from agentcore.memory.models import Receipt, Strict, storable_json
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.memories import (
    PruneParams,
    RefusedItem,
    StoreBatchParams,
    StoreBatchResult,
    StoreParams,
    answer_to,
)
from agentcore.memory.params.sessions import AddSessionParams, AddSessionResult

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LONGEST_RETRY_WAIT_SECONDS = 60.0
# Idempotent methods.
_REPEATABLE = ("configure", "consolidate")
logger = logging.getLogger(__name__)
# stamina logs each retry: without logging configured, Python would print that to stderr, without a cause.
logging.getLogger("stamina").addHandler(logging.NullHandler())
MOST_CALLS = 100
# Turns of the event loop without a new call, after which a batch is sent.
QUIET_TURNS = 2

_Key = tuple[str, str | None]
_Waiting = tuple[Body, "asyncio.Future[Any]"]
ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT", StoreBatchResult, AddSessionResult)


def checked_traceparent(traceparent: str | None) -> str | None:
    """Returns it unchanged: the service ignores an invalid one, as W3C's recommendation requires.

    Raises InvalidParams for characters that a header cannot contain.
    """
    if traceparent is not None and not (traceparent.isascii() and traceparent.isprintable()):
        raise InvalidParams("traceparent: holds characters that no header carries")
    return traceparent


def checked_a2a_context(a2a_context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns it as JSON, times as ISO 8601. Raises InvalidParams for values without a JSON form."""
    if a2a_context is None:
        return None
    try:
        carried: dict[str, Any] = storable_json(dict(a2a_context))
    except ValueError as cause:
        raise InvalidParams(f"a2a_context: {cause}") from cause
    return carried


def sendable(items: Sequence[ItemT]) -> list[ItemT]:
    """Returns the valid items, in order."""
    return [item for item in items if not isinstance(item, RefusedItem)]


def whole(items: Sequence[object], answered: AnswerT) -> AnswerT:
    """Adds the results of locally refused items to the service's answer; no success if one is refused.

    Raises InternalError if the service returned fewer or more results than items sent.
    """
    sent = len(sendable(items))
    if len(answered.results) != sent:
        raise InternalError(f"The service answered {len(answered.results)} items of {sent}.")
    given = iter(answered.results)
    results = [answer_to(item) if isinstance(item, RefusedItem) else next(given) for item in items]
    refused = any(answer_to(item).code is not None for item in items if isinstance(item, RefusedItem))
    return answered.model_copy(update={"results": results, "success": answered.success and not refused})


class Batch:
    """Batches calls of adjacent turns of the event loop. Halves and resends a batch that is too large."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: dict[_Key, list[_Waiting]] = {}
        self._deliveries: set[asyncio.Task[None]] = set()

    async def send(self, body: Body, token: str, traceparent: str | None) -> Any:
        """Returns the call's result; raises its error, or the error of the whole batch."""
        self._connection.must_be_open()
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault((token, traceparent), [])
        answer: asyncio.Future[Any] = loop.create_future()
        waiting.append((body, answer))
        if len(waiting) == 1:
            loop.call_soon(self._look, (token, traceparent), 1, QUIET_TURNS)
        return await answer

    def _look(self, key: _Key, seen: int, turns_left: int) -> None:
        waiting = self._waiting[key]
        grew = len(waiting) > seen
        if grew or turns_left:
            left = QUIET_TURNS if grew else turns_left - 1
            asyncio.get_running_loop().call_soon(self._look, key, len(waiting), left)
            return
        del self._waiting[key]
        for first in range(0, len(waiting), MOST_CALLS):
            self._start(waiting[first : first + MOST_CALLS], key)

    def _start(self, calls: Sequence[_Waiting], key: _Key) -> None:
        delivery = asyncio.create_task(self._deliver(calls, key))
        self._deliveries.add(delivery)
        delivery.add_done_callback(functools.partial(self._end, calls))

    def _end(self, calls: Sequence[_Waiting], delivery: asyncio.Task[None]) -> None:
        self._deliveries.discard(delivery)
        failure = None if delivery.cancelled() else delivery.exception()
        for _, answer in calls:
            if delivery.cancelled():
                answer.cancel()
            elif failure is not None:
                _settle(answer, failure)

    async def _deliver(self, calls: Sequence[_Waiting], key: _Key) -> None:
        try:
            outcomes = await self._outcomes([body for body, _ in calls], key)
        except TooLarge as failure:
            if len(calls) > 1:
                half = len(calls) // 2
                self._start(calls[:half], key)
                self._start(calls[half:], key)
                return
            outcomes = [failure]
        for (_, answer), outcome in zip(calls, outcomes, strict=True):
            _settle(answer, outcome)

    async def _outcomes(self, bodies: Sequence[Body], key: _Key) -> list[Any]:
        if len(bodies) == 1:
            return [await self._connection.send(bodies[0], *key)]
        response = await self._connection.post([dict(body) for body in bodies], *key)
        return outcomes_of(response, self._connection.url, [body["id"] for body in bodies])


def _settle(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():  # its caller was canceled
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


class MemoryClient(MemoryApi):
    """One agent's memory over HTTP. Use it as an async context manager.

    `token` is a JWT, or a callable that returns one. The callable is called once more if the service refuses
    the token; if it is not async, it runs in a thread, limited to `timeout_seconds`. A call is retried only
    if it cannot store, change or delete twice; each attempt has `timeout_seconds`. With `fail_open`, a
    search, context or summary is empty if the service does not answer within `timeout_seconds` in total: a
    warning is logged, and the receipt says so. Bad params and tokens still raise.
    """

    def __init__(
        self,
        url: str,
        token: TokenSource,
        *,
        timeout_seconds: float = 30.0,
        max_attempts: int = 3,
        fail_open: bool = False,
        traceparent: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if max_attempts < 1 or timeout_seconds <= 0:
            raise ConfigurationError(
                [f"max_attempts is at least 1 and timeout_seconds above 0, not {max_attempts} and {timeout_seconds}."]
            )
        self._connection = Connection(url, timeout_seconds=timeout_seconds, transport=transport)
        self.url = self._connection.url
        self._send: Send = self._connection.send
        self._credential = Credential(token, timeout_seconds)
        self._timeout_seconds = timeout_seconds
        self._fail_open = fail_open
        self._traceparent = checked_traceparent(traceparent)
        self._a2a_context: dict[str, Any] | None = None
        self._ids = itertools.count(1)
        self._retrying = stamina.AsyncRetryingCaller(
            attempts=max_attempts, timeout=None, wait_initial=0.1, wait_max=5.0, wait_jitter=0.1
        )

    @classmethod
    def in_process(cls, app: ASGIApp, token: TokenSource, **options: Any) -> Self:
        """Returns a client of an application in this process (`create_app(runtime)`), without a socket."""
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        return cls("http://in-process", token, transport=transport, **options)

    @property
    def fails_open_after_seconds(self) -> float | None:
        return self._timeout_seconds if self._fail_open else None

    async def __aenter__(self) -> Self:
        self._connection.must_be_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections; later calls of the client and its views raise ClientClosed."""
        await self._connection.close()

    def traced(self, *, traceparent: str | None = None, a2a_context: Mapping[str, Any] | None = None) -> Self:
        """Returns a view of the client whose calls carry a W3C `traceparent` and an `a2a_context`.

        Shares the connections. Raises InvalidParams for values that a header or JSON cannot contain.
        """
        view = copy.copy(self)
        view._traceparent = checked_traceparent(traceparent)
        view._a2a_context = checked_a2a_context(a2a_context)
        return view

    def batched(self) -> Self:
        """Returns a view of the client that batches concurrent calls (`asyncio.gather`) as JSON-RPC."""
        view = copy.copy(self)
        view._send = Batch(self._connection).send
        return view

    async def call(self, method: Method[P, ParamsT, ResultT], params: ParamsT) -> ResultT:
        if not isinstance(params, StoreBatchParams | AddSessionParams):
            return await self._sent(method, params, _is_repeatable(method, params))
        self._connection.must_be_open()
        field, key = (
            ("items", "idempotency_key") if isinstance(params, StoreBatchParams) else ("messages", "message_id")
        )
        given: Sequence[Any] = getattr(params, field)
        items = sendable(given)
        keyed = all(getattr(item, key) is not None for item in items)
        sent: Any = params.model_copy(update={field: items})
        answer: Any = await self._sent(method, sent, keyed) if items else _nothing_sent(params)
        return cast(ResultT, whole(given, answer))

    async def _sent(self, method: Method[P, ParamsT, ResultT], params: ParamsT, safe: bool) -> ResultT:
        # Only the fields that the caller set: defaults are the service's.
        body: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": next(self._ids),
            "method": method.name,
            "params": params.model_dump(mode="json", exclude_unset=True),
        }
        if self._a2a_context is not None:
            body["a2a_context"] = self._a2a_context
        if not self._fail_open or method.attribute not in EMPTY_RESULTS:
            return await self._result(body, safe, method.result)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._result(body, True, method.result)
        except TimeoutError:
            reason = f"The service at {self.url} did not answer within {self._timeout_seconds:g} s."
        except UNAVAILABLE as failure:
            reason = failure.message
        logger.warning("%s goes without memory: %s", method.name, reason)
        return cast(ResultT, EMPTY_RESULTS[method.attribute](degraded_receipt(reason)))

    async def _result(self, body: Body, safe: bool, result: type[ResultT]) -> ResultT:
        async def attempt() -> Any:
            return await self._authenticated(body)

        answer = await self._retrying(lambda error: _again(error, safe), attempt)
        try:
            # A newer service may return fields that this client does not have.
            return result.model_validate(answer, extra="ignore")
        except ValidationError as cause:
            raise InternalError(
                f"The service answered {body['method']} with a result this client cannot read: "
                f"{cause.error_count()} fields are missing or of another type."
            ) from cause

    async def _authenticated(self, body: Body) -> Any:
        token = await self._credential.token()
        try:
            return await self._send(body, token, self._traceparent)
        except AuthenticationFailed:
            if not self._credential.renewable:
                raise
        renewed = await self._credential.token(refused=token)
        return await self._send(body, renewed, self._traceparent)


def _is_repeatable(method: Method[P, ParamsT, ResultT], params: Strict) -> bool:
    if isinstance(params, StoreParams):
        return params.idempotency_key is not None
    if isinstance(params, PruneParams | RestoreParams):
        return params.dry_run
    return method.scope == "memory:read" or method.attribute in _REPEATABLE


def _nothing_sent(params: StoreBatchParams | AddSessionParams) -> StoreBatchResult | AddSessionResult:
    if isinstance(params, StoreBatchParams):
        return StoreBatchResult(success=False, results=[], receipt=Receipt())
    return AddSessionResult(success=True, session_id=params.session_id, stored_count=0, results=[], receipt=Receipt())


def _again(error: Exception, repeatable: bool) -> bool | float:
    if isinstance(error, RateLimited):
        wait = error.data.get("retry_after_seconds")
        if not isinstance(wait, int | float):
            return True
        return float(wait) if wait <= LONGEST_RETRY_WAIT_SECONDS else False
    if isinstance(error, NotReady):
        return True
    unsure = isinstance(error, DependencyUnavailable) and error.retryable
    return unsure and (repeatable or isinstance(error.__cause__, NOT_SENT))
