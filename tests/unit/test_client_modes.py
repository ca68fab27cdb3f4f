"""Client modes: failing open, batches of calls, and the sync client."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from agentcore.client import MemoryClient, SyncMemoryClient, TokenSource
from agentcore.errors import (
    AgentCoreError,
    ClientClosed,
    ConfigurationError,
    DependencyUnavailable,
    InvalidParams,
    NotFound,
    TooLarge,
)
from agentcore.memory.api import METHODS
from agentcore.memory.params.memories import (
    CountParams,
    CountResult,
    GetContextParams,
    GetParams,
    RetrieveParams,
    StoreParams,
)
from agentcore.memory.params.sessions import SummarizeParams
from tests.fixtures.scripted_transport import Answer, Script, error, result

TOKEN = "t.o.ken"
READS: list[Callable[[MemoryClient], Awaitable[Any]]] = [
    lambda memory: memory.retrieve(RetrieveParams(query="sky")),
    lambda memory: memory.get_context(GetContextParams(query="sky")),
    lambda memory: memory.summarize(SummarizeParams(session_id="s")),
]


def client(transport: httpx.AsyncBaseTransport, token: TokenSource = TOKEN, **options: Any) -> MemoryClient:
    return MemoryClient("http://memory.test", token, transport=transport, **options)


def counted(request: httpx.Request) -> httpx.Response:
    """Answers each call of a batch with its id, in reverse order."""
    calls = json.loads(request.content)
    return httpx.Response(
        200,
        json=[
            {"jsonrpc": "2.0", "id": call["id"], "result": {"count": call["id"], "receipt": {}}}
            for call in reversed(calls)
        ],
    )


class Silent(httpx.AsyncBaseTransport):
    """Never responds."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        return await answer


