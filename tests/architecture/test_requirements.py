"""Tests that every requirement names existing tests and every named test exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.acceptance.requirements import REQUIREMENTS, Requirement

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
EVIDENCE = {each for requirement in REQUIREMENTS for each in requirement.shown_by}


def names_of_tests(path: Path) -> set[str]:
    """Returns the names of the file's tests, as `folder/file.py::name`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place = path.relative_to(ROOT / "tests").as_posix()
    return {f"{place}::{node.name}" for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")}


THERE = {name for path in FILES for name in names_of_tests(path)} | {
    f"benchmarks/{path.stem}" for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("_")}


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda each: f"{each.source}: {each.number}")
def test_a_requirement_is_shown_by_what_exists_or_says_what_is_missing(requirement: Requirement) -> None:
    assert set(requirement.shown_by) - THERE == set(), "renamed or gone: name the test that shows it now"
    assert requirement.shown_by or requirement.missing
    assert requirement.sentence.endswith(".")


def test_no_requirement_is_listed_twice() -> None:
    names = [(requirement.source, requirement.number) for requirement in REQUIREMENTS]
    assert len(names) == len(set(names))


def test_every_finding_is_listed() -> None:
    listed = {each.number.split(" ")[0] for each in REQUIREMENTS if each.source == "finding"}
    assert listed == {f"A{number}" for number in range(1, 16)} | {f"B{number}" for number in range(1, 24)}


def test_every_acceptance_file_shows_a_requirement() -> None:
    files = {f"acceptance/{path.name}" for path in FILES if path.parent.name == "acceptance"}
    assert files - {each.partition("::")[0] for each in EVIDENCE} == set(), "name it in requirements.py"


@pytest.mark.shows("B22")
def test_every_number_of_the_specification_is_listed_and_no_other() -> None:
    counts = {"FR-1": 3, "FR-2": 4, "FR-3": 3, "FR-4": 2, "FR-5": 3, "FR-6": 5, "NFR-1": 4, "NFR-2": 3,
              "NFR-3": 3, "NFR-4": 3, "NFR-5": 3, "NFR-6": 3}
    wanted = {f"{group}.{number}" for group, count in counts.items() for number in range(1, count + 1)}
    wanted |= {f"AC-{number}" for number in range(1, 9)}
    assert wanted == {requirement.number for requirement in REQUIREMENTS
                      if requirement.source == "specification (seed 001)"
                      and requirement.number.startswith(("FR-", "NFR-", "AC-"))}


def test_every_part_of_the_first_issue_is_listed() -> None:
    listed = {requirement.number.split(" ")[0] for requirement in REQUIREMENTS}
    assert {str(number) for number in range(1, 16)} <= listed
