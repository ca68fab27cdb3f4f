"""Admission: authenticates the caller, limits size and rate, and returns errors over HTTP."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope, Send

from agentcore.auth import Principal, TokenVerifier
from agentcore.call_queue import CallQueue
from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    InvalidRequest,
    JsonRpcErrorCode,
    NotReady,
    RateLimited,
    TooLarge,
)
from agentcore.rpc import LARGE_BODY_BYTES, Frame, error_answer
from agentcore.telemetry import Trace, new_request_id

# HTTP status of an error for the whole request; all other errors, and those of single calls, return 200.
HTTP_STATUS: Mapping[JsonRpcErrorCode, int] = {
    JsonRpcErrorCode.AUTHENTICATION_FAILED: 401,
    JsonRpcErrorCode.TOO_LARGE: 413,
    JsonRpcErrorCode.RATE_LIMITED: 429,
}

# Parsing a large body takes about 100 ms.
BODIES_RETRY_SECONDS = 1.0

Header = tuple[bytes, bytes]


@dataclass(frozen=True)
class Exchange:
    headers: dict[bytes, list[str]]
    request_id: str
    trace: Trace
    given_trace_id: str | None

    @classmethod
    def begin(cls, scope: Scope) -> Exchange:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value.decode("latin-1"))
        given = headers.get(b"traceparent", [])
        parent = Trace.parse(given[0]) if len(given) == 1 else None
        trace = Trace.begin() if parent is None else parent.child()
        return cls(headers, new_request_id(), trace, parent.trace_id if parent else None)

    def header(self, name: bytes) -> str | None:
        """Returns the header's value; None if it is absent or repeated with different values."""
        values = set(self.headers.get(name, []))
        return values.pop() if len(values) == 1 else None

    @property
    def response_headers(self) -> list[Header]:
        """Returns the headers that identify a response: request id and trace."""
        return [(b"x-request-id", self.request_id.encode()), (b"traceresponse", str(self.trace).encode())]


class BodyBudget:
    """Limits the bytes of all bodies being processed: large ones to half, and one agent to half of either."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # (agent, or None for all of them; whether only large bodies count) -> bytes
        self._held: dict[tuple[str | None, bool], int] = {}

    def __len__(self) -> int:
        return self._held.get((None, False), 0)

    @contextmanager
    def share(self, agent_id: str) -> Iterator[Callable[[int], None]]:
        """Yields a setter of one body's size, which raises RateLimited; the end of the block sets 0."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            self._change(agent_id, held, size)
            held = size

        try:
            yield hold
        finally:
            hold(0)

    def _change(self, agent_id: str, before: int, size: int) -> None:
        held = {
            (who, large): self._held.get((who, large), 0) + _counted(size, large) - _counted(before, large)
            for who in (None, agent_id)
            for large in (False, True)
        }
        limits = {(who, large): self._limit >> ((who is not None) + large) for who, large in held}
        if size > before and any(total > limits[place] for place, total in held.items()):
            raise RateLimited(
                "Too many bytes of requests are being received: try again.",
                data={"retry_after_seconds": BODIES_RETRY_SECONDS, "max_bodies_bytes": self._limit},
            )
        for place, total in held.items():
            self._held[place] = total
            if not total:
                del self._held[place]


def _counted(size: int, large: bool) -> int:
    return 0 if large and size <= LARGE_BODY_BYTES else size


