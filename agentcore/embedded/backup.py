"""Backups of a home in one file: an uncompressed tar (its contents are compressed) with a checksum.

`database.dump` (pg_dump, custom format), `archive/`, `secrets/`, and last `manifest.json`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from pydantic import BaseModel, ValidationError

from agentcore import __version__, migration
from agentcore.database import query
from agentcore.embedded.account import choose_account, open_home, ourselves
from agentcore.embedded.home import Home, sync_directory
from agentcore.embedded.lock import ServerLock
from agentcore.embedded.parts import EmbeddedParts
from agentcore.embedded.process import environment
from agentcore.embedded.programs import find_postgres
from agentcore.errors import Conflict, StartupError

FORMAT = 1
MANIFEST, DUMP = "manifest.json", "database.dump"
CHUNK_BYTES = 2**20
# A copy may be written anew between the snapshot and its reading. Then another snapshot is taken.
ATTEMPTS = 3
Tell = Callable[[str], None]
Opened = Callable[[str, bytes], bytes]


class Manifest(BaseModel):
    """What a backup contains. `sha256` covers names, sizes and contents of all other members, in order."""

    format: int
    agentcore: str
    created_at: datetime
    schema_revision: str | None
    postgresql: str | None
    memories: int
    archived: int
    files: int
    sha256: str
    unreadable_copies: list[str]
    left_out: list[str]


@dataclass(frozen=True)
class Backup:
    """What to back up: the secrets of the home, the database at the URL, the archive if `opened` reads it."""

    home: Home
    database_url: str | None
    opened: Opened | None
    left_out: Sequence[str]
    tell: Tell

    def write(self, target: Path) -> Manifest:
        """Write the file whole, or not at all. Raises StartupError."""
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            before: list[str] = []
            for _ in range(ATTEMPTS):
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    manifest = self._pack(_TarWriter(file))
                    file.flush()
                    os.fsync(descriptor)
                if manifest.unreadable_copies in ([], before):
                    break
                before = manifest.unreadable_copies
            draft.replace(target)
            sync_directory(target.parent)
        except (OSError, psycopg.Error) as cause:
            raise StartupError(f"The backup could not be made, nothing was written: {cause}") from cause
        finally:
            draft.unlink(missing_ok=True)
        return manifest

    def _pack(self, tar: _TarWriter) -> Manifest:
        facts: dict[str, Any] = {"memories": 0, "archived": 0, "postgresql": None, "schema_revision": None}
        copies: dict[str, bytes] = {}
        if self.database_url is not None:
            facts["schema_revision"] = migration.current_revision(self.database_url)
            with psycopg.connect(self.database_url, row_factory=dict_row) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                found = _row(connection, "backup_snapshot")
                facts |= {"postgresql": found["postgresql"], **_row(connection, "backup_counts")}
                copies = {row["object_key"]: bytes(row["sha256"])
                          for row in connection.execute(query("backup_copies"))}
                self._dump(tar, found["snapshot"], facts["memories"])
        self.tell(f"copying the keys and the archive: {len(copies)} archived memories")
        for path in _files(self.home.secrets):
            tar.add(f"secrets/{path.name}", path.read_bytes())
        for path in _files(self.home.archive) if self.opened is not None else ():
            key = str(path.relative_to(self.home.archive))
            with suppress(FileNotFoundError):
                content = path.read_bytes()
                tar.add(f"archive/{key}", content)
                if key in copies and self._sha256(key, content) == copies[key]:
                    del copies[key]
        return tar.end(Manifest(
            **facts, format=FORMAT, agentcore=__version__, created_at=datetime.now(UTC), files=tar.files,
            sha256=tar.digest.hexdigest(), left_out=[*self.left_out],
            unreadable_copies=sorted(copies) if self.opened is not None else []))

    def _dump(self, tar: _TarWriter, snapshot: str, memories: int) -> None:
        self.tell(f"dumping the database: {memories} memories")
        dump = ["pg_dump", "-Fc", "--exclude-extension=vector", f"--snapshot={snapshot}"]
        with _postgres_program(self.home, dump, str(self.database_url)) as (_, stdout):
            tar.add_stream(DUMP, iter(lambda: stdout.read(CHUNK_BYTES), b""))

    def _sha256(self, key: str, content: bytes) -> bytes:
        with suppress(Conflict):
            return hashlib.sha256(self.opened(key, content) if self.opened else b"").digest()
        return b""


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


class _TarWriter:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.files = 0

    def add(self, name: str, content: bytes) -> None:
        self._file.write(_header(name, len(content)))
        self._append(name, [content])

    def add_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write the header last: only then the size is known."""
        start = self._file.tell()
        self._file.write(_header(name, 0))
        size = self._append(name, chunks)
        end = self._file.tell()
        self._file.seek(start)
        self._file.write(_header(name, size))
        self._file.seek(end)

    def end(self, manifest: Manifest) -> Manifest:
        content = manifest.model_dump_json(indent=2).encode()
        self.add(MANIFEST, content)
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))
        return manifest

    def _append(self, name: str, chunks: Iterable[bytes]) -> int:
        size = 0
        for chunk in _hashed(self.digest, name, chunks):
            size += self._file.write(chunk)
        self._file.write(bytes(-size % tarfile.BLOCKSIZE))
        self.files += 1
        return size


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(time.time())
    return member.tobuf(tarfile.GNU_FORMAT)


