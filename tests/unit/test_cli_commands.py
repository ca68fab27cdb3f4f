"""All commands: help, options and imports; their examples are valid commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import typer
from rich.text import Text

from agentcore.cli import ALIASES, MODULES, SUMMARIES, main
from agentcore.cli.app import app, load

# They run until stopped, or print a stream of records.
WITHOUT_JSON = {"serve", "worker", "mcp", "export", "call"}
# Packages that are missing in a client-only installation.
SERVER_PACKAGES = {
    "alembic",
    "cryptography",
    "jwt",
    "numpy",
    "onnxruntime",
    "procrastinate",
    "psycopg",
    "redis",
    "sqlalchemy",
    "tiktoken",
    "uvicorn",
    "uvloop",
}
CLIENT_MODULES = ("archive", "call_method", "mcp", "memory_commands", "transfer")


def all_commands() -> dict[str, Any]:
    """Returns every command by name, with all command modules imported."""
    for module in MODULES:
        load(module)
    group: Any = typer.main.get_command(app)
    return dict(_leaves("", {name: group.commands[name] for name in SUMMARIES}))


def _leaves(prefix: str, commands: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, command in commands.items():
        below = getattr(command, "commands", None)
        yield from _leaves(f"{prefix}{name} ", below) if below else [(f"{prefix}{name}", command)]


COMMANDS = all_commands()


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.mark.shows("issue13-cli-start")
def test_the_summary_of_a_command_that_is_not_imported_is_that_of_its_help() -> None:
    group: Any = typer.main.get_command(app)
    assert set(SUMMARIES) == {name for names in MODULES.values() for name in names}
    for name, summary in SUMMARIES.items():
        assert " ".join(Text.from_markup(group.commands[name].help).plain.split()).startswith(summary), name


def test_a_command_is_listed_under_the_heading_it_has() -> None:
    loaded: Any = typer.main.get_command(app)
    listed = python(
        "-c",
        "import typer; from agentcore.cli.app import app; "
        "print({name: command.rich_help_panel "
        "for name, command in typer.main.get_command(app).commands.items()})",
    )
    panels = eval(listed.stdout)  # noqa: S307 - what this test printed
    assert {name: loaded.commands[name].rich_help_panel for name in SUMMARIES} == {
        name: panels[name] for name in SUMMARIES
    }


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_JSON))
@pytest.mark.shows("issue13-cli-json")
def test_a_command_that_prints_a_result_prints_it_as_json(name: str) -> None:
    assert "--json" in {option for param in COMMANDS[name].params for option in param.opts}


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.shows("B8")
def test_a_flag_is_shown_without_a_value(name: str) -> None:
    command = COMMANDS[name]
    context = typer.Context(command, info_name=name)
    flags = [param for param in command.get_params(context) if getattr(param, "is_flag", False)]
    assert flags
    assert {param.display_type_rich(ctx=context) for param in flags} == {""}


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.shows("B6")
def test_an_example_of_the_help_is_a_command_that_is_understood(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Text.from_markup(COMMANDS[name].epilog or "").plain.splitlines()
    examples = [line.split("   ")[0] for line in (line.strip() for line in lines) if "agentcore" in line]
    root: Any = typer.main.get_command(app)
    shown = set()
    for example in examples:
        for part in example.replace("$(", "| ").replace(")", "").split("|"):
            words = shlex.split(part, comments=True)
            if "agentcore" not in words:
                continue
            typed = words[words.index("agentcore") + 1 :]
            typed = typed[: typed.index(">")] if ">" in typed else typed
            command, context, path = root, typer.Context(root, info_name="agentcore"), []
            while hasattr(command, "commands"):
                word, command, typed = command.resolve_command(context, typed)
                path.append(word)
            command.make_context(name, [*typed], resilient_parsing=False)
            shown.add(" ".join(path))
    assert name in shown


def typed(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code or 0, *capfd.readouterr()


@pytest.mark.shows("issue13-cli-aliases")
def test_an_alias_is_the_command_it_stands_for(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    listed = python("-m", "agentcore", "--help").stdout  # this process has imported all commands
    for alias, command in ALIASES.items():
        code, out, _ = typed(capfd, alias, "--help")
        assert (code, f"Usage: agentcore {command} " in out) == (0, True)
    assert "Also: search, find." in listed
    assert "Also: add." in listed


@pytest.mark.parametrize(("typo", "meant"), [("serach", "search"), ("stroe", "store"), ("retreive", "retrieve")])
@pytest.mark.shows("B8")
def test_a_typo_suggests_what_was_meant(typo: str, meant: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = typed(capfd, typo, "x")
    assert code == 2
    assert f"Did you mean '{meant}'" in err


@pytest.mark.shows("B8")
def test_the_shell_completes_commands_and_their_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert "--install-completion" in typed(capfd, "--help")[1]
    completing = {"_AGENTCORE_COMPLETE": "complete_bash"}
    words = python("-m", "agentcore", **completing, COMP_WORDS="agentcore st", COMP_CWORD="1").stdout
    assert {"store", "stats"} <= set(words.split())
    words = python("-m", "agentcore", **completing, COMP_WORDS="agentcore list --us", COMP_CWORD="2").stdout
    assert "--user" in words


@pytest.mark.shows("issue13-cli-start")
def test_a_command_that_only_calls_the_service_imports_nothing_of_it() -> None:
    modules = ", ".join(f"agentcore.cli.{module}" for module in CLIENT_MODULES)
    done = python("-c", f"import sys, {modules}; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    assert SERVER_PACKAGES & set(done.stdout.split()) == set()


@pytest.mark.shows("issue13-cli-start")
def test_the_help_of_all_commands_imports_none_of_them() -> None:
    done = python(
        "-c", "import sys, agentcore.cli.app as cli\ntry: cli.run(['--help'])\nexcept SystemExit: print(*sys.modules)"
    )
    assert {module for module in done.stdout.split() if module in MODULES} == set()


@pytest.mark.shows("issue13-cli-start")
def test_a_command_whose_package_is_missing_says_what_to_install(tmp_path: Any) -> None:
    (tmp_path / "psycopg.py").write_text("raise ModuleNotFoundError(name='psycopg')\n")
    done = python("-m", "agentcore", "doctor", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        "agentcore: migrate needs the package 'psycopg', which is not installed: "
        "pip install 'agentcore-memory[server]'\n"
    )


@pytest.mark.shows("issue13-cli-aliases")
def test_the_settings_are_printed_without_secrets() -> None:
    secret = "kV3q8ZtW1nXb7cLs5mPd2fGh9jRw4yTu"
    given = {
        "JWT_SECRET_KEY": secret,
        "PORT": "8123",
        "DATABASE_URL": "postgresql://me:hunter2@db/memory",
        "AGENTCORE_URL": "https://me:hunter2@memory.example",
    }
    done = python("-m", "agentcore", "config", "--json", **given)
    assert '"PORT": 8123' in done.stdout
    assert '"JWT_SECRET_KEY": "(set)"' in done.stdout
    assert '"AGENTCORE_URL": "https://memory.example"' in done.stdout
    assert secret not in done.stdout
    assert "hunter2" not in done.stdout


@pytest.mark.shows("issue13-cli-aliases")
def test_the_version_is_a_command_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert typed(capfd, "version") == typed(capfd, "--version")


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_numpy_gets_one_thread_unless_the_environment_sets_the_number(given: Mapping[str, str], used: str) -> None:
    unset = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    code = "import agentcore.cli, os, sys; print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**unset, **given}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [used, "False"]
