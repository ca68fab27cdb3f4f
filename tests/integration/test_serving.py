"""The service on a real socket: addresses, large bodies, and graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest

from agentcore.auth import mint_token
from agentcore.errors import StartupError
from agentcore.server import ENDPOINT, bound, create_app, serve, stop_on_signals
from tests.fixtures.edge import METHODS, SECRET, edge_runtime, request
from tests.fixtures.rpc_methods import Gate

HEADERS = {"authorization": "Bearer " + mint_token(SECRET, "ada", [], 36_000)}


@dataclass
class Served:
    url: str
    stopping: asyncio.Event
    ended: asyncio.Task[None]
    gate: Gate

    async def post(self, body: object, http: httpx.AsyncClient) -> httpx.Response:
        return await http.post(self.url + ENDPOINT, json=body, headers=HEADERS)


@asynccontextmanager
async def served(grace_seconds: float = 5.0, host: str = "127.0.0.1") -> AsyncIterator[Served]:
    stopping, gate = asyncio.Event(), Gate()
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    runtime = edge_runtime(max_body_bytes=1_000_000)
    app = create_app(runtime, stopping=stopping, methods=[*METHODS, gate.method()])
    ended = asyncio.create_task(
        serve(
            app,
            address=bound(host, 0),
            stopping=stopping,
            grace_seconds=grace_seconds,
            on_listening=listening.set_result,
        )
    )
    try:
        async with asyncio.timeout(10):
            url = await listening
        yield Served(url, stopping, ended, gate)
    finally:
        stopping.set()
        gate.go.set()
        await ended


async def test_it_says_where_it_listens_and_answers_there() -> None:
    async with served() as service, httpx.AsyncClient() as http:
        response = await service.post(request("subtract", [42, 23]), http)
        silence = await service.post({"jsonrpc": "2.0", "method": "notify_hello", "params": [1]}, http)
    assert service.url.startswith("http://127.0.0.1:")
    assert not service.url.endswith(":0")
    assert (response.status_code, response.json()["result"]) == (200, 19)
    assert (silence.status_code, silence.content) == (204, b"")
    assert "server" not in response.headers


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
async def test_it_listens_on_ipv6_too() -> None:
    async with served(host="::1") as service, httpx.AsyncClient() as http:
        assert service.url.startswith("http://[::1]:")
        assert (await service.post(request("get_data"), http)).status_code == 200


async def test_a_port_that_is_taken_stops_the_start_with_a_sentence() -> None:
    async with served() as service:
        port = int(service.url.rpartition(":")[2])
        told = rf"Cannot listen on 127\.0\.0\.1:{port} .*choose another HOST or PORT"
        with pytest.raises(StartupError, match=told):
            bound("127.0.0.1", port)


def test_an_address_that_is_not_ours_stops_the_start() -> None:
    with pytest.raises(StartupError, match=r"Cannot listen on no\.such\.host\.invalid:0"):
        bound("no.such.host.invalid", 0)


def test_until_it_listens_a_bound_address_refuses_connections() -> None:
    with bound("127.0.0.1", 0) as address, pytest.raises(ConnectionRefusedError):
        socket.create_connection(address.getsockname(), timeout=10)


async def test_of_two_that_bind_an_address_at_once_the_later_to_listen_says_so() -> None:
    with bound("127.0.0.1", 0) as first, pytest.raises(StartupError, match="Cannot listen on"):
        second = bound(*first.getsockname())
        first.listen()
        await serve(
            create_app(edge_runtime()),
            address=second,
            stopping=asyncio.Event(),
            grace_seconds=1,
            on_listening=lambda url: None,
        )


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.shows("issue2-bad-input")
async def test_ten_megabytes_are_refused_and_the_connection_stays_good(chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    async with served() as service, httpx.AsyncClient() as http:
        for _ in range(2):
            response = await http.post(
                service.url + ENDPOINT, content=chunks() if chunked else b"x" * 10_000_000, headers=HEADERS
            )
            assert (response.status_code, response.json()["error"]["code"]) == (413, -32003)
        assert (await service.post(request("get_data"), http)).status_code == 200


async def test_a_large_body_without_a_token_is_told_so() -> None:
    async with served() as service, httpx.AsyncClient() as http:
        response = await http.post(service.url + ENDPOINT, content=b"x" * 10_000_000)
        assert response.status_code == 401


@pytest.mark.shows("issue2-14-shutdown")
async def test_a_stop_finishes_the_calls_it_took() -> None:
    async with served() as service, httpx.AsyncClient() as http, httpx.AsyncClient() as other:
        assert (await service.post(request("get_data"), other)).status_code == 200
        taken = asyncio.create_task(service.post([request("wait"), request("get_data")], http))
        await service.gate.entered.acquire()
        service.stopping.set()
        assert not service.ended.done()
        service.gate.go.set()
        response = await taken
        assert response.status_code == 200
        assert [answer.get("result") for answer in response.json()] == [None, ["hello", 5]]
        await service.ended
        with pytest.raises(httpx.ConnectError):
            await service.post(request("get_data"), other)


async def test_a_stop_does_not_wait_for_ever() -> None:
    async with served(grace_seconds=0.1) as service, httpx.AsyncClient() as http:
        taken = asyncio.create_task(service.post(request("wait"), http))
        await service.gate.entered.acquire()
        service.stopping.set()
        async with asyncio.timeout(10):
            await service.ended
        assert not service.gate.go.is_set()
        with contextlib.suppress(httpx.HTTPError):
            await taken


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_asks_for_the_stop(sent: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGTERM)
    stopping = asyncio.Event()
    with stop_on_signals(stopping):
        os.kill(os.getpid(), sent)
        async with asyncio.timeout(10):
            await stopping.wait()
    assert signal.getsignal(signal.SIGTERM) == before


async def exchange(url: str, raw: bytes, until: bytes) -> bytes:
    """Sends bytes to a server and returns its response up to and including `until`."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(raw)
        async with asyncio.timeout(10):
            return await reader.readuntil(until)
    finally:
        writer.close()
        await writer.wait_closed()


async def test_expect_100_is_answered_with_the_refusal_itself() -> None:
    async with served() as service:
        head = (
            f"POST {ENDPOINT} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n"
            f"Authorization: {HEADERS['authorization']}\r\n\r\n"
        )
        assert (await exchange(service.url, head.encode(), b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")


async def test_pipelined_requests_are_answered_in_order() -> None:
    raw = b""
    for number in (1, 2, 3):
        body = json.dumps(request("get_data", id=number))
        raw += (
            f"POST {ENDPOINT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: {HEADERS['authorization']}\r\n\r\n{body}"
        ).encode()
    async with served() as service:
        said = await exchange(service.url, raw, b'"id": 3}')
    assert said.count(b"HTTP/1.1 200 ") == 3
    assert said.index(b'"id": 1}') < said.index(b'"id": 2}') < said.index(b'"id": 3}')
