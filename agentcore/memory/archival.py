"""The archive: compressed copies of pruned memories in object storage."""

from __future__ import annotations

import asyncio
import base64
import errno
import gzip
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol
from uuid import UUID, uuid4

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pgvector import HalfVector

from agentcore.circuit_breaker import CircuitBreaker, CircuitOpen
from agentcore.errors import Conflict, DependencyUnavailable, DiskFull, NotFound, Unreachable
from agentcore.failpoints import failpoint
from agentcore.memory.keys import encode_segment
from agentcore.memory.models import JsonObject
from agentcore.structured_settings import Keyring

ARCHIVES: Mapping[str, str] = {
    "directory": "agentcore.memory.archival:DirectoryArchive",
    "s3": "agentcore.providers.s3_archive:S3Archive",
}


READS_AT_ONCE = 8
WRITING_THREADS = 4
# Threads that can hang: a file system call cannot be interrupted.
MAX_THREADS = 8
TIMEOUT_SECONDS = 30.0
PROBE_INTERVAL_SECONDS = 15.0
HALF_FLOATS = "<f2"
# Identifies the archive. No agent's folder can have this name: encoded ids contain no dot.
ID_KEY = "archive.id"
ONE_ARCHIVE = (
    "Servers of one database need one archive: set MEMORY_ARCHIVAL_S3_BUCKET on each, or mount one directory "
    "at <home>/archive of each. Copy the other archives' objects into it, without archive.id, then run "
    "`agentcore archive verify --adopt`."
)
ARCHIVE_IS_OFF = "They can be neither restored nor erased: set MEMORY_ARCHIVAL_ENABLED=true."
_DRAFT = ".draft"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True)
class ArchivedObject:
    object_key: str
    sha256: bytes
    size_bytes: int


class Archive(Protocol):
    """Object storage: bytes by key. Methods raise DependencyUnavailable; `read` raises NotFound."""

    name: str

    async def write(self, objects: Mapping[str, bytes]) -> None: ...

    async def write_once(self, key: str, data: bytes) -> None:
        """Of several writers exactly one succeeds; the others change nothing."""

    async def read(self, key: str) -> bytes: ...

    async def delete(self, keys: Collection[str]) -> None:
        """Includes drafts left by a crash; ignores missing objects."""

    async def keys(self, prefix: str) -> list[str]: ...

    async def check(self) -> None: ...


