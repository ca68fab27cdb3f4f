"""Builds the OpenRPC document and the JSON Schemas of any method table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agentcore.errors import AgentCoreError

OPENRPC_VERSION = "1.3.2"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Described(Protocol):
    """Attributes of a method that a document needs."""

    @property
    def name(self) -> str: ...
    @property
    def params(self) -> type[BaseModel]: ...
    @property
    def result(self) -> Any: ...
    @property
    def summary(self) -> str: ...
    @property
    def scope(self) -> str | None: ...
    @property
    def positional(self) -> tuple[str, ...]: ...


class _WithoutFieldTitles(GenerateJsonSchema):
    """Omits titles of fields, which only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schemas(methods: Iterable[Described], ref_template: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns schemas by `<method>.params` and `<method>.result`, and the definitions they reference."""
    listed = list(methods)
    params: list[tuple[str, Any, TypeAdapter[Any]]] = [
        (f"{method.name}.params", "validation", TypeAdapter(method.params)) for method in listed
    ]
    results: list[tuple[str, Any, TypeAdapter[Any]]] = [
        (f"{method.name}.result", "serialization", TypeAdapter(method.result)) for method in listed
    ]
    found, shared = TypeAdapter.json_schemas(
        [*params, *results], ref_template=ref_template, schema_generator=_WithoutFieldTitles
    )
    return {name: schema for (name, _), schema in found.items()}, shared.get("$defs", {})


def schema_document(methods: Iterable[Described], title: str) -> dict[str, Any]:
    """Returns one JSON Schema document that defines all params and results."""
    schemas, definitions = json_schemas(methods, "#/$defs/{model}")
    return {"$schema": DIALECT, "title": title, "$defs": {**schemas, **definitions}}


def openrpc_document(
    methods: Sequence[Described], errors: Sequence[type[AgentCoreError]], *, title: str, version: str
) -> dict[str, Any]:
    """Returns the OpenRPC document of a method table; every method may return every error."""
    schemas, definitions = json_schemas(methods, "#/components/schemas/{model}")
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {"title": title, "version": version},
        "methods": [_method(method, schemas, definitions, errors) for method in methods],
        "components": {"schemas": definitions, "errors": {error.__name__: _error(error) for error in errors}},
    }


def _error(error: type[AgentCoreError]) -> dict[str, Any]:
    return {"code": int(error.code), "message": error().message}


def _method(
    method: Described, schemas: dict[str, Any], definitions: dict[str, Any], errors: Sequence[type[AgentCoreError]]
) -> dict[str, Any]:
    params = _resolved(schemas[f"{method.name}.params"], definitions)
    needs = {"x-scope": method.scope} if method.scope else {}
    return {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "either" if method.positional else "by-name",
        "params": [_descriptor(name, params) for name in _in_order(method, params)],
        "result": {"name": f"{method.name}.result", "schema": schemas[f"{method.name}.result"]},
        "errors": [{"$ref": f"#/components/errors/{error.__name__}"} for error in errors],
        "x-positional": list(method.positional),
        **needs,
    }


def _in_order(method: Described, params: dict[str, Any]) -> list[str]:
    named = [name for name in params.get("properties", {}) if name not in method.positional]
    return [*method.positional, *named]


def _descriptor(name: str, params: dict[str, Any]) -> dict[str, Any]:
    schema = params["properties"][name]
    said = {"description": schema["description"]} if "description" in schema else {}
    return {"name": name, **said, "required": name in params.get("required", []), "schema": schema}


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return schema if reference is None else dict(definitions[reference.rpartition("/")[2]])
