"""The service over HTTP: its routes, and how it listens, drains and stops."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agentcore import __version__
from agentcore.admission import Admission, BodyBudget
from agentcore.agent_card import AGENT_CARD, agent_card
from agentcore.connections import LimitedProtocol
from agentcore.edge import RpcEndpoint, Runtime
from agentcore.errors import InternalError, StartupError
from agentcore.limits import BODIES_AT_ONCE, MAX_CONNECTIONS
from agentcore.mcp_endpoint import McpEndpoint
from agentcore.memory.jsonrpc import CONTRACT_VERSION, MemoryCall, memory_methods
from agentcore.ratelimit import RateLimit
from agentcore.readiness import SharedCheck
from agentcore.rpc import RpcMethod, error_answer
from agentcore.telemetry import describe_failure, new_request_id

ENDPOINT = "/api/v1/jsonrpc"
MCP_ENDPOINT = "/mcp"
BACKLOG = 2_048
# Longer than clients keep idle connections, so that no connection is closed while a request is sent.
KEEP_ALIVE_SECONDS = 75

logger = logging.getLogger(__name__)


def _open_routes(runtime: Runtime, stopping: asyncio.Event) -> list[Route]:
    async def face(request: Request) -> Response:
        return JSONResponse({
            "name": "agentcore-memory", "version": __version__,
            "contract_version": CONTRACT_VERSION, "endpoint": ENDPOINT,
            "mcp": MCP_ENDPOINT, "agent_card": AGENT_CARD,
            "discover": "rpc.discover", "health": "/healthz", "ready": "/readyz", "metrics": "/metrics",
        })

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
        return Response(runtime.metrics.exposition(), headers={"Content-Type": runtime.metrics.content_type})

    routes: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/": face, AGENT_CARD: card, "/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in routes.items()]


async def _refused(request: Request, error: Exception) -> Response:
    refusal = cast(HTTPException, error)
    return JSONResponse({"error": refusal.detail}, refusal.status_code, headers=refusal.headers)


async def _failed(request: Request, error: Exception) -> Response:
    reference = new_request_id()
    logger.error("a request failed unexpectedly", extra={
        "reference": reference, "failure": describe_failure(error)})
    body = error_answer(InternalError(data={"reference": reference}))
    return Response(body, 500, media_type="application/json")


def create_app(
    runtime: Runtime, *, stopping: asyncio.Event | None = None,
    methods: Sequence[RpcMethod[MemoryCall]] | None = None,
) -> Starlette:
    """Returns the ASGI application of an open runtime; once `stopping` is set it rejects calls."""
    stopping = stopping or asyncio.Event()
    settings = runtime.settings
    admission = Admission(
        runtime.verifier, RateLimit(settings.rate_limit_per_minute), stopping,
        settings.max_body_bytes, settings.request_timeout_seconds,
        BodyBudget(BODIES_AT_ONCE * settings.max_body_bytes),
    )
    offered = memory_methods() if methods is None else methods
    return Starlette(
        routes=[
            Route(ENDPOINT, RpcEndpoint(runtime, offered, admission), methods=["POST"]),
            Route(MCP_ENDPOINT, McpEndpoint(runtime, offered, admission), methods=["POST"]),
            *_open_routes(runtime, stopping),
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
    app: ASGIApp, *, address: socket.socket, stopping: asyncio.Event, grace_seconds: float,
    on_listening: Callable[[str], None], connections: int = MAX_CONNECTIONS,
) -> None:
    """Serves until `stopping` is set, then drains running calls for up to `grace_seconds`.

    Listens on a socket from `bound` and closes it. Calls `on_listening` with the URL once it accepts calls.
    Connections above `connections` receive 503. Raises StartupError if it cannot listen.
    """
    server = _Server(uvicorn.Config(
        app, http=LimitedProtocol, limit_concurrency=connections + 1, ws="none", lifespan="off",
        access_log=False, log_config=None,
        server_header=False, backlog=BACKLOG, timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(grace_seconds),
    ))

    async def stop() -> None:
        await stopping.wait()
        server.should_exit = True

    with address:
        _listen(address)
        gc.freeze()  # excludes objects of the start from each collection
        # A connection before uvicorn accepts stays in the backlog: the URL is valid from here on.
        on_listening(_url(address))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(stop())
            await server.serve(sockets=[address])
            waiting.cancel()


def bound(host: str, port: int) -> socket.socket:
    """Returns a socket bound to the address: connections are refused until `serve` listens on it.

    Raises StartupError if the address is unavailable, so that a start fails early.
    """
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
    return StartupError(f"Cannot listen on {host}:{port} ({cause.strerror}): stop what listens there "
                        "(perhaps another agentcore serve), or choose another HOST or PORT.")


def _url(address: socket.socket) -> str:
    host, port = address.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
