"""The command line application: its consoles, lazy loading of commands, and error messages."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any, Never, TypeVar

import typer
import typer.core
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from agentcore import __version__
from agentcore.cli import ALIASES, COMMANDS, MODULES, SUMMARIES
from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    ConfigurationError,
    InvalidParams,
    NotAuthorised,
    field_path,
    problem_sentence,
)

SERVICE = "The service"
MEMORIES = "Memories"
FAILED = 1
MISUSED = 2
FIRST_OF_MEMORIES = "store"
MEMORY_ID = Column("memory_id", no_wrap=True, min_width=36)
WRONG_SIGNATURE = "The token's signature is wrong."

CommandT = TypeVar("CommandT", bound=Callable[..., None])


class _Command(typer.core.TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_value(super().get_params(ctx))


class _Group(typer.core.TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_value(super().get_params(ctx))


class _Commands(_Group):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        loaded, self.commands = self.commands, {}
        panel = SERVICE
        for name in COMMANDS:
            panel = MEMORIES if name == FIRST_OF_MEMORIES else panel
            command: Any = loaded.get(name) or _Command(name, help=_summary(name))
            command.rich_help_panel = panel
            self.commands[name] = command
        # Hidden commands are suggested for typos.
        self.commands |= {alias: _Command(alias, hidden=True) for alias in ALIASES}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = ALIASES.get(args[0], args[0])
        for module in (module for module, names in MODULES.items() if name in names):
            load(module)
            self.commands[name] = typer.main.get_group(app).commands[name]
        return super().resolve_command(ctx, [name, *args[1:]])


class Application(typer.Typer):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": _Group, "no_args_is_help": True, **options})

    def command(self, name: str | None = None, *lines: str, **options: Any) -> Callable[[CommandT], CommandT]:
        """Adds a command; `lines` are its examples."""
        return super().command(name, **{"cls": _Command, "epilog": examples(*lines), **options})


def _flags_without_value(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def _summary(name: str) -> str:
    also = ", ".join(alias for alias, meant in ALIASES.items() if meant == name)
    return SUMMARIES[name] + (f" Also: {also}." if also else "")


def group(name: str, *lines: str) -> Application:
    made = Application(help=SUMMARIES[name], epilog=examples(*lines) if lines else None)
    app.add_typer(made, name=name)
    return made


app = Application(
    name="agentcore",
    cls=_Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def load(module: str) -> None:
    """Imports a command's module; ends the process if a required package is not installed."""
    gc.disable()
    try:
        import_module(module)
    except ModuleNotFoundError as cause:
        package = (cause.name or "").partition(".")[0]
        if package in ("", "agentcore"):
            raise
        fail(
            f"{MODULES[module][0]} needs the package {package!r}, which is not installed: "
            "pip install 'agentcore-memory[server]'"
        )
    finally:
        gc.enable()


def show(header: Sequence[str | Column], rows: Iterable[Sequence[str | Text]]) -> None:
    """Prints a table: aligned on a terminal, else one line for each row with tabs between the cells."""
    columns = (each if isinstance(each, str) else each.copy() for each in header)
    table = Table(*columns, box=None, pad_edge=False, show_header=bool(header))
    for row in rows:
        table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    if out.is_terminal:
        out.print(table)
    else:
        _show_lines(table)


def _show_lines(table: Table) -> None:
    if table.show_header:
        typer.echo("\t".join(str(column.header) for column in table.columns))
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        typer.echo("\t".join(" ".join(str(cell).split()) for cell in cells))


def examples(*lines: str) -> str:
    """Returns the examples below a command's help; lines should fit into 80 columns."""
    return "\n".join(["[bold]Examples[/bold]", *(f"  {line}".replace("[", "\\[") for line in lines)])


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agentcore {__version__}")
        raise typer.Exit


@app.callback(
    epilog=examples(
        "agentcore serve                                  run it, everything included",
        "export AGENTCORE_TOKEN=$(agentcore token --agent me)",
        "agentcore store 'Ada prefers tea, never coffee'",
        "agentcore retrieve 'what does Ada drink?' --explain",
        "agentcore context 'plan breakfast with Ada' --max-tokens 500",
        "agentcore doctor                                 what is wrong, and the fix",
    )
)
def agentcore(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A memory for AI agents: store, retrieve, build context, forget.

    serve runs the service. Commands on memories call the one at AGENTCORE_URL,
    with AGENTCORE_TOKEN, or with --agent ID where the home of the embedded service
    is on this machine. They read the environment, never a file .env; serve and the
    commands on its database read this directory's .env, too.
    """


def say(text: str) -> None:
    """Prints a message to stderr: stdout is for results."""
    err.print(Text(printable(text)), soft_wrap=True)


def say_more(cursor: str | int | None) -> None:
    if cursor is not None:
        say(f"more with --cursor {cursor}")


def is_confirmed(question: str) -> bool:
    say(f"{question} This cannot be undone. [y/N]")
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def counted(count: int, one: str, many: str) -> str:
    """Returns the number with its noun: 1 memory, 2 memories."""
    return f"{count} {one if count == 1 else many}"


def fail(sentence: str, code: int = FAILED) -> Never:
    """Ends the command with one sentence on stderr."""
    say(f"agentcore: {sentence}")
    sys.exit(code)


def printable(text: str) -> str:
    """Replaces control characters, which could steer the terminal."""
    return "".join(char if char in "\n\t" or char.isprintable() else "\ufffd" for char in text)


def run(arguments: Sequence[str]) -> None:
    """Runs a command line; ends the process."""
    try:
        app(list(arguments), prog_name="agentcore")
    except AgentCoreError as error:
        fail(_sentence(error))
    except ValidationError as error:
        fail("; ".join(dict.fromkeys(_problem(each) for each in error.errors())), MISUSED)


def _sentence(error: AgentCoreError) -> str:
    if isinstance(error, ConfigurationError) and len(error.problems) == 1:
        return error.problems[0]
    needed = error.data.get("needs")
    if isinstance(error, NotAuthorised) and needed is not None:
        hint = f"agentcore token --agent ID --scope {needed} adds it; without --scope a token may read and write."
        return f"The token lacks the scope {needed}: {hint}"
    if isinstance(error, AuthenticationFailed) and error.message == WRONG_SIGNATURE:
        return (
            f"{error.message} Another home's secret made it (set AGENTCORE_HOME as for serve), or the "
            "secret was rotated: restart the service after rotate-secret."
        )
    return _with_details(error)


def _with_details(error: AgentCoreError) -> str:
    problems = error.data.get("errors")
    if isinstance(error, InvalidParams) and isinstance(problems, list):
        told = (f"{each.get('field')}: {each.get('problem')}" for each in problems if isinstance(each, dict))
        return f"{error.message}: {'; '.join(told)}"
    reference = error.data.get("reference")
    return error.message if reference is None else f"{error.message} (reference {reference})"


def _problem(found: ErrorDetails) -> str:
    where = field_path(found["loc"])
    return f"{where}: {problem_sentence(found)}" if where else problem_sentence(found)
