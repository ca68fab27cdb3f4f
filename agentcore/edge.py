"""POST /api/v1/jsonrpc: size and rate limits, the caller from the token, one log line for each call."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import Message, Receive, Scope, Send

from agentcore.auth import Principal, TokenVerifier
from agentcore.config import Settings
from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    InvalidRequest,
    JsonRpcErrorCode,
    NotReady,
    RateLimited,
    TooLarge,
)
from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.jsonrpc import MemoryCall
from agentcore.ratelimit import RateLimit
from agentcore.rpc import (
    Call,
    Frame,
    Limits,
    MethodTable,
    Report,
    RpcMethod,
    Session,
    error_answer,
    read_frame,
)
from agentcore.telemetry import Metrics, Trace, new_request_id

MAX_A2A_TEXT_CHARS = 255
# A larger body is read in a thread: the others' calls go on meanwhile.
LARGE_BODY_BYTES = 262_144
# The fields of the A2A context that a call's log line repeats; its trace id is there as the call's own.
A2A_LOG_FIELDS = ("source_agent", "target_agent", "session_id", "conversation_id", "timestamp")

# Where one error answers the whole request; every other, and the error of one call, travels with 200.
HTTP_STATUS = {
    JsonRpcErrorCode.AUTHENTICATION_FAILED: 401,
    JsonRpcErrorCode.TOO_LARGE: 413,
    JsonRpcErrorCode.RATE_LIMITED: 429,
}

Header = tuple[bytes, bytes]
logger = logging.getLogger(__name__)


class Runtime(Protocol):
    """What the edge needs of the running service."""

    @property
    def settings(self) -> Settings: ...
    @property
    def verifier(self) -> TokenVerifier: ...
    @property
    def metrics(self) -> Metrics: ...

    def manager_for(self, caller: Caller) -> MemoryApi:
        """The caller's own memory."""

    async def readiness(self) -> dict[str, dict[str, Any]]:
        """Each part by name: `ok`, `required` (true if absent), and what else there is to say."""


@dataclass(frozen=True)
class _Exchange:
    """One HTTP request as it is being answered."""

    headers: dict[bytes, list[str]]
    request_id: str
    trace: Trace
    given_trace_id: str | None

    @classmethod
    def begin(cls, scope: Scope) -> _Exchange:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value.decode("latin-1"))
        given = headers.get(b"traceparent", [])
        parent = Trace.parse(given[0]) if len(given) == 1 else None
        trace = Trace.begin() if parent is None else parent.child()
        return cls(headers, new_request_id(), trace, parent.trace_id if parent else None)

    def header(self, name: bytes) -> str | None:
        """The header's value; None if it is absent, or comes more than once with different values."""
        values = set(self.headers.get(name, []))
        return values.pop() if len(values) == 1 else None

    def trace_id_of(self, call: Call | None) -> str:
        """The `traceparent` header's trace id, else the call's own, else the one made here."""
        return self.given_trace_id or _a2a_text(call, "trace_id") or self.trace.trace_id


def _a2a_text(call: Call | None, field: str) -> str | None:
    """A field of the call's A2A context, if it is a text that is fit for one line."""
    text = call.a2a_context.get(field) if call is not None and call.a2a_context else None
    usable = isinstance(text, str) and 0 < len(text) <= MAX_A2A_TEXT_CHARS and text.isprintable()
    return str(text) if usable else None


