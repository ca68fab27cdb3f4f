"""The data directory, its ownership, and the lock of its server."""

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
    """The system user that runs PostgreSQL for root cannot enter root's home."""
    if os.geteuid() == 0:
        return ROOT_HOME
    return Path(platformdirs.user_data_dir("agentcore", appauthor=False))


class Home:
    """Creating the object does no I/O."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).expanduser().resolve()
        self.run = self.path / "run"
        self.log = self.path / "log"
        self.secrets = self.path / "secrets"
        self.postgres_data = self.path / "postgres"
        self.redis_data = self.path / "redis"
        self.archive = self.path / "archive"
        self.cache = self.path / "cache"
        # Copies of the servers' programs, for a user without access to the installed ones.
        self.programs = self.path / "programs"

    def secret(self, name: str) -> str:
        """Returns 64 hexadecimal digits, created by the first call."""
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
            if not _locks_within(descriptor, SECRET_LOCK_SECONDS):
                raise StartupError(f"Another process keeps {lock} locked: end it and start again.")
            # If two processes create the same secret, the first one's is kept.
            if not kept.exists():
                self.write(kept, text)
        finally:
            os.close(descriptor)

    def open_lock(self, path: Path) -> int:
        """An existing file keeps its owner."""
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            self.hand_over(descriptor)
            return descriptor
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)

    def write(self, path: Path, text: str) -> None:
        """Atomic, with mode 0600."""
        with self.startup_errors():
            draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            try:
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                with os.fdopen(descriptor, "w") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(descriptor)
                    self.hand_over(descriptor)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)

    def append(self, path: Path, line: str) -> None:
        with self.startup_errors():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{line}\n")
                self.hand_over(descriptor)

    def directory(self, path: Path) -> Path:
        """Creates a directory of the home, and the home itself, with mode 0700."""
        with self.startup_errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                self.hand_over(path)
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return path

    def unknown_entries(self) -> list[str]:
        """Returns names that the service did not create."""
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
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# `attach` locks the file for an instant to test it; a starting server retries for longer than that.
LOCK_RETRY_SECONDS = 0.3


class ServerLock:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.run / "server.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises StartupError with the other server's pid if it is locked."""
        with self._home.startup_errors():
            descriptor = self._home.open_lock(self._path)
        if not _locks_within(descriptor, LOCK_RETRY_SECONDS):
            holder = os.pread(descriptor, 32, 0).decode().strip() or "unknown"
            os.close(descriptor)
            raise StartupError(
                f"Another agentcore server (pid {holder}) already serves {self._home.path}; "
                "stop it or set AGENTCORE_HOME to another directory."
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Keeps the file: removing it could free a lock that another server acquired."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def held_by_a_server(self) -> bool:
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


def _locks_within(descriptor: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


SYSTEM_USER = "agentcore"
FALLBACK_USERS = ("postgres", "nobody")
# Only root can write there, so no other user can lock it.
USER_CREATION_LOCK = "/run/agentcore-useradd.lock"
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


@dataclass(frozen=True)
class Account:
    """`is_other_user`: not the user of this process."""

    name: str
    uid: int
    gid: int
    is_other_user: bool

    def make_owner(self, made: Path | int) -> None:
        if self.is_other_user:
            os.chown(made, self.uid, self.gid)

    def can_enter(self, path: Path) -> bool:
        """The kernel decides: modes alone do not."""
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
    """Under root: the owner of the home if not root, else of the data in it, else a system user."""
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
    """Opens the home to the account; never changes parent directories. Raises StartupError."""
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
    # Of two concurrent `useradd` of one name, the second entry replaces the first: the lookup needs the lock too.
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
    """Omits the lock if `/run` is read-only."""
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
                *(useradd, "--system", *group, "--no-create-home"),
                *("--home-dir", "/nonexistent", "--shell", nologin, SYSTEM_USER),
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
    """Creates it in the home, or a temporary one if that path is too long."""
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
