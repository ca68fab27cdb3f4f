"""The data directory: its layout, secrets and ownership, and the lock of its server.

The account is the user that runs the parts: under root a system user. It has a socket directory of its own.
"""

from __future__ import annotations

import errno
import fcntl
import grp
import hashlib
import os
import pwd
import re
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from agentcore.errors import StartupError

SECRET_BYTES = 32
SECRET_LOCK_SECONDS = 10.0
ROOT_HOME = Path("/var/lib/agentcore")
# Names in the directory that the service creates, also with a suffix.
ENTRIES = ("run", "log", "secrets", "postgres", "redis", "archive", "cache", "programs", "restore", "replaced")


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).expanduser().resolve())

    @property
    def run(self) -> Path:
        """Lock files, and the URLs and sockets of a running server."""
        return self.path / "run"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets"

    @property
    def postgres_data(self) -> Path:
        return self.path / "postgres"

    @property
    def redis_data(self) -> Path:
        return self.path / "redis"

    @property
    def archive(self) -> Path:
        return self.path / "archive"

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def programs(self) -> Path:
        """Copies of the servers' programs, for a user without access to the installed ones."""
        return self.path / "programs"

    def secret(self, name: str) -> str:
        """Returns the secret of that name, 64 hexadecimal digits; the first call creates it (mode 0600)."""
        kept = self.secrets / name
        with self.startup_errors():
            with suppress(FileNotFoundError):
                return kept.read_text().strip()
            self.directory(self.secrets)
            self._keep_once(kept, secrets.token_hex(SECRET_BYTES))
            return kept.read_text().strip()

    def _keep_once(self, kept: Path, text: str) -> None:
        lock = self.directory(self.run) / "secrets.lock"
        descriptor = self.open_lock(lock)
        try:
            deadline = time.monotonic() + SECRET_LOCK_SECONDS
            while not _try_lock(descriptor, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise StartupError(f"Another process keeps {lock} locked: end it and start again.")
                time.sleep(0.02)
            # If two processes create the same secret, the first one's is kept.
            if not kept.exists():
                self.write(kept, text)
        finally:
            os.close(descriptor)

    def open_lock(self, path: Path) -> int:
        """Opens a lock file and creates it if missing. An existing file keeps its owner."""
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            self.hand_over(descriptor)
            return descriptor
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)

    def write(self, path: Path, text: str) -> None:
        """Writes a file atomically, with mode 0600."""
        with self.startup_errors():
            draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            try:
                self._write_new(draft, text)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)

    def append(self, path: Path, line: str) -> None:
        """Appends a line to a file, which is created with mode 0600."""
        with self.startup_errors():
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
        with self.startup_errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                self.hand_over(path)
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return path

    def unknown_entries(self) -> list[str]:
        """Returns names that the service did not create: the directory may have another use too."""
        ours = re.compile(rf"({'|'.join(ENTRIES)})([.-].*)?|lost\+found")
        return sorted(each.name for each in self.path.iterdir() if ours.fullmatch(each.name) is None)

    def hand_over(self, made: Path | int) -> None:
        """Under root, passes ownership to the home's owner, who could not start the service otherwise."""
        if os.geteuid() == 0:
            owner = self.path.stat()
            os.chown(made, owner.st_uid, owner.st_gid)

    def require_space(self, needed_bytes: int) -> None:
        """Raises StartupError if the home's disk has less free space."""
        with self.startup_errors():
            free = shutil.disk_usage(self.path).free
        if free < needed_bytes:
            raise StartupError(
                f"The disk that holds {self.path} has {free // 2**20} MB free, {needed_bytes // 2**20} MB "
                "are needed: free some space, or set AGENTCORE_HOME to a directory on another disk."
            )

    @contextmanager
    def startup_errors(self) -> Iterator[None]:
        """Converts OSError to StartupError with a fix."""
        try:
            yield
        except OSError as cause:
            raise StartupError(self._error_message(cause)) from cause

    def _error_message(self, cause: OSError) -> str:
        where = cause.filename if cause.filename is not None else self.path
        match cause.errno:
            case errno.ENOSPC | errno.EDQUOT:
                return (
                    f"The disk that holds {self.path} is full: free some space, or set AGENTCORE_HOME to "
                    "a directory on another disk."
                )
            case errno.EACCES | errno.EPERM | errno.EROFS:
                return (
                    f"{where} cannot be accessed by user {os.geteuid()} ({cause.strerror}): run as the user who "
                    f"owns {self.path}, or set AGENTCORE_HOME to a directory of your own."
                )
            case errno.ENOTDIR | errno.EEXIST:
                return (
                    f"{where} is not a directory, but the service needs one there: move it away, or set "
                    "AGENTCORE_HOME to another directory."
                )
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
LOCK_RETRY_SECONDS = 0.3


