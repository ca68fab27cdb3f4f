"""The service over HTTP: its routes, how it listens, drains and stops, and its limits on connections."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, cast

import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agentcore import __version__
from agentcore.admission import Admission, BodyBudget, RateLimit
from agentcore.agent_card import AGENT_CARD, agent_card
from agentcore.edge import EndpointRuntime, McpEndpoint, RpcEndpoint
from agentcore.errors import InternalError, StartupError
from agentcore.limits import BODIES_AT_ONCE, HEADER_SECONDS, MAX_CONNECTIONS, MAX_HEADER_BYTES, UNREAD_SECONDS
from agentcore.memory.jsonrpc import CONTRACT_VERSION, MemoryCall, memory_methods
from agentcore.readiness import SharedCheck
from agentcore.rpc import RpcMethod, error_answer
from agentcore.telemetry import describe_failure, new_request_id

ENDPOINT = "/api/v1/jsonrpc"
MCP_ENDPOINT = "/mcp"
BACKLOG = 2_048
# Longer than clients keep idle connections: none is closed while a request is sent.
KEEP_ALIVE_SECONDS = 75
# Objects allocated between two collections: with Python's 700, a search spends .27 ms on them.
GARBAGE_THRESHOLD = 10_000

logger = logging.getLogger(__name__)


def _open_routes(
    runtime: EndpointRuntime, stopping: asyncio.Event, read_metrics: Callable[[], Awaitable[bytes]] | None
) -> list[Route]:
    async def face(request: Request) -> Response:
        return JSONResponse(
            {
                "name": "agentcore-memory",
                "version": __version__,
                "contract_version": CONTRACT_VERSION,
                "endpoint": ENDPOINT,
                "mcp": MCP_ENDPOINT,
                "agent_card": AGENT_CARD,
                "discover": "rpc.discover",
                "health": "/healthz",
                "ready": "/readyz",
                "metrics": "/metrics",
            }
        )

    async def card(request: Request) -> Response:
        return JSONResponse(agent_card(f"{str(request.base_url).rstrip('/')}{ENDPOINT}", __version__))

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    readiness = SharedCheck(runtime.readiness)

    async def readyz(request: Request) -> Response:
        parts = await readiness.answer()
        complete = all(part["ok"] or not part.get("required", True) for part in parts.values())
        ready = complete and not stopping.is_set()
        status = "stopping" if stopping.is_set() else "ready" if ready else "not ready"
        return JSONResponse({"status": status, "parts": parts}, 200 if ready else 503)

    async def metrics(request: Request) -> Response:
        shown = runtime.metrics.exposition() if read_metrics is None else await read_metrics()
        return Response(shown, headers={"Content-Type": runtime.metrics.content_type})

    routes: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/": face,
        AGENT_CARD: card,
        "/healthz": healthz,
        "/readyz": readyz,
        "/metrics": metrics,
    }
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in routes.items()]


async def _refused(request: Request, error: Exception) -> Response:
    refusal = cast(HTTPException, error)
    return JSONResponse({"error": refusal.detail}, refusal.status_code, headers=refusal.headers)


async def _failed(request: Request, error: Exception) -> Response:
    reference = new_request_id()
    logger.error("a request failed unexpectedly", extra={"reference": reference, "failure": describe_failure(error)})
    body = error_answer(InternalError(data={"reference": reference}))
    return Response(body, 500, media_type="application/json")


def create_app(
    runtime: EndpointRuntime,
    *,
    stopping: asyncio.Event | None = None,
    methods: Sequence[RpcMethod[MemoryCall]] | None = None,
    read_metrics: Callable[[], Awaitable[bytes]] | None = None,
    console: Callable[[ASGIApp], BaseRoute] | None = None,
) -> Starlette:
    """Returns the ASGI application; once `stopping` is set it rejects calls.

    `read_metrics` returns those of all processes; `console` returns the routes of the console over the RPC endpoint.
    """
    stopping = stopping or asyncio.Event()
    settings = runtime.settings
    admission = Admission(
        runtime.verifier,
        RateLimit(settings.rate_limit_per_minute),
        stopping,
        settings.max_body_bytes,
        settings.request_timeout_seconds,
        BodyBudget(BODIES_AT_ONCE * settings.max_body_bytes),
        runtime.calls,
    )
    offered = memory_methods() if methods is None else methods
    rpc = RpcEndpoint(runtime, offered, admission)
    return Starlette(
        routes=[
            Route(ENDPOINT, rpc, methods=["POST"]),
            Route(MCP_ENDPOINT, McpEndpoint(runtime, offered, admission), methods=["POST"]),
            *_open_routes(runtime, stopping, read_metrics),
            *([] if console is None else [console(rpc)]),
        ],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )


# --- listening ---------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: they raise the signal again, which would abort the shutdown."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def stop_on_signals(stopping: asyncio.Event) -> Iterator[None]:
    """Sets `stopping` on SIGINT and SIGTERM while the block runs."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for each in signals:
        loop.add_signal_handler(each, stopping.set)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