class RpcEndpoint:
    """POST /api/v1/jsonrpc as a bare ASGI application."""

    def __init__(
        self, runtime: Runtime, methods: Sequence[RpcMethod[MemoryCall]], stopping: asyncio.Event
    ) -> None:
        settings = runtime.settings
        limits = Limits(settings.max_batch_calls, timeout_seconds=settings.request_timeout_seconds)
        self._runtime = runtime
        self._stopping = stopping
        self._table = MethodTable(methods, limits)
        self._rate_limit = RateLimit(settings.rate_limit_per_minute)
        self._max_body_bytes = settings.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange.begin(scope)
        started = time.perf_counter()
        frame: Frame | None = None
        principal: Principal | None = None
        try:
            if self._stopping.is_set():
                raise NotReady("The service is stopping.")
            principal = await self._runtime.verifier.verify(exchange.header(b"authorization"))
            body = await self._read(exchange, receive)
            if body is None:
                return
            frame = await self._frame(body)
            self._rate_limit.admit(principal.agent_id, len(frame.members))
            answer = await self._table.answer(frame, self._session(exchange, principal))
        except AgentCoreError as error:
            self._report_refusal(exchange, principal, frame, error, time.perf_counter() - started)
            await self._refuse(exchange, frame, error, send)
        else:
            await _send(exchange, send, 204 if answer is None else 200, answer or b"")

    async def _read(self, exchange: _Exchange, receive: Receive) -> bytes | None:
        """The body; None if the client went away. Raises TooLarge as soon as it is known."""
        announced = exchange.header(b"content-length") or "0"
        if announced.isdecimal() and int(announced) > self._max_body_bytes:
            raise self._too_large()
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._table.limits.timeout_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > self._max_body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError as cause:
            raise InvalidRequest(data={"problem": "the body did not arrive in time"}) from cause

    async def _frame(self, body: bytes) -> Frame:
        if len(body) <= LARGE_BODY_BYTES:
            return read_frame(body, self._table.limits)
        return await asyncio.to_thread(read_frame, body, self._table.limits)

    def _too_large(self) -> TooLarge:
        limit = self._max_body_bytes
        return TooLarge(f"The request is larger than {limit} bytes.", data={"max_body_bytes": limit})

    def _session(self, exchange: _Exchange, principal: Principal) -> Session[MemoryCall]:
        def open_context(call: Call) -> MemoryCall:
            caller = Caller(
                agent_id=principal.agent_id, token_id=principal.token_id,
                trace_id=exchange.trace_id_of(call), a2a_context=call.a2a_context,
            )
            return MemoryCall(self._runtime.manager_for(caller), caller)

        def report(ended: Report) -> None:
            self._report(exchange, principal, ended)

        return Session(principal.scopes, open_context, report)

    def _report(self, exchange: _Exchange, principal: Principal | None, ended: Report) -> None:
        self._runtime.metrics.call_ended(ended.method, ended.outcome, ended.seconds)
        logger.info("call", extra={
            "request_id": exchange.request_id,
            "trace_id": exchange.trace_id_of(ended.call),
            "agent_id": principal.agent_id if principal is not None else None,
            "method": ended.method,
            "outcome": ended.outcome,
            "duration_ms": round(ended.seconds * 1_000, 2),
            **{field: _a2a_text(ended.call, field) for field in A2A_LOG_FIELDS},
        })

    def _report_refusal(
        self, exchange: _Exchange, principal: Principal | None, frame: Frame | None, error: AgentCoreError,
        seconds: float,
    ) -> None:
        if isinstance(error, RateLimited) and frame is not None:
            self._runtime.metrics.rate_limited(len(frame.members))
        self._report(exchange, principal, Report("none", error.code.name.lower(), seconds))

    async def _refuse(
        self, exchange: _Exchange, frame: Frame | None, error: AgentCoreError, send: Send
    ) -> None:
        """One error for the whole body; it carries the id where there is just one call."""
        only = frame.members[0] if frame is not None and not frame.is_batch else None
        answer = error_answer(error, only.id if isinstance(only, Call) else None)
        status = HTTP_STATUS.get(error.code, 200)
        headers: list[Header] = []
        if isinstance(error, AuthenticationFailed):
            headers.append((b"www-authenticate", _challenge(exchange, error).encode()))
        if isinstance(error, RateLimited):
            seconds = math.ceil(error.data["retry_after_seconds"])
            headers.append((b"retry-after", str(max(1, seconds)).encode()))
        await _send(exchange, send, status, answer, headers)


def _challenge(exchange: _Exchange, error: AuthenticationFailed) -> str:
    """RFC 6750, section 3: who sent no token is told the scheme alone."""
    if b"authorization" not in exchange.headers:
        return 'Bearer realm="agentcore"'
    return f'Bearer realm="agentcore", error="invalid_token", error_description="{error.message}"'


async def _send(
    exchange: _Exchange, send: Send, status: int, body: bytes, headers: Sequence[Header] = ()
) -> None:
    about_body = [] if status == 204 else [
        (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    start: Message = {"type": "http.response.start", "status": status, "headers": [
        *about_body, (b"x-request-id", exchange.request_id.encode()),
        (b"traceresponse", str(exchange.trace).encode()), *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body})
