"""Connection limits: header bytes and the number of connections."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from agentcore import server
from agentcore.limits import MAX_HEADER_BYTES
from agentcore.server import MIN_CONNECTIONS, LimitedProtocol, bound, connection_limit, create_app, serve
from tests.fixtures.edge import METHODS, edge_runtime

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: a\r\n"


@asynccontextmanager
async def listening(connections: int = 100) -> AsyncIterator[int]:
    """Serves a small method table and yields its port."""
    stopping, listens = asyncio.Event(), asyncio.Event()
    address = bound("127.0.0.1", 0)
    port = address.getsockname()[1]
    app = create_app(edge_runtime(), stopping=stopping, methods=METHODS)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            serve(
                app,
                address=address,
                stopping=stopping,
                grace_seconds=1,
                connections=connections,
                on_listening=lambda url: listens.set(),
            )
        )
        await listens.wait()
        yield port
        stopping.set()


async def opened(port: int) -> Opened:
    return await asyncio.open_connection("127.0.0.1", port)


async def answered(connection: Opened, sent: bytes) -> bytes:
    """Returns the status line of the response."""
    reader, writer = connection
    writer.write(sent)
    return await reader.readline()


@pytest.mark.parametrize(
    "sent",
    [
        HEALTH + b"x: " + b"a" * MAX_HEADER_BYTES,
        b"GET /" + b"a" * MAX_HEADER_BYTES,
        HEALTH + b"x: a\r\n" * (MAX_HEADER_BYTES // 6),
        b"\r\n" * MAX_HEADER_BYTES,
    ],
    ids=["one", "path", "many", "empty lines"],
)
@pytest.mark.shows("A6")
async def test_headers_beyond_64_kib_are_answered_with_431_while_they_arrive(sent: bytes) -> None:
    async with listening() as port:
        reader, writer = connection = await opened(port)
        assert await answered(connection, sent) == b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
        assert b"connection: close" in await reader.read()
        writer.close()


async def test_headers_of_nearly_64_kib_are_read_on_one_connection_again_and_again() -> None:
    async with listening() as port:
        reader, writer = connection = await opened(port)
        for _ in range(3):
            sent = HEALTH + b"x: " + b"a" * (MAX_HEADER_BYTES - 100) + b"\r\n\r\n"
            assert await answered(connection, sent) == b"HTTP/1.1 200 OK\r\n"
            await reader.readuntil(b'{"status":"ok"}')
        writer.close()


async def test_trailers_behind_a_body_are_headers_too() -> None:
    async with listening() as port:
        reader, writer = await opened(port)
        writer.write(b"POST /healthz HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"1\r\na\r\n0\r\n")
        writer.write(b"x: " + b"a" * 4 * MAX_HEADER_BYTES)
        told = await reader.read()
        assert b" 431 " in told or told.endswith(b'Method Not Allowed"}')
        writer.close()


@pytest.mark.shows("A7")
async def test_a_connection_beyond_the_limit_is_answered_with_503() -> None:
    async with listening(connections=3) as port:
        others = [await opened(port) for _ in range(3)]
        for each in others:
            assert await answered(each, HEALTH + b"\r\n") == b"HTTP/1.1 200 OK\r\n"
        reader, writer = await opened(port)
        told = await reader.read()
        assert told.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nretry-after: 1\r\n" in told
        await others[0][0].readuntil(b'{"status":"ok"}')
        assert await answered(others[0], HEALTH + b"\r\n") == b"HTTP/1.1 200 OK\r\n"
        for _, opened_writer in [*others, (reader, writer)]:
            opened_writer.close()


@pytest.mark.parametrize("end", ["timeout_keep_alive_handler", "shutdown", "on_response_complete"])
@pytest.mark.shows("issue13-closed-connections")
async def test_a_closed_connection_whose_response_is_not_read_is_aborted(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.1)
    lost = asyncio.Event()
    app = create_app(edge_runtime(), stopping=lost, methods=METHODS)
    config = Config(app, log_config=None)
    config.load()

    class Observed(LimitedProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    ours, theirs = socket.socketpair()
    with theirs:
        transport, protocol = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Observed(config, ServerState(), {}), ours
        )
        written = 0
        while not (unsent := transport.get_write_buffer_size()):
            transport.write(b"a" * 4_096)
            written += 4_096
        if end == "on_response_complete":
            transport.close()
        getattr(protocol, end)()
        async with asyncio.timeout(10):
            await lost.wait()
        with theirs.makefile("rb") as received:
            assert len(received.read()) == written - unsent


@pytest.mark.shows("A7")
def test_files_are_left_for_the_pools() -> None:
    """In a subprocess, since the limit of open files cannot be raised again."""
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 200))\n"
        "from agentcore.server import connection_limit\n"
        "print(connection_limit(1_000, 10), connection_limit(20, 10), connection_limit(1_000, 90),\n"
        "      resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    many, few, least, soft = map(int, done.stdout.split())
    assert 80 < many < 132
    assert (few, least, soft) == (20, MIN_CONNECTIONS, 200)


def test_a_process_that_may_open_many_files_has_the_connections_it_wants() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert connection_limit(10, 1) == 10
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
