"""Tests the setup of a checkout: a failed step is not recorded as done."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2] / "scripts" / "setup.py"
# A fake npm that records its calls and fails while no registry exists.
NPM = """#!/bin/sh
echo asked >> "$NPM_HOME/asked"
test -e "$NPM_HOME/registry"
"""


def checkout(root: Path) -> Path:
    """Builds a checkout in which only the packages of npm are missing, and returns its setup script."""
    setup = root / "scripts" / "setup.py"
    for file in (
        "requirements/lock.txt",
        "clients/typescript/package-lock.json",
        "console/package-lock.json",
        "pyproject.toml",
        ".venv/bin/python",
        "scripts/setup.py",
    ):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    shutil.copy(SETUP, setup)
    own = runpy.run_path(str(setup))
    (root / ".venv" / "setup.json").write_text(
        json.dumps(
            {
                "root": str(own["ROOT"]),
                "python": own["this_python"](),
                "kinds": "lock.txt model.txt integrations.txt",
                "locks": own["digest"](setup, root / "requirements" / "lock.txt"),
                "project": own["digest"](root / "pyproject.toml"),
            }
        )
    )
    return setup


def test_npm_packages_that_could_not_be_installed_are_tried_again(tmp_path: Path) -> None:
    setup = checkout(tmp_path / "checkout")
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(NPM)
    npm.chmod(0o755)
    environment = {**os.environ, "PATH": f"{npm.parent}:{os.environ['PATH']}", "NPM_HOME": str(tmp_path)}

    def made() -> str:
        return subprocess.run(
            [sys.executable, str(setup), "--integrations"],
            env=environment,
            text=True,
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout

    assert "the next make tries again" in made()
    assert "the next make tries again" in made()
    (tmp_path / "registry").touch()
    assert "tries again" not in made()
    assert made() == ""
    assert (tmp_path / "asked").read_text() == "asked\n" * 6
