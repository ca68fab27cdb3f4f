"""One memory on the command line, by its id or as of a time; and a file that holds no conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.serving import Done, Serving


@pytest.fixture
def run(serving: Serving, agent_id: str) -> Callable[..., Done]:
    """Runs a command as this test's agent."""
    return lambda *arguments, **more: serving.cli(*arguments, "--agent", agent_id, **more)


def test_a_memory_is_shown_corrected_counted_and_deleted_by_its_id(run: Callable[..., Done]) -> None:
    memory_id = run("store", "The kiln is fired on Mondays.", "--tag", "pottery").stdout.strip()
    shown = run("get", memory_id).stdout
    assert "The kiln is fired on Mondays." in shown
    assert "pottery" in shown
    assert "version 2" in run("update", memory_id, "--content", "The kiln is fired on Fridays.").stderr
    assert json.loads(run("get", memory_id, "--json").stdout)["content"] == "The kiln is fired on Fridays."
    assert "1 in all" in run("stats").stderr
    assert run("delete", memory_id, said="n\n").returncode == 1
    assert run("delete", memory_id, "--yes").stderr == "1 deleted\n"
    assert run("get", memory_id).returncode == 1


def test_a_pipe_gets_each_memory_in_a_line_of_its_own(run: Callable[..., Done]) -> None:
    text = "The kiln is fired on Mondays, once the bisque of the week before has been unloaded and counted."
    run("store", text)
    for command in (("list",), ("retrieve", "kiln")):
        assert text in run(*command, COLUMNS="40").stdout


def test_the_past_is_searched_as_of_a_time(run: Callable[..., Done]) -> None:
    run("store", "The kiln is fired on Mondays.", "--time", "2026-05-01")
    assert "kiln" in run("retrieve", "when is the kiln fired", "--as-of", "2026-06-01").stdout
    assert "kiln" not in run("retrieve", "when is the kiln fired", "--as-of", "2026-04-01").stdout
    assert "kiln" not in run("context", "when is the kiln fired", "--as-of", "2026-04-01").stdout


def test_a_file_that_holds_no_messages_is_named_with_the_form_wanted(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    for text in ("{broken", '{"role": "user"}', "[7]"):
        file = tmp_path / "bad.json"
        file.write_text(text)
        done = run("session", "add", "s-1", str(file))
        assert done.returncode == 2
        assert "bad.json" in done.stderr
        assert '"content"' in done.stderr
