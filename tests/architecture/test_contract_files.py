"""Tests that the contract files equal the code's output, are valid, complete and self-contained."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentcore import params as all_params
from agentcore.errors import WIRE_ERRORS, JsonRpcErrorCode
from agentcore.memory.api import METHODS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
WRITTEN: dict[str, str] = runpy.run_path(str(ROOT / "scripts" / "write_contract.py"))["contract_files"]()
DOCUMENT: dict[str, Any] = json.loads(WRITTEN["openrpc.json"])
SCHEMAS: dict[str, Any] = json.loads(WRITTEN["schemas.json"])

# The constraints of OpenRPC 1.3 on the parts that our document uses.
NAMED = {"type": "string", "minLength": 1}
REFERENCE_TO = {
    "type": "object",
    "required": ["$ref"],
    "additionalProperties": False,
    "properties": {"$ref": {"type": "string", "pattern": "^#/components/errors/[A-Za-z]+$"}},
}
DESCRIPTOR = {
    "type": "object",
    "required": ["name", "schema"],
    "additionalProperties": False,
    "properties": {
        "name": NAMED,
        "description": {"type": "string"},
        "required": {"type": "boolean"},
        "schema": {"$ref": Draft202012Validator.META_SCHEMA["$id"]},
    },
}
METHOD = {
    "type": "object",
    "required": ["name", "params", "result"],
    "additionalProperties": False,
    "patternProperties": {"^x-": True},
    "properties": {
        "name": NAMED,
        "summary": NAMED,
        "paramStructure": {"enum": ["by-name", "by-position", "either"]},
        "params": {"type": "array", "items": DESCRIPTOR},
        "result": DESCRIPTOR,
        "errors": {"type": "array", "minItems": 1, "items": REFERENCE_TO},
    },
}
ERROR = {
    "type": "object",
    "required": ["code", "message"],
    "additionalProperties": False,
    "properties": {"code": {"type": "integer"}, "message": NAMED, "data": True},
}
OPENRPC = {
    "type": "object",
    "required": ["openrpc", "info", "methods"],
    "additionalProperties": False,
    "properties": {
        "openrpc": {"const": "1.3.2"},
        "info": {
            "type": "object",
            "required": ["title", "version"],
            "additionalProperties": False,
            "properties": {"title": NAMED, "version": NAMED},
        },
        "methods": {"type": "array", "minItems": 1, "items": METHOD},
        "components": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "schemas": {
                    "type": "object",
                    "propertyNames": {"pattern": "^[a-zA-Z0-9._-]+$"},
                    "additionalProperties": {"$ref": Draft202012Validator.META_SCHEMA["$id"]},
                },
                "errors": {"type": "object", "additionalProperties": ERROR},
            },
        },
    },
}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def resolve(document: Any, reference: str) -> Any:
    assert reference.startswith("#/")
    for part in reference[2:].split("/"):
        document = document[part]
    return document


@pytest.mark.parametrize("name", WRITTEN)
def test_the_committed_file_is_what_the_code_says(name: str) -> None:
    committed = (REFERENCE / name).read_text(encoding="utf-8")
    assert committed == WRITTEN[name], "the contract changed: look at it, then run scripts/write_contract.py"


def test_no_other_contract_file_is_left_behind() -> None:
    expected = {name for name in WRITTEN if name.endswith(".json")}
    assert {path.name for path in REFERENCE.glob("*.json")} == expected


@pytest.mark.shows("issue2-4-discovery")
def test_the_openrpc_document_is_valid() -> None:
    assert list(Draft202012Validator(OPENRPC).iter_errors(DOCUMENT)) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"methods": []},
        {"openrpc": "2"},
        {"info": {"title": "x"}},
        {"extra": 1},
        {"methods": [{**DOCUMENT["methods"][0], "params": [{"name": "query"}]}]},
        {"methods": [{**DOCUMENT["methods"][0], "paramStructure": "any"}]},
        {"components": {"schemas": {"Bad": {"type": "no such type"}}}},
    ],
)
def test_a_broken_document_would_be_seen(broken: dict[str, Any]) -> None:
    assert not Draft202012Validator(OPENRPC).is_valid({**DOCUMENT, **broken})


@pytest.mark.parametrize("document", [DOCUMENT, SCHEMAS], ids=["openrpc", "schemas"])
def test_every_reference_leads_somewhere(document: Any) -> None:
    found = set(references(document))
    assert found
    for reference in found:
        assert resolve(document, reference)


def test_each_method_is_there_once_with_its_scope_and_every_error() -> None:
    listed = {method["name"]: method for method in DOCUMENT["methods"]}
    assert list(listed) == [method.name for method in METHODS]
    codes = {int(code) for code in JsonRpcErrorCode}
    for method in METHODS:
        entry = listed[method.name]
        assert entry["x-scope"] == method.scope
        assert {param["name"] for param in entry["params"]} == set(method.params.model_fields)
        assert {resolve(DOCUMENT, error["$ref"])["code"] for error in entry["errors"]} == codes


def test_params_by_position_come_first_and_in_the_order_of_the_design() -> None:
    fixed = {
        "memory.store": ["interaction"],
        "memory.retrieve": ["query", "k", "memory_types"],
        "memory.get_context": ["query", "task_id", "max_tokens"],
        "memory.update": ["memory_id", "updates"],
        "memory.prune": ["memory_layer", "strategy"],
    }
    declared = {method.name: list(method.positional) for method in METHODS}
    for method in DOCUMENT["methods"]:
        names = [param["name"] for param in method["params"]]
        positional = declared[method["name"]]
        assert names[: len(positional)] == positional == method["x-positional"]
        assert method["paramStructure"] == ("either" if positional else "by-name")
        assert positional == fixed.get(method["name"], positional)


@pytest.mark.shows("FR-2.3", "FR-6.1")
def test_the_fixed_defaults_and_results_stand() -> None:
    methods = {method["name"]: method for method in DOCUMENT["methods"]}
    defaults = {
        (name, param["name"]): param["schema"].get("default")
        for name, method in methods.items()
        for param in method["params"]
    }
    assert defaults["memory.retrieve", "k"] == 5
    assert defaults["memory.get_context", "max_tokens"] == 2_000
    assert defaults["memory.prune", "strategy"] == "least_relevant"
    fields = {
        "memory.store": {"success", "memory_id"},
        "memory.retrieve": {"memories"},
        "memory.get_context": {"context", "token_count"},
        "memory.update": {"success"},
        "memory.prune": {"pruned_count"},
    }
    for name, promised in fields.items():
        result = resolve(DOCUMENT, methods[name]["result"]["schema"]["$ref"])
        assert promised <= set(result["required"])


def test_each_code_has_one_error_and_its_causes_are_children() -> None:
    general = {error.code: error for error in WIRE_ERRORS if error.cause is None}
    assert sorted(error.code for error in WIRE_ERRORS if error.cause is None) == sorted(JsonRpcErrorCode)
    assert all(issubclass(error, general[error.code]) for error in WIRE_ERRORS)


@pytest.mark.shows("issue2-4-discovery")
def test_the_schemas_judge_params() -> None:
    def valid(name: str, value: Any) -> bool:
        schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMAS["$defs"]}
        return bool(Draft202012Validator(schema).is_valid(value))

    Draft202012Validator.check_schema(SCHEMAS)
    assert {name for name in SCHEMAS["$defs"] if name.startswith("memory.")} == {
        f"{method.name}.{part}" for method in METHODS for part in ("params", "result")
    }
    assert valid("memory.retrieve.params", {"query": "tea", "k": 3, "memory_types": ["episodic"]})
    assert not valid("memory.retrieve.params", {"query": "tea", "k": "three"})
    assert not valid("memory.retrieve.params", {"query": "tea", "colour": "red"})
    assert not valid("memory.retrieve.params", {})
    assert valid(
        "memory.update.result",
        {"success": True, "memory_id": "018f0000-0000-7000-8000-000000000000", "version": 2, "receipt": {}},
    )
    assert not valid("memory.update.result", {"success": True})


def test_one_module_gives_every_params_and_result_class() -> None:
    for method in METHODS:
        for kind in (method.params, method.result):
            assert getattr(all_params, kind.__name__) is kind
