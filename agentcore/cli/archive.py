"""archive list, restore, verify; erase: deletes all of an agent or user permanently."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated
from uuid import UUID

import typer
from rich.table import Column

from agentcore.cli import options
from agentcore.cli.app import FAILED, MEMORY_ID, app, counted, fail, group, is_confirmed, say, say_more, show
from agentcore.cli.calls import answer, ask, call
from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError, NotAuthorised
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.archived import (
    ArchivedMemory,
    ArchivedParams,
    EraseParams,
    EraseResult,
    RestoreParams,
    RestoreResult,
)
from agentcore.memory.params.memories import CountParams
from agentcore.registry import resolve

REPORTED = 20
ADMIN = ("memory:admin",)
# Imported lazily: they need the service's packages.
SERVER_PARTS = {
    "verify": "agentcore.cli.operate:verified",
    "check": "agentcore.cli.operate:checked",
    "purge": "agentcore.cli.operate:purged_receipt",
}

archives = group("archive")


@archives.command("list", "agentcore archive list --limit 20", "agentcore archive list --session monday --json")
@options.client
@options.filters(ArchivedParams)
@options.fields(ArchivedParams, ("limit", "cursor", "archived_after", "archived_before"))
def list_archived(context: typer.Context) -> None:
    """List archived memories, the most recently archived first."""
    page = answer(context, MemoryApi.archived)
    if page.memories:
        header = (MEMORY_ID, "layer", Column("archived", no_wrap=True), "by", "session")
        show(header, map(_archived, page.memories))
    else:
        say("nothing archived")
    say_more(page.next_cursor)


@archives.command(
    "restore",
    "agentcore archive restore 0198f3a2-7c1e-7d55-8a53-2f3b6c1d9e10",
    "agentcore archive restore --archived-after 2026-05-01 --dry-run",
    "agentcore archive restore --session monday",
    "agentcore archive restore --all",
)
@options.client
@options.filters(RestoreParams)
@options.fields(
    RestoreParams, ("all", "dry_run", "archived_after", "archived_before"), all="Everything in the archive."
)
def restore(
    context: typer.Context,
    memory_ids: Annotated[
        list[UUID] | None, typer.Argument(parser=options.memory_id, metavar="[ID]...", help="By id.")
    ] = None,
) -> None:
    """Restore archived memories: all that are named or match.

    Ends with 1 if the copy of one could not be read; the others are restored.
    """
    params = options.given(context, RestoreParams)
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


@archives.command("verify", "agentcore archive verify", "agentcore archive verify --of my-agent --json")
@options.with_json
def verify(
    context: typer.Context,
    agent_id: Annotated[
        str | None, typer.Option("--of", metavar="AGENT", help="The copies of this agent alone.")
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="After archives were merged: record this one as the place of its copies.")
    ] = False,
) -> None:
    """Read every copy, and compare it with the digest recorded at archiving.

    Ends with 1 if a memory could not be restored.
    """
    verified = resolve("verify", SERVER_PARTS, kind="command")
    whole, findings = asyncio.run(verified(agent_id, adopt=adopt))
    listed = [asdict(each) | {"memory_id": str(each.memory_id)} for each in findings]
    if not options.printed_as_json(context, {"whole": whole, "findings": listed}):
        kinds = Counter(each.kind for each in findings)
        typer.echo(
            f"whole {whole}, missing {kinds['missing']}, damaged {kinds['damaged']}"
            + (f", in other archives {kinds['unreachable']}" if kinds["unreachable"] else "")
        )
        for each in findings[:REPORTED]:
            say(f"{each.agent_id}: {each.problem}")
        if len(findings) > REPORTED:
            say(f"and {len(findings) - REPORTED} more: --json names them all")
    if findings:
        raise typer.Exit(FAILED)


async def _restored(memory: MemoryClient, params: RestoreParams) -> RestoreResult:
    whole = await memory.restore(params)
    while not whole.complete:
        say(f"{len(whole.memory_ids)} {'would come back' if whole.dry_run else 'are back'}, going on")
        try:
            more = await memory.restore(params.model_copy(update={"cursor": whole.next_cursor}))
        except AgentCoreError:
            say("the memories restored so far stay; repeat the command to continue")
            raise
        added = {name: [*value, *getattr(more, name)] for name, value in whole if isinstance(value, list)}
        count = whole.restored_count + more.restored_count
        whole = more.model_copy(update={**added, "restored_count": count})
    back = {*whole.memory_ids}
    lost = [link for link in whole.lost_links if link.other_id not in back]
    return whole.model_copy(update={"lost_links": lost})


def _archived(each: ArchivedMemory) -> Sequence[str]:
    archived_at = f"{each.archived_at:%Y-%m-%d}"
    return str(each.memory_id), each.memory_type.value, archived_at, each.reason, each.session_id or ""


@app.command(
    "erase",
    "agentcore erase --user ada --token $ADMIN_TOKEN",
    "agentcore erase --all --agent my-agent --yes > receipt.jws",
    "agentcore erase --check receipt.jws",
)
@options.client
@options.option(
    "check",
    None,
    metavar="RECEIPT",
    help="Erase nothing: print the contents of a receipt: its text, a file, or - for stdin.",
)
@options.option("purge", False, "--purge", help="Then remove it from the files too, as agentcore purge does.")
@options.option("yes", False, "--yes", help="Do not ask whether it is meant.")
@options.fields(EraseParams, ("user_id", "all"), all="Everything that the agent has.")
def erase(context: typer.Context) -> None:
    """Erase permanently, from every store, and print the signed receipt.

    Requires the scope memory:admin. Ends with 1 if anything was left.
    """
    check, everything, purge = (context.params[name] for name in ("check", "all", "purge"))
    if check is not None:
        checked = resolve("check", SERVER_PARTS, kind="command")
        typer.echo(json.dumps(checked(check), indent=2))
        return
    if everything == (context.params["user_id"] is not None):
        raise typer.BadParameter("pass either --user or --all", ctx=context)
    params = options.given(context, EraseParams, confirm=True)
    if not context.params["yes"]:
        whose = "the agent" if everything else f"the user {params.user_id}"
        if not is_confirmed(f"Erase everything of {whose}{_number(context, params)}, archive included?"):
            fail("nothing was erased")
    result = _to_its_end(context, params)
    purged = True
    if purge and result.signed_receipt is not None:
        signed, purged = resolve("purge", SERVER_PARTS, kind="command")(result.signed_receipt)
        result = result.model_copy(update={"signed_receipt": signed})
    if not options.printed_as_json(context, result):
        typer.echo(result.signed_receipt)
    _tell_erased(result, purge=purge, purged=purged)


def _number(context: typer.Context, params: EraseParams) -> str:
    counting = CountParams() if params.all else CountParams(user_id=params.user_id)
    try:
        count = call(context, MemoryApi.count, counting).count
    except NotAuthorised:
        return ""
    return f" ({counted(count, 'memory', 'memories')})"


def _tell_unreachable(counts: Mapping[str, int]) -> None:
    elsewhere = ", ".join(f"{count} in {place}" for place, count in counts.items())
    say(
        f"in an archive or Redis that this server does not use: {elsewhere}; erase there, too "
        "(working memory in another Redis expires)"
    )


def _tell_erased(result: EraseResult, *, purge: bool, purged: bool) -> None:
    erased = {place: count for place, count in result.erased.items() if count}
    for place, count in sorted(erased.items()):
        say(f"{place}: {count}")
    if result.unreachable:
        _tell_unreachable(result.unreachable)
    if not result.verified:
        remains = ", ".join(f"{place} {count}" for place, count in result.left.items())
        fail(f"not all of it is gone: {remains or 'copies out of reach'}")
    if not purged:
        fail("erased, but not completely purged: run agentcore purge on the machine of the service")
    left = "" if purge else " in database and archive; agentcore purge removes it from the files"
    say(f"nothing is left{left}" if erased else "no memory matched: nothing was erased")


def _to_its_end(context: typer.Context, params: EraseParams) -> EraseResult:
    while not (result := call(context, MemoryApi.erase, params, scopes=ADMIN)).complete:
        say("there is more: going on")
        params = params.model_copy(update={"continues": result.signed_receipt})
    return result