async def serve(
    app: ASGIApp,
    *,
    address: socket.socket,
    stopping: asyncio.Event,
    grace_seconds: float,
    on_listening: Callable[[str], None],
    connections: int = MAX_CONNECTIONS,
) -> None:
    """Serves on a socket from `bound` until `stopping` is set, then drains calls for up to `grace_seconds`.

    Connections above `connections` receive 503. Raises StartupError if it cannot listen.
    """
    server = _Server(
        uvicorn.Config(
            app,
            http=LimitedProtocol,
            limit_concurrency=connections + 1,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(grace_seconds),
        )
    )

    async def stop() -> None:
        await stopping.wait()
        server.should_exit = True

    with address:
        _listen(address)
        gc.freeze()  # excludes objects of the start from each collection
        gc.set_threshold(GARBAGE_THRESHOLD, 10, 10)
        on_listening(_url(address))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(stop())
            await server.serve(sockets=[address])
            waiting.cancel()


def bound(host: str, port: int) -> socket.socket:
    """Returns a socket bound to the address; `serve` listens on it. Raises StartupError."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as cause:
        raise _not_to_be_had(host, port, cause) from cause
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError as cause:
        listener.close()
        raise _not_to_be_had(host, port, cause) from cause
    return listener


def _listen(address: socket.socket) -> None:
    try:
        address.listen(BACKLOG)
    except OSError as cause:  # another process bound it too, and listens already
        host, port = address.getsockname()[:2]
        raise _not_to_be_had(host, port, cause) from cause


def _not_to_be_had(host: str, port: int, cause: OSError) -> StartupError:
    return StartupError(
        f"Cannot listen on {host}:{port} ({cause.strerror}): stop what listens there "
        "(perhaps another agentcore serve), or choose another HOST or PORT."
    )


def _url(address: socket.socket) -> str:
    host, port = address.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


# A client must read this much of a buffered response in UNREAD_SECONDS.
MIN_READ_BYTES = 65_536
# Time to drain a rejected client's data: closing at once would reset the connection and lose the reply.
DRAIN_SECONDS = 2.0
# File descriptors for threads, Redis, the archive and embedded servers.
RESERVED_FILES = 48
MIN_CONNECTIONS = 4


class LimitedProtocol(HttpToolsProtocol):
    """Adds limits of headers and unread responses to uvicorn's protocol."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        # Bytes since the last complete header block or body part: headers, trailers, chunk sizes.
        self._unframed = 0
        self._reads_headers = True
        self._rejected = False
        self._unread = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self.connections.discard(self)
            self._reject(HTTPStatus.SERVICE_UNAVAILABLE, b"retry-after: 1\r\n")
            transport.close()  # without draining: the file descriptor is needed
        else:
            self._start("headers", HEADER_SECONDS, self._on_header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._stop(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._rejected:
            return
        answered = self.cycle is not None and self.cycle.response_complete
        if (self._reads_headers or answered) and "headers" not in self._timers:
            self._start("headers", HEADER_SECONDS, self._on_header_timeout)
        rest = memoryview(data)
        while rest and not self.transport.is_closing():
            fits = MAX_HEADER_BYTES - self._unframed
            piece, rest = rest[:fits], rest[fits:]
            self._unframed += len(piece)
            super().data_received(bytes(piece))
            if self._unframed >= MAX_HEADER_BYTES and not self.transport.is_closing():
                self._reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                break

    def on_headers_complete(self) -> None:
        self._unframed = 0
        self._reads_headers = False
        self._stop("headers")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unframed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unframed = 0
        self._reads_headers = True
        self._stop("headers")
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._start("unread", UNREAD_SECONDS, self._on_read_timeout)

    def resume_writing(self) -> None:
        self._stop("unread")
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limit_flush()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._limit_flush()

    def shutdown(self) -> None:
        super().shutdown()
        self._limit_flush()

    def _limit_flush(self) -> None:
        """Limits the flush of a closed transport, which asyncio does not."""
        if self.transport.is_closing() and self.transport.get_write_buffer_size() > 0:
            self._start("flush", UNREAD_SECONDS, self.transport.abort)

    def _start(self, name: str, seconds: float, callback: Any) -> None:
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, callback)

    def _stop(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()

    def _on_header_timeout(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            return self._start("headers", HEADER_SECONDS, self._on_header_timeout)
        return self.transport.abort()

    def _on_read_timeout(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if self._unread - unread < MIN_READ_BYTES:
            return self.transport.abort()
        self._unread = unread
        return self._start("unread", UNREAD_SECONDS, self._on_read_timeout)

    def _reject(self, status: HTTPStatus, header: bytes = b"") -> None:
        self._rejected = True
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            return self.transport.abort()
        body = f'{{"error": "{status.phrase}"}}'.encode()
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n".encode()
            + header
            + f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        self.transport.write_eof()
        return self._start("headers", DRAIN_SECONDS, self.transport.abort)


def connection_limit(wanted: int, pool_size: int) -> int:
    """Returns how many connections may be open, after raising this process's limit of open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a system may allow less than the hard limit that it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft == resource.RLIM_INFINITY:
        return wanted
    free = soft - int(psutil.Process().num_fds()) - RESERVED_FILES - 2 * pool_size
    if free < wanted:
        logger.warning(
            "fewer connections than MAX_CONNECTIONS: the limit of open files is too low",
            extra={
                "connections": max(MIN_CONNECTIONS, free),
                "open_files": soft,
                "hint": "raise the hard limit, such as ulimit -Hn or LimitNOFILE=",
            },
        )
    return min(wanted, max(MIN_CONNECTIONS, free))
