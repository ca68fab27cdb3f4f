"""Tests the import-linter contracts: they pass, fail on a planted import, and cover every module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = Path(sys.executable).parent / "lint-imports"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOWN, PURE, CIRCLES = PROJECT["tool"]["importlinter"]["contracts"]
LAYERS = [[name.strip(" ()") for name in line.split("|")] for line in DOWN["layers"]]
# Packages that only contain the modules of layers.
ROOMS = {"agentcore", "agentcore.memory"}
# Reads the encodings that ship with a library.
READS_FILES = {"agentcore.memory.tokens"}
# Pure modules in packages whose other modules do I/O.
PURE_AMONG_OTHERS = {"agentcore.memory.forgetting.erase_receipt", "agentcore.memory.rows.vector_index"}


def lint(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=False,
    )


def modules() -> set[str]:
    paths = (path.relative_to(ROOT).with_suffix("").parts for path in (ROOT / "agentcore").rglob("*.py"))
    return {".".join(parts).removesuffix(".__init__") for parts in paths}


def layer_of(module: str) -> int | None:
    """Returns the index of the module's layer, or None if the contract omits it."""
    holders = (number for number, names in enumerate(LAYERS) for name in names if f"{module}.".startswith(f"{name}."))
    return next(holders, None)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copies the package alone, to plant an import in."""
    shutil.copytree(ROOT / "agentcore", tmp_path / "agentcore", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.shows("issue2-code-limits")
def test_all_contracts_are_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        pytest.param("agentcore.errors", "agentcore.config", DOWN, id="upward"),
        pytest.param("agentcore.memory.models", "agentcore.memory.api", DOWN, id="upward within memory"),
        pytest.param("agentcore.memory.encoding", "agentcore.memory.pruning", DOWN, id="sibling"),
        pytest.param("agentcore.config", "agentcore.telemetry", DOWN, id="sibling below"),
        pytest.param("agentcore.memory.scoring", "socket", PURE, id="socket in a pure module"),
        pytest.param("agentcore.memory.retrieval", "time", PURE, id="clock in a pure module"),
        pytest.param("agentcore.memory.encoding", "agentcore.config", PURE, id="settings in a pure module"),
    ],
)
@pytest.mark.shows("issue2-code-limits")
def test_a_planted_import_breaks_its_contract(
    copied: Path, importer: str, imported: str, contract: dict[str, str]
) -> None:
    planted = copied.joinpath(*importer.split(".")).with_suffix(".py")
    planted.write_text(f"{planted.read_text()}\nimport {imported}\n")
    done = lint(copied)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{contract['name']} BROKEN" in done.stdout
    assert f"{importer} -> {imported}" in done.stdout


def test_modules_of_one_room_that_import_each_other_break_the_contract_of_circles(copied: Path) -> None:
    planted = copied / "agentcore" / "memory" / "rows" / "memory_rows.py"
    planted.write_text(f"{planted.read_text()}\nimport agentcore.memory.rows.derived_rows\n")
    done = lint(copied)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{CIRCLES['name']} BROKEN" in done.stdout
    assert f"{DOWN['name']} KEPT" in done.stdout


def test_every_module_has_a_layer() -> None:
    assert {module for module in modules() - ROOMS if layer_of(module) is None} == set()


def test_every_module_of_the_layers_without_io_is_held_pure() -> None:
    first, last = layer_of("agentcore.memory.intake"), layer_of("agentcore.memory.keys")
    assert first is not None
    assert last is not None
    without_io = {name for names in LAYERS[first : last + 1] for name in names} & modules()
    held = {name for name in PURE["source_modules"] if not name.startswith("agentcore.agents.")}
    assert without_io - READS_FILES == held - PURE_AMONG_OTHERS
