"""purge: erased text is removed from the files of the running parts."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer

from agentcore.assembly import make_redis
from agentcore.cli import options
from agentcore.cli.app import FAILED, SERVICE, app, examples, say
from agentcore.config import Settings, load_settings
from agentcore.embedded.provision import superuser_url
from agentcore.maintenance.purging import Purge, Purged
from agentcore.runtime import home_of, urls_of

WAIT_SECONDS = 60.0


@app.command(rich_help_panel=SERVICE, epilog=examples("agentcore purge", "agentcore purge --json"))
def purge(
    wait: Annotated[float, typer.Option(
        min=0, metavar="SECONDS", help="How long to wait for a table or a snapshot in use.")] = WAIT_SECONDS,
    as_json: options.AsJson = False,
) -> None:
    """Remove deleted and erased text from the files, while the service runs.

    Rewrites the tables one by one (calls to a table wait while it is rewritten,
    and the disk needs room for the largest one twice), column statistics,
    write-ahead log and Redis's files. Prints what remains and who can remove
    it; ends with 1 if something could not be purged now.
    """
    result = purged(wait)
    if as_json:
        typer.echo(json.dumps(result.claims(), indent=2))
    if result.failed:
        raise typer.Exit(FAILED)


def purged(wait_seconds: float = WAIT_SECONDS) -> Purged:
    """Purge the running parts, and report to stderr."""
    result = asyncio.run(_purged(load_settings(), wait_seconds))
    for name, count in result.purged.items():
        say(f"purged {name.replace('_', ' ')}: {count}")
    for each in (*result.failed, *result.remaining):
        say(f"remains: {each}")
    return result


async def _purged(settings: Settings, wait_seconds: float) -> Purged:
    database_url, redis_url = urls_of(settings)
    embedded = settings.database_url is None
    redis = make_redis(redis_url, settings)
    try:
        return await Purge(
            superuser_url(home_of(settings), database_url) if embedded else database_url, redis,
            embedded=embedded, wait_seconds=wait_seconds, tell=say).run()
    finally:
        if redis is not None:
            await redis.aclose()
