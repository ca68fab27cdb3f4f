"""POST /api/v1/jsonrpc: authenticates, limits size and rate, logs one line per call."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send

from agentcore.admission import HTTP_STATUS, Admission, Exchange, refuse, say
from agentcore.auth import Principal, TokenVerifier
from agentcore.config import Settings
from agentcore.errors import AgentCoreError, JsonRpcErrorCode, RateLimited
from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.jsonrpc import MemoryCall, cost_of
from agentcore.rpc import Call, Frame, Limits, MethodTable, Report, RpcMethod, Session
from agentcore.telemetry import Metrics

MAX_A2A_TEXT_CHARS = 255
# Fields of the A2A context in a call's log line; its trace id is logged as the call's.
A2A_LOG_FIELDS = ("source_agent", "target_agent", "session_id", "conversation_id", "timestamp")

logger = logging.getLogger(__name__)


class Runtime(Protocol):
    """The interface of the running service that endpoints use."""

    @property
    def settings(self) -> Settings: ...
    @property
    def verifier(self) -> TokenVerifier: ...
    @property
    def metrics(self) -> Metrics: ...

    def manager_for(self, caller: Caller) -> MemoryApi:
        """Returns the memory API of the caller's agent."""

    async def readiness(self) -> dict[str, dict[str, Any]]:
        """Returns the state of each part: `ok`, `required` (default true) and details."""


def trace_id_of(exchange: Exchange, call: Call | None) -> str:
    """Returns the trace id of the `traceparent` header, else of the A2A context, else a new one."""
    return exchange.given_trace_id or _a2a_text(call, "trace_id") or exchange.trace.trace_id


def _a2a_text(call: Call | None, field: str) -> str | None:
    text = call.a2a_context.get(field) if call is not None and call.a2a_context else None
    usable = isinstance(text, str) and 0 < len(text) <= MAX_A2A_TEXT_CHARS and text.isprintable()
    return str(text) if usable else None


def cost_of_frame(frame: Frame) -> int:
    """Returns the rate limit units of a body's calls; an invalid request costs 1."""
    return sum(cost_of(each.method, each.params) if isinstance(each, Call) else 1 for each in frame.members)


class RpcEndpoint:
    """POST /api/v1/jsonrpc as a bare ASGI application."""

    def __init__(
        self, runtime: Runtime, methods: Sequence[RpcMethod[MemoryCall]], admission: Admission
    ) -> None:
        limits = Limits(runtime.settings.max_batch_calls,
                        timeout_seconds=runtime.settings.request_timeout_seconds)
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
            async with self._admission.body(exchange, receive, principal.agent_id) as body:
                if body is None:
                    return
                frame = await self._table.read(body)
                self._admission.rate_limit.admit(principal.agent_id, cost_of_frame(frame))
                answer = await self._table.answer(frame, self._session(exchange, principal))
        except AgentCoreError as error:
            await self.refuse(exchange, principal, frame, error, started, send)
        else:
            await say(exchange, send, 204 if answer is None else 200, answer or b"")

    def _session(self, exchange: Exchange, principal: Principal) -> Session[MemoryCall]:
        def open_context(call: Call) -> MemoryCall:
            caller = Caller(
                agent_id=principal.agent_id, token_id=principal.token_id,
                trace_id=trace_id_of(exchange, call), a2a_context=call.a2a_context,
                users=principal.users,
            )
            return MemoryCall(self._runtime.manager_for(caller), caller)

        def report(ended: Report) -> None:
            self._report(exchange, principal, ended)

        return Session(principal.scopes, open_context, report)

    def _report(self, exchange: Exchange, principal: Principal | None, ended: Report) -> None:
        self._runtime.metrics.call_ended(ended.method, ended.outcome, ended.seconds)
        logger.info("call", extra={
            "request_id": exchange.request_id,
            "trace_id": trace_id_of(exchange, ended.call),
            "agent_id": principal.agent_id if principal is not None else None,
            "method": ended.method,
            "outcome": ended.outcome,
            "duration_ms": round(ended.seconds * 1_000, 2),
            **{field: _a2a_text(ended.call, field) for field in A2A_LOG_FIELDS},
        })

    async def refuse(
        self, exchange: Exchange, principal: Principal | None, frame: Frame | None, error: AgentCoreError,
        started: float, send: Send, statuses: Mapping[JsonRpcErrorCode, int] = HTTP_STATUS,
    ) -> None:
        """Returns one error for the whole request, with a log line and metrics like a call."""
        if isinstance(error, RateLimited) and frame is not None:
            self._runtime.metrics.rate_limited(len(frame.members))
        seconds = time.perf_counter() - started
        self._report(exchange, principal, Report("none", error.code.name.lower(), seconds))
        await refuse(exchange, frame, error, send, statuses)
