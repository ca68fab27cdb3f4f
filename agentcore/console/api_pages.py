"""The methods of the API with their fields, and a form that calls one with the session's token."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from agentcore.console.visit import Visit
from agentcore.errors import AgentCoreError, InvalidParams, NotFound
from agentcore.memory.api import METHODS, AnyMethod

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class FieldShown:
    name: str
    kind: str
    default: str
    description: str


@dataclass(frozen=True)
class Called:
    """A call and its answer as JSON-RPC; `problem`: the call was not sent."""

    request: str = ""
    answer: str = ""
    error: AgentCoreError | None = None
    milliseconds: float = 0.0
    problem: str = ""


def fields_of(schema: Schema) -> list[FieldShown]:
    """Returns the rows of an object's table."""
    definitions, required = schema.get("$defs", {}), schema.get("required", [])
    return [
        FieldShown(
            name,
            kind_of(each, definitions),
            "required" if name in required else json.dumps(each["default"]) if "default" in each else "",
            each.get("description", ""),
        )
        for name, each in schema.get("properties", {}).items()
    ]


def kind_of(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """Returns a type in words; objects by the name of their model."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return kind_of(definitions[name], definitions) if "enum" in definitions[name] else name
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind_of(each, definitions) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " | ".join(map(str, schema.get("enum") or [schema["const"]]))
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {kind_of(schema.get('items', {}), definitions)}"
    return str(schema.get("format", kind))


def _objects(schema: Schema) -> Iterator[tuple[str, list[FieldShown]]]:
    definitions = schema.get("$defs", {})
    for name, each in definitions.items():
        if "properties" in each:
            yield name, fields_of({**each, "$defs": definitions})


def _example(schema: Schema) -> str:
    """Returns the required params with empty values."""
    properties, empty = schema.get("properties", {}), {"array": [], "object": {}, "integer": 1}
    params = {name: empty.get(properties[name].get("type"), "") for name in schema.get("required", [])}
    return json.dumps(params, indent=2)


async def methods(visit: Visit) -> Response:
    return visit.render("api.html", methods=METHODS)


async def method(visit: Visit) -> Response:
    """Describes a method; a post calls it."""
    found = next((each for each in METHODS if each.name == visit.request.path_params["method"]), None)
    if found is None:
        raise NotFound("The API has no such method.")
    called = await _called(visit, found) if visit.request.method == "POST" else None
    if called is not None and visit.wants_fragment:
        return visit.render("api_result.html", called=called)
    params, result = found.params.model_json_schema(), found.result.model_json_schema(mode="serialization")
    return visit.render(
        "api_method.html",
        method=found,
        tables=[("Params", fields_of(params)), ("Result", fields_of(result))],
        objects={**dict(_objects(params)), **dict(_objects(result))},
        body=visit.exact("params") or _example(params),
        called=called,
    )


async def _called(visit: Visit, method: AnyMethod) -> Called:
    """Calls the method; an error of the service is an answer, too."""
    try:
        if method.scope != "memory:read" and not visit.text("confirmed"):
            raise InvalidParams("This method changes memories or settings: confirm the call.")
        params = await asyncio.to_thread(lambda: method.read(**_parsed(visit.exact("params"))))
    except InvalidParams as error:
        return Called(problem=error.message)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method.name,
        "params": params.model_dump(mode="json", exclude_unset=True),
    }
    failure, begin = None, time.perf_counter()
    try:
        result = await visit.memory.call(method, params)
        milliseconds = 1000 * (time.perf_counter() - begin)
        answer = await asyncio.to_thread(lambda: _answer("result", result.model_dump(mode="json")))
    except AgentCoreError as error:
        failure, milliseconds = error, 1000 * (time.perf_counter() - begin)
        answer = _answer("error", {"code": int(error.code), "message": error.message, "data": error.data})
    return Called(_text(call), answer, failure, milliseconds)


def _answer(name: str, value: Any) -> str:
    return _text({"jsonrpc": "2.0", "id": 1, name: value})


def _parsed(text: str) -> dict[str, Any]:
    """Raises InvalidParams unless the text is a JSON object that can be sent."""
    try:
        given = json.loads(text.strip() or "{}")
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as cause:
        raise InvalidParams(f"The params are not JSON: {cause}.") from cause
    if not isinstance(given, dict):
        raise InvalidParams("The params are not a JSON object.")
    return given


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


API_PAGES = (("/api", "GET", methods), ("/api/{method}", "GET", method), ("/api/{method}", "POST", method))
