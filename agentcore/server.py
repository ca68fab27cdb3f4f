"""The service over HTTP: its routes, and how it listens, drains and stops."""

from __future__ import annotations

import asyncio
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
from agentcore.edge import RpcEndpoint, Runtime
from agentcore.errors import InternalError, StartupError
from agentcore.memory.jsonrpc import MemoryCall, memory_methods
from agentcore.rpc import RpcMethod, error_answer
from agentcore.telemetry import describe_failure, new_request_id

ENDPOINT = "/api/v1/jsonrpc"
BACKLOG = 2_048
# Longer than clients keep an idle connection, so that none is closed under a request on its way.
KEEP_ALIVE_SECONDS = 75

logger = logging.getLogger(__name__)


def _operator_routes(runtime: Runtime, stopping: asyncio.Event) -> list[Route]:
    async def face(request: Request) -> Response:
        return JSONResponse({
            "name": "agentcore-memory", "version": __version__, "endpoint": ENDPOINT,
            "discover": "rpc.discover", "health": "/healthz", "ready": "/readyz", "metrics": "/metrics",
        })

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> Response:
        parts = await runtime.readiness()
        complete = all(part["ok"] or not part.get("required", True) for part in parts.values())
        ready = complete and not stopping.is_set()
        status = "stopping" if stopping.is_set() else "ready" if ready else "not ready"
        return JSONResponse({"status": status, "parts": parts}, 200 if ready else 503)

    async def metrics(request: Request) -> Response:
        return Response(runtime.metrics.exposition(), headers={"Content-Type": runtime.metrics.content_type})

    routes: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/": face, "/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
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
    """The service as an ASGI application over an open runtime; once `stopping` is set it takes no calls."""
    stopping = stopping or asyncio.Event()
    endpoint = RpcEndpoint(runtime, memory_methods() if methods is None else methods, stopping)
    return Starlette(
        routes=[Route(ENDPOINT, endpoint, methods=["POST"]), *_operator_routes(runtime, stopping)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )


# --- listening ---------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: it raises the signal again, which would cut short the closing."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def stop_on_signals(stopping: asyncio.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set `stopping` while this is open."""
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
    app: ASGIApp, *, host: str, port: int, stopping: asyncio.Event, grace_seconds: float,
    on_listening: Callable[[str], None],
) -> None:
    """Answer until `stopping` is set, then let running calls end, for `grace_seconds` at most.

    `on_listening` is told the URL once calls are taken. Raises StartupError where it cannot listen.
    """
    listener = _listen(host, port)
    server = _Server(uvicorn.Config(
        app, http="httptools", ws="none", lifespan="off", access_log=False, log_config=None,
        server_header=False, backlog=BACKLOG, timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(grace_seconds),
    ))

    async def stop() -> None:
        await stopping.wait()
        server.should_exit = True

    with listener:
        # A connection made before uvicorn accepts waits in the backlog: the URL is good from here on.
        on_listening(_url(listener))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(stop())
            await server.serve(sockets=[listener])
            waiting.cancel()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as cause:
        raise StartupError(f"Cannot listen on {host}:{port} ({cause.strerror}): "
                           "stop what listens there, or choose another HOST or PORT.") from cause


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