class ServerLock:
    """Exclusive lock of the server that runs the parts of a home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.run / "server.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquires the lock. Raises StartupError with the other server's pid if it is locked."""
        with self._home.startup_errors():
            descriptor = self._home.open_lock(self._path)
        deadline = time.monotonic() + LOCK_RETRY_SECONDS
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                holder = os.pread(descriptor, 32, 0).decode().strip() or "unknown"
                os.close(descriptor)
                raise StartupError(
                    f"Another agentcore server (pid {holder}) already serves {self._home.path}; "
                    "stop it or set AGENTCORE_HOME to another directory."
                )
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
        with self._home.startup_errors():
            try:
                descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW)
            except FileNotFoundError:
                return False
            try:
                return not _try_lock(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


SYSTEM_USER = "agentcore"
FALLBACK_USERS = ("postgres", "nobody")
# Only root can write there, so no other user can lock it.
USER_CREATION_LOCK = "/run/agentcore-useradd.lock"
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


@dataclass(frozen=True)
class Account:
    """An operating system user; `is_other_user`: not the user of this process."""

    name: str
    uid: int
    gid: int
    is_other_user: bool

    def make_owner(self, made: Path | int) -> None:
        """Makes the account the owner of a file that we created for it."""
        if self.is_other_user:
            os.chown(made, self.uid, self.gid)

    def can_enter(self, path: Path) -> bool:
        """Returns whether the account can enter or execute `path`. The kernel decides: modes alone do not."""
        if not self.is_other_user:
            return os.access(path, os.X_OK)
        asked = subprocess.run(  # noqa: S603 - a fixed command
            ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)],
            cwd="/",
            check=False,
            timeout=10,
            user=self.uid,
            group=self.gid,
            extra_groups=[],
        )
        return asked.returncode == 0


def choose_account(home: Home) -> Account:
    """Returns the user that runs the parts of `home`.

    Under root: the owner of the home if that is an ordinary user; else the owner of the data in it; else the
    system user `agentcore`, which is created if missing; if it cannot be created, one of FALLBACK_USERS.
    """
    if os.geteuid() != 0:
        return current_account()
    for kept in (home.path, home.postgres_data, home.redis_data):
        with suppress(FileNotFoundError):
            status = kept.stat()
            if status.st_uid != 0:
                return _account(status.st_uid, status.st_gid, is_other_user=True)
    user = _system_user()
    return Account(user.pw_name, user.pw_uid, user.pw_gid, is_other_user=True)


def grant_access(home: Home, account: Account) -> None:
    """Gives the account access to its directories in the home. Parent directories are never changed."""
    if account.is_other_user and not home.unknown_entries():
        for passage in (home.path, home.run):
            if not account.can_enter(passage):
                os.chown(passage, -1, account.gid)
                passage.chmod(stat.S_IMODE(passage.stat().st_mode) | stat.S_IXGRP)
    if account.can_enter(home.run):
        return
    closed = next(each for each in (*reversed(home.run.parents), home.run) if not account.can_enter(each))
    foreign = ", ".join(home.unknown_entries())
    fix = f"set AGENTCORE_HOME to a directory outside {closed}"
    if foreign and closed in (home.path, home.run):
        fix = (
            f"its mode is left alone because it contains files that are not agentcore's ({foreign}). Move "
            "them out of it, or set AGENTCORE_HOME to an empty directory"
        )
    who = f"User {account.name!r}"
    if account.is_other_user:
        who = f"PostgreSQL does not run as root, and the user {account.name!r} that runs it instead"
    raise StartupError(f"{who} cannot enter {closed}: {fix}.")