# --- failing open -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.Response(503),
        error(-32006),
        error(-32603),
        httpx.Response(429),
        httpx.Response(500, text="<html>"),
        httpx.Response(520),
        httpx.Response(404, text="default backend"),
        httpx.Response(200, text="<html>Sign in to this network"),
        result({"of": "another service"}),
    ],
)
@pytest.mark.shows("issue6-1-fail-open")
async def test_failing_open_a_search_is_empty_and_says_why(
    read: Callable[[MemoryClient], Awaitable[Any]], failure: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(Script(failure), fail_open=True, max_attempts=1) as memory:
        answer = await read(memory)
    assert not any(getattr(answer, name, None) for name in ("memories", "context", "summary"))
    assert "memory was not asked" in answer.receipt.degraded[0]
    [warning] = [record for record in caplog.records if record.name == "agentcore.client.memory_client"]
    assert (warning.levelname, "goes without memory" in warning.message) == ("WARNING", True)


@pytest.mark.parametrize(
    "failure", [error(-32602), error(-32103, status=401), error(-32104), httpx.Response(403), httpx.Response(401)]
)
@pytest.mark.shows("issue6-1-fail-open")
async def test_failing_open_hides_no_mistake_of_the_caller(failure: httpx.Response) -> None:
    async with client(Script(failure), fail_open=True) as memory:
        with pytest.raises(AgentCoreError):
            await memory.retrieve(RetrieveParams(query="sky"))


async def test_failing_open_a_write_or_an_exact_read_still_fails() -> None:
    script = Script(httpx.Response(503), httpx.Response(503))
    async with client(script, fail_open=True, max_attempts=1) as memory:
        with pytest.raises(DependencyUnavailable):
            await memory.store(StoreParams(content="the sky is blue"))
        with pytest.raises(DependencyUnavailable):
            await memory.count(CountParams())


@pytest.mark.shows("issue6-1-fail-open")
async def test_failing_open_waits_no_longer_than_its_time_in_all() -> None:
    script = Script(*(error(-32004, data={"retry_after_seconds": 30}) for _ in range(3)))
    async with client(script, fail_open=True, timeout_seconds=0.2) as memory:
        answer = await memory.retrieve(RetrieveParams(query="sky"))
    assert "did not answer within 0.2 s" in answer.receipt.degraded[0]
    assert len(script.requests) == 1


# --- batches ------------------------------------------------------------------------------------------------


@pytest.mark.shows("issue6-1-batching")
async def test_calls_made_at_the_same_time_are_one_request_with_answers_of_their_own() -> None:
    script = Script(counted)
    async with client(script, token=lambda: TOKEN) as memory:
        together = memory.batched()
        counts = await asyncio.gather(*(together.count(CountParams()) for _ in range(20)))
    assert [each.count for each in counts] == list(range(1, 21))
    assert [call["method"] for call in script.body()] == ["memory.count"] * 20


async def test_a_call_alone_is_no_batch() -> None:
    script = Script(result({"count": 3, "receipt": {}}))
    async with client(script) as memory:
        assert (await memory.batched().count(CountParams())).count == 3
    assert script.body()["method"] == "memory.count"


async def test_one_calls_error_is_its_own() -> None:
    def mixed(request: httpx.Request) -> httpx.Response:
        first, second = json.loads(request.content)
        return httpx.Response(
            200,
            json=[
                {"jsonrpc": "2.0", "id": second["id"], "error": {"code": -32001, "message": "No such memory."}},
                {"jsonrpc": "2.0", "id": first["id"], "result": {"count": 1, "receipt": {}}},
            ],
        )

    async with client(Script(mixed)) as memory:
        together = memory.batched()
        calls = together.count(CountParams()), together.get(GetParams(memory_id=UUID(int=1)))
        count, lost = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(count, CountResult)
    assert count.count == 1
    assert isinstance(lost, NotFound)


async def test_a_batch_that_is_too_large_goes_in_halves() -> None:
    script = Script(error(-32003, status=413), counted, counted)
    async with client(script) as memory:
        together = memory.batched()
        counts = await asyncio.gather(*(together.count(CountParams()) for _ in range(4)))
    assert [each.count for each in counts] == [1, 2, 3, 4]
    assert [len(script.body(index)) for index in range(3)] == [4, 2, 2]


async def test_what_is_too_large_alone_says_so() -> None:
    async with client(Script(*(error(-32003, status=413) for _ in range(3)))) as memory:
        together = memory.batched()
        answers = await asyncio.gather(*(together.count(CountParams()) for _ in range(2)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [TooLarge, TooLarge]


async def test_more_calls_than_a_batch_holds_go_in_several() -> None:
    script = Script(counted, counted)
    async with client(script) as memory:
        together = memory.batched()
        counts = await asyncio.gather(*(together.count(CountParams()) for _ in range(150)))
    assert sorted(each.count for each in counts) == list(range(1, 151))
    assert sorted(len(script.body(index)) for index in range(2)) == [50, 100]


async def test_a_batch_whose_token_is_refused_is_sent_again_with_a_new_one() -> None:
    minted = iter(["old", "new"])
    script = Script(error(-32103, status=401), counted)
    async with client(script, token=lambda: next(minted)) as memory:
        together = memory.batched()
        counts = await asyncio.gather(*(together.count(CountParams()) for _ in range(3)))
    assert [each.count for each in counts] == [1, 2, 3]
    assert script.tokens == ["old", "new"]


@pytest.mark.parametrize(
    "answer", [httpx.Response(200, json=[]), httpx.Response(200, text="hello"), result({"count": 1, "receipt": {}})]
)
async def test_calls_that_a_batch_does_not_answer_fail(answer: httpx.Response) -> None:
    async with client(Script(answer), max_attempts=1) as memory:
        together = memory.batched()
        answers = await asyncio.gather(*(together.count(CountParams()) for _ in range(2)), return_exceptions=True)
    assert [type(each) for each in answers] == [DependencyUnavailable, DependencyUnavailable]


@pytest.mark.shows("issue6-1-batching")
async def test_a_batch_that_breaks_fails_for_all_who_wait_for_it() -> None:
    async with client(Script(ZeroDivisionError("of a transport"))) as memory:
        together = memory.batched()
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*(together.count(CountParams()) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in answers] == [ZeroDivisionError] * 3


async def test_a_caller_who_gives_up_takes_no_other_call_along() -> None:
    script = Script(counted)
    async with client(script) as memory:
        together = memory.batched()
        one, other = (asyncio.create_task(together.count(CountParams())) for _ in range(2))
        asyncio.get_running_loop().call_soon(one.cancel)
        assert (await other).count == 2
        with pytest.raises(asyncio.CancelledError):
            await one


async def test_a_batch_waits_no_longer_than_a_call() -> None:
    async with client(Silent(), fail_open=True, timeout_seconds=0.1) as memory:
        together = memory.batched()
        answers = await asyncio.gather(*(together.retrieve(RetrieveParams(query="sky")) for _ in range(2)))
    assert [answer.memories for answer in answers] == [[], []]


# --- sync client --------------------------------------------------------------------------------------------


def waiting(*answers: Answer, **options: Any) -> SyncMemoryClient:
    return SyncMemoryClient("http://memory.test", TOKEN, transport=Script(*answers), **options)


@pytest.mark.shows("issue6-1-sync")
def test_a_call_waits_for_its_answer() -> None:
    with waiting(result({"count": 3, "receipt": {}}), error(-32602, "k: too large")) as memory:
        assert memory.count(CountParams()).count == 3
        with pytest.raises(InvalidParams, match="k: too large"):
            memory.retrieve(RetrieveParams(query="sky"))


def test_a_named_method_takes_its_params_as_the_async_one_does() -> None:
    with waiting(result({"memories": [], "receipt": {}})) as memory:
        assert memory.retrieve_memories("sky", k=3) == ()


def test_threads_share_a_client() -> None:
    counts: list[int] = []
    with waiting(*(result({"count": number, "receipt": {}}) for number in range(8))) as memory:
        threads = [threading.Thread(target=lambda: counts.append(memory.count(CountParams()).count)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(counts) == list(range(8))


@pytest.mark.shows("B23")
def test_outside_its_block_it_is_closed_and_its_thread_has_ended() -> None:
    before = set(threading.enumerate())
    memory = waiting()
    with pytest.raises(ClientClosed, match="`with` block"):
        memory.count(CountParams())
    with memory:
        own = set(threading.enumerate()) - before
    # Only its own threads count, since other executors may start and stop threads.
    assert own
    assert not any(thread.is_alive() for thread in own)
    with pytest.raises(ClientClosed):
        memory.count(CountParams())


@pytest.mark.shows("issue6-1-sync")
def test_closing_waits_for_no_source_that_hangs_and_who_waits_hears_that_it_is_closed() -> None:
    asked, given = threading.Event(), threading.Event()

    def source() -> str:
        asked.set()
        given.wait(20)
        return TOKEN

    def call() -> None:
        with pytest.raises(ClientClosed):
            memory.count(CountParams())
        heard.append(time.monotonic())

    heard: list[float] = []
    with SyncMemoryClient("http://memory.test", source, transport=Script(), timeout_seconds=20) as memory:
        caller = threading.Thread(target=call)
        caller.start()
        asked.wait(20)
        began = time.monotonic()
    caller.join()
    given.set()
    assert len(heard) == 1
    assert max(time.monotonic(), *heard) - began < 10


def test_a_call_that_races_the_close_is_told_that_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is paused after it found the client open, and resumed after the close."""
    looked, closed = threading.Event(), threading.Event()
    running_loop = asyncio.get_running_loop

    def held() -> asyncio.AbstractEventLoop:
        if threading.current_thread().name == "late":
            looked.set()
            closed.wait(20)
        return running_loop()

    def call() -> None:
        with pytest.raises(ClientClosed):
            memory.count(CountParams())
        told.append(True)

    told: list[bool] = []
    with waiting() as memory:
        monkeypatch.setattr(asyncio, "get_running_loop", held)
        caller = threading.Thread(target=call, name="late")
        caller.start()
        looked.wait(20)
    closed.set()
    caller.join()
    assert told == [True]


@pytest.mark.shows("issue6-1-sync")
async def test_on_a_running_loop_a_waiting_call_says_so_instead_of_holding_it_up() -> None:
    with waiting(result({"count": 3, "receipt": {}})) as memory:
        with pytest.raises(RuntimeError, match="hold up the event loop"):
            memory.count(CountParams())
        assert (await asyncio.to_thread(memory.count, CountParams())).count == 3


def test_a_view_of_a_waiting_client_carries_its_trace_and_closes_with_it() -> None:
    script = Script(result({"count": 3, "receipt": {}}), result({"count": 3, "receipt": {}}))
    memory = SyncMemoryClient("http://memory.test", TOKEN, transport=script)
    view = memory.traced(traceparent="00-1-2-01", a2a_context={"source_agent": "planner"})
    with memory:
        assert (view.count(CountParams()).count, memory.count(CountParams()).count) == (3, 3)
    assert [request.headers.get("traceparent") for request in script.requests] == ["00-1-2-01", None]
    assert [script.body(index).get("a2a_context") for index in (0, 1)] == [{"source_agent": "planner"}, None]
    with pytest.raises(ClientClosed):
        view.count(CountParams())


@pytest.mark.shows("issue6-1-sync")
def test_every_method_of_the_contract_waits_too() -> None:
    assert {method.attribute for method in METHODS} <= set(vars(SyncMemoryClient))


# --- in-process ---------------------------------------------------------------------------------------------


async def test_an_application_that_breaks_is_told_as_over_http() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    async with MemoryClient.in_process(broken, TOKEN) as memory:
        with pytest.raises(AgentCoreError, match="HTTP 500"):
            await memory.count(CountParams())


@pytest.mark.parametrize(
    ("attribute", "given", "wanted"),
    [
        ("store", {"content": "sky"}, "StoreParams"),
        ("store", 7, "StoreParams"),
        ("retrieve", {"query": "sky"}, "RetrieveParams"),
        ("store_batch", {"items": []}, "StoreBatchParams"),
        ("add_session", {}, "AddSessionParams"),
        ("prune", {}, "PruneParams"),
        ("restore", {}, "RestoreParams"),
    ],
)
async def test_what_is_no_params_object_is_answered_with_the_class_it_must_be(
    attribute: str, given: object, wanted: str
) -> None:
    async with MemoryClient("http://127.0.0.1:9", TOKEN) as memory:
        with pytest.raises(TypeError, match=rf"takes a {wanted} \(from agentcore.params\)"):
            await getattr(memory, attribute)(given)


@pytest.mark.parametrize("options", [{"max_attempts": 0}, {"timeout_seconds": -1}, {"timeout_seconds": 0}])
def test_a_client_that_could_never_ask_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        MemoryClient("http://127.0.0.1:9", TOKEN, **options)


def test_a_token_of_another_type_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="a JWT or a callable"):
        MemoryClient("http://127.0.0.1:9", None)  # type: ignore[arg-type]
