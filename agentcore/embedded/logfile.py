"""A part's log file: bounded in size, and what its last lines say when the part fails."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from io import FileIO

from agentcore.embedded.home import Home

LARGEST_BYTES = 4 * 2**20
TAIL_LINES = 12


class LogFile:
    """`<home>/log/<part>.log`, with one older file beside it."""

    def __init__(self, home: Home, part: str) -> None:
        self._home = home
        self._part = part
        self._start = 0
        self.path = home.log / f"{part}.log"

    def open(self) -> FileIO:
        """The file to append to; what stands in it from here on is this start's."""
        self._home.directory(self._home.log)
        with self._home.explained():
            self.trim()
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            self._home.hand_over(descriptor)
            self._start = self.size()
            return FileIO(descriptor, "a")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def trim(self) -> None:
        """Begin anew past the limit. Copied and cut, not renamed: the part holds the file open."""
        if self.size() > LARGEST_BYTES:
            # A full disk has no room for the copy; then above all the log must not grow on.
            with suppress(OSError):
                shutil.copy2(self.path, self.path.with_suffix(".log.1"))
            with suppress(FileNotFoundError):
                os.truncate(self.path, 0)
            self._start = 0

    def tail(self) -> str:
        """The last lines since the part was started."""
        with self.path.open("rb") as file:
            file.seek(self._start)
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def failure(self, what: str) -> str:
        """The sentence of a StartupError, with the log's last words."""
        return f"The embedded {self._part} server {what}; the end of {self.path}:\n{with_mend(self.tail())}"


def with_mend(words: str) -> str:
    """A program's last words, and what to do where they tell of a full disk."""
    if "No space left on device" not in words:
        return words
    return f"{words}\nThe disk is full: free some space, or set AGENTCORE_HOME to one on another disk."
