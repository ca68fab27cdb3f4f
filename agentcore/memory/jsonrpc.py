"""The memory.* methods as RPC methods, and the OpenRPC document, both derived from `METHODS`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agentcore.errors import WIRE_ERRORS, InvalidParams, NotAuthorised
from agentcore.limits import MAX_IDS, MAX_PAGE
from agentcore.memory.api import METHODS, AnyMethod, Caller, MemoryApi
from agentcore.memory.models import JsonObject, Strict
from agentcore.memory.params.archived import ArchiveFilters
from agentcore.memory.params.memories import DeleteParams, Filters, StoreBatchParams, StoreParams
from agentcore.memory.params.sessions import AddSessionParams
from agentcore.rpc import RpcMethod

DISCOVER = "rpc.discover"
TITLE = "AgentCore Memory"
# Version of the contract, not of the package: incremented when params or results are added.
CONTRACT_VERSION = "1.0.0"

ROWS_A_UNIT = 50
_ROWS_ASKED = ("k", "limit", "max_tokens")


@dataclass(frozen=True)
class MemoryCall:
    """Context of one call: the caller's memory and identity."""

    memory: MemoryApi
    caller: Caller


class DiscoverParams(Strict):
    """No params."""


def cost_of(method: RpcMethod[Any] | None, params: JsonObject | list[Any]) -> int:
    """Returns 1, the method's `cost`, and 1 for each text to embed and for every 50 rows to read."""
    if method is None:
        return 1
    said = params if isinstance(params, dict) else dict(zip(method.positional, params, strict=False))
    fields = method.params.model_fields
    given = {**{name: fields[name].default for name in _ROWS_ASKED if name in fields}, **said}
    lists = {name: len(each) for name, each in given.items() if isinstance(each, list)}
    numbers = {name: max(0, each) for name, each in given.items() if isinstance(each, int)}
    texts = lists.get("items", 0) + lists.get("messages", 0)
    asked = numbers.get("k", 0) + numbers.get("limit", 0) + numbers.get("max_tokens", 0) // 20
    rows = min(asked, MAX_PAGE) + min(lists.get("memory_ids", 0), MAX_IDS)
    return 1 + method.cost + texts + rows // ROWS_A_UNIT


def memory_methods(offered: Sequence[AnyMethod] = METHODS) -> list[RpcMethod[MemoryCall]]:
    """Returns the `memory.*` methods and `rpc.discover`, which needs no scope."""
    methods = [
        RpcMethod(
            name=method.name,
            params=method.params,
            result=method.result,
            handler=_handler(method),
            summary=method.summary,
            scope=method.scope,
            positional=method.positional,
            reads=method.scope == "memory:read",
            cost=method.cost,
            admin_fields=method.admin_fields,
        )
        for method in offered
    ]
    for each in offered:  # before calls validate in several threads
        each.params.model_rebuild()
        each.result.model_rebuild()
    building = asyncio.Lock()
    built: list[JsonObject] = []

    async def discover(call: MemoryCall, params: DiscoverParams) -> JsonObject:
        async with building:
            if not built:  # in a thread: it takes 0.2 s of CPU
                built.append(await asyncio.to_thread(service_document, methods))
        return built[0]

    return [
        *methods,
        RpcMethod(
            name=DISCOVER,
            params=DiscoverParams,
            result=JsonObject,
            handler=discover,
            summary="The OpenRPC document of this service.",
            reads=True,
        ),
    ]


def _handler(method: AnyMethod) -> Callable[[MemoryCall, Any], Awaitable[Any]]:
    async def call_memory(call: MemoryCall, params: Any) -> Any:
        if call.caller.users is not None:
            params = within_users(method, params, call.caller.users)
        return await getattr(call.memory, method.attribute)(params)

    return call_memory