async def all_ended(calls: Iterable[Awaitable[None]]) -> None:
    """Awaits all calls before it raises: no write continues while the caller cleans up."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def object_key(agent_id: str, memory_id: UUID) -> str:
    """Returns `{agent_id}/{memory_id}.json`, with the agent id encoded."""
    return f"{encode_segment(agent_id, caseless=True)}/{memory_id}.json"


async def archive_id(archive: Archive) -> UUID:
    """Returns the id stored in the archive; creates it on first use.

    Read on every call: if a volume is unmounted, the same directory is another archive.
    """
    stored = await stored_id(archive)
    if stored is not None:
        return stored
    await archive.write_once(ID_KEY, str(uuid4()).encode())
    stored = await stored_id(archive)
    if stored is None:
        raise DependencyUnavailable("The archive does not return the object that was written to it.")
    return stored


async def stored_id(archive: Archive) -> UUID | None:
    """Returns None for an archive that was never used. Raises DependencyUnavailable."""
    try:
        data = await archive.read(ID_KEY)
    except NotFound:
        return None
    try:
        return UUID(data.decode())
    except ValueError as cause:
        raise DependencyUnavailable(
            f"The archive's object {ID_KEY} contains no UUID: restore it from a backup of the archive."
        ) from cause


async def archive_memories(archive: Archive, agent_id: str, rows: Sequence[Mapping[str, Any]]) -> list[ArchivedObject]:
    """Writes copies and verifies them by reading them back; returns them in the rows' order.

    Only after this may the rows be deleted.
    """
    objects = await asyncio.to_thread(_packed, agent_id, rows)
    await archive.write(objects)
    failpoint("archive.written")
    slots = asyncio.Semaphore(READS_AT_ONCE)

    async def verified(key: str, data: bytes) -> ArchivedObject:
        async with slots:
            kept = await archive.read(key)
        if kept != data:
            raise DependencyUnavailable(
                "The archive gave back other bytes than were written; nothing of these was pruned."
            )
        return ArchivedObject(key, hashlib.sha256(data).digest(), len(data))

    kept = list(await asyncio.gather(*(verified(key, data) for key, data in objects.items())))
    failpoint("archive.read_back")
    return kept


async def read_copies(
    archive: Archive, kept: Mapping[UUID, ArchivedObject]
) -> tuple[dict[UUID, JsonObject], dict[UUID, NotFound | Conflict]]:
    """Returns the readable copies, and the error of each other one. Raises DependencyUnavailable."""
    slots = asyncio.Semaphore(READS_AT_ONCE)

    async def copy(memory_id: UUID, each: ArchivedObject) -> JsonObject | NotFound | Conflict:
        async with slots:
            try:
                return await read_copy(archive, memory_id, each)
            except (NotFound, Conflict) as failure:
                return failure

    read = await asyncio.gather(*(copy(memory_id, each) for memory_id, each in kept.items()))
    results = dict(zip(kept, read, strict=True))
    copies = {each: copy for each, copy in results.items() if isinstance(copy, dict)}
    return copies, {each: error for each, error in results.items() if not isinstance(error, dict)}


async def read_copy(archive: Archive, memory_id: UUID, kept: ArchivedObject) -> JsonObject:
    """Raises NotFound for a missing copy, Conflict for a damaged one, each with its `memory_id`."""
    where = {"memory_id": str(memory_id)}
    try:
        data = await archive.read(kept.object_key)
    except NotFound as cause:
        raise NotFound(f"The copy of memory {memory_id} is gone from the archive.", data=where) from cause
    except Conflict as cause:
        raise Conflict(f"Memory {memory_id}: {cause.message}", data=where) from cause
    return await asyncio.to_thread(_unpacked, memory_id, data, kept)


def _unpacked(memory_id: UUID, data: bytes, kept: ArchivedObject) -> JsonObject:
    if hashlib.sha256(data).digest() != kept.sha256:
        raise Conflict(
            f"The copy of memory {memory_id} is not the one that was archived: its SHA-256 is another.",
            data={"memory_id": str(memory_id)},
        )
    return _loaded(data)


def _loaded(data: bytes) -> JsonObject:
    copy: JsonObject = json.loads(gzip.decompress(data))
    return copy


def _packed(agent_id: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    packed = {}
    for row in rows:
        copy = {name: value for name, value in row.items() if not name.startswith("next_embedding")}
        text = json.dumps(copy, default=_as_json, ensure_ascii=False)
        packed[object_key(agent_id, row["memory_id"])] = gzip.compress(text.encode(), compresslevel=6, mtime=0)
    return packed


async def read_stray(archive: Archive, key: str) -> JsonObject | None:
    """Returns a copy without a tombstone; None if it cannot be decoded. Raises NotFound."""
    try:
        return await asyncio.to_thread(_loaded, await archive.read(key))
    except (Conflict, ValueError, OSError, EOFError, zlib.error):
        return None


def memory_of(key: str) -> UUID | None:
    """Returns the memory id in an object key; None for another key."""
    name = key.rpartition("/")[2]
    try:
        return UUID(name.removesuffix(".json")) if name.endswith(".json") else None
    except ValueError:
        return None


def vector_of(copy: Mapping[str, Any]) -> HalfVector | None:
    kept = copy["embedding"]
    return None if kept is None else HalfVector(np.frombuffer(base64.b64decode(kept), HALF_FLOATS))


def _as_json(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, HalfVector):
        # Written as decimals the vector would double the size of the compressed copy.
        return base64.b64encode(value.to_numpy().astype(HALF_FLOATS).tobytes()).decode()
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    raise TypeError(f"{type(value).__name__} has no form in the archive")


class DirectoryArchive:
    """Files below one directory, each written to a draft, synced, then renamed.

    A call that times out raises Unreachable and opens the circuit. Its thread stops before its next file; until it
    has ended, no write or deletion starts, which it could undo.
    """

    name = "directory"

    def __init__(self, root: Path, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._root = root
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(MAX_THREADS)
        self._abandoned_changes: set[asyncio.Future[Any]] = set()
        self.circuit = CircuitBreaker("archive", "nothing is pruned or restored", PROBE_INTERVAL_SECONDS)

    async def write(self, objects: Mapping[str, bytes]) -> None:
        pairs = [(self._root / key, data) for key, data in objects.items()]
        folders = sorted({path.parent for path, _ in pairs})
        await self._call(lambda _: _make_folders(folders))
        shares = (pairs[start::WRITING_THREADS] for start in range(min(WRITING_THREADS, len(pairs))))
        await all_ended(self._call(partial(_write_files, share), changes=True) for share in shares)
        await self._call(lambda _: _sync_folders([*folders, self._root]))

    async def write_once(self, key: str, data: bytes) -> None:
        await self._call(lambda _: _write_once(self._root / key, data))

    async def read(self, key: str) -> bytes:
        return bytes(await self._call(lambda _: (self._root / key).read_bytes()))

    async def delete(self, keys: Collection[str]) -> None:
        await self._call(partial(_delete_files, [self._root / key for key in keys]), changes=True)

    async def keys(self, prefix: str) -> list[str]:
        """Returns the keys of a folder; a draft left by a crash counts as its (unreadable) object."""
        return [f"{prefix}{name}" for name in await self._call(lambda _: _names_in(self._root / prefix))]

    async def check(self) -> None:
        await self._call(self._check, force=True)

    async def _call(self, work: Callable[[Event], Any], *, changes: bool = False, force: bool = False) -> Any:
        try:
            with self.circuit.guard(Unreachable, answers=(OSError,), force=force):
                return await self._in_thread(work, changes=changes)
        except CircuitOpen as cause:
            raise Unreachable("The archive directory does not answer.") from cause
        except FileNotFoundError as cause:
            raise NotFound("The archive holds no such memory.") from cause
        except OSError as cause:
            if cause.errno in FULL:
                raise DiskFull("The archive's disk is full: free space, or make it larger.") from cause
            raise DependencyUnavailable(f"The archive directory cannot be used: {cause.strerror}.") from cause

    async def _in_thread(self, work: Callable[[Event], Any], *, changes: bool) -> Any:
        abandoned, ended = Event(), None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                if changes and self._abandoned_changes:
                    await asyncio.wait(self._abandoned_changes)
                await self._slots.acquire()
                ended = _started(lambda: work(abandoned))
                ended.add_done_callback(lambda _: self._slots.release())
                return await asyncio.shield(ended)
        except TimeoutError as cause:
            raise Unreachable("The archive directory does not answer.") from cause
        finally:
            if ended is not None and not ended.done():
                abandoned.set()
                if changes:
                    self._abandoned_changes.add(ended)
                    ended.add_done_callback(self._abandoned_changes.discard)

    def _check(self, _: Event) -> None:
        _make_folders([self._root])
        with tempfile.TemporaryFile(dir=self._root, buffering=0) as file:
            file.write(b"1")
            os.fsync(file.fileno())


def _started(work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Starts a daemon thread, which does not delay shutdown while it hangs, as an executor does."""
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, name="archive", daemon=True).start()
    return asyncio.wrap_future(outcome)


