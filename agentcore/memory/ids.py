"""Ids of memories, made here."""

from __future__ import annotations

import secrets
import time
from threading import Lock
from uuid import UUID


class _Mint:
    """Creates UUIDv7 (RFC 9562) that rise within this process, so a batch keeps its order."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = Lock()

    def __call__(self) -> UUID:
        now = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 74
        with self._lock:
            self._last = max(now | secrets.randbits(74), self._last + 1 + secrets.randbits(32))
            bits = self._last
        head, tail = bits >> 62, bits & (1 << 62) - 1
        return UUID(int=head >> 12 << 80 | 0x7 << 76 | (head & 0xFFF) << 64 | 0b10 << 62 | tail)


mint_memory_id = _Mint()
