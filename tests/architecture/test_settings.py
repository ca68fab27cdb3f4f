"""Tests that every setting is used and has a description, a unit and its default in `.env.example`."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pytest
from pydantic.fields import FieldInfo

from agentcore.config import Settings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "write_reference.py"))
FIELDS: dict[str, FieldInfo] = dict(Settings.model_fields)
ENTRY = re.compile(r"^((?:# .*\n)+)#([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)
ENTRIES = {name.lower(): (comment, value) for comment, name, value in ENTRY.findall(EXAMPLE)}

# Names that the specification and the design fix.
FIXED = """
EMBEDDING_MODEL EMBEDDING_MODEL_NAME EMBEDDING_DIMENSIONS OPENAI_API_KEY VECTOR_STORE MEMORY_WORKING_TTL
MEMORY_EPISODIC_CAPACITY MEMORY_PRUNING_STRATEGY MEMORY_ARCHIVAL_ENABLED MEMORY_ARCHIVAL_S3_BUCKET
DATABASE_URL DATABASE_READ_URL REDIS_URL AGENTCORE_HOME AGENTCORE_URL AGENTCORE_TOKEN HOST PORT
JWT_SECRET_KEY JWT_ALGORITHM JWT_JWKS_URL JWT_ISSUER JWT_AUDIENCE OPENAI_BASE_URL COHERE_API_KEY
AWS_ENDPOINT_URL_S3
"""


def is_number(field: FieldInfo) -> bool:
    kinds = get_args(field.annotation) if isinstance(field.annotation, UnionType) else (field.annotation,)
    return bool({int, float} & set(kinds))


def attributes_read() -> set[str]:
    """Returns the names read as `settings.name` anywhere in the package except in `config.py`."""
    names = set()
    for path in (ROOT / "agentcore").rglob("*.py"):
        if path.name != "config.py":
            names |= {
                node.attr
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Attribute) and _is_settings(node.value)
            }
    return names


def _is_settings(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "settings") or (
        isinstance(node, ast.Attribute) and node.attr in {"settings", "_settings"}
    )


READ = attributes_read()


def test_every_setting_stands_in_the_example_and_nothing_else_does() -> None:
    assert list(ENTRIES) == list(FIELDS)
    assert len(re.findall(r"^#?[A-Z][A-Z0-9_]*=", EXAMPLE, re.MULTILINE)) == len(FIELDS)


def test_the_settings_are_few_enough_to_know() -> None:
    assert len(FIELDS) <= 75


@pytest.mark.parametrize("name", FIELDS)
def test_a_setting_is_described_with_its_default(name: str) -> None:
    comment, value = ENTRIES[name]
    described = FIELDS[name].description
    assert described
    assert described.endswith(".")
    assert described in comment
    assert value == SCRIPT["default_text"](FIELDS[name])


@pytest.mark.parametrize("name", [name for name in FIELDS if is_number(FIELDS[name]) and name != "port"])
def test_a_number_has_a_unit(name: str) -> None:
    assert re.search(r"Unit: [a-z ]+\.$", ENTRIES[name][0].strip()), "write_reference.py knows no unit for it"


@pytest.mark.parametrize("name", FIELDS)
def test_a_setting_is_read_somewhere(name: str) -> None:
    assert name in READ


def test_the_example_with_its_marks_taken_off_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FIELDS:
        monkeypatch.delenv(name.upper(), raising=False)
    taken = re.sub(r"^#(?=[A-Z][A-Z0-9_]*=)", "", EXAMPLE, flags=re.MULTILINE)
    (tmp_path / ".env").write_text(taken)
    assert Settings(_env_file=tmp_path / ".env") == Settings(_env_file=None)


def test_a_line_taken_over_changes_its_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORT", raising=False)
    (tmp_path / ".env").write_text(EXAMPLE.replace("#PORT=8080", "PORT=8123"))
    settings: Any = Settings(_env_file=tmp_path / ".env")
    assert settings.port == 8123


@pytest.mark.parametrize("name", FIXED.split())
def test_a_name_that_is_promised_is_a_setting(name: str) -> None:
    assert name.lower() in FIELDS
