"""Tests that the wheel contains migrations, SQL files, types and the command, and finds its own
migrations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = "agentcore/_migrations"


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory with the installed wheel."""
    built, installed = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("installed")
    run("-m", "hatchling", "build", "--target", "wheel", "--directory", str(built))
    with ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(installed)
    return installed


def files(directory: Path, pattern: str = "*") -> set[str]:
    found = (path.relative_to(directory) for path in directory.rglob(pattern) if path.is_file())
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_package_and_the_migrations_and_nothing_else(installed: Path) -> None:
    package = {f"agentcore/{path}" for path in files(ROOT / "agentcore")}
    migrations = {f"{MIGRATIONS}/alembic/{path}" for path in files(ROOT / "alembic")}
    held = {path for path in files(installed) if ".dist-info/" not in path}
    assert held == package | migrations


@pytest.mark.shows("issue2-1-wheel")
def test_the_wheel_holds_types_sql_and_its_license(installed: Path) -> None:
    held = files(installed)
    assert "agentcore/py.typed" in held
    assert any(path.startswith("agentcore/memory/queries/") and path.endswith(".sql") for path in held)
    assert f"{MIGRATIONS}/alembic/schema.sql" in held
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in held)


def test_the_wheel_gives_the_command(installed: Path) -> None:
    entry_points = next(installed.glob("*.dist-info/entry_points.txt")).read_text()
    assert "agentcore = agentcore.cli:main" in entry_points


@pytest.mark.shows("issue2-1-wheel")
def test_an_installed_wheel_finds_its_own_migrations(installed: Path, tmp_path: Path) -> None:
    script = "from agentcore import migration; print(migration.SCRIPTS, migration.head_revision())"
    scripts, head = run("-c", script, cwd=tmp_path, PYTHONPATH=str(installed)).rsplit(" ", 1)
    assert Path(scripts) == installed / MIGRATIONS / "alembic"
    assert run("-c", script).endswith(f" {head}")
