"""archive list, restore, verify: what pruning put away, brought back, and checked."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer
from rich.table import Column, Table
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import FAILED, MEMORIES, examples, group, printable, say, show
from agentcore.cli.calls import ask
from agentcore.cli.times import moment
from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError
from agentcore.memory.params.archived import ArchivedParams, ArchivedResult, RestoreParams, RestoreResult
from agentcore.registry import resolve

REPORTED = 20
# What reads the copies itself takes a second to load, which the other commands need not wait for.
READERS = {"verify": "agentcore.cli.archive_verification:verified"}
_FILTERS = "Which memories"
NOT_ARCHIVED = ("entities", "keywords", "min_importance")
_LISTS = (
    "memory_ids", "lost_links", "renewed_ids", "superseded_ids", "refused_ids", "unreadable_ids",
    "waiting_for_embedding_ids")

archives = group("archive", MEMORIES)

ArchivedAfter = Annotated[datetime | None, typer.Option(
    "--archived-after", parser=moment, metavar="TIME", help="Archived at or after this time.",
    rich_help_panel=_FILTERS)]
ArchivedBefore = Annotated[datetime | None, typer.Option(
    "--archived-before", parser=moment, metavar="TIME", help="Archived before this time.",
    rich_help_panel=_FILTERS)]


@archives.command("list", epilog=examples(
    "agentcore archive list --limit 20", "agentcore archive list --session monday --json"))
@options.client
@options.filters(without=NOT_ARCHIVED)
def list_archived(
    context: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Where the page before ended.")] = None,
    archived_after: ArchivedAfter = None,
    archived_before: ArchivedBefore = None,
) -> None:
    """List archived memories, those archived last first."""
    params = options.given(context, ArchivedParams)
    page = ask(context, lambda memory: memory.archived(params))
    if options.printed_as_json(context, page):
        return
    if page.memories:
        show(_table(page))
    else:
        say("nothing archived")
    if page.next_cursor is not None:
        say(f"more with --cursor {page.next_cursor}")


@archives.command(epilog=examples(
    "agentcore archive restore 0198f3a2-7c1e-7d55-8a53-2f3b6c1d9e10",
    "agentcore archive restore --archived-after 2026-05-01 --dry-run",
    "agentcore archive restore --session monday",
    "agentcore archive restore --all"))
@options.client
@options.filters(without=NOT_ARCHIVED)
def restore(
    context: typer.Context,
    memory_ids: Annotated[list[UUID] | None, typer.Argument(
        parser=options.memory_id, metavar="[ID]...", help="By id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything in the archive.")] = False,
    dry_run: Annotated[bool, typer.Option(
        "--dry-run", help="Read and check the copies, and bring nothing back.")] = False,
    archived_after: ArchivedAfter = None,
    archived_before: ArchivedBefore = None,
) -> None:
    """Bring archived memories back as they were: all that are named or match, a thousand at a time.

    Ends with 1 if the copy of one could not be read; the others are back.
    """
    params = options.given(context, RestoreParams, **({"all": True} if everything else {}))
    restored = ask(context, lambda memory: _restored(memory, params))
    if not options.printed_as_json(context, restored):
        _tell(restored)
    if restored.unreadable_ids:
        raise typer.Exit(FAILED)


def _tell(restored: RestoreResult) -> None:
    word = "would come back" if restored.dry_run else "restored"
    typer.echo(f"{word}: {len(restored.memory_ids)}")
    for memory_id in restored.memory_ids if restored.dry_run else ():
        typer.echo(memory_id)
    notes = (
        (restored.renewed_ids, "ran out of time in the archive and got some more"),
        (restored.superseded_ids, "came back superseded: a newer fact has their place"),
        (restored.refused_ids, "stay archived: what they were made of was deleted, or has other words"),
        (restored.unreadable_ids, "stay archived: the copy is missing, damaged or in another archive"),
        (restored.waiting_for_embedding_ids, "are found by their words until they are embedded again"),
        (restored.lost_links, "links left out, since the other memory is not there"),
    )
    for concerned, note in notes:
        if concerned:
            say(f"{len(concerned)} {note}")


@archives.command(epilog=examples(
    "agentcore archive verify", "agentcore archive verify --of my-agent --json"))
def verify(
    agent_id: Annotated[str | None, typer.Option(
        "--of", metavar="AGENT", help="The copies of this agent alone.")] = None,
    adopt: Annotated[bool, typer.Option(
        "--adopt", help="After archives were merged: record this one as the place of its copies.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Read every copy again, and compare it with the digest noted when it was archived.

    It attaches to the service's database and archive. A copy in an archive of
    another server is reported as such. Ends with 1 if a memory would not come
    back.
    """
    verified = resolve("verify", READERS, kind="command")
    whole, findings = asyncio.run(verified(agent_id, adopt=adopt))
    if as_json:
        told = [{"agent_id": each.agent_id, "memory_id": str(each.memory_id), "kind": each.kind,
                 "problem": each.problem} for each in findings]
        typer.echo(json.dumps({"whole": whole, "findings": told}, indent=2))
    else:
        kinds = Counter(each.kind for each in findings)
        typer.echo(f"whole {whole}, missing {kinds['missing']}, damaged {kinds['damaged']}"
                   + (f", in other archives {kinds['unreachable']}" if kinds["unreachable"] else ""))
        for each in findings[:REPORTED]:
            say(f"{each.agent_id}: {each.problem}")
        if len(findings) > REPORTED:
            say(f"and {len(findings) - REPORTED} more: --json names them all")
    if findings:
        raise typer.Exit(FAILED)


async def _restored(memory: MemoryClient, params: RestoreParams) -> RestoreResult:
    """All of it, as one result; what is back when a call fails stays back, and is told."""
    whole = await memory.restore(params)
    while not whole.complete:
        say(f"{len(whole.memory_ids)} {'would come back' if whole.dry_run else 'are back'}, going on")
        try:
            more = await memory.restore(params.model_copy(update={"cursor": whole.next_cursor}))
        except AgentCoreError:
            say("what came back so far stays; the same command goes on")
            raise
        added = {name: [*getattr(whole, name), *getattr(more, name)] for name in _LISTS}
        count = whole.restored_count + more.restored_count
        whole = more.model_copy(update={**added, "restored_count": count})
    back = {*whole.memory_ids}
    lost = [link for link in whole.lost_links if link.other_id not in back]
    return whole.model_copy(update={"lost_links": lost})


def _table(page: ArchivedResult) -> Table:
    identity = Column("memory_id", no_wrap=True, min_width=36)
    day = Column("archived", no_wrap=True)
    table = Table(identity, "layer", day, "by", "session", box=None, pad_edge=False)
    for each in page.memories:
        table.add_row(
            str(each.memory_id), each.memory_type.value, f"{each.archived_at:%Y-%m-%d}", each.reason,
            Text(printable(each.session_id or "")))
    return table
