"""The JSON-RPC edge: rejections, results, and error objects for exceptions."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Annotated, Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agentcore.errors import AgentCoreError, ConfigurationError, Conflict, DependencyUnavailable, NotFound
from agentcore.limits import MAX_A2A_BYTES, MAX_DEPTH, MAX_NUMBER_CHARS
from agentcore.rpc import Call, Limits, RpcMethod, error_answer
from tests.fixtures.rpc_methods import Gate, Nothing, Service, get_data, specification_methods

SECRET = "the memory's own words"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inner: Inner | None = None
    k: int = 1
    ids: list[UUID] = []


def failing(error: BaseException) -> RpcMethod[Any]:
    async def fail(context: object, params: Params) -> None:
        raise error

    return RpcMethod("fail", Params, None, fail, "Fails.")


def echoing() -> RpcMethod[Any]:
    async def echo(context: Call, params: Params) -> dict[str, Any]:
        return {"params": params.model_dump(mode="json"), "a2a_context": context.a2a_context}

    return RpcMethod("echo", Params, dict[str, Any], echo, "Echoes.", positional=("k", "inner"))


# --- invalid JSON -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"nope",
        b"[1,]",
        b"\xff\xfe",
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b'{"a": "\x00"}',
        b'{"a": 01}',
        b"{'a': 1}",
    ],
    ids=repr,
)
async def test_what_is_not_json_is_a_parse_error_and_nothing_more(body: bytes) -> None:
    answer = await Service().ask(body)
    problem = answer["error"].pop("data", {}).get("problem", "")
    assert answer == {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": None}
    assert problem == "" or " at character " in problem or " at byte " in problem


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        ("1" * (MAX_NUMBER_CHARS + 1), "a number is out of range"),
        ("NaN", "NaN is not JSON"),
        ("Infinity", "Infinity is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e400", "a number is out of range"),
        ("-1e400", "a number is out of range"),
    ],
)
@pytest.mark.parametrize("member", ['"id": {}', '"id": 1, "params": [{}]', '"id": 1, "a2a_context": {{"a": {}}}'])
@pytest.mark.shows("issue2-4-limits")
async def test_a_number_that_json_does_not_have_is_a_parse_error(member: str, number: str, problem: str) -> None:
    body = '{"jsonrpc": "2.0", "method": "echo", ' + member.format(number) + "}"
    answer = await Service([echoing()]).ask(body.encode())
    assert answer["error"] == {"code": -32700, "message": "Parse error", "data": {"problem": problem}}
    assert answer["id"] is None


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.shows("issue2-4-limits")
async def test_deep_nesting_is_refused_before_it_is_parsed(depth: int, opening: str, closing: str) -> None:
    for body in (opening * depth + "1" + closing * depth, opening * depth):
        answer = await Service().ask(body.encode())
        assert answer["error"] == {
            "code": -32700,
            "message": "Parse error",
            "data": {"problem": f"nested deeper than {MAX_DEPTH} levels"},
        }


async def test_nesting_up_to_the_limit_is_taken() -> None:
    answer = await Service().ask(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert [each["error"]["code"] for each in answer] == [-32600]


@pytest.mark.parametrize("text", ["[" * 200, '"' + "[" * 200, "\\" * 3 + '"' + "{" * 200, "\\\\" + "[" * 200])
async def test_brackets_inside_a_text_are_not_nesting(text: str) -> None:
    answer = await Service([echoing()]).call("echo", {"inner": {"text": text}})
    assert answer["result"]["params"]["inner"]["text"] == text


async def test_many_brackets_side_by_side_are_not_nesting() -> None:
    answer = await Service(limits=Limits(max_batch_calls=500)).ask([[]] * 500)
    assert len(answer) == 500


# --- invalid requests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"jsonrpc": "1.0"}, 'jsonrpc is not "2.0"'),
        ({"jsonrpc": 2.0}, 'jsonrpc is not "2.0"'),
        ({"params": "bar"}, "params is neither an array nor an object"),
        ({"params": None}, "params is neither an array nor an object"),
        ({"id": True}, "id is neither a string, nor a number, nor null"),
        ({"id": [1]}, "id is neither a string, nor a number, nor null"),
        ({"id": {"a": 1}}, "id is neither a string, nor a number, nor null"),
        ({"a2a_context": "agent"}, "a2a_context is not an object"),
        ({"a2a_context": {"a": "x" * MAX_A2A_BYTES}}, f"a2a_context is larger than {MAX_A2A_BYTES} bytes"),
        ({"a2a_context": {"a": "\ud800"}}, "a2a_context contains half of a surrogate pair"),
        ({"a2a_context": {"a": ["\\\x00"]}}, "a2a_context contains a NUL character"),
        ({"a2a_context": {"\x00": 1}}, "a2a_context contains a NUL character"),
    ],
)
async def test_a_malformed_member_is_named(members: dict[str, Any], problem: str) -> None:
    answer = await Service().call("get_data", **members)
    assert answer == {
        "jsonrpc": "2.0",
        "id": None if "id" in members else 1,
        "error": {"code": -32600, "message": "Invalid Request", "data": {"problem": problem}},
    }


async def test_unknown_members_of_a_request_are_ignored() -> None:
    assert (await Service().call("get_data", extra=1))["result"] == ["hello", 5]


# --- ids ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identity",
    [
        "1",
        '"1"',
        '""',
        "null",
        "0",
        "-7",
        "1.5",
        "1e+100",
        "123456789012345678901234567890",
        '"\\ud800"',
        '"\\u0000"',
        '"\\u00e9\\n"',
    ],
)
@pytest.mark.parametrize("method", ["get_data", "foobar"])
async def test_an_id_comes_back_as_it_was(method: str, identity: str) -> None:
    body = f'{{"jsonrpc": "2.0", "method": "{method}", "id": {identity}}}'
    answer = await Service().answer(body.encode())
    assert answer is not None
    assert answer.endswith(f', "id": {identity}}}'.encode())
    assert json.loads(answer)["id"] == json.loads(identity)


async def test_a_lone_surrogate_in_a_method_name_is_answered() -> None:
    answer = await Service().ask(b'{"jsonrpc": "2.0", "method": "\\ud800", "id": 1}')
    assert answer["error"]["code"] == -32601


async def test_a_failing_notification_is_silent_but_reported() -> None:
    service = Service([failing(NotFound())])
    assert await service.ask({"jsonrpc": "2.0", "method": "fail"}) is None
    assert await service.ask({"jsonrpc": "2.0", "method": "elsewhere"}) is None
    assert [(report.method, report.outcome) for report in service.reports] == [
        ("fail", "not_found"),
        ("unknown", "method_not_found"),
    ]


# --- params ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "field", "problem"),
    [
        ({"k": "many"}, "k", "must be a valid integer, unable to parse string as an integer"),
        ({"colour": 1}, "colour", "is not a known field"),
        ({"context": 1}, "context", "is not a known field"),
        ({"self": 1}, "self", "is not a known field"),
        ({"turn": 1}, "turn", "is not a known field"),
        ({"inner": {}}, "inner.text", "is required"),
        ({"inner": {"text": 1}}, "inner.text", "must be a text"),
        *[
            ({"ids": [wrong]}, "ids.0", "is not a memory id (a UUID such as 0193a1c2-7f4e-7c3d-9b5a-2e8f6d4c1b0a)")
            for wrong in ("x", "abc", "", 7, "0193a1c2")
        ],
        ([1, {"text": "a"}, 3], "params", "takes at most 2 values by position, 3 given"),
    ],
)
async def test_what_is_wrong_with_params_is_named(params: object, field: str, problem: str) -> None:
    answer = await Service([echoing()]).call("echo", params)
    assert answer["error"] == {
        "code": -32602,
        "message": "Invalid params",
        "data": {"errors": [{"field": field, "problem": problem}]},
    }


@pytest.mark.parametrize(
    ("params", "field"),
    [('{"\\ud800": 1}', "params"), ('{"inner": {"\\ud800": 1}}', "inner"), ('{"ids": ["\\ud800"]}', "ids.0")],
)
async def test_a_lone_surrogate_in_params_is_named(params: str, field: str) -> None:
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {params}}}'
    answer = await Service([echoing()]).ask(body.encode())
    assert answer["error"]["code"] == -32602
    assert [error["field"] for error in answer["error"]["data"]["errors"]] == [field]


async def test_a_models_own_rule_is_told_without_its_value() -> None:
    class Ruled(BaseModel):
        text: str

        def model_post_init(self, context: object) -> None:
            raise ValueError("text is not allowed here")

    ruled = RpcMethod("ruled", Ruled, None, echoing().handler, "")
    answer = await Service([ruled]).call("ruled", {"text": SECRET})
    assert answer["error"]["data"] == {"errors": [{"field": "params", "problem": "text is not allowed here"}]}
    assert SECRET not in json.dumps(answer)


@pytest.mark.parametrize(
    ("params", "field", "problem"),
    [
        ({"target": -4}, "target", "must be greater than 0"),
        ({"name": ""}, "name", "is empty"),
        ({"tags": []}, "tags", "is empty"),
    ],
)
async def test_a_problem_is_told_once_and_plainly(params: dict[str, Any], field: str, problem: str) -> None:
    class Bounded(BaseModel):
        target: Annotated[int, Field(strict=True, gt=0)] | Annotated[float, Field(strict=True, gt=0)] = 1
        name: Annotated[str, Field(min_length=1)] = "name"
        tags: Annotated[list[str], Field(min_length=1)] = ["tag"]

    bounded = RpcMethod("bounded", Bounded, None, echoing().handler, "")
    answer = await Service([bounded]).call("bounded", params)
    assert answer["error"]["data"] == {"errors": [{"field": field, "problem": problem}]}


async def test_positional_params_fill_the_named_order() -> None:
    answer = await Service([echoing()]).call("echo", [3, {"text": "a"}])
    assert answer["result"]["params"] == {"inner": {"text": "a"}, "k": 3, "ids": []}


async def test_a_method_without_positions_takes_no_values_by_position() -> None:
    assert (await Service().call("get_data", []))["result"] == ["hello", 5]
    answer = await Service().call("get_data", [1])
    assert answer["error"]["data"]["errors"][0]["problem"] == "takes at most 0 values by position, 1 given"


# --- errors ------------------------------------------------------------------------------------------------


async def test_our_errors_keep_their_code_message_and_data() -> None:
    error = Conflict("Version 3 is current.", data={"version": 3, "id": UUID(int=1)})
    answer = await Service([failing(error)]).call("fail")
    assert answer["error"] == {
        "code": -32002,
        "message": "Version 3 is current.",
        "data": {"version": 3, "id": str(UUID(int=1))},
    }


async def test_an_error_that_may_pass_says_that_a_retry_helps() -> None:
    answer = await Service([failing(DependencyUnavailable())]).call("fail")
    assert answer["error"] == {
        "code": -32005,
        "message": "A part the service depends on does not answer.",
        "data": {"retryable": True},
    }


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(SECRET),
        KeyError(SECRET),
        RecursionError(SECRET),
        ExceptionGroup(SECRET, [OSError(SECRET)]),
        AgentCoreError(SECRET),
        ConfigurationError([SECRET]),
    ],
)
async def test_an_unexpected_error_is_a_reference_and_nothing_more(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service([failing(error)])
    with caplog.at_level(logging.ERROR, "agentcore.rpc"):
        answer = await service.call("fail")
    reference = answer["error"]["data"]["reference"]
    assert answer["error"] == {"code": -32603, "message": "Internal error", "data": {"reference": reference}}
    assert [vars(record)["reference"] for record in caplog.records] == [reference]
    assert service.reports[0].outcome == "internal_error"


async def test_the_log_of_an_unexpected_error_shows_where_but_not_what(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "agentcore.rpc"):
        await Service([failing(RuntimeError(SECRET))]).call("fail")
    logged = str(vars(caplog.records[0]))
    assert "RuntimeError" in logged
    assert "in fail" in logged
    assert SECRET not in logged


async def test_a_result_that_breaks_its_model_is_our_fault_not_the_callers() -> None:
    async def broken(context: object, params: Params) -> Inner:
        return Inner.model_validate({"colour": SECRET})

    answer = await Service([RpcMethod("broken", Params, Inner, broken, "")]).call("broken")
    assert answer["error"]["code"] == -32603
    assert SECRET not in json.dumps(answer)


async def test_a_context_that_cannot_be_opened_is_answered_too() -> None:
    def refuse(call: Call) -> None:
        raise NotFound("nobody there")

    assert (await Service(open_context=refuse).call("get_data"))["error"]["message"] == "nobody there"


async def test_a_call_that_takes_too_long_is_ended() -> None:
    gate = Gate()
    answer = await Service([gate.method()], Limits(timeout_seconds=0.01)).call("wait")
    assert answer["error"] == {
        "code": -32005,
        "message": "wait did not end in time; it may still have taken effect.",
        "data": {"retryable": True},
    }
    assert gate.running == 0


async def test_a_scope_is_needed_where_a_method_names_one() -> None:
    method = RpcMethod("guarded", Nothing, list[Any], get_data, "", scope="memory:write")
    refused = await Service([method], scopes=frozenset({"memory:read"})).call("guarded", {"bad": 1})
    allowed = await Service([method], scopes=frozenset({"memory:write"})).call("guarded")
    assert refused["error"] == {
        "code": -32104,
        "message": "The token lacks the scope this method needs.",
        "data": {"needs": "memory:write"},
    }
    assert "result" in allowed


def test_an_error_for_a_whole_body_has_no_id_unless_told() -> None:
    assert json.loads(error_answer(NotFound()))["id"] is None
    assert json.loads(error_answer(NotFound(), '"a"'))["id"] == "a"


# --- batches -----------------------------------------------------------------------------------------------


async def test_a_batch_past_its_limit_is_one_error() -> None:
    service = Service(limits=Limits(max_batch_calls=3))
    request = {"jsonrpc": "2.0", "method": "get_data", "id": 1}
    assert len(await service.ask([request] * 3)) == 3
    assert await service.ask([request] * 4) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32003,
            "message": "A batch holds at most 3 calls; this one holds 4.",
            "data": {"max_batch_calls": 3},
        },
    }


@pytest.mark.shows("issue2-4-limits")
async def test_a_batch_runs_as_many_calls_at_once_as_it_may_and_keeps_their_order() -> None:
    gate = Gate()
    service = Service([gate.method()], Limits(batch_concurrency=3))
    batch = [{"jsonrpc": "2.0", "method": "wait", "id": number} for number in range(10)]
    asked = asyncio.create_task(service.ask(batch))
    for _ in range(3):
        await gate.entered.acquire()
    gate.go.set()
    answers = await asked
    assert [answer["id"] for answer in answers] == list(range(10))
    assert gate.most == 3


async def test_one_failing_call_leaves_the_rest_of_its_batch_alone() -> None:
    service = Service([*specification_methods(), failing(RuntimeError("no"))])
    answers = await service.ask(
        [
            {"jsonrpc": "2.0", "method": "fail", "id": 1},
            {"jsonrpc": "2.0", "method": "get_data", "id": 2},
            {"jsonrpc": "2.0", "method": "get_data", "id": True},
        ]
    )
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32603, None, -32600]
    assert sorted(report.outcome for report in service.reports) == ["internal_error", "invalid_request", "ok"]


# --- a2a_context -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "a2a_context",
    [
        {},
        None,
        {"source_agent": "a", "target_agent": "b", "trace_id": "t", "timestamp": "2026-01-01T00:00:00Z"},
        {"conversation_id": "c", "session_id": None, "more": {"nested": [1, 2.5, True]}},
        {"é": "\\u0000 \U0001f600"},
    ],
)
@pytest.mark.parametrize("method", ["echo", "foobar"])
@pytest.mark.shows("AC-7")
async def test_the_a2a_context_comes_back_unchanged(method: str, a2a_context: dict[str, Any] | None) -> None:
    answer = await Service([echoing()]).call(method, a2a_context=a2a_context)
    assert answer["a2a_context"] == a2a_context
    if method == "echo":
        assert answer["result"]["a2a_context"] == a2a_context


async def test_without_an_a2a_context_none_comes_back() -> None:
    assert set(await Service().call("get_data")) == {"jsonrpc", "result", "id"}


@pytest.mark.shows("issue2-4-traces")
async def test_each_call_of_a_batch_gets_its_own_a2a_context() -> None:
    answers = await Service([echoing()]).ask(
        [{"jsonrpc": "2.0", "method": "echo", "id": name, "a2a_context": {"source_agent": name}} for name in "ab"]
    )
    assert [answer["a2a_context"]["source_agent"] for answer in answers] == ["a", "b"]
    assert [answer["result"]["a2a_context"]["source_agent"] for answer in answers] == ["a", "b"]


async def test_a_report_carries_the_call_and_its_duration() -> None:
    service = Service()
    await service.call("get_data", a2a_context={"source_agent": str(uuid4())})
    (report,) = service.reports
    assert report.call is not None
    assert report.call.a2a_context is not None
    assert (report.method, report.outcome) == ("get_data", "ok")
    assert 0 < report.seconds < 10
