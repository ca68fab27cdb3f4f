"""The command `agentcore llm` as its users meet it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.fixtures.serving import Done, Serving


@pytest.fixture
def run(serving: Serving, agent_id: str) -> Callable[..., Done]:
    """Runs a command as this test's agent, with all that a token may allow."""
    scopes = (f"--scope=memory:{name}" for name in ("read", "write", "admin"))
    token = serving.cli("token", "--agent", agent_id, *scopes).stdout.strip()
    return lambda *arguments: serving.cli(*arguments, AGENTCORE_TOKEN=token)


def test_what_models_are_used_for_is_shown_and_set(run: Callable[..., Done]) -> None:
    shown = run("llm", "show")
    assert shown.returncode == 0
    assert shown.stdout.splitlines()[:2] == ["facts: off", "summaries: at a session's end, by extraction"]
    done = run("llm", "set", "--facts", "on", "--summaries", "llm", "--user-turns", "7")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["facts: on", "summaries: llm, user_turns"]
    assert done.stderr.count("this service has no language model") == 2
    told = json.loads(run("llm", "show", "--json").stdout)
    assert told["summaries"]["user_turns"] == 7
    assert told["llm_use"]["tokens_a_day"] == 1_000_000
    done = run("llm", "set", "--summaries", "extractive", "--period", "week")
    assert done.stdout.splitlines()[1] == "summaries: extractive, user_turns, by week"
    run("llm", "set", "--summaries", "none", "--facts", "off")
    assert json.loads(run("llm", "show", "--json").stdout)["summaries"] is None


@pytest.mark.parametrize("arguments", [
    (), ("--facts", "perhaps"), ("--user-turns", "5"), ("--summaries", "poetry"),
    ("--summaries", "llm", "--period", "year"),
])
def test_what_cannot_be_set_is_said(run: Callable[..., Done], arguments: tuple[str, ...]) -> None:
    done = run("llm", "set", *arguments)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "Traceback" not in done.stderr
