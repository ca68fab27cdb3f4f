"""Tests that `tests/requirements.toml` and the ids that tests name in `pytest.mark.shows` match."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8"))
SOURCES: dict[str, dict[str, str]] = DATA["sources"]
BENCHMARKS: dict[str, list[str]] = DATA["benchmarks"]
MISSING: dict[str, str] = DATA["missing"]
LISTED = [each for source in SOURCES.values() for each in source]


def marks_in(path: Path) -> Iterator[tuple[str, list[str]]]:
    module = ast.parse(path.read_text(encoding="utf-8")).body
    methods = [each for node in module if isinstance(node, ast.ClassDef) for each in node.body]
    for node in (*module, *methods):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for each in node.decorator_list:
                if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.shows":
                    yield node.name, [ast.literal_eval(argument) for argument in each.args]


@cache
def marks() -> list[tuple[str, str, list[str]]]:
    """Returns file, name and ids of every mark. Reads the syntax trees; an import of all tests is slow."""
    tests = ROOT / "tests"
    return [
        (path.relative_to(tests).as_posix(), *mark) for path in sorted(tests.rglob("*.py")) for mark in marks_in(path)
    ]


def shown() -> set[str]:
    return {each for _, _, ids in marks() for each in ids} | BENCHMARKS.keys()


def test_a_requirement_is_shown_by_what_exists_or_says_what_is_missing() -> None:
    assert set(LISTED) - shown() - MISSING.keys() == set(), "mark a test that shows it, or state a gap"
    benchmarks = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    assert {each for names in BENCHMARKS.values() for each in names} - benchmarks == set()
    assert [each for each, names in BENCHMARKS.items() if not names] == []


def test_every_id_in_use_is_listed() -> None:
    assert (shown() | MISSING.keys()) - set(LISTED) == set(), "add it to tests/requirements.toml"


def test_no_requirement_is_listed_twice() -> None:
    assert sorted(LISTED) == sorted(set(LISTED))
    assert [mark for mark in marks() if not mark[2] or len(mark[2]) > len(set(mark[2]))] == []


def test_only_tests_show_a_requirement() -> None:
    assert [mark for mark in marks() if not mark[1].lower().startswith("test")] == []
    assert len({mark[:2] for mark in marks()}) == len(marks()), "one mark a test"


def test_every_requirement_and_gap_is_a_sentence() -> None:
    texts = [*(text for source in SOURCES.values() for text in source.values()), *MISSING.values()]
    assert [text for text in texts if not text.endswith(".")] == []


def test_every_finding_is_listed() -> None:
    listed = {each.split("-")[0] for each in SOURCES["findings"]}
    assert listed == {f"A{number}" for number in range(1, 16)} | {f"B{number}" for number in range(1, 24)}


def test_every_acceptance_file_shows_a_requirement() -> None:
    files = {f"acceptance/{path.name}" for path in (ROOT / "tests" / "acceptance").glob("test_*.py")}
    assert files - {file for file, _, _ in marks()} == set(), "mark its tests with pytest.mark.shows"


@pytest.mark.shows("B22")
def test_every_number_of_the_specification_is_listed_and_no_other() -> None:
    counts = {
        "FR-1": 3,
        "FR-2": 4,
        "FR-3": 3,
        "FR-4": 2,
        "FR-5": 3,
        "FR-6": 5,
        "NFR-1": 4,
        "NFR-2": 3,
        "NFR-3": 3,
        "NFR-4": 3,
        "NFR-5": 3,
        "NFR-6": 3,
    }
    wanted = {f"{group}.{number}" for group, count in counts.items() for number in range(1, count + 1)}
    wanted |= {f"AC-{number}" for number in range(1, 9)}
    assert {each for each in LISTED if each.startswith(("FR-", "NFR-", "AC-"))} == wanted


def test_every_part_of_the_first_issue_is_listed() -> None:
    assert {str(part) for part in range(1, 16)} <= {each.split("-")[1] for each in SOURCES["issue 2"]}
