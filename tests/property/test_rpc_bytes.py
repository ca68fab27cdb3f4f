"""Any bytes sent to the endpoint produce a valid JSON-RPC response or none, never an internal error."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from agentcore.auth import mint_token
from agentcore.errors import JsonRpcErrorCode
from agentcore.memory.api import METHODS, SCOPES
from agentcore.rpc import RpcMethod
from agentcore.server import ENDPOINT, create_app
from tests.fixtures.edge import SECRET, edge_runtime
from tests.fixtures.rpc_methods import nothing, specification_methods

TOKEN = mint_token(SECRET, "ada", SCOPES, 36_000).encode()
CODES = {int(code) for code in JsonRpcErrorCode}


@functools.cache
def application() -> Starlette:
    """Returns an app with the specification's methods and every memory method without its action."""
    memory: list[RpcMethod[Any]] = [
        RpcMethod(each.name, each.params, None, nothing, each.summary, each.scope) for each in METHODS
    ]
    runtime = edge_runtime(rate_limit_per_minute=0, max_batch_calls=20, max_body_bytes=10_000)
    return create_app(runtime, methods=[*specification_methods(), *memory])


async def send_bytes(body: bytes) -> tuple[int, bytes]:
    """Returns the endpoint's status and body."""
    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    await application()(
        {
            "type": "http",
            "method": "POST",
            "path": ENDPOINT,
            "root_path": "",
            "query_string": b"",
            "headers": [(b"authorization", b"Bearer " + TOKEN), (b"content-type", b"application/json")],
        },
        receive,
        send,
    )
    return said[0]["status"], said[1]["body"]


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def assert_legal_response(response: Any) -> None:
    """Asserts a response object of section 5 of the specification, with our one extension."""
    assert set(response) - {"a2a_context"} in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    assert response["jsonrpc"] == "2.0"
    assert response["id"] is None or type(response["id"]) in (str, int, float)
    if "error" in response:
        error = response["error"]
        assert set(error) - {"data"} == {"code", "message"}
        assert error["code"] in CODES - {JsonRpcErrorCode.INTERNAL_ERROR}
        assert isinstance(error["message"], str)


async def assert_legal_answer(body: bytes) -> Any:
    """Returns the endpoint's answer after validating it; None without a response."""
    status, answer = await send_bytes(body)
    if status == 204:
        assert answer == b""
        return None
    assert status in (200, 413)
    said = json.loads(answer, parse_constant=refuse_constant)
    if isinstance(said, list):
        assert said
        for response in said:
            assert_legal_response(response)
    else:
        assert_legal_response(said)
    return said


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)


texts = st.text(st.characters(codec=None), max_size=20)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | texts, nested, max_leaves=12)
known = [*(method.name for method in METHODS), "subtract", "sum", "update", "notify_hello", "get_data", "rpc.discover"]
fields = st.sampled_from(sorted({field for method in METHODS for field in method.params.model_fields}))
named = st.dictionaries(fields | st.text(max_size=5), values, max_size=5)
params = st.lists(values, max_size=4) | named | values
requests = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | values, "method": st.sampled_from(known) | values},
    optional={"params": params, "id": values, "a2a_context": values | named},
)
bodies = requests | st.lists(requests | values, max_size=25)
valid = st.sampled_from(
    [
        b'{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        b'{"jsonrpc": "2.0", "method": "memory.store", "params": {"content": "\\u00e9"}, "id": "\\ud83d\\ude00"}',
        b'[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": 1e3}, {"jsonrpc": "2.0", "method": "update"}]',
        b'{"jsonrpc": "2.0", "method": "memory.retrieve", "params": {"query": "a", "k": 5}, "id": 1,'
        b' "a2a_context": {"source_agent": "a"}}',
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Returns a valid request with parts cut out, duplicated or overwritten."""
    body = draw(valid)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(len(body), start + 12)))
        body = body[:start] + draw(st.binary(max_size=4) | st.just(body[start:end] * 2)) + body[end:]
    return body


@settings(deadline=None)
@given(st.binary(max_size=200))
@pytest.mark.shows("issue2-bad-input", "issue2-any-bytes")
async def test_random_bytes(body: bytes) -> None:
    await assert_legal_answer(body)


@settings(deadline=None)
@given(st.text(alphabet='{}[]",:\\u0129aAeE.+-ntrulfs ', max_size=120))
async def test_random_text_of_jsons_own_characters(text: str) -> None:
    await assert_legal_answer(text.encode())


@settings(deadline=None)
@given(mutated())
async def test_valid_requests_with_damage(body: bytes) -> None:
    await assert_legal_answer(body)


@settings(deadline=None)
@given(bodies, st.booleans())
@pytest.mark.shows("issue2-any-bytes")
async def test_random_json(body: Any, ascii_only: bool) -> None:
    text = json.dumps(body, ensure_ascii=ascii_only)
    said = await assert_legal_answer(text.encode(errors="surrogatepass"))
    if isinstance(said, list):
        assert isinstance(body, list)
        assert len(said) <= len(body)


@settings(deadline=None)
@given(st.sampled_from(known), params, st.integers() | st.text(max_size=20) | st.none())
async def test_a_wellformed_call_is_answered_under_its_id(method: str, given_params: Any, identity: Any) -> None:
    given_params = given_params if isinstance(given_params, list | dict) else {}
    call = {"jsonrpc": "2.0", "method": method, "params": given_params, "id": identity}
    said = await assert_legal_answer(json.dumps(call).encode())
    if said["id"] != identity:
        assert said["error"]["message"] == "Parse error"
        with pytest.raises(ValueError, match="not JSON compliant"):
            json.dumps(call, allow_nan=False)


@settings(deadline=None)
@given(st.integers(0, 4_000), st.sampled_from([("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")]))
async def test_nesting_of_any_depth(depth: int, pair: tuple[str, str]) -> None:
    for body in (pair[0] * depth + "1" + pair[1] * depth, pair[0] * depth):
        await assert_legal_answer(body.encode()[:10_000])
