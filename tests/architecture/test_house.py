"""Tests limits on sizes, imports, catch-alls and names, and that no path of a developer's machine is
committed."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = sorted((ROOT / "agentcore").rglob("*.py"))
OURS = sorted(
    path
    for room in ("agentcore", "alembic", "benchmarks", "examples", "scripts", "tests")
    for path in (ROOT / room).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MOST_LINES = 600
MOST_FUNCTION_LINES = 80
LONG_FUNCTION_LINES = 50
LONG_FUNCTIONS_SHARE = 0.02
MOST_CATCH_ALLS = 3
NAMELESS = {"utils", "util", "helpers", "helper", "common", "base", "misc"}
# A file or directory in a home or workspace, including this checkout and this user's home.
PLACES = [
    rb"/(?:work|root|Users|mnt)/\w[\w.-]*",
    *(re.escape(bytes(each)) for each in (ROOT, Path.home()) if len(each.parts) > 2),
]
MACHINE_PATH = re.compile(rb"(?<![\w.~:>-])(?:" + b"|".join(PLACES) + b")")
PACKAGE_INDEX = re.compile(rb"(?:--(?:extra-)?index-url|--find-links|--trusted-host)[ =]")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


@pytest.fixture(scope="module", autouse=True)
def parsed() -> Iterator[None]:
    """Clears the parse cache; otherwise the garbage collector scans it in every later test."""
    yield
    nodes.cache_clear()
    tree.cache_clear()


def functions(path: Path) -> Iterator[Function]:
    return (node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked_files() -> list[Path]:
    """Returns the files that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    return [path for each in listed.split("\0") if each and (path := ROOT / each).is_file()]


def comments(path: Path) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def catch_alls(path: Path) -> list[ast.ExceptHandler]:
    def catches_all(caught: ast.expr | None) -> bool:
        kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
        return any(kind is None or (isinstance(kind, ast.Name) and kind.id == "Exception") for kind in kinds)

    handlers = (node for node in nodes(path) if isinstance(node, ast.ExceptHandler))
    return [handler for handler in handlers if catches_all(handler.type)]


def test_no_file_is_too_long() -> None:
    lines = {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in OURS}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.shows("issue2-code-limits")
def test_no_function_is_too_long_and_few_are_long() -> None:
    sizes = {f"{name_of(path)}:{each.lineno} {each.name}": length(each) for path in OURS for each in functions(path)}
    assert {name: size for name, size in sizes.items() if size > MOST_FUNCTION_LINES} == {}
    package = {name: size for name, size in sizes.items() if name.startswith("agentcore/")}
    long = {name: size for name, size in package.items() if size > LONG_FUNCTION_LINES}
    assert len(long) <= LONG_FUNCTIONS_SHARE * len(package), long


def test_few_handlers_catch_everything_and_each_says_why() -> None:
    found = [(path, handler) for path in PACKAGE for handler in catch_alls(path)]
    assert len(found) <= MOST_CATCH_ALLS, [f"{name_of(path)}:{handler.lineno}" for path, handler in found]
    assert [
        f"{name_of(path)}:{handler.lineno}" for path, handler in found if handler.lineno not in comments(path)
    ] == []


def test_no_import_hides_in_a_function() -> None:
    hidden = [
        f"{name_of(path)}:{node.lineno}"
        for path in OURS
        for function in functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert hidden == []


def test_every_file_is_named_by_what_it_defines() -> None:
    assert [name_of(path) for path in OURS if path.stem.strip("_") in NAMELESS] == []


def test_every_module_says_first_what_it_owns() -> None:
    assert [name_of(path) for path in OURS if tree(path).body and not ast.get_docstring(tree(path))] == []


def test_nothing_of_ours_is_mocked() -> None:
    imported = {
        (name_of(path), ast.unparse(node))
        for path in TESTS
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {each for each in imported if "mock" in each[1] and "moto" not in each[1]} == set()


@pytest.mark.shows("B23")
def test_no_test_waits_by_the_clock() -> None:
    def sleeps(path: Path) -> Iterator[str]:
        for node in (node for node in nodes(path) if isinstance(node, ast.Call)):
            # Zero seconds only yield to other tasks.
            if re.fullmatch(r"(?:\w+\.)*sleep\((?!0\)).*\)", ast.unparse(node)):
                yield f"{name_of(path)}:{node.lineno}"

    tests = [path for path in TESTS if path.name.startswith("test_")]
    assert [place for path in tests for place in sleeps(path)] == []


@pytest.mark.shows("B23")
def test_no_test_counts_all_threads_of_the_process() -> None:
    """Executors and other tests start and stop threads of their own."""
    counted = [
        f"{name_of(path)}:{node.lineno}"
        for path in TESTS
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "active_count"
    ]
    assert counted == []


def test_no_file_names_a_place_on_somebodys_machine_or_a_package_index() -> None:
    kinds = (MACHINE_PATH, PACKAGE_INDEX)
    found = {
        name_of(path): places
        for path in tracked_files()
        if (places := [place for kind in kinds for place in kind.findall(path.read_bytes())])
    }
    # This file contains the examples below.
    found.pop(name_of(Path(__file__)), None)
    assert found == {}


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (b"cd /" + b"work/main", True),
        (b"PATH=/Users/ada", True),
        (b"cd " + bytes(ROOT) + b"/docs", True),
        (b"https://example.org/work/ada", False),
        (b"/home/<user>", False),
        (b"$AGENTCORE_HOME/run", False),
        (b"benchmarks/mnt/x", False),
    ],
)
def test_a_place_on_a_machine_is_known_when_it_is_seen(text: bytes, is_one: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) == is_one
