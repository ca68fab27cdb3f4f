"""serve and worker: the commands that run until stopped."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from socket import gethostname, socket
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
import uvloop
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from agentcore.cli import INTERRUPTED
from agentcore.cli.app import app, say
from agentcore.config import Settings, load_settings, misspelt_variables, revealed
from agentcore.console.app import Console, console_is_on
from agentcore.console.history import MetricHistory
from agentcore.console.sessions import ConsoleSessions
from agentcore.console.visit import ServiceStatus
from agentcore.embedded import default_home
from agentcore.embedded.postgres import MAX_POSTGRES_CONNECTIONS
from agentcore.errors import StartupError
from agentcore.readiness import SharedCheck
from agentcore.runtime import Runtime, home_of, open_runtime
from agentcore.server import ENDPOINT, bound, connection_limit, create_app, stop_on_signals
from agentcore.server import serve as serve_http
from agentcore.telemetry import configure_logging
from agentcore.worker_processes import ReadMetrics, shared_metrics, worker_processes

# Connections of a process outside its pool: two of the owner's role, and one without a pool.
OTHER_CONNECTIONS = 3
# For superusers (PostgreSQL's default), and for other commands.
RESERVED_CONNECTIONS = 3 + 5
EXAMPLE_CALL = '{"jsonrpc": "2.0", "id": 1, "method": "memory.store", "params": {"content": "Ada likes tea"}}'


@app.command(
    "serve",
    "agentcore serve",
    "agentcore serve --port 8123",
    "AGENTCORE_HOME=/data/memory agentcore serve --host 0.0.0.0",
    "DATABASE_URL=postgresql://... REDIS_URL=redis://... agentcore serve --migrate",
)
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: HOST, else 127.0.0.1.")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port to listen on, 0 for a free one. Default: PORT, else 8080."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Processes that answer calls on the port. Default: WORKERS, else 1."),
    ] = None,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Bring an external database to this version's schema first.")
    ] = False,
) -> None:
    """Run the service until Ctrl-C.

    Without DATABASE_URL and REDIS_URL it starts its own PostgreSQL and Redis,
    with all data below AGENTCORE_HOME. A second Ctrl-C does not wait for calls.
    """
    given = {"host": host, "port": port, "workers": workers}
    settings = load_settings(**{name: value for name, value in given.items() if value is not None})
    configure_logging(settings.log_level, settings.log_format)
    for name, meant in misspelt_variables().items():
        say(f"{name} is not a setting: did you mean {meant}?")

    _check_workers(settings)

    async def work(stop: Stop) -> None:
        async with AsyncExitStack() as stack:
            runtime = await stack.enter_async_context(open_runtime(settings, migrate=migrate))
            read_metrics = exposition_of(runtime)
            if settings.workers > 1:
                read_metrics = await _start_workers(runtime, stop, listener, stack)
            stop.started.set()
            if console_is_on(settings, listener.getsockname()[0]):
                await stack.enter_async_context(history_of(runtime, listener).recording(read_metrics))
            await answer_calls(runtime, stop, listener, lambda url: typer.echo(_welcome(settings, url)), read_metrics)

    # Reports a port in use before a database is created.
    with bound(settings.host, settings.port) as listener:
        _run_command(work)


def _check_workers(settings: Settings) -> None:
    url = revealed(settings.vector_store_url)
    if settings.workers > 1 and url is not None and "://" not in url:
        raise StartupError("VECTOR_STORE_URL is a path, and one process alone can open it: start one, or use a server.")
    per_process = settings.database_pool_size + OTHER_CONNECTIONS
    available = MAX_POSTGRES_CONNECTIONS - RESERVED_CONNECTIONS
    max_workers = max(1, available // per_process)
    if settings.database_url is None and settings.workers > max_workers:
        raise StartupError(
            f"{settings.workers} processes need {settings.workers * per_process} connections, and the embedded "
            f"PostgreSQL has {available} for them: start at most {max_workers}, or lower DATABASE_POOL_SIZE."
        )


async def _start_workers(runtime: Runtime, stop: Stop, listener: socket, stack: AsyncExitStack) -> ReadMetrics:
    """Starts the other processes, which end with the stack; returns the reader of all their metrics."""
    settings = runtime.settings
    directory = Path(stack.enter_context(TemporaryDirectory(prefix="agentcore-")))
    processes = worker_processes(
        settings.workers - 1,
        listener,
        directory,
        settings.shutdown_grace_seconds,
        stopping=stop.asked,
        forced=stop.forced,
    )
    await stack.enter_async_context(processes)
    return await stack.enter_async_context(shared_metrics(runtime.metrics.exposition, directory))


async def answer_calls(
    runtime: Runtime, stop: Stop, listener: socket, on_listening: Callable[[str], None], read_metrics: ReadMetrics
) -> None:
    """Answers calls on the socket until a stop; `read_metrics` returns the metrics of all processes of the service."""
    settings = runtime.settings
    await stop.unless_forced(
        serve_http(
            create_app(runtime, stopping=stop.asked, read_metrics=read_metrics, console=console_of(runtime, listener)),
            address=listener,
            stopping=stop.asked,
            grace_seconds=settings.shutdown_grace_seconds,
            connections=connection_limit(settings.max_connections, settings.database_pool_size),
            on_listening=on_listening,
        )
    )


def console_of(runtime: Runtime, listener: socket) -> Callable[[ASGIApp], BaseRoute] | None:
    """Returns the factory of the console's routes; None if it is off."""
    if not console_is_on(runtime.settings, listener.getsockname()[0]):
        return None
    sessions = ConsoleSessions(runtime.database)
    status = ServiceStatus(history_of(runtime, listener), SharedCheck(runtime.readiness).answer)
    return lambda rpc: Console(runtime.settings, sessions, runtime.verifier, status, rpc).mount()