def _make_folders(paths: Iterable[Path]) -> None:
    for path in paths:
        # `parents=True` alone would create the root with the umask's mode.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def _write_file(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _write_once(path: Path, data: bytes) -> None:
    _make_folders([path.parent])
    draft = path.with_name(f".{path.name}.{uuid4()}")
    try:
        _write_file(draft, data)
        # Unlike a rename, a link never overwrites the object of another writer.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folders([path.parent])


def _write_files(pairs: Iterable[tuple[Path, bytes]], abandoned: Event) -> None:
    for path, data in pairs:
        # The draft's name is fixed: a retry overwrites the draft that a crash left.
        draft = _draft_of(path)
        try:
            _write_file(draft, data)
            failpoint("archive.drafted")
            if abandoned.is_set():
                return
            draft.replace(path)
            failpoint("archive.placed")
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}{_DRAFT}")


def _delete_files(paths: Iterable[Path], abandoned: Event) -> None:
    folders = set()
    for path in paths:
        if abandoned.is_set():
            return
        for each in (path, _draft_of(path)):
            each.unlink(missing_ok=True)
        folders.add(path.parent)
    _sync_folders(folder for folder in folders if folder.is_dir())


def _names_in(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    names = {each.name for each in os.scandir(folder) if each.is_file()}
    drafts = {name for name in names if name.startswith(".") and name.endswith(_DRAFT)}
    return sorted(names - drafts | {name[1 : -len(_DRAFT)] for name in drafts})


def _sync_folders(paths: Iterable[Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


MARK = b"agentcore-sealed/1 "
NONCE_BYTES = 12


class SealedArchive:
    """Seals objects with one key, and opens them with any of the keyring.

    Objects written unsealed are read as they are: the tombstone's digest verifies them.
    """

    def __init__(self, inner: Archive, keyring: Keyring) -> None:
        self._inner = inner
        self._keyring = keyring
        self.name = inner.name
        self.circuit: CircuitBreaker | None = getattr(inner, "circuit", None)

    async def write(self, objects: Mapping[str, bytes]) -> None:
        await self._inner.write(await asyncio.to_thread(self._sealed, objects))

    async def write_once(self, key: str, data: bytes) -> None:
        # Unsealed: it identifies the archive under any keys.
        """Writes the object unless it exists, unsealed: it identifies the archive under any keys."""
        await self._inner.write_once(key, data)

    async def read(self, key: str) -> bytes:
        """Raises NotFound; Conflict if the object cannot be opened."""
        return self.opened(key, await self._inner.read(key))

    async def delete(self, keys: Collection[str]) -> None:
        await self._inner.delete(keys)

    async def keys(self, prefix: str) -> list[str]:
        return await self._inner.keys(prefix)

    async def check(self) -> None:
        await self._inner.check()

    def _sealed(self, objects: Mapping[str, bytes]) -> Mapping[str, bytes]:
        name = self._keyring.sealing_id
        if name is None:
            return objects
        cipher = AESGCM(self._keyring.keys[name])

        def sealed(key: str, data: bytes) -> bytes:
            nonce = os.urandom(NONCE_BYTES)
            return MARK + name.encode() + b"\n" + nonce + cipher.encrypt(nonce, data, key.encode())

        return {key: sealed(key, data) for key, data in objects.items()}

    def opened(self, key: str, data: bytes) -> bytes:
        """Raises Conflict."""
        if not data.startswith(MARK):
            return data
        head, _, body = data[len(MARK) :].partition(b"\n")
        name = head.decode(errors="replace")
        if name not in self._keyring.keys:
            raise Conflict(
                f"The copy is sealed with the key {name!r}, which this service does not hold: "
                "MEMORY_ARCHIVE_OPTIONS lists those it has."
            )
        try:
            cipher = AESGCM(self._keyring.keys[name])
            return cipher.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], key.encode())
        except (InvalidTag, ValueError) as cause:
            raise Conflict(f"The copy does not open with the key {name!r}: it was changed.") from cause
