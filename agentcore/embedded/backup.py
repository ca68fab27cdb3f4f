"""Backup and restore of a data directory: one tar file with a pg_dump, the archive and the keys."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from pydantic import BaseModel, ValidationError

from agentcore import __version__, migration
from agentcore.database import query
from agentcore.embedded.home import Home, ServerLock, choose_account, current_account, grant_access, sync_directory
from agentcore.embedded.parts import EmbeddedParts
from agentcore.embedded.process import find_postgres, run_once
from agentcore.errors import Conflict, StartupError

FORMAT = 1
MANIFEST, DUMP = "manifest.json", "database.dump"
# An archived copy may change after the snapshot and before it is read: the backup is then repeated.
ATTEMPTS = 3
CONNECT_SECONDS, LOCK_TIMEOUT = 10, "--lock-wait-timeout=60s"
ProgressReport = Callable[[str], None]


class Manifest(BaseModel):
    """Describes a backup: its counts, and the SHA-256 of each file by name."""

    format: int = FORMAT
    agentcore: str = __version__
    created_at: datetime
    schema_revision: str | None = None
    postgresql: str | None = None
    memories: int = 0
    archived: int = 0
    unreadable_copies: list[str]
    left_out: list[str]
    sha256: dict[str, str]


@dataclass(frozen=True)
class Backup:
    """Writes a backup. `decrypt`: of archived objects; None: the archive is not included."""

    home: Home
    database_url: str | None
    decrypt: Callable[[str, bytes], bytes] | None
    left_out: Sequence[str]
    report: ProgressReport

    def write(self, target: Path) -> Manifest:
        """Writes the backup atomically; retries if archived objects changed meanwhile. Raises StartupError."""
        before: list[str] = []
        try:
            with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as directory:
                for _ in range(ATTEMPTS):
                    draft = Path(directory) / "backup"
                    manifest = self._pack(draft)
                    if manifest.unreadable_copies in ([], before):
                        break
                    before = manifest.unreadable_copies
                draft.replace(target)
                sync_directory(target.parent)
        except (OSError, psycopg.Error) as cause:
            raise StartupError(f"The backup could not be made, nothing was written: {cause}") from cause
        return manifest

    def _pack(self, draft: Path) -> Manifest:
        facts: dict[str, Any] = {}
        expected_digests: dict[str, bytes] = {}
        digests: dict[str, str] = {}
        with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                if self.database_url is not None:
                    dump = draft.with_name(DUMP)
                    facts, expected_digests = self._dump(self.database_url, dump)
                    with dump.open("rb") as content:
                        _add(tar, digests, DUMP, content)
                self.report(f"copying the keys and the archive: {len(expected_digests)} archived memories")
                for path in _files(self.home.secrets):
                    _add(tar, digests, f"secrets/{path.name}", BytesIO(path.read_bytes()))
                for path in _files(self.home.archive) if self.decrypt is not None else ():
                    key = path.relative_to(self.home.archive).as_posix()
                    with suppress(FileNotFoundError):
                        data = path.read_bytes()
                        _add(tar, digests, f"archive/{key}", BytesIO(data))
                        if self._plaintext_digest(key, data) == expected_digests.get(key):
                            del expected_digests[key]
                manifest = Manifest(
                    **facts,
                    created_at=datetime.now(UTC),
                    left_out=[*self.left_out],
                    sha256=dict(digests),
                    unreadable_copies=sorted(expected_digests) if self.decrypt is not None else [],
                )
                _add(tar, digests, MANIFEST, BytesIO(manifest.model_dump_json(indent=1).encode()))
            file.flush()
            os.fsync(file.fileno())
        return manifest

    def _dump(self, url: str, dump: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
        with psycopg.connect(url, row_factory=dict_row, connect_timeout=CONNECT_SECONDS) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            facts, counts = _row(connection, "backup_snapshot"), _row(connection, "backup_counts")
            expected_digests = {
                row["object_key"]: bytes(row["sha256"]) for row in connection.execute(query("backup_copies"))
            }
            self.report(f"dumping the database: {counts['memories']} memories")
            _run(
                self.home,
                url,
                "pg_dump",
                "-Fc",
                "--exclude-extension=vector",
                LOCK_TIMEOUT,
                f"--snapshot={facts['snapshot']}",
                f"--file={dump}",
            )
        return {**facts, **counts}, expected_digests

    def _plaintext_digest(self, key: str, data: bytes) -> bytes | None:
        """None without an archive; empty if the object cannot be decrypted."""
        with suppress(Conflict):
            return hashlib.sha256(self.decrypt(key, data)).digest() if self.decrypt is not None else None
        return b""


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _add(tar: tarfile.TarFile, digests: dict[str, str], name: str, content: BytesIO | BufferedReader) -> None:
    digests[name] = hashlib.file_digest(content, "sha256").hexdigest()
    member = tarfile.TarInfo(name)
    member.size, member.mode = content.seek(0, os.SEEK_END), 0o600
    content.seek(0)
    tar.addfile(member, content)


async def restore_backup(source: Path, home: Home, *, force: bool, report: ProgressReport) -> Manifest:
    """Restores into an empty data directory. Raises StartupError.

    With `force`, replaces existing data once the backup is loaded, and keeps it in `replaced-*`.
    """
    home.directory(home.run)
    lock = ServerLock(home)
    lock.acquire()
    try:
        with home.startup_errors():
            old = [
                place
                for place in (home.postgres_data, home.redis_data, home.archive, home.secrets)
                if place.is_dir() and any(place.iterdir())
            ]
            if old and not force:
                raise StartupError(
                    f"{home.path} contains data ({', '.join(place.name for place in old)}): set "
                    "AGENTCORE_HOME to an empty directory, or move the data aside with --force."
                )
            # Only now: a staging directory marks an interrupted restore, and keeps a service from creating a database.
            for leftover in home.path.glob("restore-*"):
                shutil.rmtree(leftover)
            staging = Home(home.directory(home.path / f"restore-{secrets.token_hex(4)}"))
            try:
                return await _restore(source, home, staging, old, report)
            finally:
                shutil.rmtree(staging.path, ignore_errors=True)
    finally:
        lock.release()


async def _restore(source: Path, home: Home, staging: Home, old: Sequence[Path], report: ProgressReport) -> Manifest:
    report("unpacking and checking the backup")
    manifest = await asyncio.to_thread(_unpack, source, staging)
    if DUMP in manifest.sha256:
        await asyncio.to_thread(grant_access, home, choose_account(home))
        report(f"restoring the database: {manifest.memories} memories, then its indexes")
        await _load(source, manifest, staging, report)
    os.sync()
    aside = home.path / f"replaced-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    for place in old:
        place.rename(home.directory(aside) / place.name)
    # The database last: while the staging directory exists, a service does not create a new database.
    for name in ("archive", "secrets", "postgres"):
        if (staging.path / name).exists():
            (staging.path / name).rename(home.path / name)
    sync_directory(home.path)
    if old:
        report(f"the previous data was moved to {aside}: delete it when it is no longer needed")
    return manifest


def _unpack(source: Path, staging: Home) -> Manifest:
    digests: dict[str, str] = {}
    try:
        with tarfile.open(source, "r:") as tar:
            for member in tar:
                digests[member.name] = _extract(tar, member, staging)
        digests.pop(MANIFEST, None)
        manifest = Manifest.model_validate_json((staging.run / MANIFEST).read_bytes())
    except (OSError, tarfile.TarError, ValidationError) as cause:
        raise StartupError(f"{source} cannot be read as a backup: {cause}") from cause
    if manifest.format != FORMAT or manifest.sha256 != digests:
        raise StartupError(f"{source} is no backup, damaged, or of a newer agentcore; nothing was changed.")
    return manifest


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, staging: Home) -> str:
    top, content = member.name.partition("/")[0], tar.extractfile(member)
    path = (staging.run if top in (DUMP, MANIFEST) else staging.path) / member.name
    if content is None or ".." in path.parts or top not in ("archive", "secrets", DUMP, MANIFEST):
        raise tarfile.TarError(f"{member.name} is not part of a backup")
    for folder in [each for each in reversed(path.parents) if each.is_relative_to(staging.path)]:
        staging.directory(folder)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
        shutil.copyfileobj(content, file)
        staging.hand_over(file.fileno())
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _load(source: Path, manifest: Manifest, staging: Home, report: ProgressReport) -> None:
    async with EmbeddedParts(staging, postgres=True, redis=False, log=report) as parts:
        url = str(parts.urls.database_url)
        await asyncio.to_thread(
            _run, staging, url, "pg_restore", "--no-owner", "--exit-on-error", str(staging.run / DUMP)
        )
        await asyncio.to_thread(migration.upgrade, url)
        try:
            counts = await asyncio.to_thread(_analyze, url)
        except psycopg.Error as cause:
            raise StartupError(f"{source} could not be restored; nothing was changed: {cause}") from cause
        if counts != {"memories": manifest.memories, "archived": manifest.archived}:
            raise StartupError(f"{source} did not restore all memories; nothing was changed.")


def _analyze(url: str) -> DictRow:
    with psycopg.connect(url, row_factory=dict_row, connect_timeout=CONNECT_SECONDS) as connection:
        connection.execute(query("backup_analyze"))
        return _row(connection, "backup_counts")


def _run(home: Home, url: str, program: str, *arguments: str) -> None:
    fields = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    password, account = fields.pop("password", ""), current_account()
    path = find_postgres(home, account) / program
    done = run_once(
        [path, *arguments, f"--dbname={make_conninfo(**fields)}"],
        directory=home.path,
        account=account,
        password=password,
    )
    if done.returncode != 0:
        raise StartupError(f"{program} failed: {done.stderr.strip()}")


def _row(connection: psycopg.Connection[DictRow], name: str) -> DictRow:
    return connection.execute(query(name)).fetchone() or {}
