"""alias set, list, delete: what an agent calls by two names."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import FAILED, MEMORIES, examples, group, printable, say, show
from agentcore.cli.calls import ask
from agentcore.memory.params.aliases import (
    DeleteAliasParams,
    ListAliasesParams,
    ListAliasesResult,
    SetAliasParams,
)

aliases = group("alias", MEMORIES)
Alias = Annotated[str, typer.Argument(help="What it is called too.")]


@aliases.command("set", epilog=examples("agentcore alias set k8s Kubernetes"))
@options.client
def set_alias(
    context: typer.Context,
    alias: Alias,
    means: Annotated[str, typer.Argument(help="What that means.")],
) -> None:
    """Set an alias; set again, it gets another meaning."""
    params = SetAliasParams(alias=alias, means=means)
    options.printed_as_json(context, ask(context, lambda memory: memory.set_alias(params)))


@aliases.command("delete", epilog=examples("agentcore alias delete k8s"))
@options.client
def delete_alias(
    context: typer.Context,
    alias: Alias,
) -> None:
    """Take an alias away, whether it was set or learnt."""
    params = DeleteAliasParams(alias=alias)
    deleted = ask(context, lambda memory: memory.delete_alias(params))
    if not options.printed_as_json(context, deleted):
        say(f"{deleted.deleted_count} deleted")
    if not deleted.success:
        raise typer.Exit(FAILED)


@aliases.command("list", epilog=examples("agentcore alias list --limit 20", "agentcore alias list --json"))
@options.client
def list_aliases(
    context: typer.Context,
    limit: options.Limit = 100,
    cursor: options.Cursor = None,
) -> None:
    """List aliases, and the memory that taught each, if none set it."""
    params = options.given(context, ListAliasesParams)
    page = ask(context, lambda memory: memory.list_aliases(params))
    if options.printed_as_json(context, page):
        return
    if page.aliases:
        show(_table(page))
    else:
        say("no aliases")
    if page.next_cursor is not None:
        say(f"more with --cursor {page.next_cursor}")


def _table(page: ListAliasesResult) -> Table:
    table = Table("alias", "means", "learnt from", box=None, pad_edge=False)
    for each in page.aliases:
        source = "" if each.memory_id is None else str(each.memory_id)
        table.add_row(Text(printable(each.alias)), Text(printable(each.means)), source)
    return table
