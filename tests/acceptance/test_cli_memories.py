"""Memories by id and at a point in time on the command line; input files without a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from agentcore.cli.memory_commands import SHOWN_CHARS
from tests.fixtures.forked_commands import Done
from tests.fixtures.serving import Serving


@pytest.mark.shows("issue2-8-by-id")
def test_a_memory_is_shown_corrected_counted_and_deleted_by_its_id(run: Callable[..., Done]) -> None:
    memory_id = run("store", "The kiln is fired on Mondays.", "--tag", "pottery").stdout.strip()
    shown = run("get", memory_id).stdout
    assert "The kiln is fired on Mondays." in shown
    assert "pottery" in shown
    assert "version 2" in run("update", memory_id, "--content", "The kiln is fired on Fridays.").stderr
    assert json.loads(run("get", memory_id, "--json").stdout)["content"] == "The kiln is fired on Fridays."
    assert "1 in all" in run("stats").stderr
    assert [
        run("count", *filters).stdout
        for filters in ((), ("--tag", "pottery"), ("--type", "semantic"), ("--consistent", "--after", "1d"))
    ] == ["1\n", "1\n", "0\n", "1\n"]
    assert json.loads(run("count", "--json").stdout)["count"] == 1
    assert run("delete", memory_id, said="n\n").returncode == 1
    assert run("delete", memory_id, "--yes").stderr == "1 deleted\n"
    assert run("get", memory_id).returncode == 1


def test_a_pipe_gets_each_memory_in_a_line_of_its_own(run: Callable[..., Done]) -> None:
    text = "The kiln is fired on Mondays, once the bisque of the week before has been unloaded and counted."
    run("store", text)
    for command in (("list",), ("retrieve", "kiln")):
        assert text in run(*command, COLUMNS="40").stdout


def test_a_long_memory_is_shortened_in_results_and_whole_as_json(run: Callable[..., Done]) -> None:
    text = "The kiln is fired on Mondays." + " Nothing else happened." * 100
    run("store", text)
    shown = run("retrieve", "kiln").stdout
    assert len(shown) < len(text)
    assert f"({len(text) - SHOWN_CHARS:,} more characters: --json)" in shown
    [memory] = json.loads(run("retrieve", "kiln", "--json").stdout)["memories"]
    assert memory["content"] == text


def commands_in(done: Done) -> list[list[str]]:
    """Returns the commands that messages suggest: the words after `agentcore`, up to the explanation."""
    hints = re.findall(r"agentcore (?!:)((?:[a-z-]+ ?)(?:[0-9a-f]{8}-[0-9a-f-]{27})?[^:;,)]*)", done.stderr)
    return [hint.split(" shows ")[0].split() for hint in hints]


@pytest.mark.shows("B6")
def test_every_command_that_a_message_suggests_works(run: Callable[..., Done]) -> None:
    first = run("store", "Ada works at Acme.", "--time", "2026-05-01").stdout.strip()
    superseding = run("store", "Ada now works at Globex instead of Acme.", "--time", "2026-06-01")
    updated = run("update", first, "--content", "Ada works at Initech.")
    suggested = [*commands_in(superseding), *commands_in(updated)]
    assert ["revert", first, "2"] in suggested
    for words in suggested:
        done = run(*words)
        assert done.returncode == 0, (words, done.stderr)
    assert run("get", first).stdout.startswith("Ada works at Acme.")
    page = run("list", "--limit", "1")
    [cursor] = re.findall(r"--cursor \S+", page.stderr)
    assert run("list", "--limit", "1", *cursor.split()).returncode == 0
    rejected = run("store", "hi")
    assert "--force" in rejected.stderr
    assert run("store", "hi", "--force").returncode == 0
    none = run("prune", "episodic", "--target", "20%", "--dry-run")
    [target] = re.findall(r"--target \d+", none.stderr)
    assert run("prune", "episodic", "--dry-run", *target.split()).stdout.startswith("would go: 1\n")


@pytest.mark.shows("B6")
def test_revert_takes_back_the_last_change_and_says_where_there_is_none(run: Callable[..., Done]) -> None:
    memory_id = run("store", "The kiln is fired on Mondays.").stdout.strip()
    never = run("revert", memory_id)
    assert (never.returncode, "never changed" in never.stderr) == (1, True)
    for day in ("Tuesdays", "Wednesdays"):
        run("update", memory_id, "--content", f"The kiln is fired on {day}.")
    assert run("revert", memory_id).stderr == "version 4 has what version 2 had\n"
    assert "Tuesdays" in run("get", memory_id).stdout


@pytest.mark.shows("B8")
def test_what_was_superseded_is_told_on_storing_and_marked_in_lists(run: Callable[..., Done]) -> None:
    old = run("store", "My favorite color is blue.", "--speaker", "Ada", "--time", "2026-05-01").stdout[:-1]
    new = run("store", "My favorite color is green now.", "--speaker", "Ada", "--time", "2026-06-01")
    assert f"superseded {old}" in new.stderr
    listed = run("list").stdout.splitlines()
    assert [line.split("\t")[0] for line in listed if "[superseded]" in line] == [old]


@pytest.mark.shows("B8")
def test_a_prune_that_takes_nothing_says_why(run: Callable[..., Done]) -> None:
    empty = run("prune", "episodic", "--dry-run")
    assert (empty.stdout, empty.stderr) == ("would go: 0\n", "the layer contains no memories\n")
    for day in ("Monday", "Tuesday", "Friday"):
        run("store", f"On {day} the kiln is fired.")
    few = run("prune", "episodic", "--target", "20%", "--dry-run")
    assert (few.stdout, few.stderr) == ("would go: 0\n", "20 % of 3 memories is less than one: --target 1 takes one\n")


@pytest.mark.shows("B8")
def test_human_dates_and_durations_are_taken_everywhere(run: Callable[..., Done]) -> None:
    memory_id = run("store", "The kiln is fired.", "--time", "3d", "--ttl", "1y").stdout.strip()
    for filters in (("--after", "1w"), ("--before", "yesterday"), ("--after", "1y", "--before", "today")):
        assert memory_id in run("list", *filters).stdout
    assert run("list", "--after", "yesterday").stderr == "no memories\n"


@pytest.mark.shows("B8")
def test_a_piped_table_has_a_tab_between_cells_and_no_padding(run: Callable[..., Done]) -> None:
    run("store", "One line with a\ttab.")
    header, line = run("list").stdout.splitlines()
    assert header.split("\t") == ["memory_id", "layer", "when", "who", "memory"]
    assert line.split("\t")[4] == "One line with a tab."
    assert len(line) < 100


@pytest.mark.shows("B14", "issue5-5-settings")
def test_any_method_is_called_with_json(serving: Serving, run: Callable[..., Done], agent_id: str) -> None:
    admin = serving.token(agent_id, scopes=("memory:read", "memory:admin"))
    done = serving.cli("call", "configure", '{"layers": {"semantic": {"extend_after_uses": 3}}}', "--token", admin)
    assert "semantic has no default TTL, so extend_after_uses applies only" in done.stdout
    shown = json.loads(run("call", "memory.settings").stdout)
    assert shown["own"]["semantic"]["extend_after_uses"] == 3
    message = {"session_id": "s-1", "messages": [{"content": "The kiln is fired."}]}
    added = serving.cli("call", "add_session", "-", "--agent", agent_id, said=json.dumps(message))
    assert json.loads(added.stdout)["stored_count"] == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("statts",), "did you mean memory.stats?"),
        (("zzz",), "store_batch"),
        (("store", "{broken"), "is not JSON"),
        (("store", "[7]"), "is not a JSON object"),
        (("retrieve", '{"query": "tea", "k": 0}'), "k"),
    ],
)
def test_a_call_that_is_not_possible_is_explained(
    run: Callable[..., Done], arguments: tuple[str, ...], problem: str
) -> None:
    done = run("call", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_the_past_is_searched_as_of_a_time(run: Callable[..., Done]) -> None:
    run("store", "The kiln is fired on Mondays.", "--time", "2026-05-01")
    assert "kiln" in run("retrieve", "when is the kiln fired", "--as-of", "2026-06-01").stdout
    assert "kiln" not in run("retrieve", "when is the kiln fired", "--as-of", "2026-04-01").stdout
    assert "kiln" not in run("context", "when is the kiln fired", "--as-of", "2026-04-01").stdout
