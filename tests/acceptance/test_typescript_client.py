"""The TypeScript client under node, against scripted answers and the running service."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.serving import Serving

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "typescript"
TESTS = CLIENT / "test"
COMPILER = CLIENT / "node_modules" / "typescript" / "bin" / "tsc"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="this machine has no node")


def passed(name: str, **environment: str) -> str:
    """Runs a test file under node, asserts that all tests pass, and returns the output."""
    done = subprocess.run(
        [NODE or "node", "--test", "--test-reporter=tap", TESTS / name],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_sends_tries_again_and_reads_as_the_python_client_does() -> None:
    assert "# fail 0" in passed("scripted.test.js")


@pytest.mark.shows("issue6-1-TypeScript")
def test_a_memory_lives_its_whole_life_from_javascript(serving: Serving, agent_id: str) -> None:
    said = passed("service.test.js", AGENTCORE_URL=serving.url, AGENTCORE_TOKEN=serving.token(agent_id))
    assert "ok 1 - a memory lives its whole life" in said
    assert "# fail 0" in said


@pytest.mark.skipif(not COMPILER.exists(), reason="this machine has no npm, or none that reaches a registry")
@pytest.mark.shows("issue6-1-TypeScript")
def test_the_compiler_holds_the_declarations_to_what_they_promise() -> None:
    done = subprocess.run(
        [NODE or "node", COMPILER, "--project", TESTS], text=True, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
