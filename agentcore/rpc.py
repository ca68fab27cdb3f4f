"""JSON-RPC 2.0 over jsonrpcserver: framing, batches, method table, errors. Independent of memory and HTTP.

jsonrpcserver dispatches single calls only: decision 10.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar, cast
from uuid import uuid4

import numpy as np
from jsonrpcserver import Error, Result, Success, async_dispatch_to_serializable
from pydantic import BaseModel, TypeAdapter, ValidationError

from agentcore.cancellation import run_with_timeout
from agentcore.errors import (
    AgentCoreError,
    DependencyUnavailable,
    InternalError,
    InvalidParams,
    InvalidRequest,
    JsonRpcErrorCode,
    NotAuthorised,
    ParseError,
    TooLarge,
    field_path,
    problem_sentence,
)
from agentcore.limits import (
    MAX_A2A_BYTES,
    MAX_BATCH_CALLS,
    MAX_DEPTH,
    MAX_MEMBERS,
    MAX_MEMBERS_IN_ALL,
    MAX_NUMBER_CHARS,
    MAX_RESPONSE_BYTES,
    MAX_VALUES,
    REQUEST_SECONDS,
)
from agentcore.telemetry import describe_failure

MAX_PROBLEMS = 20
ADMIN = "memory:admin"
MAX_FIELD_CHARS = 200

# Larger bodies are parsed and validated in a thread, one at a time: several would block the event loop (GIL).
LARGE_BODY_BYTES = 65_536
_NOT_OUTLINE = bytes(set(range(256)) - set(b'"[]{},:'))
_ONE_BRACKET = bytes.maketrans(b"{}", b"[]")
_STEPS = bytes.maketrans(b"[],:", np.array([1, -1, 0, 0], np.int8).tobytes())

_NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")

logger = logging.getLogger(__name__)

ContextT = TypeVar("ContextT")
Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class RpcMethod(Generic[ContextT]):
    """One method. `reads`: no effect is lost if its result is not sent. `cost`: rate limit units in addition to 1.

    `admin_fields`: params that require the scope memory:admin.
    """

    name: str
    params: type[BaseModel]
    result: Any
    handler: Callable[[ContextT, Any], Awaitable[Any]]
    summary: str
    scope: str | None = None
    positional: tuple[str, ...] = ()
    reads: bool = False
    cost: int = 0
    admin_fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    max_batch_calls: int = MAX_BATCH_CALLS
    batch_concurrency: int = 8
    timeout_seconds: float = REQUEST_SECONDS
    max_response_bytes: int = MAX_RESPONSE_BYTES


@dataclass(frozen=True, slots=True)
class Call:
    """A valid request. `id` is JSON text, None for a notification; `a2a` is `a2a_context` as JSON text."""

    method: str
    params: dict[str, Any] | list[Any]
    id: str | None = None
    a2a_context: Mapping[str, Any] | None = None
    a2a: str | None = None


@dataclass(frozen=True, slots=True)
class NoCall:
    """An invalid request: its error, and its id if it has one."""

    error: InvalidRequest
    id: str | None = None


@dataclass(frozen=True)
class Frame:
    members: tuple[Call | NoCall, ...]
    is_batch: bool
    is_large: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Outcome of one request. `method`: a method's name, `unknown`, `invalid` or `none`, to bound metrics."""

    method: str
    outcome: str
    seconds: float
    call: Call | None = None


@dataclass(frozen=True)
class Session(Generic[ContextT]):
    """The caller of a body. `slot`: a context that each call of a batch runs in; it may raise AgentCoreError."""

    scopes: frozenset[str]
    open_context: Callable[[Call], ContextT]
    report: Callable[[Report], None]
    slot: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


# --- reading -----------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise ParseError(data={"problem": f"{name} is not JSON"})


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ParseError(data={"problem": "a number is out of range"})
    return number


def _whole(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS:
        raise ParseError(data={"problem": "a number is out of range"})
    return int(digits)


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members) > MAX_MEMBERS:
        raise _too_many("members in one object", "object_members", MAX_MEMBERS)
    return dict(members)


def _too_many(what: str, name: str, limit: int) -> TooLarge:
    return TooLarge(f"The request has more than {limit} {what}.", data={f"max_{name}": limit})


# Each hook lets another thread run; the C scanner alone never releases the GIL.
_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole, object_pairs_hook=_object
)


