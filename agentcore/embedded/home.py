"""The data directory: its layout, secrets and ownership, and the lock of its server."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path

import platformdirs

from agentcore.errors import StartupError

SECRET_BYTES = 32
ROOT_HOME = Path("/var/lib/agentcore")
PLACES = ("run", "log", "secrets", "postgres", "redis", "archive", "cache", "programs", "restore", "replaced")


def default_home() -> Path:
    """Returns the platform's user data directory; for root /var/lib/agentcore.

    PostgreSQL refuses to run as root, and the system user that runs it cannot enter root's home.
    """
    if os.geteuid() == 0:
        return ROOT_HOME
    return Path(platformdirs.user_data_dir("agentcore", appauthor=False))


@dataclass(frozen=True)
class Home:
    """One data directory. Creating the object does no I/O on it."""

    path: Path
    # Valid only while a server runs: its lock, its URLs, the sockets.
    run: Path = field(init=False)
    log: Path = field(init=False)
    secrets: Path = field(init=False)
    postgres_data: Path = field(init=False)
    redis_data: Path = field(init=False)
    archive: Path = field(init=False)
    cache: Path = field(init=False)
    # Copies of the servers' programs, for a user without access to the installed ones.
    programs: Path = field(init=False)

    def __post_init__(self) -> None:
        home = Path(self.path).expanduser().resolve()
        object.__setattr__(self, "path", home)
        for each in fields(self)[1:]:
            object.__setattr__(self, each.name, home / each.name.removesuffix("_data"))

    def secret(self, name: str) -> str:
        """Returns the secret of that name, 64 hexadecimal digits; the first call creates it (mode 0600)."""
        kept = self.secrets / name
        with self.explained():
            with suppress(FileNotFoundError):
                return kept.read_text().strip()
            self.directory(self.secrets)
            self._keep_once(kept, secrets.token_hex(SECRET_BYTES))
            return kept.read_text().strip()

    def _keep_once(self, kept: Path, text: str) -> None:
        draft = kept.with_name(f".{kept.name}.{secrets.token_hex(8)}")
        self._write_new(draft, text)
        # A link, not a rename: if two processes create the same secret, the first one's is kept.
        with suppress(FileExistsError):
            os.link(draft, kept)
        draft.unlink()

    def write(self, path: Path, text: str) -> None:
        """Writes a file atomically, with mode 0600."""
        with self.explained():
            draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            try:
                self._write_new(draft, text)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)

    def append(self, path: Path, line: str) -> None:
        """Appends a line to a file, which is created with mode 0600."""
        with self.explained():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{line}\n")
                self.hand_over(descriptor)

    def _write_new(self, path: Path, text: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
            self.hand_over(descriptor)

    def directory(self, path: Path) -> Path:
        """Creates a directory of the home, and the home itself, with mode 0700; keeps an existing one."""
        with self.explained():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                self.hand_over(path)
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return path

    def foreign(self) -> list[str]:
        """Returns names that the service did not create: the directory may have another use too."""
        ours = re.compile(rf"({'|'.join(PLACES)})([.-].*)?|lost\+found")
        return sorted(each.name for each in self.path.iterdir() if ours.fullmatch(each.name) is None)

    def hand_over(self, made: Path | int) -> None:
        """Under root, passes ownership to the home's owner, who could not start the service otherwise."""
        if os.geteuid() == 0:
            owner = self.path.stat()
            os.chown(made, owner.st_uid, owner.st_gid)

    def require_space(self, needed_bytes: int) -> None:
        """Raises StartupError if the home's disk has less free space."""
        with self.explained():
            free = shutil.disk_usage(self.path).free
        if free < needed_bytes:
            raise StartupError(
                f"The disk that holds {self.path} has {free // 2**20} MB free, {needed_bytes // 2**20} MB "
                "are needed: free some space, or set AGENTCORE_HOME to a directory on another disk.")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Converts OSError to a StartupError with a fix."""
        try:
            yield
        except OSError as cause:
            raise StartupError(self._mend(cause)) from cause

    def _mend(self, cause: OSError) -> str:
        where = cause.filename if cause.filename is not None else self.path
        match cause.errno:
            case errno.ENOSPC | errno.EDQUOT:
                return (f"The disk that holds {self.path} is full: free some space, or set AGENTCORE_HOME to "
                        "a directory on another disk.")
            case errno.EACCES | errno.EPERM | errno.EROFS:
                return (f"{where} is not open to user {os.geteuid()} ({cause.strerror}): run as the user who "
                        f"owns {self.path}, or set AGENTCORE_HOME to a directory of your own.")
            case errno.ENOTDIR | errno.EEXIST:
                return (f"{where} stands where the service needs a directory: move it away, or set "
                        "AGENTCORE_HOME to another directory.")
            case _:
                return f"{where} cannot be used as the service's data directory: {cause}."


def sync_directory(directory: Path) -> None:
    """Makes the entries of a directory durable (fsync)."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# `attach` locks the file for an instant to test it; a starting server retries for longer than that.
PATIENCE_SECONDS = 0.3


class ServerLock:
    """Exclusive lock of the server that runs the parts of a home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.run / "server.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquires the lock. Raises StartupError with the other server's pid if it is locked."""
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
        """Releases the lock. The file is kept: removing it could free a lock that another server acquired."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def held_by_a_server(self) -> bool:
        """Returns whether a running server has the lock. The home must be readable."""
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
