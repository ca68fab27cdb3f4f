"""The examples of the JSON-RPC 2.0 specification (section 7), answered exactly as printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fixtures.rpc_methods import Service

EXAMPLES = {
    "positional parameters": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        '{"jsonrpc": "2.0", "result": 19, "id": 1}',
    ),
    "positional parameters, the other way round": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        '{"jsonrpc": "2.0", "result": -19, "id": 2}',
    ),
    "named parameters": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        '{"jsonrpc": "2.0", "result": 19, "id": 3}',
    ),
    "named parameters in another order": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        '{"jsonrpc": "2.0", "result": 19, "id": 4}',
    ),
    "a notification": ('{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
    "a notification without params, of no known method": ('{"jsonrpc": "2.0", "method": "foobar"}', None),
    "a method that does not exist": (
        '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
        '{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}',
    ),
    "invalid JSON": (
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        '{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}',
    ),
    "an invalid request object": (
        '{"jsonrpc": "2.0", "method": 1, "params": "bar"}',
        '{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}',
    ),
    "a batch of invalid JSON": (
        '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method"]',
        '{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}',
    ),
    "an empty array": ("[]", '{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}'),
    "an invalid batch that is not empty": (
        "[1]",
        '[{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}]',
    ),
    "an invalid batch": (
        "[1,2,3]",
        '[{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},'
        ' {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},'
        ' {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}]',
    ),
    "a batch of everything": (
        '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},'
        ' {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},'
        ' {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},'
        ' {"foo": "boo"},'
        ' {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},'
        ' {"jsonrpc": "2.0", "method": "get_data", "id": "9"}]',
        '[{"jsonrpc": "2.0", "result": 7, "id": "1"},'
        ' {"jsonrpc": "2.0", "result": 19, "id": "2"},'
        ' {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},'
        ' {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"},'
        ' {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}]',
    ),
    "a batch of notifications": (
        '[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},'
        ' {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]',
        None,
    ),
}


def _without_data(answer: Any) -> Any:
    """Removes `data`, which servers may add to errors and the examples omit."""
    for each in answer if isinstance(answer, list) else [answer]:
        each.get("error", {}).pop("data", None)
    return answer


@pytest.mark.parametrize(("request_text", "printed"), EXAMPLES.values(), ids=EXAMPLES)
@pytest.mark.shows("AC-7", "issue2-4-JSON-RPC")
async def test_the_example_answers_as_printed(request_text: str, printed: str | None) -> None:
    answer = await Service().answer(request_text.encode())
    if printed is None:
        assert answer is None
    else:
        assert answer is not None
        assert _without_data(json.loads(answer)) == json.loads(printed)


async def test_members_come_in_the_order_the_specification_prints_them() -> None:
    service = Service()
    done = await service.answer(b'{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}')
    failed = await service.answer(b'{"jsonrpc": "2.0", "method": "foobar", "id": "1"}')
    assert done == b'{"jsonrpc": "2.0", "result": 19, "id": 1}'
    assert failed is not None
    assert failed.startswith(b'{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"')
    assert failed.endswith(b'}, "id": "1"}')
