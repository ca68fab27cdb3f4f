"""Fault points: each is used in the product, and kills only where it is armed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentcore.failpoints import FAILPOINTS, VARIABLE, failpoint

PACKAGE = Path(__file__).resolve().parents[2] / "agentcore"
KILLED = -9


def passed() -> list[str]:
    """Returns the names passed to `failpoint` in the product."""
    calls = (
        node
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    return [
        ast.literal_eval(call.args[0])
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "failpoint"
    ]


def test_each_name_is_passed_at_one_place_and_no_other_is() -> None:
    assert sorted(passed()) == sorted(FAILPOINTS)


def test_nothing_happens_where_none_or_another_is_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    reach: Callable[[str], object] = failpoint
    told = [reach(name) for name in FAILPOINTS]
    monkeypatch.setenv(VARIABLE, "prune.buried")
    told += [reach(name) for name in FAILPOINTS if name != "prune.buried"]
    assert told == [None] * (2 * len(FAILPOINTS) - 1)  # and this process is alive


@pytest.mark.parametrize(
    ("armed", "passes", "printed"),
    [("prune.held", 1, 0), ("prune.held:1", 1, 0), ("prune.held:3", 3, 2), ("prune.held:4", 3, 3)],
)
def test_the_process_dies_at_the_pass_that_is_named(armed: str, passes: int, printed: int) -> None:
    program = (
        "from agentcore.failpoints import failpoint\n"
        f"for _ in range({passes}):\n    failpoint('prune.held')\n    print('on', flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, VARIABLE: armed},
        text=True,
        capture_output=True,
        check=False,
        cwd=PACKAGE.parent,
    )
    assert (done.returncode, done.stdout.count("on")) == (KILLED if printed < passes else 0, printed)
