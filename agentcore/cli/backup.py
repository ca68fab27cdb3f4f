"""backup and restore-backup: database, archive and keys of a home in one file."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from agentcore.assembly import make_archive
from agentcore.cli import options
from agentcore.cli.app import FAILED, app, counted, fail, say
from agentcore.config import Settings, load_settings
from agentcore.embedded import EmbeddedParts, attach, runs_on
from agentcore.embedded.backup import Backup, Manifest, restore_backup
from agentcore.runtime import home_of

EXTERNAL = "the database at DATABASE_URL: docs/operations.md says how to back it up and restore it"
File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


@app.command("backup", "agentcore backup memory.backup")
@options.with_json
def backup(
    context: typer.Context,
    file: File,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
) -> None:
    """Back up database, archive and keys into one file, also while the service runs.

    The file gives access to every memory: its mode is 0600. Ends with 1 if the
    copy of an archived memory is missing or damaged.
    """
    target = file.expanduser().resolve()
    if target.is_dir() or not target.parent.is_dir():
        fail(f"{file} is a directory, or would be in one that does not exist")
    if target.exists() and not overwrite:
        fail(f"{file} exists: name another file, or add --overwrite")
    manifest = asyncio.run(_backed_up(load_settings(), target))
    _report(context, manifest, "backed up")
    if manifest.unreadable_copies:
        fail(
            f"{counted(len(manifest.unreadable_copies), 'copy', 'copies')} of archived memories missing or "
            "damaged: `agentcore archive verify` names them"
        )


@app.command("restore-backup", "AGENTCORE_HOME=/path/to/new/home agentcore restore-backup memory.backup")
@options.with_json
def restore(
    context: typer.Context,
    file: File,
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing data, and keep it in `replaced-*` in the home.")
    ] = False,
) -> None:
    """Restore a backup into a home that no service uses.

    The file is checked first. Tokens made before the backup are accepted again.
    """
    settings = load_settings()
    if not file.expanduser().is_file():
        fail(f"{file} is not a file")
    manifest = asyncio.run(restore_backup(file.expanduser(), home_of(settings), force=force, report=say))
    if settings.database_url is not None:
        say("DATABASE_URL is set: a service with it does not use the restored database")
    _report(context, manifest, "restored")


async def _backed_up(settings: Settings, target: Path) -> Manifest:
    home, url = home_of(settings), None
    async with AsyncExitStack() as stack:
        if settings.database_url is None:
            if runs_on(home):
                url = attach(home).database_url
            elif home.postgres_data.is_dir():
                parts = EmbeddedParts(home, postgres=True, redis=False, log=say)
                url = (await stack.enter_async_context(parts)).urls.database_url
            else:
                fail(f"{home.path} contains no database: set AGENTCORE_HOME as for serve", FAILED)
        local = make_archive(settings, home) if settings.memory_archival_s3_bucket is None else None
        work = Backup(home, url, None if local is None else local.opened, _left_out(settings), say)
        return await asyncio.to_thread(work.write, target)


def _left_out(settings: Settings) -> list[str]:
    outside = {
        EXTERNAL: settings.database_url,
        "the archive in S3": settings.memory_archival_s3_bucket,
        "JWT_SECRET_KEY: tokens need the same one again": settings.jwt_secret_key,
        "MEMORY_ARCHIVE_OPTIONS: its keys open the archive's copies": settings.memory_archive_options,
    }
    return ["Redis: its copies are made again", *(what for what, value in outside.items() if value)]


def _report(context: typer.Context, manifest: Manifest, done: str) -> None:
    options.printed_as_json(context, manifest)
    say(
        f"{done}: {counted(manifest.memories, 'memory', 'memories')}, {manifest.archived} archived, "
        f"of {manifest.created_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    for each in manifest.left_out:
        say(f"left out: {each}")
