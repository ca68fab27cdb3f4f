"""migrate, doctor, purge, and the check of archived copies and receipts, on the service's database."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text

from agentcore import migration
from agentcore.assembly import make_archive, make_redis
from agentcore.cli import options
from agentcore.cli.app import FAILED, MISUSED, app, fail, say, show
from agentcore.config import Settings, load_settings
from agentcore.database import Database, Row, query
from agentcore.doctor.examination import examine
from agentcore.doctor.verdicts import Check
from agentcore.embedded.postgres import superuser_url
from agentcore.errors import AgentCoreError, Conflict, NotFound
from agentcore.maintenance.purging import Purge, Purged
from agentcore.memory.archival import READS_AT_ONCE, Archive, ArchivedObject, archive_id, read_copy
from agentcore.memory.forgetting.erase_receipt import key_id_of, read_receipt, sign_receipt
from agentcore.runtime import database_url_of, home_of, running_database, urls_of

# The verdict's sign and style, and the style of its fix.
_SIGNS = {True: ("ok", "green", "dim"), False: ("WRONG", "red", "bold"), None: ("-", "dim", "dim")}


@app.command("migrate", "DATABASE_URL=postgresql://owner@db/agentcore agentcore migrate")
@options.with_json
def migrate(
    context: typer.Context,
    distribute: Annotated[
        bool, typer.Option("--distribute", help="Create a new database's tables distributed over a Citus cluster.")
    ] = False,
) -> None:
    """Bring the database to the schema of this version.

    Only an external database needs it: serve migrates the embedded one.
    """
    settings = load_settings()
    if distribute and settings.database_url is None:
        fail("--distribute needs DATABASE_URL: the coordinator of the cluster", MISUSED)
    database_url = database_url_of(settings)
    found = migration.current_revision(database_url)
    reached = migration.upgrade(database_url, distribute=distribute)
    if options.printed_as_json(context, {"revision": reached, "was": found}):
        return
    before = "" if found == reached else f" (was {found or 'empty'})"
    typer.echo(f"the schema is at revision {reached}{before}")


@app.command("doctor", "agentcore doctor")
@options.with_json
def doctor(context: typer.Context) -> None:
    """Check each part, and say how to fix what is wrong.

    Starts and changes nothing. Ends with 1 if something is wrong.
    """
    checks = asyncio.run(examine(load_settings()))
    listed = [{"part": each.name, "ok": each.ok, "found": each.found, "fix": each.fix} for each in checks]
    if not options.printed_as_json(context, listed):
        show(("", "part", "found"), map(_row, checks))
    wrong = [check for check in checks if check.ok is False]
    if wrong:
        say(f"{len(wrong)} of {len(checks)} are wrong")
        raise typer.Exit(FAILED)


def _row(check: Check) -> Sequence[str | Text]:
    sign, style, fix_style = _SIGNS[check.ok]
    found = Text(check.found)
    if check.fix:
        found.append(f"\nfix: {check.fix}", style=fix_style)
    return Text(sign, style=style), check.name, found


WAIT_SECONDS = 60.0
SHOWN_FAILURES = 10


@app.command("purge", "agentcore purge", "agentcore purge --json")
@options.with_json
def purge(
    context: typer.Context,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Maximum wait for a table or a snapshot in use.")
    ] = WAIT_SECONDS,
) -> None:
    """Remove deleted and erased text from the files, while the service runs.

    Rewrites tables, which blocks calls to each for that time, column statistics,
    write-ahead log and Redis's files. The disk needs room for the largest table
    twice. Ends with 1 if something could not be purged now.
    """
    result = purged(wait)
    options.printed_as_json(context, result.claims())
    if result.failed:
        raise typer.Exit(FAILED)


def purged(wait_seconds: float = WAIT_SECONDS) -> Purged:
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
            superuser_url(home_of(settings), database_url) if embedded else database_url,
            redis,
            embedded=embedded,
            wait_seconds=wait_seconds,
            tell=say,
        ).run()
    finally:
        if redis is not None:
            await redis.aclose()


NO_RECEIPT = (
    "--check takes a receipt: the text that erase printed, the JSON of erase --json, "
    "the path of a file with either, or - for standard input."
)


def checked(given: str) -> dict[str, Any]:
    """Returns the claims of the receipt; ends the command if no key is available to verify it."""
    receipt = _receipt(given)
    settings = load_settings()
    stored = asyncio.run(_stored_keys(settings, key_id_of(receipt)))
    return read_receipt([bytes(each["key"]) for each in stored], receipt)


def purged_receipt(receipt: str) -> tuple[str, bool]:
    """Purges; returns the receipt with the result, and whether it is complete."""
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
    if not text:
        fail("The receipt is empty: erase did not complete. Run it again.", MISUSED)
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


PAGE = 500


@dataclass(frozen=True)
class Finding:
    """An archived memory whose copy is `missing`, `damaged` or `unreachable`."""

    agent_id: str
    memory_id: UUID
    kind: str
    problem: str


async def verify(
    database: Database, archive: Archive, agent_id: str | None = None, *, adopt: bool = False
) -> tuple[int, list[Finding]]:
    """Reads the copies of all agents, or of one; returns the number of intact ones, and the other findings.

    `adopt`: records this archive as the place of intact copies that were recorded for another one, after
    archives were merged. Raises DependencyUnavailable.
    """
    slots = asyncio.Semaphore(READS_AT_ONCE)
    own_id = await archive_id(archive)

    async def checked(row: Mapping[str, Any]) -> Finding | None:
        async with slots:
            return await _finding(archive, row, own_id, adopt=adopt)

    intact, findings = 0, list[Finding]()
    values: dict[str, Any] = {"agent_id": agent_id, "limit": PAGE, "after_agent_id": "", "after_id": UUID(int=0)}
    while True:
        async with database.owner_transaction() as connection:
            rows = await (await connection.execute(query("archived_everywhere"), values)).fetchall()
        if not rows:
            return intact, findings
        results = await asyncio.gather(*map(checked, rows))
        whole = [row for row, finding in zip(rows, results, strict=True) if finding is None]
        if adopt:
            await _adopt(database, [row for row in whole if row["archive_id"] != own_id], own_id)
        intact += len(whole)
        findings += filter(None, results)
        values |= {"after_agent_id": rows[-1]["agent_id"], "after_id": rows[-1]["memory_id"]}


async def _adopt(database: Database, rows: Sequence[Mapping[str, Any]], own_id: UUID) -> None:
    values = {
        "agent_ids": [row["agent_id"] for row in rows],
        "memory_ids": [row["memory_id"] for row in rows],
        "digests": [row["sha256"] for row in rows],
    }
    async with database.owner_transaction() as connection:
        await connection.execute(query("record_archive"), {**values, "archive_id": own_id})


async def _finding(archive: Archive, row: Mapping[str, Any], own_id: UUID, *, adopt: bool) -> Finding | None:
    recorded = row["archive_id"]
    elsewhere = f"The copy of memory {row['memory_id']} is in another archive ({recorded})."
    unreachable = Finding(row["agent_id"], row["memory_id"], "unreachable", elsewhere)
    if recorded != own_id and not adopt:
        return unreachable
    kept = ArchivedObject(row["object_key"], bytes(row["sha256"]), row["size_bytes"])
    try:
        await read_copy(archive, row["memory_id"], kept)
    except NotFound as missing:
        if recorded != own_id:
            return unreachable
        return Finding(row["agent_id"], row["memory_id"], "missing", missing.message)
    except Conflict as damaged:
        return Finding(row["agent_id"], row["memory_id"], "damaged", damaged.message)
    return None


async def verified(agent_id: str | None, *, adopt: bool) -> tuple[int, list[Finding]]:
    settings = load_settings()
    kept = make_archive(settings, home_of(settings))
    if kept is None:
        fail("MEMORY_ARCHIVAL_ENABLED=false: there is no archive to read")
    async with running_database(settings) as database:
        return await verify(database, kept, agent_id, adopt=adopt)
