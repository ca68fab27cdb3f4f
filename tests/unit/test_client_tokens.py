"""Token sources of a client and their failures; call metadata that cannot be serialized."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from agentcore.client import MemoryClient, TokenSource
from agentcore.errors import AuthenticationFailed, DependencyUnavailable, InvalidParams
from agentcore.memory.params.memories import CountParams, RetrieveParams
from tests.fixtures.scripted_transport import Script, error, result

COUNTED = {"count": 3, "receipt": {}}
SAID = datetime(2026, 5, 1, 10, tzinfo=UTC)


def client(script: Script, token: TokenSource, **options: Any) -> MemoryClient:
    return MemoryClient("http://memory.test", token, transport=script, **options)


def broken() -> str:
    raise ConnectionResetError("the identity provider is gone, and its secret is hunter2")


async def broken_async() -> str:
    return broken()


def stuck() -> str:
    threading.Event().wait(1)
    return "too.late.now"


async def stuck_async() -> str:
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    return await never


async def late_by_itself() -> str:
    raise TimeoutError


@pytest.mark.parametrize("source", [broken, broken_async, late_by_itself])
@pytest.mark.shows("issue6-1-token-refresh")
async def test_a_source_that_fails_is_a_part_that_does_not_answer(source: TokenSource) -> None:
    async with client(Script(), source, max_attempts=1) as memory:
        with pytest.raises(DependencyUnavailable, match="source of the token failed with") as raised:
            await memory.count(CountParams())
    assert isinstance(raised.value.__cause__, (ConnectionResetError, TimeoutError))
    assert "hunter2" not in raised.value.message


@pytest.mark.parametrize("source", [stuck, stuck_async])
@pytest.mark.shows("issue6-1-token-refresh")
async def test_a_source_is_waited_for_no_longer_than_a_call(source: TokenSource) -> None:
    # Sequentially they would take 20 s.
    async with client(Script(), source, timeout_seconds=1.0, max_attempts=1) as memory:
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*(memory.count(CountParams()) for _ in range(20)), return_exceptions=True)
    assert {str(answer) for answer in answers} == {"The source of the token gave none within 1 s."}


@pytest.mark.parametrize("source", [broken, broken_async, stuck_async])
@pytest.mark.shows("issue6-1-token-refresh")
async def test_failing_open_an_agent_goes_on_without_a_source(source: TokenSource) -> None:
    async with client(Script(), source, fail_open=True, timeout_seconds=0.3, max_attempts=1) as memory:
        found = await memory.retrieve(RetrieveParams(query="sky"))
    assert list(found.memories) == []
    assert "memory was not asked" in found.receipt.degraded[0]


async def test_a_source_without_await_holds_no_other_call_up() -> None:
    released = threading.Event()

    def source() -> str:
        assert released.wait(10)
        return "t.o.ken"

    async with client(Script(result(COUNTED)), source) as memory:
        counting = asyncio.create_task(memory.count(CountParams()))
        asyncio.get_running_loop().call_soon(released.set)
        assert (await counting).count == 3


@pytest.mark.parametrize("given", ["", "two words", "tök.e.n", None, b"t.o.ken"])
@pytest.mark.shows("issue6-1-token-refresh")
async def test_what_is_no_token_is_said_also_failing_open(given: Any) -> None:
    async with client(Script(), lambda: given, fail_open=True) as memory:
        with pytest.raises(AuthenticationFailed, match="not a JWT"):
            await memory.retrieve(RetrieveParams(query="sky"))


async def test_a_source_that_refuses_is_heard_as_it_is() -> None:
    def refuse() -> str:
        raise AuthenticationFailed("This agent is locked.")

    async with client(Script(), refuse, fail_open=True) as memory:
        with pytest.raises(AuthenticationFailed, match="locked"):
            await memory.retrieve(RetrieveParams(query="sky"))


async def test_calls_at_the_same_time_ask_a_source_once_and_after_a_failure_again() -> None:
    asked: list[int] = []

    async def source() -> str:
        asked.append(len(asked))
        if len(asked) == 1:
            raise ConnectionResetError
        return "t.o.ken"

    async with client(Script(result(COUNTED), result(COUNTED)), source, max_attempts=1) as memory:
        lost = await asyncio.gather(*(memory.count(CountParams()) for _ in range(2)), return_exceptions=True)
        assert [type(each) for each in lost] == [DependencyUnavailable] * 2
        counts = await asyncio.gather(*(memory.count(CountParams()) for _ in range(2)))
    assert ([each.count for each in counts], len(asked)) == ([3, 3], 2)


async def test_a_caller_who_gives_up_leaves_the_token_to_the_others() -> None:
    asked = asyncio.Event()
    minted: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def source() -> str:
        asked.set()
        return await minted

    async with client(Script(result(COUNTED)), source) as memory:
        one, other = (asyncio.create_task(memory.count(CountParams())) for _ in range(2))
        await asked.wait()
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        minted.set_result("t.o.ken")
        assert (await other).count == 3


@pytest.mark.parametrize(
    "carried",
    [
        {"traceparent": "0ö-1"},
        {"traceparent": "00-1\r\nX-Evil: 1"},
        {"a2a_context": {"at": [float("nan")]}},
        {"a2a_context": {"agent": object()}},
    ],
)
async def test_what_a_call_cannot_carry_is_refused_where_it_is_given(carried: Mapping[str, Any]) -> None:
    async with client(Script(), "t.o.ken") as memory:
        with pytest.raises(InvalidParams, match=next(iter(carried))):
            memory.traced(**carried)
    if "traceparent" in carried:
        with pytest.raises(InvalidParams, match="traceparent"):
            client(Script(), "t.o.ken", traceparent=carried["traceparent"])


@pytest.mark.parametrize("together", [False, True])
async def test_a_time_in_an_a2a_context_goes_as_text(together: bool) -> None:
    script = Script(result(COUNTED))
    async with client(script, "t.o.ken") as memory:
        view = memory.traced(a2a_context={"source_agent": "planner", "timestamp": SAID})
        async with asyncio.timeout(10):
            await (view.batched() if together else view).count(CountParams())
    assert script.body()["a2a_context"] == {"source_agent": "planner", "timestamp": "2026-05-01T10:00:00Z"}


async def test_a_refused_token_that_cannot_be_renewed_stays_refused() -> None:
    async with client(Script(httpx.Response(401), error(-32103, status=401)), "t.o.ken") as memory:
        for _ in range(2):
            with pytest.raises(AuthenticationFailed):
                await memory.count(CountParams())


async def test_a_source_that_has_no_more_to_give_is_a_part_that_does_not_answer() -> None:
    minted = iter(["once"])
    script = Script(error(-32103, status=401))
    async with client(script, lambda: next(minted), max_attempts=1) as memory:
        with pytest.raises(DependencyUnavailable, match="failed with RuntimeError"):
            await memory.count(CountParams())
