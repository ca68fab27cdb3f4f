"""Tests that the Makefile lists its targets from any directory and sets up before running them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["serve", "demo", "test", "check", "wheel", "docs", "bench", "lock"]


def make(*arguments: str, cwd: Path) -> str:
    command = ["make", "--no-print-directory", "-C", str(ROOT), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("target", [*TARGETS, "clean"])
def test_make_alone_explains_each_target(target: str, tmp_path: Path) -> None:
    assert f"make {target} " in make(cwd=tmp_path)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.shows("issue2-1-set-up")
def test_each_target_sets_itself_up_first(target: str, tmp_path: Path) -> None:
    first, *others = make("--dry-run", target, cwd=tmp_path).splitlines()
    assert "scripts/setup.py" in first
    assert others
