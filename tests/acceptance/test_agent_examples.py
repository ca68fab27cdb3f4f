"""The agent examples run unchanged without an API key, on a service and with an embedded memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.serving import Serving

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PARROTS = "I love African Grey parrots"
HAWAII = "My budget for the Hawaii trip is $10,000"


def said(serving: Serving, example: str, *words: str, **environment: str) -> list[str]:
    """Returns the lines that an example prints in a separate process."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / example, *words],
        cwd=serving.home.parent,
        text=True,
        capture_output=True,
        env={**serving.environment, **environment},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_agent_of_a_service_remembers_in_a_second_process(serving: Serving, agent_id: str) -> None:
    service = {"AGENTCORE_URL": serving.url, "AGENTCORE_TOKEN": serving.token(agent_id)}
    assert said(serving, "agent.py", PARROTS, **service) == [f"> {PARROTS}", "Noted."]
    [_, answer] = said(serving, "agent.py", "Which African Grey parrots do I love?", **service)
    assert answer == f"You told me: {PARROTS}"


@pytest.mark.shows("issue6-shows-restart")
def test_an_agent_with_a_memory_of_its_own_remembers_after_a_restart(new_serving: Callable[..., Serving]) -> None:
    home = new_serving(EMBEDDING_MODEL="local")
    assert said(home, "agent.py", PARROTS, HAWAII)[1::2] == ["Noted.", "Noted."]
    [_, bird, _, budget] = said(home, "agent.py", "What bird did I like?", "What's my budget for the trip?")
    assert bird == f"You told me: {PARROTS}"
    assert budget == f"You told me: {HAWAII}"
    assert home.left_over() == []


@pytest.mark.shows("issue6-2-beside-a-service")
def test_an_agent_without_a_token_uses_the_parts_of_the_service_that_runs(serving: Serving) -> None:
    assert said(serving, "agent.py", PARROTS) == [f"> {PARROTS}", "Noted."]
    [_, answer] = said(serving, "agent.py", "Which African Grey parrots do I love?")
    assert answer == f"You told me: {PARROTS}"


def test_a_model_that_calls_the_tools_itself_remembers(serving: Serving, agent_id: str) -> None:
    printed = said(serving, "tool_calling.py", AGENTCORE_URL=serving.url, AGENTCORE_TOKEN=serving.token(agent_id))
    assert printed[1::2] == ["Saved.", "The budget for the Hawaii trip is 10,000 dollars."]
