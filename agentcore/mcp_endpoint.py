"""POST /mcp: the Model Context Protocol with the same admission checks; tools call the RPC methods.

Needs the `mcp` extra, imported with the first request; without it the response names the package to install.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx
from starlette.types import Message, Receive, Scope, Send

from agentcore.admission import HTTP_STATUS, Admission, Exchange, say
from agentcore.auth import Principal
from agentcore.client import MemoryClient
from agentcore.edge import RpcEndpoint, Runtime
from agentcore.errors import AgentCoreError, ConfigurationError, InvalidRequest, JsonRpcErrorCode
from agentcore.limits import MAX_MESSAGE_BYTES
from agentcore.memory.jsonrpc import MemoryCall
from agentcore.registry import resolve
from agentcore.rpc import Frame, Limits, RpcMethod, error_answer, read_frame

SERVERS = {"mcp": "agentcore.integrations.mcp:answer"}
# Browsers send their page's origin; local origins are allowed, for MCP inspectors.
LOCAL_ORIGINS = ("localhost", "127.0.0.1", "::1")
MCP_STATUS: Mapping[JsonRpcErrorCode, int] = {
    **HTTP_STATUS,
    JsonRpcErrorCode.PARSE_ERROR: 400,
    JsonRpcErrorCode.INVALID_REQUEST: 400,
    JsonRpcErrorCode.DEPENDENCY_UNAVAILABLE: 503,
    JsonRpcErrorCode.NOT_READY: 503,
}


class McpEndpoint:
    """POST /mcp as a bare ASGI application, without sessions: any process can answer any message.

    A message costs its agent 1 unit, plus the cost of its tool's calls.
    """

    def __init__(
        self, runtime: Runtime, methods: Sequence[RpcMethod[MemoryCall]], admission: Admission
    ) -> None:
        self._admission = replace(
            admission, max_body_bytes=min(admission.max_body_bytes, MAX_MESSAGE_BYTES))
        # Calls of an admitted message are executed even during shutdown.
        self._methods = RpcEndpoint(
            runtime, methods, replace(admission, stopping=asyncio.Event()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange.begin(scope)
        started = time.perf_counter()
        if not _is_local(exchange.header(b"origin"), b"origin" in exchange.headers):
            return await say(exchange, send, 403, b'{"error": "Pages of this origin may not call."}')
        frame: Frame | None = None
        principal: Principal | None = None
        try:
            principal = await self._admission.principal(exchange)
            async with self._admission.body(exchange, receive, principal.agent_id) as body:
                if body is None:
                    return None
                frame = _one_message(body)
                self._admission.rate_limit.admit(principal.agent_id, 1)
                answer = await asyncio.to_thread(resolve, "mcp", SERVERS, kind="endpoint")
                await self._answer(answer, exchange, principal, scope, body, receive, send)
        except ConfigurationError as error:
            return await say(exchange, send, 501, error_answer(AgentCoreError(" ".join(error.problems))))
        except AgentCoreError as error:
            return await self._methods.refuse(exchange, principal, frame, error, started, send, MCP_STATUS)
        return None

    async def _answer(
        self, answer: Any, exchange: Exchange, principal: Principal, scope: Scope, body: bytes,
        receive: Receive, send: Send,
    ) -> None:
        token = (exchange.header(b"authorization") or "").partition(" ")[2].strip()
        transport = httpx.ASGITransport(self._methods)
        async with MemoryClient("http://memory", token, traceparent=str(exchange.trace), max_attempts=1,
                                transport=transport) as memory:
            await answer(memory, token.encode(), principal.scopes, scope, _again(body, receive),
                         _marked(exchange, send))


def _one_message(body: bytes) -> Frame:
    """Raises ParseError for invalid or too deeply nested JSON, InvalidRequest for a batch."""
    frame = read_frame(body, Limits())
    if frame.is_batch:
        raise InvalidRequest(data={"problem": "MCP takes one message at a time"})
    return frame


def _is_local(origin: str | None, given: bool) -> bool:
    if not given:
        return True
    try:
        parts = urlsplit(origin or "")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.hostname in LOCAL_ORIGINS


def _again(body: bytes, receive: Receive) -> Receive:
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return given.pop() if given else await receive()

    return again


def _marked(exchange: Exchange, send: Send) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *exchange.marks]}
        await send(message)

    return marked