@dataclass(frozen=True)
class Admission:
    verifier: TokenVerifier
    rate_limit: RateLimit
    stopping: asyncio.Event
    max_body_bytes: int
    timeout_seconds: float
    bodies: BodyBudget
    calls: CallQueue

    async def principal(self, exchange: Exchange) -> Principal:
        """Raises AuthenticationFailed, and NotReady during shutdown."""
        if self.stopping.is_set():
            raise NotReady("The service is stopping.")
        return await self.verifier.verify(exchange.header(b"authorization"))

    @asynccontextmanager
    async def body(self, exchange: Exchange, receive: Receive, agent_id: str) -> AsyncIterator[bytes | None]:
        """Yields the body, None if the client disconnected; its bytes count until the block ends.

        Raises TooLarge as soon as the limit is exceeded, RateLimited, and InvalidRequest on timeout.
        """
        with self.bodies.share(agent_id) as hold:
            yield await self._received(exchange, receive, hold)

    async def _received(self, exchange: Exchange, receive: Receive, hold: Callable[[int], None]) -> bytes | None:
        announced = exchange.header(b"content-length") or "0"
        if announced.isdecimal() and int(announced) > self.max_body_bytes:
            raise self._too_large()
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.timeout_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > self.max_body_bytes:
                        raise self._too_large()
                    hold(size)
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError as cause:
            raise InvalidRequest(data={"problem": "the body did not arrive in time"}) from cause

    def _too_large(self) -> TooLarge:
        limit = self.max_body_bytes
        return TooLarge(f"The request is larger than {limit} bytes.", data={"max_body_bytes": limit})


async def send_error(
    exchange: Exchange,
    frame: Frame | None,
    error: AgentCoreError,
    send: Send,
    statuses: Mapping[JsonRpcErrorCode, int] = HTTP_STATUS,
) -> None:
    only = frame.members[0] if frame is not None and not frame.is_batch else None
    answer = error_answer(error, only.id if only is not None else None)
    headers: list[Header] = []
    if isinstance(error, AuthenticationFailed):
        headers.append((b"www-authenticate", _challenge(exchange, error).encode()))
    if isinstance(error, RateLimited):
        seconds = math.ceil(error.data["retry_after_seconds"])
        headers.append((b"retry-after", str(max(1, seconds)).encode()))
    await send_json(exchange, send, statuses.get(error.code, 200), answer, headers)


def _challenge(exchange: Exchange, error: AuthenticationFailed) -> str:
    if b"authorization" not in exchange.headers:
        return 'Bearer realm="agentcore"'
    return f'Bearer realm="agentcore", error="invalid_token", error_description="{error.message}"'


async def send_json(exchange: Exchange, send: Send, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
    """Sends a JSON response; with status 204 the body is empty."""
    about_body = (
        [] if status == 204 else [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    )
    start: Message = {
        "type": "http.response.start",
        "status": status,
        "headers": [*about_body, *exchange.response_headers, *headers],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})


_PERIOD_SECONDS = 60.0
MAX_BUCKETS = 100_000


class RateLimit:
    """One token bucket per agent, in this process, refilled continuously; 0 units: unlimited.

    The `limits` library sweeps every key on every hit: 2 ms at 10,000 agents.
    """

    def __init__(self, units_per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(units_per_minute)
        self._clock = clock
        # agent -> (units left, when), the longest idle one first.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def admit(self, agent_id: str, units: int) -> None:
        """Deducts all `units` or none. Raises RateLimited with the delay; TooLarge if they exceed the bucket."""
        if not self._capacity:
            return
        if units > self._capacity:
            limit = int(self._capacity)
            raise TooLarge(
                f"This request costs {units} units, and an agent may spend {limit} a minute: split it, or "
                "let the operator raise RATE_LIMIT_PER_MINUTE.",
                data={"units": units, "rate_units": limit},
            )
        now = self._clock()
        self._drop_full(now)
        left, seen_at = self._buckets.get(agent_id, (self._capacity, now))
        left = min(self._capacity, left + (now - seen_at) * self._capacity / _PERIOD_SECONDS)
        if left < units:
            wait = (units - left) * _PERIOD_SECONDS / self._capacity
            raise RateLimited("Too many requests.", data={"retry_after_seconds": round(wait, 3)})
        self._buckets[agent_id] = (left - units, now)
        self._buckets.move_to_end(agent_id)
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)

    def refund(self, agent_id: str, units: int) -> None:
        """Returns units that were admitted and not spent."""
        if agent_id in self._buckets:
            left, seen_at = self._buckets[agent_id]
            self._buckets[agent_id] = (min(self._capacity, left + units), seen_at)

    def _drop_full(self, now: float) -> None:
        while self._buckets and now - next(iter(self._buckets.values()))[1] >= _PERIOD_SECONDS:
            self._buckets.popitem(last=False)
