"""purge: removes erased text from the files of PostgreSQL and Redis; re-signs receipts of erasures."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from agentcore.assembly import make_redis
from agentcore.cli import options
from agentcore.cli.app import FAILED, MISUSED, SERVICE, app, examples, fail, say
from agentcore.config import Settings, load_settings
from agentcore.database import Row, query
from agentcore.embedded.postgres import superuser_url
from agentcore.errors import AgentCoreError
from agentcore.maintenance.purging import Purge, Purged
from agentcore.memory.forgetting.erase_receipt import key_id_of, read_receipt, sign_receipt
from agentcore.runtime import home_of, running_database, urls_of

WAIT_SECONDS = 60.0
SHOWN_FAILURES = 10


@app.command(rich_help_panel=SERVICE, epilog=examples("agentcore purge", "agentcore purge --json"))
@options.with_json
def purge(
    context: typer.Context,
    wait: Annotated[float, typer.Option(
        min=0, metavar="SECONDS", help="How long to wait for a table or a snapshot in use.")] = WAIT_SECONDS,
) -> None:
    """Remove deleted and erased text from the files, while the service runs.

    Rewrites the tables one by one (calls to a table wait while it is rewritten,
    and the disk needs room for the largest one twice), column statistics,
    write-ahead log and Redis's files. Prints a summary and who can remove what
    remains (--json: all of it); ends with 1 if something could not be purged now.
    """
    result = purged(wait)
    options.printed_as_json(context, result.claims())
    if result.failed:
        raise typer.Exit(FAILED)


def purged(wait_seconds: float = WAIT_SECONDS) -> Purged:
    """Purges PostgreSQL and Redis, and reports to stderr."""
    result = asyncio.run(_purged(load_settings(), wait_seconds))
    for name, count in result.purged.items():
        if count:
            say(f"purged {name.replace('_', ' ')}: {count:,}")
    for each in result.failed[:SHOWN_FAILURES]:
        say(f"not purged: {each}")
    if left_out := result.failed[SHOWN_FAILURES:]:
        say(f"not purged: {len(left_out)} more (--json lists all)")
    for each in result.remaining:
        say(f"out of reach: {each}")
    say("purged in part: fix what is not purged, then run it again" if result.failed else "purged completely")
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


NO_RECEIPT = ("--check takes a receipt: the text that erase printed, the JSON of erase --json, "
              "the path of a file with either, or - for standard input.")


def checked(given: str) -> dict[str, Any]:
    """Returns the claims of the receipt; ends the command if no key is available to verify it."""
    receipt = _receipt(given)
    settings = load_settings()
    stored = asyncio.run(_stored_keys(settings, key_id_of(receipt)))
    return read_receipt([bytes(each["key"]) for each in stored], receipt)


def purged_receipt(receipt: str) -> tuple[str, bool]:
    """Purges; returns the receipt with the purged and the remaining parts, and whether all succeeded."""
    try:
        claims = checked(receipt)
        report = purged()
        [newest, *_] = asyncio.run(_stored_keys(load_settings(), None))
    except AgentCoreError as error:
        say(error.message)
        return receipt, False
    claims.pop("not_purged", None)
    claims |= report.claims() | {"purged_at": datetime.now(UTC).isoformat()}
    return sign_receipt(newest["key_id"], bytes(newest["key"]), claims), not report.failed


async def _stored_keys(settings: Settings, key_id: str | None) -> Sequence[Row]:
    async with running_database(settings) as database, database.owner_transaction() as connection:
        return await (await connection.execute(query("receipt_keys"), {"key_id": key_id})).fetchall()


def _receipt(given: str) -> str:
    text = _text(given).strip()
    if text.startswith("{"):
        try:
            text = str(json.loads(text)["signed_receipt"])
        except (ValueError, KeyError):
            fail(NO_RECEIPT, MISUSED)
    if text.count(".") != 2 or len(text.split()) != 1:
        fail(NO_RECEIPT, MISUSED)
    return text


def _text(given: str) -> str:
    try:
        if given == "-":
            return sys.stdin.read()
        return Path(given).read_text() if Path(given).is_file() else given
    except (OSError, ValueError):
        # A receipt may be longer than a file name can be; invalid text is refused later.
        return given
