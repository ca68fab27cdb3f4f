"""Checks before /mcp: token, origin, sizes and rates as at the JSON-RPC endpoint, and no open session."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from secrets import token_hex
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.limits import MAX_MESSAGE_BYTES
from agentcore.memory.jsonrpc import MemoryCall, memory_methods
from agentcore.memory.params.memories import GetParams, StoreParams
from agentcore.rpc import RpcMethod
from agentcore.runtime import Runtime
from agentcore.server import ENDPOINT, MCP_ENDPOINT, create_app
from tests.fixtures.edge import SECRET, Edge, request, running

LIST = request("tools/list")
LOCAL = ["http://localhost:6274", "http://127.0.0.1", "https://[::1]:8443"]
FOREIGN = [
    "https://evil.example",
    "http://evil.example:8080",
    "http://localhost.evil.example",
    "null",
    "",
    "file://localhost",
    "http://[",
    "http://127.0.0.1.evil.example:8080",
]


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with running() as started:
        yield started


async def ask(http: httpx.AsyncClient, body: object, token: str | None = None, **headers: str) -> httpx.Response:
    """Posts one MCP message as a client does."""
    given = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    if token is not None:
        given["authorization"] = f"Bearer {token}"
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await http.post(MCP_ENDPOINT, content=content, headers=given)


def token_of(agent: str = "ada", ttl_seconds: float = 600, secret: str = SECRET) -> str:
    return mint_token(secret, agent, ["memory:read", "memory:write"], ttl_seconds)


# --- authentication -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "challenge"),
    [
        pytest.param(None, 'Bearer realm="agentcore"', id="absent"),
        pytest.param(
            "a.b.c",
            'Bearer realm="agentcore", error="invalid_token", error_description="The token is malformed."',
            id="malformed",
        ),
        pytest.param(
            token_of(ttl_seconds=-60),
            'Bearer realm="agentcore", error="invalid_token", error_description="The token has expired."',
            id="expired",
        ),
        pytest.param(
            token_of(secret=token_hex(32)),
            'Bearer realm="agentcore", error="invalid_token", error_description="The token\'s signature is wrong."',
            id="forged",
        ),
    ],
)
@pytest.mark.shows("issue6-5-MCP-gate")
async def test_a_message_without_a_good_token_is_401_with_a_challenge(
    edge: Edge, token: str | None, challenge: str
) -> None:
    response = await ask(edge.http, LIST, token)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == challenge
    assert response.json()["error"]["code"] == -32103


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.shows("issue6-5-MCP-gate")
async def test_a_page_of_another_origin_is_refused_whatever_token_it_has(edge: Edge, origin: str) -> None:
    response = await ask(edge.http, LIST, token_of(), origin=origin)
    assert response.status_code == 403
    assert "tools" not in response.text


@pytest.mark.parametrize("origin", LOCAL)
async def test_a_page_of_this_machine_may_call_with_a_token_and_not_without(edge: Edge, origin: str) -> None:
    assert (await ask(edge.http, LIST, token_of(), origin=origin)).status_code == 200
    assert (await ask(edge.http, LIST, origin=origin)).status_code == 401


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_is_no_session_to_listen_to_or_to_end(edge: Edge, method: str) -> None:
    response = await edge.http.request(method, MCP_ENDPOINT)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


# --- limits -------------------------------------------------------------------------------------------------


@pytest.mark.shows("issue6-5-MCP-gate")
async def test_messages_and_calls_of_an_agent_are_counted_together() -> None:
    async with running(rate_limit_per_minute=2) as edge:
        assert (await edge.post(request("subtract", [1, 1]))).status_code == 200
        assert (await ask(edge.http, LIST, token_of())).status_code == 200
        third = await ask(edge.http, LIST, token_of())
        assert third.status_code == 429
        assert int(third.headers["retry-after"]) >= 1
        assert third.json()["id"] == 1
        assert (await edge.post(request("subtract", [1, 1]))).status_code == 429
        assert (await ask(edge.http, LIST, token_of("bob"))).status_code == 200


@pytest.mark.shows("issue6-5-MCP-gate")
async def test_a_message_larger_than_the_service_takes_is_413() -> None:
    async with running(max_body_bytes=1_024) as edge:
        response = await ask(edge.http, request("tools/list", {"cursor": "x" * 1_024}), token_of())
    assert response.status_code == 413


async def test_a_message_longer_than_any_tool_needs_is_413_also_where_calls_may_be_larger(edge: Edge) -> None:
    body = request("hello", {"x": "x" * MAX_MESSAGE_BYTES})
    assert (await ask(edge.http, body, token_of())).status_code == 413
    assert (await edge.post(body)).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b'{"jsonrpc": "2.0", "id": NaN, "method": "tools/list"}',
        b"[" * 1_000 + b"]" * 1_000,
        json.dumps([LIST, LIST]).encode(),
        json.dumps([LIST]).encode(),
        b"[]",
        b"{}",
        b"7",
    ],
)
async def test_what_is_no_message_is_400_and_never_a_failure(edge: Edge, body: bytes) -> None:
    response = await ask(edge.http, body, token_of())
    assert response.status_code == 400
    assert response.json()["error"]["code"] in (-32700, -32600, -32602)


# --- routes -------------------------------------------------------------------------------------------------


@pytest.mark.shows("issue6-5-MCP-extra")
async def test_without_the_extra_the_answer_says_what_to_install_and_the_rest_works(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = [name for name in sys.modules if name.startswith("mcp.")]
    for name in ("mcp", *loaded):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "agentcore.integrations.mcp", raising=False)
    with caplog.at_level(logging.INFO, "agentcore.edge"):
        response = await ask(edge.http, LIST, token_of())
    assert response.status_code == 501
    [line] = caplog.records
    assert (line.__dict__["agent_id"], line.__dict__["outcome"]) == ("ada", "internal_error")
    said = response.json()["error"]["message"]
    assert said.startswith("The endpoint 'mcp' needs the package 'mcp', which is not installed")
    assert said.endswith("pip install 'agentcore-memory[mcp]'.")
    assert (await ask(edge.http, LIST)).status_code == 401
    assert (await edge.post(request("subtract", [42, 23]))).json()["result"] == 19


async def test_an_answer_carries_the_request_id_and_the_trace(edge: Edge) -> None:
    trace_id = uuid4().hex
    response = await ask(edge.http, LIST, token_of(), traceparent=f"00-{trace_id}-00f067aa0ba902b7-01")
    assert response.headers["traceresponse"].split("-")[1] == trace_id
    assert response.headers["x-request-id"]


async def test_the_card_of_the_service_is_open_and_names_the_address_it_was_asked_at(edge: Edge) -> None:
    response = await edge.http.get("/.well-known/agent-card.json")
    assert response.json()["supportedInterfaces"][0]["url"] == f"http://edge{ENDPOINT}"
    face = (await edge.http.get("/")).json()
    assert (face["mcp"], face["agent_card"]) == (MCP_ENDPOINT, "/.well-known/agent-card.json")


# --- shutdown -----------------------------------------------------------------------------------------------


async def test_a_message_that_comes_once_the_service_stops_is_503(edge: Edge) -> None:
    edge.stopping.set()
    response = await ask(edge.http, LIST, token_of())
    assert (response.status_code, response.json()["error"]["code"]) == (503, -32006)


async def test_a_tool_that_runs_when_the_service_stops_is_carried_through(runtime: Runtime) -> None:
    """A correction reads and then changes the memory; the stop is requested in between."""
    stopping = asyncio.Event()

    def then_stops(method: RpcMethod[MemoryCall]) -> RpcMethod[MemoryCall]:
        async def handler(call: MemoryCall, params: Any) -> Any:
            stopping.set()
            return await method.handler(call, params)

        return replace(method, handler=handler) if method.name == "memory.get" else method

    app = create_app(runtime, stopping=stopping, methods=[then_stops(each) for each in memory_methods()])
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    token = token_of(f"agent-{uuid4()}", secret=secret.get_secret_value())
    own = httpx.ASGITransport(create_app(runtime))
    async with MemoryClient("http://own", token, transport=own) as memory:
        stored = await memory.store(StoreParams(content="The key lies under the mat."))
        call = request(
            "tools/call",
            {
                "name": "update_memory",
                "arguments": {"memory_id": str(stored.memory_id), "content": "The key lies in the blue tin."},
            },
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://edge") as http:
            result = (await ask(http, call, token)).json()["result"]
        assert stopping.is_set()
        assert result["isError"] is False
        assert stored.memory_id is not None
        record = (await memory.get(GetParams(memory_id=stored.memory_id))).memory
        assert record.content == "The key lies in the blue tin."
