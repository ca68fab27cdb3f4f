"""The two endpoints, JSON-RPC and MCP: authenticate, limit size and rate, log one line per call.

The `mcp` extra is imported with the first request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
from starlette.types import Message, Receive, Scope, Send

from agentcore.admission import HTTP_STATUS, Admission, Exchange, send_error, send_json
from agentcore.auth import Principal, TokenVerifier
from agentcore.call_queue import CallQueue
from agentcore.client import MemoryClient
from agentcore.config import Settings
from agentcore.errors import AgentCoreError, ConfigurationError, InvalidRequest, JsonRpcErrorCode, RateLimited
from agentcore.limits import MAX_MESSAGE_BYTES
from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.jsonrpc import MemoryCall, cost_of
from agentcore.registry import resolve
from agentcore.rpc import Call, Frame, Limits, MethodTable, Report, RpcMethod, Session, read_frame
from agentcore.telemetry import Metrics

MAX_A2A_TEXT_CHARS = 255
# Fields of the A2A context in a call's log line; its trace id is logged as the call's.
A2A_LOG_FIELDS = ("source_agent", "target_agent", "session_id", "conversation_id", "timestamp")

logger = logging.getLogger(__name__)


class EndpointRuntime(Protocol):
    """The interface of the running service that endpoints use."""

    @property
    def settings(self) -> Settings: ...
    @property
    def verifier(self) -> TokenVerifier: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def calls(self) -> CallQueue: ...

    def manager_for(self, caller: Caller) -> MemoryApi: ...

    async def readiness(self) -> dict[str, dict[str, Any]]: ...


def trace_id_of(exchange: Exchange, call: Call | None) -> str:
    """Returns the trace id of the `traceparent` header, else of the A2A context, else a new one."""
    return exchange.given_trace_id or _a2a_text(call, "trace_id") or exchange.trace.trace_id


def _a2a_text(call: Call | None, field: str) -> str | None:
    text = (call.a2a_context or {}).get(field) if call is not None else None
    if isinstance(text, str) and 0 < len(text) <= MAX_A2A_TEXT_CHARS and text.isprintable():
        return text
    return None


def cost_of_frame(table: MethodTable[Any], frame: Frame) -> int:
    """Returns the rate limit units of a body's calls; an invalid request costs 1."""
    return sum(
        cost_of(table.method(each.method), each.params) if isinstance(each, Call) else 1 for each in frame.members
    )


