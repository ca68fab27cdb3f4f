"""Registry lookups of a name, and error messages with a fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore.errors import ConfigurationError
from agentcore.memory.embeddings import EMBEDDERS
from agentcore.registry import resolve

TABLE = {"decimal": "decimal:Decimal", "broken": "tests_registry_broken:Thing", "typo": "decimal:Decimol"}


def problem(name: str, table: dict[str, str] = TABLE) -> str:
    with pytest.raises(ConfigurationError) as caught:
        resolve(name, table, kind="number")
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def test_a_known_name_gives_its_object() -> None:
    assert resolve("decimal", TABLE, kind="number")("1.5") == 1.5


def test_a_path_gives_the_object_it_names() -> None:
    assert resolve("pathlib:Path", TABLE, kind="number") is Path


@pytest.mark.parametrize("name", ["imaginary", "", ":", "decimal:", ":Decimal", "os.path"])
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    assert f"no number named {name!r}" in problem(name)
    assert "Known: broken, decimal, typo" in problem(name)


def test_an_empty_table_says_that_nothing_is_known() -> None:
    assert "Known: none" in problem("imaginary", {})


@pytest.mark.parametrize("path", ["nowhere_at_all:Thing", "nowhere.at.all:Thing", "decimal.at_all:Thing"])
def test_a_path_to_no_module_is_not_blamed_on_a_missing_package(path: str) -> None:
    assert "does not exist" in problem(path)
    assert "pip install" not in problem(path)


def test_an_attribute_that_is_not_there_is_named() -> None:
    assert problem("typo") == "The number 'typo' does not exist: module 'decimal' has no 'Decimol'."


def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests_registry_broken.py").write_text("import no_such_package.inner\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "needs the package 'no_such_package'" in problem("broken")
    assert "pip install 'agentcore-memory[broken]'" in problem("broken")
    assert problem("tests_registry_broken:Thing").endswith("pip install no_such_package.")


def test_a_module_that_fails_to_load_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests_registry_failing.py").write_text("raise ImportError('libc is too old')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert problem("tests_registry_failing:Thing").endswith("cannot be loaded: libc is too old")


@pytest.mark.parametrize("name", sorted(EMBEDDERS))
def test_every_embedder_of_the_table_is_there(name: str) -> None:
    assert callable(resolve(name, EMBEDDERS, kind="embedder"))
