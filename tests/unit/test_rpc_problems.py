"""Error messages for requests that cannot be parsed or are unknown."""

from __future__ import annotations

import pytest

from agentcore.rpc import RpcMethod
from tests.fixtures.rpc_methods import Nothing, Service, nothing

SECRET = "hunter2"


async def test_a_parse_error_says_where_and_quotes_nothing() -> None:
    answer = await Service().ask(b'{"password": "' + SECRET.encode() + b'" "method"}')
    assert answer["error"]["data"] == {"problem": f"Expecting ',' delimiter, at character {len(SECRET) + 17}"}


async def test_a_method_that_there_is_not_is_named_with_the_nearest_one() -> None:
    near, far = [await Service().call(name) for name in ("get_dat", "f" * 9_000)]
    assert near["error"]["data"] == {"problem": "there is no method 'get_dat'; did you mean get_data?"}
    assert len(far["error"]["data"]["problem"]) < 300


async def test_a_method_without_its_prefix_is_named_with_it() -> None:
    methods = [RpcMethod(name, Nothing, None, nothing, "Nothing.") for name in ("memory.store", "rpc.see")]
    answer = await Service(methods).call("store")
    assert answer["error"]["data"] == {"problem": "there is no method 'store'; did you mean memory.store?"}


async def test_a_request_without_a_method_keeps_its_id_and_says_what_is_missing() -> None:
    answer = await Service().ask(b'{"jsonrpc": "2.0", "id": "a-1", "params": {}}')
    assert (answer["id"], answer["error"]["code"]) == ("a-1", -32600)
    assert answer["error"]["data"]["problem"].startswith("method is required")


@pytest.mark.parametrize(
    "body",
    [
        1,
        "text",
        None,
        True,
        {},
        {"foo": "boo"},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "method": None},
        {"jsonrpc": "2.0", "method": 1, "id": [7]},
    ],
)
async def test_a_value_without_a_method_is_an_invalid_request(body: object) -> None:
    answer = await Service().ask(body)
    assert answer["error"].pop("data")["problem"]
    assert answer == {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": None}
