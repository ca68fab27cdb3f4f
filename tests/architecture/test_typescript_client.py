"""Tests that the TypeScript client equals the output of its generator and covers the contract."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from agentcore.errors import WIRE_ERRORS
from agentcore.memory.api import METHODS

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "typescript"
WRITTEN: dict[str, str] = runpy.run_path(str(ROOT / "scripts" / "write_typescript.py"))["client_files"]()
TYPES = WRITTEN["index.d.ts"]


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.shows("issue6-1-TypeScript")
def test_a_derived_file_is_what_the_contract_would_write(name: str) -> None:
    said = (CLIENT / "src" / name).read_text(encoding="utf-8")
    assert said == WRITTEN[name], "run scripts/write_typescript.py"


def test_every_method_has_its_params_and_result_as_types() -> None:
    signatures = re.findall(r"^  (\w+)\(params\??: (\w+), call\?: CallOptions\): Promise<(\w+)>;$", TYPES, re.MULTILINE)
    assert {(params, result) for _, params, result in signatures} == {
        (method.params.__name__, method.result.__name__) for method in METHODS
    }
    declared = set(re.findall(r"^export (?:interface|type) (\w+)", TYPES, re.MULTILINE))
    assert {name for _, *both in signatures for name in both} <= declared


def test_every_type_that_is_used_is_declared() -> None:
    code = re.sub(r"/\*\*.*?\*/", "", TYPES)
    built_in = {
        "Omit",
        "Record",
        "Partial",
        "Promise",
        "Error",
        "ErrorOptions",
        "CallOptions",
        "ClientOptions",
        "TokenSource",
    }
    declared = set(re.findall(r"^export (?:declare )?(?:interface|type|class) (\w+)", code, re.MULTILINE))
    used = set(re.findall(r"\b[A-Z]\w+\b", re.sub(r'"[^"]*"', "", code.partition("\n")[2])))
    assert used - declared - built_in == set()


def test_every_error_is_a_class_with_its_code() -> None:
    for error in WIRE_ERRORS:
        head = rf"^export class {error.__name__} extends \w+ {{\n  static code = {int(error.code)};"
        assert re.search(head, WRITTEN["errors.js"], re.MULTILINE)


def test_it_depends_on_nothing_at_run_time() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    for source in (CLIENT / "src").glob("*.js"):
        imported = re.findall(r'from "([^"]+)"', source.read_text(encoding="utf-8"))
        assert all(name.startswith("./") for name in imported), source.name
