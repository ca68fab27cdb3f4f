"""Help and usage errors of the command line without a service."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentcore.cli import MODULES, main
from agentcore.cli.app import MISUSED
from agentcore.config import Settings

COMMANDS = [command for commands in MODULES.values() for command in commands]
BELOW_OTHERS = {"model install", "archive list", "archive restore", "archive verify"}


@dataclass(frozen=True)
class Ended:
    """A command's exit code and output."""

    code: object
    out: str
    err: str


Typed = Callable[..., Ended]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Typed:
    """Returns a runner of command lines in an empty directory, with no settings but an empty home."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("AGENTCORE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def type_in(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        return Ended(ended.value.code or 0, *capfd.readouterr())

    return type_in


def test_ctrl_c_while_a_command_still_loads_ends_it_without_a_traceback(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "interrupted_loading.py").write_text("raise KeyboardInterrupt\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(MODULES, "interrupted_loading", ("interrupted",))
    assert typed("interrupted") == Ended(130, "", "")


def test_the_help_names_every_command_and_shows_what_to_type(typed: Typed) -> None:
    said = typed("--help").out
    assert "agentcore serve" in said
    assert "AGENTCORE_TOKEN=$(agentcore token" in said
    for command in COMMANDS:
        assert re.search(rf"│ {command} ", said), command


@pytest.mark.parametrize("command", sorted({*COMMANDS, *BELOW_OTHERS} - {"model", "archive"}))
@pytest.mark.shows("issue2-13-commands")
def test_each_command_has_a_help_with_an_example(typed: Typed, command: str) -> None:
    done = typed(*command.split(), "--help")
    assert done.code == 0
    assert "Examples" in done.out
    assert f"agentcore {command}" in done.out


@pytest.mark.parametrize(
    "misuse",
    [
        ["remember", "this"],
        ["store"],
        ["store", "text", "--colour", "blue"],
        ["store", "text", "--type", "iconic"],
        ["store", "text", "--importance", "7"],
        ["store", "text", "--ttl", "soon"],
        ["store", "text", "--ttl", "0"],
        ["store", "text", "--time", "someday"],
        ["store", "text", "--metadata", "[1]"],
        ["store", ""],
        ["retrieve", "query", "-k", "0"],
        ["retrieve", "query", "--after", "2026-02-01", "--before", "2026-01-01"],
        ["prune", "episodic", "--target", "many"],
        ["prune", "episodic", "--target", "150%"],
        ["archive", "restore"],
        ["archive", "restore", "--session", "a", "--all"],
        ["token"],
        ["token", "--agent", "a", "--scope", "memory:all"],
        ["store", "text", "--token", "t.o.k", "--agent", "a"],
    ],
    ids=" ".join,
)
def test_misuse_ends_with_2_and_says_what_is_wrong(typed: Typed, misuse: list[str]) -> None:
    named = any(name in misuse for name in ("--agent", "token", "remember"))
    done = typed(*misuse, *([] if named else ["--token", "t.o.k"]))
    assert (done.code, done.out) == (2, "")
    assert done.err.strip()
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", [["get"], ["history"], ["delete"], ["archive", "restore"]], ids=" ".join)
def test_what_is_no_memory_id_is_quoted_beside_an_example(typed: Typed, command: list[str]) -> None:
    done = typed(*command, "abc", "--token", "t.o.k")
    assert done.code == 2
    assert "'abc' is not a memory id (a UUID such as 0193a1c2-" in done.err


def test_a_problem_is_told_once(typed: Typed) -> None:
    done = typed("prune", "episodic", "--target", "0", "--token", "t.o.k")
    assert done.err == "agentcore: target: must be greater than 0\n"


def test_an_update_of_nothing_names_what_can_be_changed(typed: Typed) -> None:
    done = typed("update", "0198c0de-0000-7000-8000-000000000000", "--token", "t.o.k")
    assert (done.code, done.out) == (2, "")
    for option in ("--content", "--add", "--importance", "--tag", "--pinned", "--ttl", "--metadata"):
        assert option in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["store", "text"], "No token: set AGENTCORE_TOKEN"),
        (["store", "text", "--agent", "a"], "No secret to make a token with"),
        (["list", "--token", "t.o.k", "--url", "http://127.0.0.1:9"], "No service answers at http://127.0.0.1:9"),
        (["list", "--token", "t.o.k", "--url", "nowhere"], "starts with http:// or https://"),
        (["list", "--token", "not a token"], "not a JWT"),
        (["worker"], "No agentcore server runs on"),
        (["migrate"], "No agentcore server runs on"),
        (["index", "status"], "No agentcore server runs on"),
        (["index", "tune"], "No agentcore server runs on"),
        (["archive", "verify"], "No agentcore server runs on"),
        (["reembed", "--model", "hashing"], "No agentcore server runs on"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_failure_is_one_clear_sentence(typed: Typed, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    done = typed(*arguments)
    assert (done.code, done.out) == (1, "")
    assert sentence in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_distributing_needs_a_database_url(typed: Typed) -> None:
    ended = typed("migrate", "--distribute")
    assert ended.code == MISUSED
    assert "DATABASE_URL" in ended.err
