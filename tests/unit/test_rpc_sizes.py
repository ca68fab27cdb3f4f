"""How large and how deep a body may be, found out before anything is made of it."""

from __future__ import annotations

import tracemalloc

import pytest

from agentcore.limits import MAX_DEPTH, MAX_VALUES
from tests.fixtures.rpc_methods import Service


@pytest.mark.parametrize("body", [
    b"[" + b"[]," * 2_700_000 + b"[]]", b"[" + b"0," * 4_000_000 + b"0]", b'["' + b'","' * 2_600_000 + b'"]',
    b'{"a":' + b"[{}]," * 1_600_000, b"[" * 65 + b'"' * 7_000_000,
], ids=["arrays", "numbers", "strings", "mixed", "quotes"])
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(body: bytes) -> None:
    tracemalloc.start()
    try:
        answer = await Service().ask(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer["error"]["code"] == -32003
    assert answer["error"]["data"] == {"max_values": MAX_VALUES}
    # Parsed, it would be ten times as large as it is written.
    assert peak < 5 * len(body)


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
