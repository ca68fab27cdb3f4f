"""consolidate: summaries of episodic memories that tell one thing, now or in the background."""

from __future__ import annotations

from typing import Annotated

import typer

from agentcore.cli import options
from agentcore.cli.app import MEMORIES, app, counted, examples, say
from agentcore.cli.calls import ask
from agentcore.memory.params.layers import DEFAULT_ARCHIVE_AFTER_DAYS, ConfigureParams, ConsolidateParams


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore consolidate --dry-run                      the clusters and their summaries",
    "agentcore consolidate --archive-sources --after-days 90",
    "agentcore consolidate --automatic on --token $ADMIN_TOKEN",
))
@options.client
def consolidate(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be made.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Look at every episodic memory again.")] = False,
    archive_sources: Annotated[bool, typer.Option(
        "--archive-sources", help="Then archive old sources whose summary stands.")] = False,
    archive_sources_after_days: Annotated[int, typer.Option(
        "--after-days", min=1, help="How old a source must be for that.")] = DEFAULT_ARCHIVE_AFTER_DAYS,
    automatic: Annotated[str | None, typer.Option(
        metavar="on|off", help="Do it in the background from now on, or not; needs memory:admin.")] = None,
) -> None:
    """Give episodic memories that tell one thing together a summary that points to them."""
    if automatic is not None:
        if automatic not in ("on", "off"):
            raise typer.BadParameter("give --automatic on or --automatic off", ctx=context)
        wished = ConfigureParams(consolidate=automatic == "on")
        settings = ask(context, lambda memory: memory.configure(wished))
        if not options.printed_as_json(context, settings):
            say(f"consolidation in the background is {'on' if settings.consolidate else 'off'}")
        return
    params = options.given(context, ConsolidateParams)
    done = ask(context, lambda memory: memory.consolidate(params))
    if options.printed_as_json(context, done):
        return
    for cluster in done.clusters:
        typer.echo(f"{cluster.memory_id or 'would be made'}: of {len(cluster.source_ids)} memories")
        typer.echo("  " + cluster.summary.replace("\n", "\n  "))
    say(f"{counted(len(done.clusters), 'summary', 'summaries')} of {done.looked_at_count} looked at, "
        f"{done.archived_count} archived")
    young = sum(each.count for each in done.receipt.dropped if each.reason == "too_young")
    if young:
        say(f"{counted(young, 'memory is', 'memories are')} younger than a day, and left for later")
    if not done.complete:
        say("There is more: run the same again for the rest, without --again.")