def _outline(body: bytes) -> bytes:
    """Returns the brackets, commas and colons outside of strings, without a loop in Python. Raises TooLarge."""
    marks = body.replace(rb"\\", b"").replace(rb"\"", b"").translate(_ONE_BRACKET, _NOT_OUTLINE)
    if marks.count(b'"') > 2 * (MAX_VALUES + MAX_MEMBERS_IN_ALL):
        raise _too_many("JSON values", "values", MAX_VALUES)
    outline = b"".join(marks.split(b'"')[::2])
    if outline.count(b",") + outline.count(b"[") > MAX_VALUES:
        raise _too_many("JSON values", "values", MAX_VALUES)
    # The garbage collector tracks each array and object, and stops every thread.
    if max(outline.count(b":"), outline.count(b"[")) > MAX_MEMBERS_IN_ALL:
        raise _too_many("members, arrays or objects", "all_members", MAX_MEMBERS_IN_ALL)
    return outline


def _too_deep(outline: bytes) -> bool:
    steps = np.frombuffer(outline.translate(_STEPS), np.int8)
    return bool(np.any(np.cumsum(steps, dtype=np.int32) > MAX_DEPTH))


def _parse(body: bytes) -> Any:
    openings, members = body.count(b"[") + body.count(b"{"), body.count(b":")
    suspicious = openings > MAX_DEPTH or openings + body.count(b",") > MAX_VALUES or members > MAX_MEMBERS_IN_ALL
    if suspicious and _too_deep(_outline(body)):
        raise ParseError(data={"problem": f"nested deeper than {MAX_DEPTH} levels"})
    try:
        return _DECODER.decode(body.decode())
    except json.JSONDecodeError as cause:
        raise ParseError(data={"problem": f"{cause.msg}, at character {cause.pos + 1}"}) from cause
    except UnicodeDecodeError as cause:
        raise ParseError(data={"problem": f"is not UTF-8, at byte {cause.start + 1}"}) from cause
    except ValueError as cause:
        raise ParseError from cause


def _is_id(identity: Any) -> bool:
    return isinstance(identity, (str, int, float, type(None))) and not isinstance(identity, bool)


def _problem(member: dict[str, Any]) -> str | None:
    if not isinstance(member.get("method"), str):
        return "method is required: the name of a method, such as memory.store"
    if member.get("jsonrpc") != "2.0":
        return 'jsonrpc is not "2.0"'
    if not isinstance(member.get("params", []), (list, dict)):
        return "params is neither an array nor an object"
    if not _is_id(member.get("id")):
        return "id is neither a string, nor a number, nor null"
    if not isinstance(member.get("a2a_context"), (dict, type(None))):
        return "a2a_context is not an object"
    return None


