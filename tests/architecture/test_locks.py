"""Tests that the lock files match pyproject.toml on every supported Python, have hashes and name no index."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = ["3.11.7", "3.12.1", "3.13.0"]


def environment(python: str) -> dict[str, str]:
    return {"python_version": python.rpartition(".")[0], "python_full_version": python}


def asked() -> Iterator[Requirement]:
    project = CONFIGURATION["project"]
    lists = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *CONFIGURATION["dependency-groups"].values(),
    ]
    for text in (text for texts in lists for text in texts):
        requirement = Requirement(text)
        if requirement.name != project["name"]:
            yield requirement


def locked(lock: Path, python: str) -> dict[str, str]:
    lines = (line for line in lock.read_text().splitlines() if "==" in line and not line.startswith("#"))
    pins = [Requirement(line.rstrip("\\")) for line in lines]
    return {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins if holds(pin.marker, python)
    }


def holds(marker: Marker | None, python: str) -> bool:
    return marker is None or marker.evaluate(environment(python))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.shows("issue2-1-set-up")
def test_what_pyproject_asks_for_is_locked_in_a_version_that_fits(python: str) -> None:
    pins = {name: version for lock in LOCKS for name, version in locked(lock, python).items()}
    unfit = [
        str(requirement)
        for requirement in asked()
        if holds(requirement.marker, python)
        and not requirement.specifier.contains(pins.get(canonicalize_name(requirement.name), "0"))
    ]
    assert unfit == []


@pytest.mark.parametrize("python", PYTHONS)
def test_the_tools_that_install_are_the_ones_the_lock_names(python: str) -> None:
    build, everything = (locked(ROOT / "requirements" / name, python) for name in ("build.txt", "lock.txt"))
    assert build.items() <= everything.items()


@pytest.mark.parametrize("python", PYTHONS)
def test_the_integrations_need_no_other_version_of_what_the_service_runs_on(python: str) -> None:
    names = ("lock.txt", "integrations.txt")
    service, more = (locked(ROOT / "requirements" / name, python) for name in names)
    assert {name: version for name, version in more.items() if service.get(name, version) != version} == {}
    assert {"a2a-sdk", "google-adk", "langgraph"} <= more.keys() - service.keys()
    assert "mcp" in service


@pytest.mark.shows("B2")
def test_make_serve_installs_what_mcp_needs() -> None:
    extras = CONFIGURATION["project"]["optional-dependencies"]
    assert "agentcore-memory[mcp]" in extras["server"]
    service = locked(ROOT / "requirements" / "lock.txt", PYTHONS[0])
    assert {"mcp", "mcp-types", "sse-starlette"} <= service.keys()


@pytest.mark.shows("B20-anyio")
def test_the_check_compares_imports_with_declared_dependencies() -> None:
    deptry = [str(Path(sys.executable).with_name("deptry")), "agentcore"]
    done = subprocess.run(deptry, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "$(BIN)/deptry agentcore" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_a_hash_and_no_index_is_named(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    assert "index" not in text
    entries = [entry for entry in text.replace("\\\n", "").splitlines() if not entry.startswith("#")]
    assert entries
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
