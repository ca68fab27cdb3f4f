"""The HTTP edge over a small method table: limits, statuses, headers, traces, logs, other routes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from agentcore import readiness
from agentcore.auth import TokenRules, TokenVerifier, mint_token
from agentcore.errors import DependencyUnavailable
from agentcore.memory.jsonrpc import memory_methods
from agentcore.rpc import LARGE_BODY_BYTES
from agentcore.server import ENDPOINT, create_app
from tests.fixtures.edge import METHODS, READY, SECRET, Edge, request, running

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with running() as started:
        yield started


@pytest.fixture
def calls_logged(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    """Yields the fields of each logged call."""
    with caplog.at_level(logging.INFO, "agentcore.edge"):
        yield lambda: [vars(record) for record in caplog.records if record.name == "agentcore.edge"]


# --- status codes -------------------------------------------------------------------------------------------


async def test_an_answer_is_json_with_a_length(edge: Edge) -> None:
    response = await edge.post(request("subtract", [42, 23]))
    assert response.status_code == 200
    assert response.json() == {"jsonrpc": "2.0", "result": 19, "id": 1}
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-length"] == str(len(response.content))


@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "method": "update", "params": [1, 2, 3, 4, 5]},
        {"jsonrpc": "2.0", "method": "foobar"},
        [{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}] * 2,
    ],
)
@pytest.mark.shows("issue2-4-JSON-RPC")
async def test_where_nothing_is_said_the_status_says_so(edge: Edge, body: object) -> None:
    response = await edge.post(body)
    assert (response.status_code, response.content) == (204, b"")
    assert "content-type" not in response.headers


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"[" * 1_000, -32700),
        ([], -32600),
        (request("foobar"), -32601),
        (request("subtract", [1]), -32602),
        (request("guarded"), -32104),
    ],
)
async def test_a_jsonrpc_error_travels_with_200(edge: Edge, body: object, code: int) -> None:
    response = await edge.post(body)
    assert (response.status_code, response.json()["error"]["code"]) == (200, code)


async def test_the_scope_comes_from_the_token(edge: Edge) -> None:
    assert "result" in (await edge.post(request("guarded"), scopes="memory:write")).json()


# --- tokens ------------------------------------------------------------------------------------------------


@pytest.mark.shows("NFR-6.2")
async def test_without_a_token_the_scheme_is_told_and_no_error(edge: Edge) -> None:
    response = await edge.post(request("whoami"), agent=None)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="agentcore"'
    assert response.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32103, "message": "Missing Authorization header: send `Authorization: Bearer <token>`."},
    }


@pytest.mark.shows("issue2-5-refusals")
async def test_a_bad_token_is_told_its_one_reason(edge: Edge) -> None:
    response = await edge.post(request("whoami"), agent=None, authorization="Bearer a.b.c")
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == (
        'Bearer realm="agentcore", error="invalid_token", error_description="The token is malformed."'
    )
    assert response.json()["error"] == {"code": -32103, "message": "The token is malformed."}


async def test_two_different_authorization_headers_are_none(edge: Edge) -> None:
    tokens = [("authorization", "Bearer " + mint_token(SECRET, name, [], 60)) for name in ("ada", "bob")]
    response = await edge.http.post(ENDPOINT, content=json.dumps(request("whoami")), headers=tokens)
    assert response.status_code == 401


async def test_a_token_is_asked_for_before_anything_is_read(edge: Edge) -> None:
    for headers in ({"content_type": "text/plain"}, {"content_length": "99999999"}, {}):
        assert (await edge.post(b"{", agent=None, **headers)).status_code == 401


async def test_keys_that_cannot_be_had_are_our_fault(edge: Edge) -> None:
    class NoKeys:
        async def keys_for(self, key_id: str | None) -> list[bytes]:
            raise DependencyUnavailable("The server of the token keys does not answer.")

    async with running(TokenVerifier(TokenRules("HS256"), NoKeys())) as without_keys:
        response = await without_keys.post(request("whoami"))
    assert response.status_code == 200
    assert response.json()["error"] == {
        "code": -32005,
        "message": "The server of the token keys does not answer.",
        "data": {"retryable": True},
    }


# --- bodies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json-rpc",
        "application/jsonrequest",
        "application/vnd.api+json",
    ],
)
async def test_json_is_taken_under_each_of_its_names(edge: Edge, content_type: str) -> None:
    assert (await edge.post(request("get_data"), content_type=content_type)).status_code == 200


async def test_a_missing_content_type_is_taken_for_json(edge: Edge) -> None:
    headers = {"authorization": "Bearer " + mint_token(SECRET, "ada", [], 60)}
    response = await edge.http.post(ENDPOINT, content=json.dumps(request("get_data")), headers=headers)
    assert response.json()["result"] == ["hello", 5]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
async def test_the_body_is_read_as_json_whatever_it_is_called(edge: Edge, content_type: str) -> None:
    response = await edge.post(request("get_data"), content_type=content_type)
    assert (response.status_code, response.json()["result"]) == (200, ["hello", 5])


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.shows("issue2-4-limits")
async def test_a_body_past_the_limit_is_refused_and_one_at_the_limit_taken(chunked: bool) -> None:
    async with running(max_body_bytes=2_048) as edge:
        headers = {"authorization": "Bearer " + mint_token(SECRET, "ada", [], 60)}
        for size, status in [(2_048, 200), (2_049, 413), (100_000, 413)]:
            body = json.dumps(request("get_data")).encode().ljust(size)

            async def chunks(body: bytes = body) -> AsyncIterator[bytes]:
                for start in range(0, len(body), 500):
                    yield body[start : start + 500]

            response = await edge.http.post(ENDPOINT, content=chunks() if chunked else body, headers=headers)
            assert response.status_code == status
        assert response.json() == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {
                "code": -32003,
                "message": "The request is larger than 2048 bytes.",
                "data": {"max_body_bytes": 2_048},
            },
        }


@pytest.mark.shows("issue2-4-limits")
async def test_a_batch_past_the_limit_is_too_large() -> None:
    async with running(max_batch_calls=2) as edge:
        response = await edge.post([request("get_data")] * 3)
    assert (response.status_code, response.json()["error"]["code"]) == (413, -32003)


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    async with running(request_timeout_seconds=0.05) as edge:
        never = asyncio.Event()

        async def stalled() -> AsyncIterator[bytes]:
            yield b'{"jsonrpc": '
            await never.wait()

        headers = {"authorization": "Bearer " + mint_token(SECRET, "ada", [], 60)}
        response = await edge.http.post(ENDPOINT, content=stalled(), headers=headers)
    assert response.json()["error"]["data"] == {"problem": "the body did not arrive in time"}


async def test_a_client_that_goes_away_is_not_answered(edge: Edge) -> None:
    app = create_app(edge.runtime, methods=METHODS)
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    token = mint_token(SECRET, "ada", [], 60).encode()
    await app(
        {
            "type": "http",
            "method": "POST",
            "path": ENDPOINT,
            "root_path": "",
            "query_string": b"",
            "headers": [(b"authorization", b"Bearer " + token)],
        },
        receive,
        send,
    )
    assert sent == []


# --- rate limit --------------------------------------------------------------------------------------------


@pytest.mark.shows("issue2-4-limits")
async def test_an_agent_past_its_rate_waits_and_others_do_not() -> None:
    async with running(rate_limit_per_minute=3) as edge:
        for _ in range(3):
            assert (await edge.post(request("get_data"))).status_code == 200
        response = await edge.post(request("get_data", id="seven"))
        assert (await edge.post(request("get_data"), agent="bob")).status_code == 200
        metrics = (await edge.http.get("/metrics")).text
    error = response.json()["error"]
    assert (response.status_code, error["code"], response.json()["id"]) == (429, -32004, "seven")
    assert 19 < error["data"]["retry_after_seconds"] <= 20
    assert response.headers["retry-after"] == "20"
    assert error["data"]["retryable"] is True
    assert "agentcore_rate_limited_total 1.0" in metrics


async def test_each_call_of_a_batch_counts() -> None:
    async with running(rate_limit_per_minute=5) as edge:
        assert (await edge.post([request("get_data")] * 4)).status_code == 200
        response = await edge.post([request("get_data")] * 2)
        assert (response.status_code, response.json()["id"]) == (429, None)
        assert (await edge.post(request("get_data"))).status_code == 200
        assert (await edge.post([request("get_data")] * 6)).status_code == 413


# --- traces and logs ---------------------------------------------------------------------------------------


@pytest.mark.shows("issue2-4-traces")
async def test_a_traceparent_is_honoured_and_answered(edge: Edge) -> None:
    response = await edge.post(request("whoami", a2a_context={"trace_id": "other"}), traceparent=TRACEPARENT)
    assert response.json()["result"]["trace_id"] == TRACE_ID
    version, trace_id, span_id, flags = response.headers["traceresponse"].split("-")
    assert (version, trace_id, flags) == ("00", TRACE_ID, "01")
    assert span_id != "b7ad6b7169203331"


async def test_without_a_traceparent_the_a2a_context_names_the_trace(edge: Edge) -> None:
    response = await edge.post(request("whoami", a2a_context={"trace_id": "theirs"}), traceparent="nonsense")
    assert response.json()["result"]["trace_id"] == "theirs"
    assert response.json()["a2a_context"] == {"trace_id": "theirs"}


@pytest.mark.parametrize("trace_id", [None, 7, "", "a\nb", "x" * 256])
async def test_without_a_usable_trace_one_is_made(edge: Edge, trace_id: object) -> None:
    response = await edge.post(request("whoami", a2a_context={"trace_id": trace_id}))
    made = response.json()["result"]["trace_id"]
    assert made == response.headers["traceresponse"].split("-")[1]
    assert len(made) == 32


async def test_a_call_is_logged_with_the_a2a_fields_that_fit_a_line(edge: Edge, calls_logged: Any) -> None:
    a2a = {
        "source_agent": "planner",
        "target_agent": "memory",
        "session_id": "s-1",
        "conversation_id": "c-1",
        "timestamp": "2026-05-01T10:00:00Z",
        "trace_id": "t-1",
    }
    await edge.post(request("whoami", a2a_context=a2a))
    unfit = {
        "source_agent": {"a": 1},
        "target_agent": "x" * 256,
        "session_id": "a\nb",
        "conversation_id": 7,
        "timestamp": "",
        "trace_id": ["t"],
    }
    await edge.post(request("whoami", a2a_context=unfit))
    told, refused = calls_logged()
    assert {name: told[name] for name in a2a} == a2a
    assert [refused[name] for name in unfit if name != "trace_id"] == [None] * 5


class CountingThreads(ThreadPoolExecutor):
    given = 0

    def submit(self, *work: Any, **named: Any) -> Future[Any]:
        self.given += 1
        return super().submit(*work, **named)


async def test_a_large_body_is_read_in_a_thread_and_a_small_one_at_once(edge: Edge) -> None:
    threads = CountingThreads(1)
    asyncio.get_running_loop().set_default_executor(threads)
    small, large = ([request("get_data")] * count for count in (1, 90))
    await edge.post(small)
    assert threads.given == 0
    response = await edge.post(json.dumps(large).encode() + b" " * LARGE_BODY_BYTES)
    assert threads.given == 1 + len(large)
    assert [each["result"] for each in response.json()] == [["hello", 5]] * 90


class PendingThreads(ThreadPoolExecutor):
    """An executor that records its maximum queue length."""

    pending = most = 0

    def submit(self, *work: Any, **named: Any) -> Future[Any]:
        self.pending += 1
        self.most = max(self.most, self.pending)
        given = super().submit(*work, **named)
        given.add_done_callback(lambda _: setattr(self, "pending", self.pending - 1))
        return given


@pytest.mark.shows("issue13-bodies")
async def test_large_bodies_are_read_one_at_a_time() -> None:
    threads = PendingThreads(8)
    asyncio.get_running_loop().set_default_executor(threads)
    body = json.dumps([request("get_data")] * 20).encode() + b" " * LARGE_BODY_BYTES
    async with running() as edge:
        answers = await asyncio.gather(*(edge.post(body) for _ in range(8)))
    assert {each.status_code for each in answers} == {200}
    assert threads.most == 1


@pytest.mark.shows("issue13-bodies")
async def test_an_unfinished_body_leaves_room_for_small_ones_and_for_other_agents() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()
    large = json.dumps(request("get_data")).encode().ljust(2 * LARGE_BODY_BYTES)

    async def unfinished() -> AsyncIterator[bytes]:
        yield large[:-1]
        begun.set()
        await goes_on.wait()
        yield large[-1:]

    async with running(max_body_bytes=len(large)) as edge:
        held = asyncio.create_task(
            edge.http.post(
                ENDPOINT,
                content=unfinished(),
                headers={"authorization": f"Bearer {mint_token(SECRET, 'ada', ['memory:read'], 600)}"},
            )
        )
        await begun.wait()
        refused = await edge.post(large)
        small, other = await edge.post(request("get_data")), await edge.post(large, agent="bob")
        goes_on.set()
        answers = [await held, await edge.post(large)]
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, -32004)
    assert refused.headers["retry-after"] == "1"
    assert [each.status_code for each in (small, other, *answers)] == [200] * 4


async def test_the_caller_is_the_tokens_subject_with_its_a2a_context(edge: Edge) -> None:
    a2a = {"source_agent": "planner", "agent_id": "mallory"}
    result = (await edge.post(request("whoami", a2a_context=a2a))).json()["result"]
    assert (result["agent_id"], result["a2a_context"]) == ("ada", a2a)
    assert result["token_id"]


@pytest.mark.shows("issue2-14-logs")
async def test_each_call_is_one_log_line(edge: Edge, calls_logged: Any) -> None:
    a2a = {"source_agent": "planner", "target_agent": "memory", "trace_id": "t"}
    response = await edge.post([request("get_data", a2a_context=a2a), request("made up"), 7])
    lines = {line["method"]: line for line in calls_logged()}
    assert {method: line["outcome"] for method, line in lines.items()} == {
        "get_data": "ok",
        "unknown": "method_not_found",
        "invalid": "invalid_request",
    }
    assert {line["agent_id"] for line in lines.values()} == {"ada"}
    assert {line["request_id"] for line in lines.values()} == {response.headers["x-request-id"]}
    told = lines["get_data"]
    assert (told["source_agent"], told["target_agent"], told["trace_id"]) == ("planner", "memory", "t")
    assert told["duration_ms"] >= 0
    assert lines["unknown"]["source_agent"] is None


async def test_a_refused_body_is_one_log_line_too(edge: Edge, calls_logged: Any) -> None:
    await edge.post(b"{")
    await edge.post(b"{", agent=None)
    first, second = calls_logged()
    assert {first["method"], second["method"]} == {"none"}
    assert (first["outcome"], first["agent_id"]) == ("parse_error", "ada")
    assert (second["outcome"], second["agent_id"]) == ("authentication_failed", None)


# --- the other routes --------------------------------------------------------------------------------------


async def test_the_face_says_where_to_go(edge: Edge) -> None:
    face = (await edge.http.get("/")).json()
    assert (face["name"], face["endpoint"]) == ("agentcore-memory", ENDPOINT)
    assert (await edge.http.get(face["health"])).json() == {"status": "ok"}


@pytest.mark.shows("A14-readyz-work")
async def test_readiness_is_checked_once_a_second_however_often_it_is_asked(edge: Edge) -> None:
    for _ in range(20):
        assert (await edge.http.get("/readyz")).status_code == 200
    assert edge.runtime.checks <= 5  # the twenty may take more than one second on a busy machine


@pytest.mark.shows("issue2-14-health")
async def test_readiness_names_each_part(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "REUSED_SECONDS", 0.0)
    response = await edge.http.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready", "parts": READY})
    edge.runtime.parts["redis"] = {"ok": False, "required": False}
    assert (await edge.http.get("/readyz")).status_code == 200
    edge.runtime.parts["postgresql"] = {"ok": False, "problem": "gone"}
    response = await edge.http.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (503, "not ready")
    assert response.json()["parts"]["postgresql"] == {"ok": False, "problem": "gone"}


async def test_a_stopping_service_takes_no_new_calls_but_lives(edge: Edge) -> None:
    edge.stopping.set()
    response = await edge.post(request("get_data"))
    assert (response.status_code, response.json()["error"]["code"]) == (200, -32006)
    assert response.json()["error"]["message"] == "The service is stopping."
    assert (await edge.http.get("/readyz")).json()["status"] == "stopping"
    assert (await edge.http.get("/healthz")).status_code == 200


async def test_metrics_count_calls_under_bounded_names(edge: Edge) -> None:
    await edge.post([request("get_data"), request("a"), request("b"), 1])
    await edge.post(b"{")
    response = await edge.http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    for line in (
        'agentcore_requests_total{method="get_data",outcome="ok"} 1.0',
        'agentcore_requests_total{method="unknown",outcome="method_not_found"} 2.0',
        'agentcore_requests_total{method="invalid",outcome="invalid_request"} 1.0',
        'agentcore_requests_total{method="none",outcome="parse_error"} 1.0',
    ):
        assert line in response.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", ENDPOINT, 405), ("PUT", ENDPOINT, 405), ("POST", "/healthz", 405), ("GET", "/nowhere", 404)],
)
async def test_what_is_not_there_is_said_in_json(edge: Edge, method: str, path: str, status: int) -> None:
    response = await edge.http.request(method, path)
    assert response.status_code == status
    assert set(response.json()) == {"error"}
    assert ("allow" in response.headers) == (status == 405)


async def test_a_failure_outside_any_call_is_opaque(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    edge.runtime.parts = {"postgresql": {"no such key": "the memory's own words"}}
    response = await edge.http.get("/readyz")
    assert response.status_code == 500
    error = response.json()["error"]
    (line,) = (vars(record) for record in caplog.records if record.name == "agentcore.server")
    assert error == {"code": -32603, "message": "Internal error", "data": {"reference": line["reference"]}}
    assert "KeyError" in line["failure"]


# --- table of the memory methods ----------------------------------------------------------------------------


async def test_the_services_own_methods_are_served_where_none_are_given(edge: Edge) -> None:
    transport = httpx.ASGITransport(create_app(edge.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://edge") as http:
        own = Edge(edge.runtime, edge.stopping, http)
        document = (await own.post(request("rpc.discover"), scopes="none:at-all")).json()["result"]
        refused = (await own.post(request("memory.store", {"content": "x"}), scopes="memory:read")).json()
        anonymous = await own.post(request("rpc.discover"), agent=None)
    assert [method["name"] for method in document["methods"]] == [
        method.name for method in memory_methods() if method.name != "rpc.discover"
    ]
    assert refused["error"]["data"] == {"needs": "memory:write"}
    assert anonymous.status_code == 401
