"""The archive: a pruned memory's copy in object storage, whole, compressed, checked by reading back."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
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


@dataclass(frozen=True)
class ArchivedObject:
    """Where a copy is and how to know it is whole."""

    object_key: str
    sha256: bytes
    size_bytes: int


class Archive(Protocol):
    """Somewhere bytes are kept by key. Raises DependencyUnavailable; `read` raises NotFound."""

    name: str

    async def write(self, key: str, data: bytes) -> None: ...

    async def read(self, key: str) -> bytes: ...

    async def check(self) -> None: ...


def object_key(agent_id: str, memory_id: UUID) -> str:
    """`{agent_id}/{memory_id}.json`, the agent encoded so that it cannot leave its folder."""
    return f"{encode_segment(agent_id)}/{memory_id}.json"


async def archive_memory(archive: Archive, agent_id: str, row: Mapping[str, Any]) -> ArchivedObject:
    """Write a memory's copy, read it back and compare; only then may the row go."""
    key = object_key(agent_id, row["memory_id"])
    data = gzip.compress(json.dumps(row, default=_as_json, ensure_ascii=False).encode(), mtime=0)
    await archive.write(key, data)
    digest = hashlib.sha256(data).digest()
    if hashlib.sha256(await archive.read(key)).digest() != digest:
        raise DependencyUnavailable(
            "The archive gave back other bytes than were written; nothing was pruned."
        )
    return ArchivedObject(key, digest, len(data))


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

    async def write(self, key: str, data: bytes) -> None:
        """Keep the bytes under the key; they are on disk when this returns."""
        await self._in_thread(self._write, key, data)

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

    def _write(self, key: str, data: bytes) -> None:
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
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
        for directory in (path.parent, self._root):
            _sync_directory(directory)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