def _carried(a2a_context: dict[str, Any] | None) -> str:
    """Serializes the A2A context. Raises ValueError if it cannot be stored in a memory's provenance."""
    if _has_more_values(a2a_context, MAX_A2A_BYTES // 2):
        raise ValueError(f"is larger than {MAX_A2A_BYTES} bytes")
    text = json.dumps(a2a_context, ensure_ascii=False)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError("contains half of a surrogate pair") from None
    if _NUL.search(text):
        raise ValueError("contains a NUL character")
    if size > MAX_A2A_BYTES:
        raise ValueError(f"is larger than {MAX_A2A_BYTES} bytes")
    return text


def _has_more_values(value: Any, limit: int) -> bool:
    pending, count = [value], 0
    while pending and count <= limit:
        current = pending.pop()
        if isinstance(current, dict | list):
            pending.extend(current.values() if isinstance(current, dict) else current)
        count += 1
    return count > limit


def _member(value: Any) -> Call | NoCall:
    if not isinstance(value, dict):
        return NoCall(InvalidRequest(data={"problem": "a request is an object"}))
    if isinstance(value.get("params"), list) and len(value["params"]) > MAX_MEMBERS:
        raise _too_many("params by position", "object_members", MAX_MEMBERS)
    identity = json.dumps(value["id"]) if "id" in value and _is_id(value["id"]) else None
    problem = _problem(value)
    if problem is not None:
        return NoCall(InvalidRequest(data={"problem": problem}), identity)
    try:
        a2a = _carried(value["a2a_context"]) if "a2a_context" in value else None
    except ValueError as cause:
        return NoCall(InvalidRequest(data={"problem": f"a2a_context {cause}"}), identity)
    return Call(
        method=value["method"],
        params=value.get("params", {}),
        id=identity,
        a2a_context=value.get("a2a_context"),
        a2a=a2a,
    )


def read_frame(body: bytes, limits: Limits) -> Frame:
    """Raises ParseError, InvalidRequest (an empty batch) or TooLarge (a long one) for the whole body."""
    parsed, is_large = _parse(body), len(body) > LARGE_BODY_BYTES
    if not isinstance(parsed, list):
        return Frame((_member(parsed),), is_batch=False, is_large=is_large)
    if not parsed:
        raise InvalidRequest
    if len(parsed) > limits.max_batch_calls:
        message = f"A batch holds at most {limits.max_batch_calls} calls; this one holds {len(parsed)}."
        raise TooLarge(message, data={"max_batch_calls": limits.max_batch_calls})
    return Frame(tuple(_member(value) for value in parsed), is_batch=True, is_large=is_large)


# --- errors ------------------------------------------------------------------------------------------------


def _field(location: Iterable[Any]) -> str:
    return field_path(location)[:MAX_FIELD_CHARS] or "params"


def invalid_params(cause: ValidationError) -> InvalidParams:
    """Returns the problem of each field, never the value that was sent."""
    found = cause.errors(include_url=False, include_context=False, include_input=False)
    # Each member of a union reports the same problem of a field.
    problems = dict.fromkeys((_field(each["loc"]), problem_sentence(each)) for each in found)
    named = [{"field": field, "problem": problem} for field, problem in problems]
    return InvalidParams(data={"errors": named[:MAX_PROBLEMS]})


def _opaque(cause: BaseException, method: str) -> AgentCoreError:
    reference = uuid4().hex
    logger.error(
        "a call failed unexpectedly",
        extra={"method": method, "reference": reference, "failure": describe_failure(cause)},
    )
    return InternalError(data={"reference": reference})


def error_member(error: AgentCoreError) -> dict[str, Any]:
    data = {**error.data, "retryable": True} if error.retryable else error.data
    return {"code": int(error.code), "message": error.message, **({"data": data} if data else {})}


def _error_text(member: Mapping[str, Any]) -> bytes:
    return b'"error": ' + json.dumps(member, default=str).encode()


def _response(said: bytes, identity: str | None, a2a: str | None) -> bytes:
    tail = f', "id": {identity or "null"}' + (f', "a2a_context": {a2a}' if a2a is not None else "") + "}"
    return b'{"jsonrpc": "2.0", ' + said + tail.encode()


def error_answer(error: AgentCoreError, identity: str | None = None) -> bytes:
    """Returns a whole response; `identity` is the id as JSON text."""
    return _response(_error_text(error_member(error)), identity, None)


# --- answering ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Turn:
    call: Call
    session: Session[Any]
    is_large: bool


@dataclass(slots=True)
class _Space:
    """Remaining bytes of the response."""

    limit: int
    left: int

    def error(self) -> TooLarge:
        message = f"The response is larger than {self.limit} bytes: ask for less, or in a request of its own."
        return TooLarge(message, data={"max_response_bytes": self.limit})


def _as_is(value: Any) -> Any:
    return value


def _by_name(method: RpcMethod[Any], values: tuple[Any, ...]) -> dict[str, Any]:
    most = len(method.positional)
    if len(values) > most:
        problem = f"takes at most {most} values by position, {len(values)} given"
        raise InvalidParams(data={"errors": [{"field": "params", "problem": problem}]})
    return dict(zip(method.positional, values, strict=False))


def _refuse_unknown(method: RpcMethod[Any], given: dict[str, Any]) -> None:
    """Raises InvalidParams before thousands of unknown names are validated one by one."""
    unknown = [name for name in given if name not in method.params.model_fields]
    if len(unknown) > MAX_PROBLEMS:
        problem = problem_sentence({"type": "extra_forbidden"})
        named = [{"field": _field([name]), "problem": problem} for name in unknown[:MAX_PROBLEMS]]
        raise InvalidParams(data={"errors": named})


async def _in_turn(
    turns: asyncio.Semaphore, work: Callable[Arguments, Returned], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Returned:
    async with turns:
        return await asyncio.to_thread(work, *arguments, **named)


def _check_admin_fields(method: RpcMethod[Any], params: Any, scopes: frozenset[str]) -> None:
    if ADMIN not in scopes and any(getattr(params, field) for field in method.admin_fields):
        raise NotAuthorised(data={"needs": ADMIN})


def _bind(
    method: RpcMethod[ContextT], timeout_seconds: float, large: asyncio.Semaphore
) -> Callable[..., Awaitable[Result]]:
    validate = TypeAdapter(method.params).validate_python
    dump = TypeAdapter(method.result).dump_json

    def validated(given: dict[str, Any]) -> Any:
        _refuse_unknown(method, given)
        try:
            return validate(given)
        except ValidationError as cause:
            raise invalid_params(cause) from cause

    async def run(turn: _Turn, values: tuple[Any, ...], names: dict[str, Any]) -> bytes:
        if method.scope is not None and method.scope not in turn.session.scopes:
            raise NotAuthorised(data={"needs": method.scope})
        given = _by_name(method, values) if values else names
        params = await _in_turn(large, validated, given) if turn.is_large else validated(given)
        _check_admin_fields(method, params, turn.session.scopes)
        try:
            work = method.handler(turn.session.open_context(turn.call), params)
            return dump(await run_with_timeout(timeout_seconds, work))
        except TimeoutError as cause:
            message = f"{method.name} did not end in time; it may still have taken effect."
            raise DependencyUnavailable(message) from cause

    async def bound(turn: _Turn, /, *values: Any, **names: Any) -> Result:
        try:
            return Success(await run(turn, values, names))
        except AgentCoreError as error:
            internal = error.code is JsonRpcErrorCode.INTERNAL_ERROR
            return Error(**error_member(_opaque(error, method.name) if internal else error))
        except Exception as cause:  # the RPC boundary: every failure returns a valid response
            return Error(**error_member(_opaque(cause, method.name)))

    vars(bound)["__signature__"] = signature(bound)  # cached: the dispatcher needs it for every call
    return bound


class MethodTable(Generic[ContextT]):
    def __init__(self, methods: Iterable[RpcMethod[ContextT]], limits: Limits) -> None:
        self.limits = limits
        self._methods = {method.name: method for method in methods}
        self._large = asyncio.Semaphore(1)
        self._bound = {
            name: _bind(method, limits.timeout_seconds, self._large) for name, method in self._methods.items()
        }

    def method(self, name: str) -> RpcMethod[ContextT] | None:
        return self._methods.get(name)

    async def read(self, body: bytes) -> Frame:
        """Parses the calls of a body. Raises as `read_frame` does."""
        if len(body) <= LARGE_BODY_BYTES:
            return read_frame(body, self.limits)
        return await _in_turn(self._large, read_frame, body, self.limits)

    async def answer(self, frame: Frame, session: Session[ContextT]) -> bytes | None:
        """Returns the response to a body, in the order of its calls; None if all are notifications."""
        space = _Space(self.limits.max_response_bytes, self.limits.max_response_bytes)
        if not frame.is_batch:
            return await self._answer_member(frame.members[0], session, frame.is_large, space)
        places = asyncio.Semaphore(self.limits.batch_concurrency)

        async def in_turn(member: Call | NoCall) -> bytes | None:
            try:
                async with places, session.slot():
                    return await self._answer_member(member, session, frame.is_large, space)
            except AgentCoreError as error:
                session.report(Report("none", _outcome(error.code), 0.0))
                return error_answer(error, member.id) if isinstance(member, NoCall) or member.id else None

        answers = await asyncio.gather(*(in_turn(member) for member in frame.members))
        said = b", ".join(answer for answer in answers if answer is not None)
        return b"".join((b"[", said, b"]")) if said else None

    async def _answer_member(
        self, member: Call | NoCall, session: Session[ContextT], is_large: bool, space: _Space
    ) -> bytes | None:
        if isinstance(member, NoCall):
            session.report(Report("invalid", _outcome(member.error.code), 0.0))
            return error_answer(member.error, member.id)
        started = time.perf_counter()
        result, error = None, error_member(space.error())
        if space.left > 0:
            result, error = await self._dispatched(member, _Turn(member, session, is_large))
        # Only a known method has a result.
        if result is not None and len(result) > space.left and self._methods[member.method].reads:
            result, error, space.left = None, error_member(space.error()), 0
        outcome = "ok" if result is not None else _outcome(error["code"])
        seconds = time.perf_counter() - started
        name = member.method if member.method in self._methods else "unknown"
        session.report(Report(name, outcome, seconds, member))
        if member.id is None:
            return None
        said = b'"result": ' + result if result is not None else _error_text(error)
        answer = _response(said, member.id, member.a2a)
        space.left -= len(answer)
        return answer

    async def _dispatched(self, call: Call, turn: _Turn) -> tuple[bytes | None, dict[str, Any]]:
        # A notification is dispatched with an id too: the report needs its outcome.
        request = {"method": call.method, "params": call.params, "id": None}
        response = cast(
            dict[str, Any],
            await async_dispatch_to_serializable(
                request, self._bound, context=turn, deserializer=_as_is, validator=_as_is
            ),
        )
        error: dict[str, Any] = response.get("error", {})
        if error and call.method not in self._methods:
            error["data"] = {"problem": self._unknown(call.method)}
        return response.get("result"), error

    def _unknown(self, name: str) -> str:
        unprefixed = [known for known in self._methods if known.rpartition(".")[2] == name]
        near = unprefixed or get_close_matches(name[:MAX_FIELD_CHARS], self._methods, n=1)
        meant = f"; did you mean {near[0]}?" if near else "; rpc.discover names them all"
        return f"there is no method {name[:MAX_FIELD_CHARS]!r}{meant}"


def _outcome(code: int) -> str:
    return JsonRpcErrorCode(code).name.lower()