class RpcEndpoint:
    """POST /api/v1/jsonrpc."""

    def __init__(
        self, runtime: EndpointRuntime, methods: Sequence[RpcMethod[MemoryCall]], admission: Admission
    ) -> None:
        limits = Limits(runtime.settings.max_batch_calls, timeout_seconds=runtime.settings.request_timeout_seconds)
        self._runtime = runtime
        self._admission = admission
        self._table = MethodTable(methods, limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange.begin(scope)
        started = time.perf_counter()
        frame: Frame | None = None
        principal: Principal | None = None
        try:
            principal = await self._admission.principal(exchange)
            calls = self._admission.calls
            calls.reject_long_waits(principal.agent_id)  # before the body is read
            async with self._admission.body(exchange, receive, principal.agent_id) as body:
                if body is None:
                    return
                frame = await self._table.read(body)
                session = self._session(exchange, principal)
                # Each call of a batch takes a slot.
                async with nullcontext() if frame.is_batch else session.slot():
                    self._admission.rate_limit.admit(principal.agent_id, cost_of_frame(self._table, frame))
                    answer = await self._table.answer(frame, session)
        except AgentCoreError as error:
            await self.send_error(exchange, principal, frame, error, started, send)
        else:
            await send_json(exchange, send, 204 if answer is None else 200, answer or b"")

    def _session(self, exchange: Exchange, principal: Principal) -> Session[MemoryCall]:
        def open_context(call: Call) -> MemoryCall:
            caller = Caller(
                agent_id=principal.agent_id,
                token_id=principal.token_id,
                trace_id=trace_id_of(exchange, call),
                a2a_context=call.a2a_context,
                users=principal.users,
            )
            return MemoryCall(self._runtime.manager_for(caller), caller)

        def report(ended: Report) -> None:
            self._report(exchange, principal, ended)

        return Session(principal.scopes, open_context, report, partial(self._admission.calls.slot, principal.agent_id))

    def _report(self, exchange: Exchange, principal: Principal | None, ended: Report) -> None:
        self._runtime.metrics.call_ended(ended.method, ended.outcome, ended.seconds)
        logger.info(
            "call",
            extra={
                "request_id": exchange.request_id,
                "trace_id": trace_id_of(exchange, ended.call),
                "agent_id": principal.agent_id if principal is not None else None,
                "method": ended.method,
                "outcome": ended.outcome,
                "duration_ms": round(ended.seconds * 1_000, 2),
                **{field: _a2a_text(ended.call, field) for field in A2A_LOG_FIELDS},
            },
        )

    async def send_error(
        self,
        exchange: Exchange,
        principal: Principal | None,
        frame: Frame | None,
        error: AgentCoreError,
        started: float,
        send: Send,
        statuses: Mapping[JsonRpcErrorCode, int] = HTTP_STATUS,
    ) -> None:
        """Sends one error for the whole request, and logs and counts it like a call."""
        if isinstance(error, RateLimited):
            self._runtime.metrics.rate_limited(1 if frame is None else len(frame.members))
        seconds = time.perf_counter() - started
        self._report(exchange, principal, Report("none", error.code.name.lower(), seconds))
        await send_error(exchange, frame, error, send, statuses)


_MCP_SERVERS = {"mcp": "agentcore.integrations.mcp:answer"}
# Origins of browsers that are allowed: MCP inspectors.
LOCAL_ORIGINS = ("localhost", "127.0.0.1", "::1")
MCP_STATUS: Mapping[JsonRpcErrorCode, int] = {
    **HTTP_STATUS,
    JsonRpcErrorCode.PARSE_ERROR: 400,
    JsonRpcErrorCode.INVALID_REQUEST: 400,
    JsonRpcErrorCode.DEPENDENCY_UNAVAILABLE: 503,
    JsonRpcErrorCode.NOT_READY: 503,
}
NOT_INSTALLED_STATUS: Mapping[JsonRpcErrorCode, int] = {JsonRpcErrorCode.INTERNAL_ERROR: 501}


class McpEndpoint:
    """POST /mcp, without sessions. A message costs its agent 1 unit, plus the cost of its tool's calls."""

    def __init__(
        self, runtime: EndpointRuntime, methods: Sequence[RpcMethod[MemoryCall]], admission: Admission
    ) -> None:
        self._admission = replace(admission, max_body_bytes=min(admission.max_body_bytes, MAX_MESSAGE_BYTES))
        # Never set: tool calls of an admitted message still run during shutdown.
        self._methods = RpcEndpoint(runtime, methods, replace(admission, stopping=asyncio.Event()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange.begin(scope)
        started = time.perf_counter()
        if not _origin_allowed(exchange.header(b"origin"), present=b"origin" in exchange.headers):
            return await send_json(exchange, send, 403, b'{"error": "Origin not allowed."}')
        frame: Frame | None = None
        principal: Principal | None = None
        try:
            principal = await self._admission.principal(exchange)
            async with self._admission.body(exchange, receive, principal.agent_id) as body:
                if body is None:
                    return None
                frame = _one_message(body)
                self._admission.rate_limit.admit(principal.agent_id, 1)
                answer = await asyncio.to_thread(resolve, "mcp", _MCP_SERVERS, kind="endpoint")
                await self._answer(answer, exchange, principal, scope, body, receive, send)
        except ConfigurationError as error:
            missing = AgentCoreError(" ".join(error.problems))
            return await self._methods.send_error(
                exchange, principal, frame, missing, started, send, NOT_INSTALLED_STATUS
            )
        except AgentCoreError as error:
            return await self._methods.send_error(exchange, principal, frame, error, started, send, MCP_STATUS)
        return None

    async def _answer(
        self,
        answer: Any,
        exchange: Exchange,
        principal: Principal,
        scope: Scope,
        body: bytes,
        receive: Receive,
        send: Send,
    ) -> None:
        token = (exchange.header(b"authorization") or "").partition(" ")[2].strip()
        transport = httpx.ASGITransport(self._methods)
        async with MemoryClient(
            "http://memory", token, traceparent=str(exchange.trace), max_attempts=1, transport=transport
        ) as memory:
            await answer(
                memory,
                token.encode(),
                principal.scopes,
                scope,
                _replay_body(body, receive),
                _with_response_headers(exchange, send),
            )


def _one_message(body: bytes) -> Frame:
    """Raises ParseError, and InvalidRequest for a batch."""
    frame = read_frame(body, Limits())
    if frame.is_batch:
        raise InvalidRequest(data={"problem": "MCP takes one message at a time"})
    return frame


def _origin_allowed(origin: str | None, *, present: bool) -> bool:
    if not present:
        return True
    try:
        parts = urlsplit(origin or "")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.hostname in LOCAL_ORIGINS


def _replay_body(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _with_response_headers(exchange: Exchange, send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *exchange.response_headers]}
        await send(message)

    return send_with_headers
