"""The client against a scripted transport: requests, retries and parsing of responses."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
import stamina

from agentcore.client import MemoryClient, TokenSource
from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    ClientClosed,
    ConfigurationError,
    Conflict,
    DependencyUnavailable,
    DiskFull,
    InternalError,
    InvalidParams,
    NotAuthorised,
    NotFound,
    NotReady,
    PoolExhausted,
    RateLimited,
    ReadOnlyDatabase,
    ServerLimit,
    StatementTimeout,
    TooLarge,
    TransactionConflict,
    Unreachable,
)
from agentcore.memory.api import METHODS, AnyMethod
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import (
    CountParams,
    DeleteParams,
    PruneParams,
    RetrieveParams,
    StoreBatchParams,
    StoreParams,
)
from agentcore.memory.params.sessions import Message
from tests.fixtures.scripted_transport import Answer, Script, error, result

TOKEN = "t.o.ken"
MEMORY_ID = "0190b5a0-0000-7000-8000-000000000001"
STORED = {"success": True, "memory_id": MEMORY_ID, "status": "stored"}
COUNTED = {"count": 3, "receipt": {}}


def client(script: Script, token: TokenSource = TOKEN, **options: Any) -> MemoryClient:
    return MemoryClient("http://memory.test", token, transport=script, **options)


async def test_a_call_sends_its_wire_name_the_given_fields_alone_and_the_token() -> None:
    script = Script(result(STORED))
    async with client(script) as memory:
        stored = await memory.store(StoreParams(content="the sky is blue"))
    assert stored.memory_id == UUID(MEMORY_ID)
    assert str(script.requests[0].url) == "http://memory.test/api/v1/jsonrpc"
    assert script.body()["method"] == "memory.store"
    assert script.body()["params"] == {"content": "the sky is blue"}
    assert script.tokens == [TOKEN]


@pytest.mark.parametrize("url", ["http://memory.test/", "http://memory.test/api/v1/jsonrpc"])
async def test_the_url_may_name_the_endpoint_or_end_in_a_slash(url: str) -> None:
    script = Script(result(COUNTED))
    async with MemoryClient(url, "token", transport=script) as memory:
        await memory.count(CountParams())
    assert str(script.requests[0].url) == "http://memory.test/api/v1/jsonrpc"


@pytest.mark.parametrize("url", ["memory.test", "ftp://memory.test", "", "http://memory.test:port"])
def test_what_is_no_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigurationError, match="URL"):
        MemoryClient(url, "token")


@pytest.mark.parametrize(
    "url",
    [
        "http://ada:hunter2@memory.test",
        "http://ada:hunter2@memory.test:port",
        "https://hunter2@memory.test/api",
        "ada:hunter2@memory.test",
    ],
)
def test_a_url_with_a_password_is_refused_without_telling_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match="the token alone says who asks") as refused:
        MemoryClient(url, "token")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_every_method_of_the_contract_is_called_by_its_wire_name(method: AnyMethod) -> None:
    params = method.params.model_construct(
        items=[KEYED], messages=[Message(content="a")], idempotency_key="a", dry_run=True
    )
    script = Script(error(-32001))
    async with client(script) as memory:
        with pytest.raises(NotFound):
            await getattr(memory, method.attribute)(params)
    assert script.body()["method"] == method.name


async def test_fields_of_a_newer_service_are_left_out() -> None:
    script = Script(result({"count": 3, "receipt": {"searched": {}, "novelty": 1}, "also_new": True}))
    async with client(script) as memory:
        assert (await memory.count(CountParams())).count == 3


async def test_a_result_without_a_promised_field_is_an_error() -> None:
    async with client(Script(result({"receipt": {}}))) as memory:
        with pytest.raises(AgentCoreError, match="cannot read"):
            await memory.count(CountParams())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error(-32602, "k: too large", data={"field": "k"}), InvalidParams),
        (error(-32001), NotFound),
        (error(-32002), Conflict),
        (error(-32003, status=413), TooLarge),
        (error(-32103, status=401), AuthenticationFailed),
        (error(-1), AgentCoreError),
        (httpx.Response(401), AuthenticationFailed),
        (httpx.Response(413, text="<html>"), TooLarge),
        (httpx.Response(403, text="<html>"), NotAuthorised),
        (httpx.Response(500, text="<html>"), DependencyUnavailable),
        (httpx.Response(404, text="nothing here"), DependencyUnavailable),
        (httpx.Response(200, text="hello"), DependencyUnavailable),
        (httpx.Response(200, json=[1]), DependencyUnavailable),
        (httpx.Response(200, json={"error": "odd"}), DependencyUnavailable),
    ],
)
async def test_an_error_answer_becomes_the_class_of_its_code(
    answer: httpx.Response, expected: type[AgentCoreError]
) -> None:
    script = Script(answer)
    async with client(script, max_attempts=1) as memory:
        with pytest.raises(expected) as raised:
            await memory.count(CountParams())
    assert type(raised.value) is expected
    assert len(script.requests) == 1


async def test_an_error_keeps_its_message_and_data() -> None:
    async with client(Script(error(-32602, "k: too large", data={"field": "k"}))) as memory:
        with pytest.raises(InvalidParams) as raised:
            await memory.count(CountParams())
    assert (raised.value.message, raised.value.data) == ("k: too large", {"field": "k"})


KEYED = StoreParams(content="once", idempotency_key="a")
REPEATABLE: list[Callable[[MemoryClient], Awaitable[Any]]] = [
    lambda memory: memory.count(CountParams()),
    lambda memory: memory.store(KEYED),
    lambda memory: memory.store_batch(StoreBatchParams(items=[KEYED])),
    lambda memory: memory.prune(PruneParams.model_validate({"memory_layer": "episodic", "dry_run": True})),
]
WRITES: list[Callable[[MemoryClient], Awaitable[Any]]] = [
    lambda memory: memory.store(StoreParams(content="once")),
    lambda memory: memory.store_batch(StoreBatchParams(items=[KEYED, StoreParams(content="2")])),
    lambda memory: memory.update(UpdateParams(memory_id=UUID(MEMORY_ID), updates=Updates(context="more"))),
    lambda memory: memory.delete(DeleteParams(memory_ids=[UUID(MEMORY_ID)])),
    lambda memory: memory.prune(PruneParams.model_validate({"memory_layer": "episodic"})),
]


@pytest.fixture
def no_waits() -> Iterator[None]:
    """Disables delays between attempts, which have separate tests."""
    with stamina.set_testing(True, attempts=10, cap=True):
        yield


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("call", REPEATABLE)
@pytest.mark.parametrize(
    "failure",
    [
        lambda: httpx.ReadTimeout("slow"),
        lambda: httpx.RemoteProtocolError("cut"),
        lambda: httpx.Response(502),
        lambda: httpx.Response(503),
        lambda: error(-32005),
    ],
)
async def test_what_repeats_safely_is_tried_again(
    call: Callable[[MemoryClient], Awaitable[Any]], failure: Callable[[], Answer]
) -> None:
    script = Script(failure(), failure(), error(-32002))
    async with client(script) as memory:
        with pytest.raises(Conflict):
            await call(memory)
    assert len(script.requests) == 3
    assert script.body(0) == script.body(2)


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize(
    "failure",
    [
        lambda: httpx.ReadTimeout("slow"),
        lambda: httpx.RemoteProtocolError("cut"),
        lambda: httpx.Response(503),
        lambda: error(-32005),
    ],
)
async def test_what_might_happen_twice_is_not_tried_again(
    call: Callable[[MemoryClient], Awaitable[Any]], failure: Callable[[], Answer]
) -> None:
    script = Script(failure())
    async with client(script) as memory:
        with pytest.raises(DependencyUnavailable):
            await call(memory)
    assert len(script.requests) == 1


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(
    ("cause", "raised", "tries"),
    [
        ("unreachable", Unreachable, 2),
        ("pool_exhausted", PoolExhausted, 2),
        ("transaction_conflict", TransactionConflict, 2),
        ("statement_timeout", StatementTimeout, 2),
        ("disk_full", DiskFull, 1),
        ("read_only", ReadOnlyDatabase, 1),
        ("server_limit", ServerLimit, 1),
        ("of a later version", Exception, 2),
    ],
)
@pytest.mark.shows("issue13-error-causes")
async def test_a_cause_has_its_class_and_is_retried_only_where_that_helps(
    cause: str, raised: type[AgentCoreError], tries: int
) -> None:
    def failed() -> httpx.Response:
        return error(-32005, data={"cause": cause, "more": 1})

    script = Script(failed(), failed())
    async with client(script, max_attempts=2) as memory:
        with stamina.set_testing(True, attempts=2, cap=True), pytest.raises(DependencyUnavailable) as caught:
            await memory.count(CountParams())
    assert type(caught.value) is (raised if raised is not Exception else DependencyUnavailable)
    assert caught.value.data == {"cause": cause, "more": 1}
    assert len(script.requests) == tries


@pytest.mark.parametrize(
    "failure",
    [
        lambda: httpx.ConnectError("refused"),
        lambda: httpx.ConnectTimeout("slow"),
        lambda: error(-32006),
        lambda: error(-32004, status=429),
        lambda: httpx.Response(429),
    ],
)
async def test_a_write_that_was_never_begun_is_tried_again(failure: Callable[[], Answer]) -> None:
    script = Script(failure(), result(STORED))
    async with client(script) as memory:
        assert (await memory.store(StoreParams(content="once"))).success
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (lambda: httpx.ConnectError("refused"), DependencyUnavailable),
        (lambda: error(-32006), NotReady),
        (lambda: httpx.Response(429), RateLimited),
    ],
)
async def test_after_the_last_attempt_the_error_is_raised(
    failure: Callable[[], Answer], expected: type[AgentCoreError]
) -> None:
    script = Script(failure(), failure())
    async with client(script, max_attempts=2) as memory:
        with pytest.raises(expected):
            await memory.retrieve(RetrieveParams(query="sky"))
    assert script.answers == []


@pytest.mark.parametrize(
    "limited",
    [
        error(-32004, status=429, headers={"Retry-After": "0.3"}),
        error(-32004, data={"retry_after_seconds": 0.3}),
        httpx.Response(429, headers={"Retry-After": "0.3"}),
    ],
)
async def test_a_rate_limit_is_waited_out_for_as_long_as_it_says(limited: httpx.Response) -> None:
    script = Script(limited, result(COUNTED))
    async with client(script) as memory:
        await memory.count(CountParams())
    assert script.arrivals[1] - script.arrivals[0] >= 0.3


async def test_a_rate_limit_beyond_a_minute_is_the_callers_to_wait_out() -> None:
    script = Script(error(-32004, status=429, headers={"Retry-After": "3600"}))
    async with client(script) as memory:
        with pytest.raises(RateLimited) as raised:
            await memory.count(CountParams())
    assert raised.value.data == {"retry_after_seconds": 3600.0}


async def test_a_refused_token_is_renewed_once_and_kept() -> None:
    minted = iter(["old", "new", "newer"])
    script = Script(error(-32103, status=401), result(COUNTED), result(COUNTED))
    async with client(script, token=lambda: next(minted)) as memory:
        await memory.count(CountParams())
        await memory.count(CountParams())
    assert script.tokens == ["old", "new", "new"]


async def test_a_token_may_come_from_a_coroutine() -> None:
    async def fetch() -> str:
        return "fetched"

    script = Script(result(COUNTED))
    async with client(script, token=fetch) as memory:
        await memory.count(CountParams())
    assert script.tokens == ["fetched"]


async def test_a_token_refused_twice_is_the_answer() -> None:
    script = Script(error(-32103, status=401), error(-32103, status=401))
    async with client(script, token=lambda: "same") as memory:
        with pytest.raises(AuthenticationFailed):
            await memory.count(CountParams())
    assert len(script.requests) == 2


@pytest.mark.parametrize("token", ["", "  ", "two words", "new\nline", "ü.ü.ü"])
async def test_what_cannot_be_a_token_is_not_sent(token: str) -> None:
    script = Script()
    with pytest.raises(AuthenticationFailed, match="not a JWT"):
        client(script, token=token)
    async with client(script, token=lambda: token) as memory:
        with pytest.raises(AuthenticationFailed, match="not a JWT"):
            await memory.count(CountParams())
    assert script.requests == []


async def test_a_traced_view_sends_the_trace_and_the_conversation_with_each_call() -> None:
    script = Script(result(COUNTED), result(COUNTED))
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with client(script) as memory:
        await memory.traced(traceparent=parent, a2a_context={"source_agent": "planner"}).count(CountParams())
        await memory.count(CountParams())
    assert script.requests[0].headers["traceparent"] == parent
    assert script.body(0)["a2a_context"] == {"source_agent": "planner"}
    assert "traceparent" not in script.requests[1].headers
    assert "a2a_context" not in script.body(1)


async def test_a_closed_client_and_every_view_of_it_says_that_it_is_closed() -> None:
    script = Script()
    async with client(script) as memory:
        view = memory.traced(a2a_context={"source_agent": "planner"})
        batched = memory.batched()
    for closed in (memory, view, batched):
        with pytest.raises(ClientClosed, match="make a new MemoryClient"):
            await closed.count(CountParams())
        with pytest.raises(ClientClosed):
            await closed.__aenter__()
    assert script.requests == []


@pytest.mark.parametrize(
    "failure", [httpx.RemoteProtocolError("Server disconnected"), httpx.ReadError(""), httpx.WriteError("broken pipe")]
)
async def test_a_connection_lost_after_sending_is_not_said_to_be_no_service(failure: Exception) -> None:
    async with client(Script(failure), max_attempts=1) as memory:
        with pytest.raises(DependencyUnavailable, match=r"No whole answer came from http:") as lost:
            await memory.count(CountParams())
    assert "agentcore serve" not in lost.value.message


async def test_a_refused_item_is_answered_in_its_place_and_what_is_left_is_sent_and_repeated() -> None:
    script = Script(httpx.ReadTimeout("slow"), result({"success": True, "results": [STORED], "receipt": {}}))
    batch = StoreBatchParams.model_validate({"items": [{"content": "once", "importance": math.nan}, KEYED]})
    with stamina.set_testing(True, attempts=2):
        async with client(script) as memory:
            answer = await memory.store_batch(batch)
    assert script.body()["params"] == {"items": [{"content": "once", "idempotency_key": "a"}]}
    assert len(script.requests) == 2
    assert [(each.status, each.code) for each in answer.results] == [("rejected", -32602), ("stored", None)]
    assert answer.success is False


async def test_a_batch_of_refused_items_alone_is_answered_without_a_call() -> None:
    script = Script()
    batch = StoreBatchParams.model_validate({"items": [{"content": ""}]})
    async with client(script) as memory:
        assert [each.code for each in (await memory.store_batch(batch)).results] == [-32602]
    with pytest.raises(ClientClosed):
        await memory.store_batch(batch)
    assert script.requests == []


async def test_an_answer_for_fewer_items_than_were_sent_is_an_error() -> None:
    script = Script(result({"success": True, "results": [], "receipt": {}}))
    async with client(script) as memory:
        with pytest.raises(InternalError, match="answered 0 items of 1"):
            await memory.store_batch(StoreBatchParams(items=[KEYED]))
