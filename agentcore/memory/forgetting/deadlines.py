"""How long a call goes on that works in chunks: what is left is the next call's."""

from __future__ import annotations

import asyncio

# Shorter than REQUEST_TIMEOUT: the caller learns what went, rather than nothing.
WRITE_DEADLINE_SECONDS = 25.0


class Deadline:
    """Whether there is time for another chunk like the longest so far; for the first there always is."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._started = self._chunk_started = self._clock()
        self._longest_seconds = 0.0
        self._chunks = 0

    def leaves_time(self) -> bool:
        """Asked before each chunk."""
        now = self._clock()
        if self._chunks:
            self._longest_seconds = max(self._longest_seconds, now - self._chunk_started)
        self._chunks += 1
        self._chunk_started = now
        spent = now - self._started + self._longest_seconds
        return self._chunks == 1 or spent < WRITE_DEADLINE_SECONDS
