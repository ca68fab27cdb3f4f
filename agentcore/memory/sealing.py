"""Encrypts archived copies with AES-256-GCM; keys can be rotated.

An object is `agentcore-sealed/1 <key id>`, a line feed, a nonce of 12 bytes, and the ciphertext with its tag.
Its key is the associated data, so that no object can replace another.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agentcore.archive_options import Keyring
from agentcore.circuit_breaker import CircuitBreaker
from agentcore.errors import Conflict
from agentcore.memory.archival import Archive

MARK = b"agentcore-sealed/1 "
NONCE_BYTES = 12


class SealedArchive:
    """An archive that encrypts objects with one key and decrypts them with any key of the keyring.

    Objects written without encryption are returned unchanged: the tombstone's digest verifies them.
    """

    def __init__(self, inner: Archive, keyring: Keyring) -> None:
        self._inner = inner
        self._keyring = keyring
        self.name = inner.name
        self.circuit: CircuitBreaker | None = getattr(inner, "circuit", None)

    async def write(self, objects: Mapping[str, bytes]) -> None:
        await self._inner.write(await asyncio.to_thread(self._sealed, objects))

    async def write_once(self, key: str, data: bytes) -> None:
        """Writes an object unless it exists, unencrypted: the archive's id must not depend on keys."""
        await self._inner.write_once(key, data)

    async def read(self, key: str) -> bytes:
        """Returns the decrypted object. Raises NotFound; Conflict if it cannot be decrypted."""
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
        """Returns the decrypted bytes of an object. Raises Conflict."""
        if not data.startswith(MARK):
            return data
        head, _, body = data[len(MARK) :].partition(b"\n")
        name = head.decode(errors="replace")
        if name not in self._keyring.keys:
            raise Conflict(
                f"The copy is sealed with the key {name!r}, which this service does not hold: "
                "MEMORY_ARCHIVE_OPTIONS lists those it has.")
        try:
            cipher = AESGCM(self._keyring.keys[name])
            return cipher.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], key.encode())
        except (InvalidTag, ValueError) as cause:
            raise Conflict(f"The copy does not open with the key {name!r}: it was changed.") from cause
