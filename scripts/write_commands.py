"""Writes the page of all commands, docs/reference/cli.md, from the command line's own descriptions.

Usage: write_commands.py. `write_reference.py` writes it, too, and a test compares it.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from agentcore.cli import COMMANDS, MODULES
from agentcore.cli.app import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
HEAD = """\
# Command line

What `agentcore --help` and the `--help` of each command say. Answers go to standard output, everything else
to standard error; a command that failed ends with 1, one that was called wrongly with 2.

This page is written by `scripts/write_commands.py`.
"""
TABLE = "| Argument or option | Default | Meaning |\n| --- | --- | --- |\n"


def commands_page() -> str:
    """Returns every command with its arguments, options and examples, under the headings of `agentcore
    --help`."""
    for module in MODULES:
        import_module(module)
    group: Any = typer.main.get_command(app)
    panels: dict[str, list[str]] = {}
    # In the order of COMMANDS, independent of earlier imports in this process.
    for name in COMMANDS:
        command = group.commands[name]
        panels.setdefault(command.rich_help_panel, []).append(_section(f"agentcore {name}", command))
    return HEAD + "".join(f"\n## {panel}\n\n" + "\n".join(sections) for panel, sections in panels.items())


def _section(name: str, command: Any) -> str:
    """Returns the section of a command, followed by its subcommands."""
    context = typer.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"### {name}\n", f"{_plain(command.help)}\n", f"```text\n{usage}\n```\n"]
    params = [param for param in command.params if not param.hidden and param.name != "help"]
    if params:
        parts.append(TABLE + "".join(_row(param, context) for param in params))
    if command.epilog:
        _, _, lines = _plain(command.epilog).partition("\n")
        parts.append(f"Examples:\n\n```text\n{inspect.cleandoc(lines)}\n```\n")
    below = getattr(command, "commands", {})
    return "\n".join([*parts, *(_section(f"{name} {each}", inner) for each, inner in below.items())])


def _row(param: Any, context: Any) -> str:
    if param.param_type_name == "argument":
        named = param.display_name_raw
    else:
        flag = getattr(param, "is_flag", False)
        named = " / ".join([*param.opts, *param.secondary_opts]) + (
            "" if flag else f" {param.display_type_rich(ctx=context)}"
        )
    told = isinstance(param.default, str | int | float) and not isinstance(param.default, bool)
    default = "required" if param.required else f"`{param.default}`" if told else ""
    cells = (f"`{named}`", default, _plain(param.help))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _plain(text: str | None) -> str:
    """Returns a help text without markup."""
    return Text.from_markup(inspect.cleandoc(text or "")).plain.strip("\n")


if __name__ == "__main__":
    PAGE.write_text(commands_page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
