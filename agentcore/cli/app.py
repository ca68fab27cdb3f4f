"""The command line's frame: the application, its two consoles, and how a failure becomes one sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Never

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from rich.console import Console
from rich.text import Text

from agentcore import __version__
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
PIPED_WIDTH = 100_000
WRONG_SIGNATURE = "The token's signature is wrong."

app = typer.Typer(
    name="agentcore",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Who reads a pipe wants a line for each memory, however long.
out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = Console(stderr=True, highlight=False)


def examples(*lines: str) -> str:
    """The text below a command's help: what to type, in lines that fit a terminal of 80 columns."""
    return "\n".join(["[bold]Examples[/bold]", *(f"  {line}".replace("[", "\\[") for line in lines)])


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agentcore {__version__}")
        raise typer.Exit


@app.callback(epilog=examples(
    "agentcore serve                                  run it, everything included",
    "export AGENTCORE_TOKEN=$(agentcore token --agent me)",
    "agentcore store 'Ada prefers tea, never coffee'",
    "agentcore retrieve 'what does Ada drink?' --explain",
    "agentcore context 'plan breakfast with Ada' --max-tokens 500",
    "agentcore doctor                                 what is wrong, and the mend",
))
def agentcore(
    version: Annotated[bool, typer.Option(  # read by its callback
        "--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """A memory for AI agents: store, retrieve, build context, forget.

    serve runs the service. store, retrieve, context, list, prune, alias, import
    and export speak to a running one at AGENTCORE_URL, with AGENTCORE_TOKEN;
    where the embedded service's home is on this machine, --agent ID makes a token
    by itself. Every setting is an environment variable, or a line of a file .env.
    """


def say(text: str) -> None:
    """Tell the person something that is not the answer: answers go to stdout, alone."""
    err.print(Text(printable(text)), soft_wrap=True)


def counted(count: int, one: str, many: str) -> str:
    """1 memory, 2 memories."""
    return f"{count} {one if count == 1 else many}"


def fail(sentence: str, code: int = FAILED) -> Never:
    """End the command with one clear sentence."""
    say(f"agentcore: {sentence}")
    sys.exit(code)


def printable(text: str) -> str:
    """A memory's text without what would steer a terminal."""
    return "".join(char if char in "\n\t" or char.isprintable() else "\ufffd" for char in text)


def run(arguments: Sequence[str]) -> None:
    """Run the command that was typed; ends the process."""
    try:
        app(list(arguments), prog_name="agentcore")
    except AgentCoreError as error:
        fail(_sentence(error))
    except ValidationError as error:
        fail("; ".join(dict.fromkeys(_problem(each) for each in error.errors())), MISUSED)


def _sentence(error: AgentCoreError) -> str:
    if isinstance(error, ConfigurationError) and len(error.problems) == 1:
        return error.problems[0]
    if isinstance(error, NotAuthorised | AuthenticationFailed):
        return _of_token(error)
    problems = error.data.get("errors")
    if isinstance(error, InvalidParams) and isinstance(problems, list):
        told = (f"{each.get('field')}: {each.get('problem')}" for each in problems if isinstance(each, dict))
        return f"{error.message}: {'; '.join(told)}"
    reference = error.data.get("reference")
    return error.message if reference is None else f"{error.message} (reference {reference})"


def _of_token(error: AgentCoreError) -> str:
    needed = error.data.get("needs")
    if needed is not None:
        return f"The token lacks the scope {needed}: make one with agentcore token --scope {needed}."
    if error.message == WRONG_SIGNATURE:
        return f"{error.message} Another home's secret made it: set AGENTCORE_HOME as for serve."
    return error.message


def _problem(found: ErrorDetails) -> str:
    where = field_path(found["loc"])
    return f"{where}: {problem_sentence(found)}" if where else problem_sentence(found)
