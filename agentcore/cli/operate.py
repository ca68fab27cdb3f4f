"""migrate and doctor: commands for operators, separate from the service."""

from __future__ import annotations

import asyncio

import typer
from rich.table import Table
from rich.text import Text

from agentcore import migration
from agentcore.cli import options
from agentcore.cli.app import FAILED, SERVICE, app, examples, say, show
from agentcore.config import load_settings
from agentcore.doctor.examination import examine
from agentcore.doctor.verdicts import Check
from agentcore.runtime import urls_of

_SIGNS = {True: "ok", False: "WRONG", None: "-"}


@app.command(rich_help_panel=SERVICE, epilog=examples(
    "DATABASE_URL=postgresql://owner@db/agentcore agentcore migrate",
))
@options.with_json
def migrate(context: typer.Context) -> None:
    """Bring the database to the schema of this version.

    Only an external database needs it: the embedded one is migrated by serve.
    One process at a time does it, any other waits. A database made by a newer
    version is refused.
    """
    database_url, _ = urls_of(load_settings())
    found = migration.current_revision(database_url)
    reached = migration.upgrade(database_url)
    if options.printed_as_json(context, {"revision": reached, "was": found}):
        return
    before = "" if found == reached else f" (was {found or 'empty'})"
    typer.echo(f"the schema is at revision {reached}{before}")


@app.command(rich_help_panel=SERVICE, epilog=examples("agentcore doctor"))
@options.with_json
def doctor(context: typer.Context) -> None:
    """Check each part, and say how to fix what is wrong.

    Works beside a running service and without one; it starts and changes
    nothing. Ends with 1 if something is wrong.
    """
    checks = asyncio.run(examine(load_settings()))
    listed = [{"part": each.name, "ok": each.ok, "found": each.found, "fix": each.fix} for each in checks]
    if not options.printed_as_json(context, listed):
        show(_report(checks))
    wrong = [check for check in checks if check.ok is False]
    if wrong:
        say(f"{len(wrong)} of {len(checks)} are wrong")
        raise typer.Exit(FAILED)


def _report(checks: list[Check]) -> Table:
    table = Table("", "part", "found", box=None, pad_edge=False)
    for check in checks:
        style = "red" if check.ok is False else "dim" if check.ok is None else "green"
        found = Text(check.found)
        if check.fix:
            found.append(f"\nfix: {check.fix}", style="bold" if check.ok is False else "dim")
        table.add_row(Text(_SIGNS[check.ok], style=style), check.name, found)
    return table
