"""The command `agentcore llm`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.fixtures.forked_commands import Done
from tests.fixtures.serving import Serving


@pytest.fixture
def run(serving: Serving, agent_id: str) -> Callable[..., Done]:
    """Returns a runner of commands for this test's agent with all scopes."""
    scopes = (f"--scope=memory:{name}" for name in ("read", "write", "admin"))
    token = serving.cli("token", "--agent", agent_id, *scopes).stdout.strip()
    return lambda *arguments: serving.cli(*arguments, AGENTCORE_TOKEN=token)


@pytest.mark.shows("issue5-5-settings")
def test_what_models_are_used_for_is_shown_and_set(run: Callable[..., Done]) -> None:
    shown = run("llm", "show")
    assert shown.returncode == 0
    assert shown.stdout.splitlines()[:2] == ["facts: off", "summaries: at a session's end, by extraction"]
    done = run("llm", "set", "--facts", "on", "--summaries", "llm", "--user-turns", "7")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["facts: on", "summaries: llm, user_turns 7, 200 tokens each"]
    assert done.stderr.count("this service has no language model") == 2
    told = json.loads(run("llm", "show", "--json").stdout)
    assert told["summaries"]["user_turns"] == 7
    assert told["llm_use"]["tokens_a_day"] == 1_000_000
    done = run("llm", "set", "--summaries", "extractive", "--period", "week")
    assert done.stdout.splitlines()[1] == "summaries: extractive, user_turns 5, by week, 200 tokens each"
    rules = ("--summaries", "llm", "--trigger", "inactivity", "--inactivity", "1h", "--user-turns", "3")
    done = run("llm", "set", *rules, "--prompt", "Be brief.\nName everybody.")
    assert done.stdout.splitlines()[1:3] == [
        "summaries: llm, inactivity 3600 s, 200 tokens each",
        "prompt: Be brief. Name everybody.",
    ]
    assert "user_turns has no effect with the trigger inactivity" in done.stderr
    done = run("llm", "set", "--summaries", "none", "--facts", "off", "--trigger", "session_end")
    assert "none has no rules" in done.stderr
    run("llm", "set", "--summaries", "none", "--facts", "off")
    assert json.loads(run("llm", "show", "--json").stdout)["summaries"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--facts", "perhaps"),
        ("--user-turns", "5"),
        ("--summaries", "poetry"),
        ("--summaries", "llm", "--period", "year"),
    ],
)
def test_what_cannot_be_set_is_said(run: Callable[..., Done], arguments: tuple[str, ...]) -> None:
    done = run("llm", "set", *arguments)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "Traceback" not in done.stderr


@pytest.mark.shows("issue5-5-settings")
def test_a_provisional_summary_is_said_to_be_one(new_serving: Callable[..., Serving], agent_id: str) -> None:
    own = new_serving(LLM_MODEL="small", LLM_BASE_URL="http://127.0.0.1:9/v1", EMBEDDING_MODEL="none")
    own.start()
    own.await_listening()
    token = own.token(agent_id, scopes=("memory:read", "memory:write", "memory:admin"))
    said = [{"role": "user", "content": f"The crate {number} went to Ghent."} for number in (1, 2)]

    def run(*arguments: str) -> Done:
        return own.cli(*arguments, said=json.dumps(said), AGENTCORE_TOKEN=token)

    assert run("llm", "set", "--summaries", "llm", "--trigger", "session_end").returncode == 0
    assert run("session", "add", "call-7", "-").returncode == 0
    ended = run("session", "end", "call-7")
    assert "went to Ghent" in ended.stdout
    assert "this summary is not stored" in ended.stderr
    assert run("llm", "set", "--summaries", "extractive", "--trigger", "session_end").returncode == 0
    assert run("session", "add", "call-8", "-").returncode == 0
    assert "not stored" not in run("session", "end", "call-8").stderr
    assert own.stop() == 0