def current_account() -> Account:
    """Returns the user of this process, root included: for programs that may run as root."""
    return _account(os.geteuid(), os.getegid(), is_other_user=False)


def _account(uid: int, gid: int, *, is_other_user: bool) -> Account:
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Account(name, uid, gid, is_other_user)


def _system_user() -> pwd.struct_passwd:
    # Two concurrent `useradd` of one name may both succeed, and the second entry replaces the first: a start
    # could use a user id that no longer exists. So the lookup needs the lock too.
    with _user_creation_lock():
        try:
            return pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            _add_system_user()
    for name in (SYSTEM_USER, *FALLBACK_USERS):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise StartupError(
        "PostgreSQL does not run as root, and there is no system user to run it: make one "
        f"with `useradd --system {SYSTEM_USER}`, or start the service as an ordinary user."
    )


@contextmanager
def _user_creation_lock() -> Iterator[None]:
    """Locks the creation of the user; without a lock if `/run` is read-only."""
    with ExitStack() as stack:
        with suppress(OSError):
            descriptor = os.open(USER_CREATION_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _add_system_user() -> None:
    useradd = shutil.which("useradd", path=SYSTEM_PATH)
    if useradd is None:
        return
    taken = any(each.gr_name == SYSTEM_USER for each in grp.getgrall())
    group = ["--gid", SYSTEM_USER] if taken else ["--user-group"]
    nologin = shutil.which("nologin", path=SYSTEM_PATH) or "/bin/false"
    # If it fails (a read-only system, a faster concurrent start), the caller's lookup decides.
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - a fixed command
            [
                useradd,
                "--system",
                *group,
                "--no-create-home",
                "--home-dir",
                "/nonexistent",
                "--shell",
                nologin,
                SYSTEM_USER,
            ],
            check=False,
            capture_output=True,
            timeout=20,
        )


# The kernel's sun_path without its final NUL.
LONGEST_ADDRESS_BYTES = 103 if sys.platform == "darwin" else 107
LONGEST_NAME = ".s.PGSQL.5432"
LONGEST_HOME_BYTES = LONGEST_ADDRESS_BYTES - len(f"/run/sockets/{LONGEST_NAME}")
# Needs no quoting in postgresql.conf, redis.conf and a URL.
PLAIN = re.compile(r"[A-Za-z0-9/._-]+")


def open_socket_directory(home: Home, account: Account) -> Path:
    """Creates a directory for the account only: in the home, or a temporary one if that path is too long."""
    for directory in _candidates(home, account):
        if _fits(directory) and account.can_enter(directory.parent):
            with home.startup_errors():
                _claim(directory, account)
            return directory
    raise StartupError(
        f"No directory for the sockets: the path {home.path} must have at most {LONGEST_HOME_BYTES} bytes, only "
        f"letters, digits and ./_-, and be open to user {account.name!r}; no temporary directory is usable either. "
        "Set AGENTCORE_HOME to such a path."
    )


def close_socket_directory(home: Home, directory: Path) -> None:
    """Removes a temporary socket directory; one in the home is kept."""
    if not directory.is_relative_to(home.path):
        with suppress(OSError):
            directory.rmdir()


def _candidates(home: Home, account: Account) -> list[Path]:
    name = f"agentcore-{account.uid}-{hashlib.sha256(os.fsencode(home.path)).hexdigest()[:16]}"
    return [home.run / "sockets", Path(tempfile.gettempdir()).resolve() / name, Path("/tmp") / name]  # noqa: S108


def _fits(directory: Path) -> bool:
    address = str(directory / LONGEST_NAME)
    return len(os.fsencode(address)) <= LONGEST_ADDRESS_BYTES and PLAIN.fullmatch(address) is not None


def _claim(directory: Path, account: Account) -> None:
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as cause:
        raise StartupError(
            f"{directory} is not a directory that agentcore created: remove it and start again."
        ) from cause
    try:
        owner = os.fstat(descriptor).st_uid
        if owner not in (account.uid, os.geteuid()):
            raise StartupError(
                f"{directory} belongs to another user ({owner}): remove it, or set AGENTCORE_HOME to a shorter path."
            )
        account.make_owner(descriptor)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)
