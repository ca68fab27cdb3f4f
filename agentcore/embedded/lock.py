"""One server a home: a lock that the kernel frees when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from agentcore.embedded.home import Home
from agentcore.errors import StartupError

# `attach` takes the lock for an instant to see whether it is held; a starting server waits that out.
PATIENCE_SECONDS = 0.3


class ServerLock:
    """The right to run the parts of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.run / "server.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises StartupError that names the other server, where there is one."""
        with self._home.explained():
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            self._home.hand_over(descriptor)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not _locked(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                holder = os.pread(descriptor, 32, 0).decode().strip() or "unknown"
                os.close(descriptor)
                raise StartupError(
                    f"Another agentcore server (pid {holder}) already serves {self._home.path}; "
                    "stop it or set AGENTCORE_HOME to another directory.")
            time.sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """The file stays: whoever removed it could free a lock another server has just taken."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def held_by_a_server(self) -> bool:
        """Whether a living server holds the lock; its home must be readable."""
        with self._home.explained():
            try:
                descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW)
            except FileNotFoundError:
                return False
            try:
                return not _locked(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False
