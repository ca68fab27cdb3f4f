"""The archive: a pruned memory's copy in object storage, whole, compressed, checked by reading back."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from pgvector import HalfVector

from agentcore.errors import DependencyUnavailable, NotFound
from agentcore.memory.keys import encode_segment

ARCHIVES: Mapping[str, str] = {
    "directory": "agentcore.memory.archival:DirectoryArchive",
    "s3": "agentcore.providers.s3_archive:S3Archive",
}


READS_AT_ONCE = 8
WRITING_THREADS = 4


@dataclass(frozen=True)
class ArchivedObject:
    """Where a copy is and how to know it is whole."""

    object_key: str
    sha256: bytes
    size_bytes: int


class Archive(Protocol):
    """Somewhere bytes are kept by key. Raises DependencyUnavailable; `read` raises NotFound."""

    name: str

    async def write(self, objects: Mapping[str, bytes]) -> None:
        """Keep the bytes under their keys; they last when this returns."""

    async def read(self, key: str) -> bytes: ...

    async def check(self) -> None: ...


def object_key(agent_id: str, memory_id: UUID) -> str:
    """`{agent_id}/{memory_id}.json`, the agent encoded so that it cannot leave its folder."""
    return f"{encode_segment(agent_id)}/{memory_id}.json"


async def archive_memories(
    archive: Archive, agent_id: str, rows: Sequence[Mapping[str, Any]]
) -> list[ArchivedObject]:
    """Write memories' copies, read them back and compare; only then may the rows go. In the rows' order."""
    objects = await asyncio.to_thread(_packed, agent_id, rows)
    await archive.write(objects)
    slots = asyncio.Semaphore(READS_AT_ONCE)

    async def verified(key: str, data: bytes) -> ArchivedObject:
        async with slots:
            kept = await archive.read(key)
        if kept != data:
            raise DependencyUnavailable(
                "The archive gave back other bytes than were written; nothing of these was pruned."
            )
        return ArchivedObject(key, hashlib.sha256(data).digest(), len(data))

    return list(await asyncio.gather(*(verified(key, data) for key, data in objects.items())))


def _packed(agent_id: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    return {
        object_key(agent_id, row["memory_id"]): gzip.compress(
            json.dumps(_own(row), default=_as_json, ensure_ascii=False).encode(), compresslevel=6, mtime=0
        )
        for row in rows
    }


def _own(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a re-embedding under way put beside the memory's vector."""
    return {name: value for name, value in row.items() if not name.startswith("next_embedding")}


def _as_json(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, HalfVector):
        return value.to_list()
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no form in the archive")


class DirectoryArchive:
    """Files below one directory, written beside their place, synced, then moved there."""

    name = "directory"

    def __init__(self, root: Path) -> None:
        self._root = root

    async def write(self, objects: Mapping[str, bytes]) -> None:
        """Keep the bytes under their keys; they are on disk when this returns."""
        pairs = [(self._root / key, data) for key, data in objects.items()]
        folders = sorted({path.parent for path, _ in pairs})
        await self._in_thread(_make_folders, folders)
        await asyncio.gather(
            *(
                self._in_thread(_write_files, pairs[start::WRITING_THREADS])
                for start in range(min(WRITING_THREADS, len(pairs)))
            )
        )
        await self._in_thread(_sync_folders, [*folders, self._root])

    async def read(self, key: str) -> bytes:
        """The bytes under the key."""
        return bytes(await self._in_thread((self._root / key).read_bytes))

    async def check(self) -> None:
        """Raise DependencyUnavailable unless the directory can be written."""
        await self._in_thread(self._check)

    async def _in_thread(self, work: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(work, *arguments)
        except FileNotFoundError as cause:
            raise NotFound("The archive holds no such memory.") from cause
        except OSError as cause:
            raise DependencyUnavailable(f"The archive directory cannot be used: {cause.strerror}.") from cause

    def _check(self) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._root):
            pass


def _make_folders(paths: Iterable[Path]) -> None:
    for path in paths:
        path.mkdir(parents=True, exist_ok=True)


def _write_files(pairs: Iterable[tuple[Path, bytes]]) -> None:
    for path, data in pairs:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _sync_folders(paths: Iterable[Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