def history_of(runtime: Runtime, listener: socket) -> MetricHistory:
    return MetricHistory(runtime.redis, f"{gethostname()}:{listener.getsockname()[1]}")


def exposition_of(runtime: Runtime) -> ReadMetrics:
    async def read() -> bytes:
        return runtime.metrics.exposition()

    return read


@app.command(
    "worker", "agentcore worker", "MAINTENANCE_IN_SERVER=false agentcore serve      and beside it: agentcore worker"
)
def worker() -> None:
    """Run the background work in a process of its own, until Ctrl-C.

    One process at a time does that work; others wait to take over.
    """
    settings = load_settings(maintenance_in_server=True)
    configure_logging(settings.log_level, settings.log_format)

    async def work(stop: Stop) -> None:
        async with open_runtime(settings, attach_only=True):
            stop.started.set()
            say("background work runs; Ctrl-C ends it")
            await stop.asked.wait()

    _run_command(work)


class Stop:
    """SIGINT or SIGTERM: the first stops gracefully, the second at once."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.asked = asyncio.Event()
        self.forced = asyncio.Event()

    def at_end_of_input(self, descriptor: int) -> None:
        """Stops gracefully at the end of this pipe."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(descriptor)
            self.asked.set()

        loop.add_reader(descriptor, ended)

    async def run(self, work: Work) -> None:
        """A stop before the work has started cancels it."""
        with stop_on_signals(self.asked):
            running = asyncio.create_task(work(self))
            watching = asyncio.create_task(self._watch(running))
            try:
                await running
            except asyncio.CancelledError:
                if not self.asked.is_set():
                    raise
            finally:
                watching.cancel()

    async def _watch(self, running: asyncio.Task[None]) -> None:
        await self.asked.wait()
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self.forced.set)
        if not self.started.is_set():
            running.cancel()

    async def unless_forced(self, waited_for: Coroutine[Any, Any, None]) -> None:
        """Awaits it, or cancels it on a forced stop; the caller closes resources in either case."""
        task = asyncio.create_task(waited_for)
        forcing = asyncio.create_task(self.forced.wait())
        await asyncio.wait({task, forcing}, return_when=asyncio.FIRST_COMPLETED)
        forcing.cancel()
        if self.forced.is_set():
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task


Work = Callable[[Stop], Coroutine[Any, Any, None]]


def run_until_stopped(work: Work) -> bool:
    """Returns whether a second signal forced the end."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stop = Stop()
        runner.run(stop.run(work))
    return stop.forced.is_set()


def _run_command(work: Work) -> None:
    was_forced = run_until_stopped(work)
    say("stopped")
    if was_forced:
        raise typer.Exit(INTERRUPTED)


def _welcome(settings: Settings, url: str) -> str:
    url_line = "" if url == settings.agentcore_url.rstrip("/") else f"\n  export AGENTCORE_URL={url}"
    return f"""\
AgentCore Memory listens on {url}

In another terminal, get a token and try a call:

  {_how_to_get_a_token(settings)}{url_line}
  curl -s {url}{ENDPOINT} \\
    -H "Authorization: Bearer $AGENTCORE_TOKEN" -H "Content-Type: application/json" \\
    -d '{EXAMPLE_CALL}'

Ctrl-C stops it.
"""


def _how_to_get_a_token(settings: Settings) -> str:
    if settings.jwt_algorithm != "HS256":
        return f"export AGENTCORE_TOKEN=...   # from whoever owns the keys at {settings.jwt_jwks_url}"
    home = home_of(settings).path
    is_default = home == default_home().expanduser().resolve()
    home_line = "" if is_default else f"export AGENTCORE_HOME={shlex.quote(str(home))}\n  "
    return f"{home_line}export AGENTCORE_TOKEN=$({_own_name()} token --agent my-agent)"


def _own_name() -> str:
    name = Path(sys.argv[0]).name
    if name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m agentcore"
    found = shutil.which(name)
    if found is not None and Path(found).resolve() == Path(sys.argv[0]).resolve():
        return name
    return shlex.quote(sys.argv[0])