def _hashed(digest: hashlib._Hash, name: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        digest.update(chunk)
        yield chunk
    digest.update(f"\0{name}\0{size}\0".encode())


def read_manifest(source: Path) -> Manifest:
    """Read the whole backup and check it. Raises StartupError where it is damaged, or none of ours."""
    digest, names = hashlib.sha256(), []
    try:
        with _members(source) as members:
            for name, chunks in members:
                if name == MANIFEST:
                    manifest = Manifest.model_validate_json(b"".join(chunks))
                    if manifest.format == FORMAT and manifest.sha256 == digest.hexdigest():
                        return manifest
                    break
                names.append(name)
                for _ in _hashed(digest, name, chunks):
                    pass
    except (OSError, tarfile.TarError, ValidationError) as cause:
        raise StartupError(f"{source} cannot be read as a backup: {cause}") from cause
    raise StartupError(f"{source} is damaged, no backup, or made by a newer agentcore; nothing was changed.")


@contextmanager
def _members(source: Path) -> Iterator[Iterator[tuple[str, Iterator[bytes]]]]:
    with tarfile.open(source, "r:") as tar:
        yield ((member.name, _chunks(tar, member)) for member in tar)


def _chunks(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    content = tar.extractfile(member)
    while content is not None and (chunk := content.read(CHUNK_BYTES)):
        yield chunk


async def restore_backup(source: Path, home: Home, *, force: bool, tell: Tell) -> Manifest:
    """Restore into a home without data; with `force` move its data aside first. Raises StartupError."""
    tell("checking the backup")
    manifest = await asyncio.to_thread(read_manifest, source)
    home.directory(home.run)
    lock = ServerLock(home)
    lock.acquire()
    try:
        with home.explained():
            await _restore(source, manifest, home, force, tell)
    finally:
        lock.release()
    return manifest


async def _restore(source: Path, manifest: Manifest, home: Home, force: bool, tell: Tell) -> None:
    for leftover in home.path.glob("restore-*"):
        shutil.rmtree(leftover)
    places = (home.postgres_data, home.redis_data, home.archive, home.secrets)
    old = [place for place in places if place.is_dir() and any(place.iterdir())]
    if old and not force:
        raise StartupError(f"{home.path} contains data ({', '.join(place.name for place in old)}): set "
                           "AGENTCORE_HOME to an empty directory, or move the data aside with --force.")
    draft = Home(home.directory(home.path / f"restore-{secrets.token_hex(4)}"))
    try:
        _unpack(source, draft)
        if manifest.schema_revision is not None:
            await asyncio.to_thread(open_home, home, choose_account(home))
            await _load(source, manifest, draft, tell)
        os.sync()
        aside = home.path / f"replaced-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        for place in old:
            place.rename(home.directory(aside) / place.name)
        # The database last: a service does not start without it while the draft exists.
        for name in ("archive", "secrets", "postgres"):
            if (draft.path / name).exists():
                (draft.path / name).rename(home.path / name)
        sync_directory(home.path)
        if old:
            tell(f"the earlier data is in {aside}: delete it when it is not needed any more")
    finally:
        shutil.rmtree(draft.path, ignore_errors=True)


def _unpack(source: Path, draft: Home) -> None:
    with _members(source) as members:
        for name, chunks in members:
            path = draft.path / name
            if name in (MANIFEST, DUMP):
                continue
            if ".." in path.parts or name.partition("/")[0] not in ("archive", "secrets"):
                raise StartupError(f"{source} contains {name}, which is no part of a backup.")
            for folder in reversed([each for each in path.parents if each.is_relative_to(draft.path)]):
                draft.directory(folder)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.writelines(chunks)
                draft.hand_over(file.fileno())


async def _load(source: Path, manifest: Manifest, draft: Home, tell: Tell) -> None:
    """Restore the dump into a new database cluster of the draft, and check it."""
    async with EmbeddedParts(draft, postgres=True, redis=False, log=tell) as parts:
        url = parts.urls.database_url
        if url is None:
            raise StartupError("PostgreSQL was not started.")
        tell(f"restoring the database: {manifest.memories} memories, then its indexes")
        await asyncio.to_thread(_restore_dump, source, draft, url)
        await asyncio.to_thread(migration.upgrade, url)
        with psycopg.connect(url, row_factory=dict_row) as connection:
            connection.execute(query("backup_analyze"))
            if _row(connection, "backup_counts") != {
                    "memories": manifest.memories, "archived": manifest.archived}:
                raise StartupError(f"{source} did not restore all memories; nothing was changed.")


def _restore_dump(source: Path, draft: Home, url: str) -> None:
    restore = ["pg_restore", "--no-owner", "--exit-on-error"]
    with _members(source) as members, _postgres_program(draft, restore, url) as (stdin, _):
        for name, chunks in members:
            if name == DUMP:
                stdin.writelines(chunks)
                break


@contextmanager
def _postgres_program(home: Home, command: Sequence[str], url: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Run a program of PostgreSQL; yields its stdin and stdout. Others could see a password in arguments."""
    fields = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    password = fields.pop("password", "")
    program = find_postgres(home, ourselves()).directory / command[0]
    with tempfile.TemporaryFile() as said:
        running = subprocess.Popen(  # noqa: S603 - a program of our own package
            [str(program), *command[1:], f"--dbname={make_conninfo(**fields)}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
            env={**environment(), "PGPASSWORD": password})
        with suppress(BrokenPipeError), running:
            yield cast(IO[bytes], running.stdin), cast(IO[bytes], running.stdout)
        if running.wait() != 0:
            said.seek(0)
            raise StartupError(f"{command[0]} failed: {said.read().decode(errors='replace').strip()}")


def _row(connection: psycopg.Connection[DictRow], name: str) -> DictRow:
    return connection.execute(query(name)).fetchone() or {}
