"""Size and depth limits of bodies, checked before parsing."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from pydantic import BaseModel

from agentcore.limits import MAX_DEPTH, MAX_MEMBERS, MAX_MEMBERS_IN_ALL, MAX_VALUES
from agentcore.rpc import MAX_PROBLEMS, Limits, RpcMethod
from tests.fixtures.rpc_methods import Nothing, Service


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 2_700_000 + b"[]]",
        b"[" + b"0," * 4_000_000 + b"0]",
        b'["' + b'","' * 2_600_000 + b'"]',
        b'{"a":' + b"[{}]," * 1_600_000,
        b"[" * 65 + b'"' * 7_000_000,
    ],
    ids=["arrays", "numbers", "strings", "mixed", "quotes"],
)
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(body: bytes) -> None:
    tracemalloc.start()
    try:
        answer = await Service().ask(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer["error"]["code"] == -32003
    assert answer["error"]["data"] == {"max_values": MAX_VALUES}
    # Parsed, it would be ten times its serialized size.
    assert peak < 5 * len(body)


@pytest.mark.shows("A2")
async def test_a_body_of_too_many_members_is_refused_before_it_is_parsed() -> None:
    body = b"[{" + b",".join(b'"%x":0' % number for number in range(MAX_MEMBERS_IN_ALL + 1)) + b"}"
    answer = await Service().ask(body)  # rejected before parsing, though it is not JSON
    assert answer["error"]["code"] == -32003
    assert answer["error"]["data"] == {"max_all_members": MAX_MEMBERS_IN_ALL}


@pytest.mark.parametrize(("count", "code"), [(MAX_MEMBERS, -32602), (MAX_MEMBERS + 1, -32003)])
@pytest.mark.shows("A2")
async def test_an_object_of_too_many_members_is_refused(count: int, code: int) -> None:
    answer = await Service().call("subtract", {str(number): number for number in range(count)})
    assert answer["error"]["code"] == code


@pytest.mark.shows("A2")
async def test_many_unknown_params_are_named_within_bounds() -> None:
    answer = await Service().call("get_data", {"x" * 500 + str(number): 0 for number in range(1_000)})
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["errors"] == [{"field": "x" * 200, "problem": "is not a known field"}] * MAX_PROBLEMS


def large(executed: list[int], *, reads: bool) -> RpcMethod[Any]:
    async def answer_much(context: object, params: BaseModel) -> str:
        executed.append(1)
        return "x" * 1_000

    return RpcMethod("large", Nothing, str, answer_much, "Much.", reads=reads)


@pytest.mark.shows("A3")
async def test_a_batch_executes_nothing_once_its_response_is_full() -> None:
    executed: list[int] = []
    service = Service([large(executed, reads=True)], Limits(batch_concurrency=1, max_response_bytes=3_500))
    answers = await service.ask([{"jsonrpc": "2.0", "method": "large", "id": number} for number in range(10)])
    assert ["result" in each for each in answers] == [True] * 3 + [False] * 7
    assert {each["error"]["code"] for each in answers[3:]} == {-32003}
    assert answers[9]["error"]["data"] == {"max_response_bytes": 3_500}
    assert len(executed) == 4  # the fourth exceeded the limit


async def test_what_a_write_answers_is_never_dropped() -> None:
    executed: list[int] = []
    service = Service([large(executed, reads=False)], Limits(batch_concurrency=1, max_response_bytes=1_500))
    answers = await service.ask([{"jsonrpc": "2.0", "method": "large", "id": number} for number in range(4)])
    assert ["result" in each for each in answers] == [True, True, False, False]
    assert len(executed) == 2


async def test_commas_and_brackets_of_a_text_are_no_values() -> None:
    text = '[1,"2\\' * 300_000
    answer = await Service().call("subtract", {text: 1})
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
async def test_the_deepest_nesting_that_is_allowed_is_read(opening: str, closing: str) -> None:
    levels = MAX_DEPTH // (opening.count("[") + opening.count("{")) - 1
    body = "[" + ",".join([opening * levels + "1" + closing * levels] * 50) + "]"
    answer = await Service().ask(body.encode())
    assert [each["error"]["code"] for each in answer] == [-32600] * 50
