"""erase: everything of an agent, or of a user within it, for good; and the check of a receipt."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from agentcore.cli import options
from agentcore.cli.app import MEMORIES, app, examples, fail, say
from agentcore.cli.calls import ask
from agentcore.memory.params.archived import EraseParams, EraseResult
from agentcore.registry import resolve

ADMIN = ("memory:admin",)
# What checks a receipt takes a second to load, which who erases need not wait for.
CHECKS = {"check": "agentcore.cli.purge:checked", "purge": "agentcore.cli.purge:purged_receipt"}


@app.command(rich_help_panel=MEMORIES, epilog=examples(
    "agentcore erase --user ada --token $ADMIN_TOKEN",
    "agentcore erase --all --agent my-agent --yes > receipt.jws",
    "agentcore erase --check receipt.jws",
))
def erase(
    context: typer.Context,
    user_id: Annotated[str | None, typer.Option(
        "--user", metavar="ID", help="This user's memories, and what was made of them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that the agent has.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    purge: Annotated[bool, typer.Option(
        "--purge", help="Then remove it from the files too, as agentcore purge does.")] = False,
    check: Annotated[str | None, typer.Option(
        metavar="RECEIPT",
        help="Erase nothing: tell what a receipt says, its text, a file's path, or -.")] = None,
    as_json: options.AsJson = False,
    url: options.Url = None,
    token: options.Token = None,
    agent: options.Agent = None,
) -> None:
    """Erase for good, from every place, and print the signed receipt.

    It needs a token with the scope memory:admin; with --agent it makes one. Ends
    with 1 if anything was left.
    """
    if check is not None:
        checked = resolve("check", CHECKS, kind="command")
        typer.echo(json.dumps(checked(check), indent=2))
        return
    params = options.given(context, EraseParams, confirm=True, **({"all": True} if everything else {}))
    whose = "everything of the agent" if everything else f"everything of the user {user_id}"
    if not yes:
        say(f"Erase {whose}, archive included? Nothing brings it back. [y/N]")
        if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
            fail("nothing was erased")
    result = _to_its_end(context, params)
    erased = {place: count for place, count in result.erased.items() if count}
    purged = True
    if purge and result.signed_receipt is not None:
        signed, purged = resolve("purge", CHECKS, kind="command")(result.signed_receipt)
        result = result.model_copy(update={"signed_receipt": signed})
    typer.echo(result.model_dump_json(indent=2) if as_json else result.signed_receipt)
    for place, count in sorted(erased.items()):
        say(f"{place}: {count}")
    if result.unreachable:
        elsewhere = ", ".join(f"{count} in {place}" for place, count in result.unreachable.items())
        say(f"in an archive or Redis that this server does not use: {elsewhere}; erase there, too "
            "(working memory in another Redis expires)")
    if not result.verified:
        left = ", ".join(f"{place} {count}" for place, count in result.left.items())
        fail(f"not all of it is gone: {left or 'copies out of reach'}")
    if not purged:
        fail("it is erased, but not all of it is purged: run agentcore purge where the service runs")
    say(_outcome(erased, purge=purge))


def _outcome(erased: Mapping[str, int], *, purge: bool) -> str:
    if not erased:
        return "no memory matched: nothing was erased"
    return "nothing is left" if purge else (
        "nothing is left in database and archive; agentcore purge removes it from the files")


def _to_its_end(context: typer.Context, params: EraseParams) -> EraseResult:
    result = ask(context, lambda memory: memory.erase(params), scopes=ADMIN)
    if result.complete:
        return result
    say("there is more: going on")
    return _to_its_end(context, params.model_copy(update={"continues": result.signed_receipt}))