def within_users(method: AnyMethod, params: Any, users: Set[str | None]) -> Any:
    """Narrows filters to the users of the token and sets the user of a store; row security hides rows by id.

    Raises NotAuthorised for a method or store for other users, InvalidParams if a store must name one of several.
    """
    if not method.for_users:
        raise NotAuthorised(f"This token is bound to users, and {method.name} acts on all of them.")
    if isinstance(params, DeleteParams) and (params.all or params.memory_ids):
        return params.model_copy(update={"all": False, "user_id": [*users]})
    if isinstance(params, Filters | ArchiveFilters):
        return params.model_copy(update={"user_id": _narrowed(params.user_id, users)})
    if isinstance(params, StoreBatchParams):
        return params.model_copy(update={"items": [_owned(each, users) for each in params.items]})
    return _owned(params, users) if isinstance(params, StoreParams | AddSessionParams) else params


def _narrowed(user_id: Any, users: Set[str | None]) -> list[str | None]:
    if user_id is None:
        return [*users]
    return [each for each in (user_id if isinstance(user_id, list) else [user_id]) if each in users]


def _owned(params: Any, users: Set[str | None]) -> Any:
    given = params.user_id or getattr(getattr(params, "interaction", None), "user_id", None)
    if given in users:
        return params
    if given is not None:
        raise NotAuthorised("This token is not bound to the user that the memory is stored for.")
    if len(users) > 1:
        raise InvalidParams("user_id is missing: this token is bound to several users", data={"field": "user_id"})
    return params.model_copy(update={"user_id": next(iter(users))})


OPENRPC_VERSION = "1.3.2"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _WithoutFieldTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schemas(methods: Iterable[RpcMethod[Any]], ref_template: str) -> tuple[JsonObject, JsonObject]:
    """Returns schemas by `<method>.params` and `<method>.result`, and their definitions."""
    listed = list(methods)
    adapters: list[tuple[str, Any, TypeAdapter[Any]]] = [
        *((f"{method.name}.params", "validation", TypeAdapter(method.params)) for method in listed),
        *((f"{method.name}.result", "serialization", TypeAdapter(method.result)) for method in listed),
    ]
    found, shared = TypeAdapter.json_schemas(adapters, ref_template=ref_template, schema_generator=_WithoutFieldTitles)
    return {name: schema for (name, _), schema in found.items()}, shared.get("$defs", {})


def schema_document(methods: Iterable[RpcMethod[Any]], title: str) -> JsonObject:
    schemas, definitions = json_schemas(methods, "#/$defs/{model}")
    return {"$schema": DIALECT, "title": title, "$defs": {**schemas, **definitions}}


def service_document(methods: Sequence[RpcMethod[MemoryCall]]) -> JsonObject:
    """Returns the OpenRPC document without `rpc.discover`; every method may return every error."""
    described = [method for method in methods if method.name != DISCOVER]
    schemas, definitions = json_schemas(described, "#/components/schemas/{model}")
    errors = {error.__name__: {"code": int(error.code), "message": error().message} for error in WIRE_ERRORS}
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {"title": TITLE, "version": CONTRACT_VERSION},
        "methods": [_method(method, schemas, definitions) for method in described],
        "components": {"schemas": definitions, "errors": errors},
    }


def _method(method: RpcMethod[Any], schemas: JsonObject, definitions: JsonObject) -> JsonObject:
    params = schemas[f"{method.name}.params"]
    if "$ref" in params:
        params = definitions[params["$ref"].rpartition("/")[2]]
    names = dict.fromkeys([*method.positional, *params.get("properties", {})])
    needs = {"x-scope": method.scope} if method.scope else {}
    return {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "either" if method.positional else "by-name",
        "params": [_descriptor(name, params) for name in names],
        "result": {"name": f"{method.name}.result", "schema": schemas[f"{method.name}.result"]},
        "errors": [{"$ref": f"#/components/errors/{error.__name__}"} for error in WIRE_ERRORS],
        "x-positional": list(method.positional),
        **needs,
    }


def _descriptor(name: str, params: JsonObject) -> JsonObject:
    schema = params["properties"][name]
    said = {"description": schema["description"]} if "description" in schema else {}
    return {"name": name, **said, "required": name in params.get("required", []), "schema": schema}
