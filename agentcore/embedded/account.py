"""The user that runs the parts (under root a system user), and that user's socket directory."""

from __future__ import annotations

import fcntl
import grp
import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agentcore.embedded.home import Home
from agentcore.errors import StartupError

SYSTEM_USER = "agentcore"
FALLBACK_USERS = ("postgres", "nobody")
# Only root can write there, so no other user can lock it.
ADDING_LOCK = "/run/agentcore-useradd.lock"
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


@dataclass(frozen=True)
class Account:
    """An operating system user; `reduced`: another user than that of this process."""

    name: str
    uid: int
    gid: int
    reduced: bool

    def give(self, made: Path | int) -> None:
        """Makes the account the owner of a file that we created for it."""
        if self.reduced:
            os.chown(made, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Returns whether the account can enter or execute `path`. The kernel decides: modes alone do not."""
        if not self.reduced:
            return os.access(path, os.X_OK)
        asked = subprocess.run(  # noqa: S603 - a fixed command
            ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)], cwd="/", check=False, timeout=10,
            user=self.uid, group=self.gid, extra_groups=[])
        return asked.returncode == 0


def choose_account(home: Home) -> Account:
    """Returns the user that runs the parts of `home`.

    Under root: the owner of the home if that is an ordinary user; else the owner of the data in it; else the
    system user `agentcore`, which is created if missing.
    """
    if os.geteuid() != 0:
        return ourselves()
    for kept in (home.path, home.postgres_data, home.redis_data):
        with suppress(FileNotFoundError):
            status = kept.stat()
            if status.st_uid != 0:
                return _account(status.st_uid, status.st_gid, reduced=True)
    user = _system_user()
    return Account(user.pw_name, user.pw_uid, user.pw_gid, reduced=True)


def open_home(home: Home, account: Account) -> None:
    """Gives the account access to its directories in the home. Parent directories are never changed."""
    if account.reduced and not home.foreign():
        for passage in (home.path, home.run):
            if not account.reaches(passage):
                os.chown(passage, -1, account.gid)
                passage.chmod(stat.S_IMODE(passage.stat().st_mode) | stat.S_IXGRP)
    if account.reaches(home.run):
        return
    closed = next(each for each in (*reversed(home.run.parents), home.run) if not account.reaches(each))
    foreign = ", ".join(home.foreign())
    fix = f"set AGENTCORE_HOME to a directory outside {closed}"
    if foreign and closed in (home.path, home.run):
        fix = (f"its mode is left alone because it contains files that are not agentcore's ({foreign}). Move "
               "them out of it, or set AGENTCORE_HOME to an empty directory")
    raise StartupError(f"PostgreSQL does not run as root, and the user {account.name!r} that runs it instead "
                       f"cannot enter {closed}: {fix}.")


def ourselves() -> Account:
    """Returns the user of this process, root included: for programs that may run as root."""
    return _account(os.geteuid(), os.getegid(), reduced=False)


def _account(uid: int, gid: int, *, reduced: bool) -> Account:
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Account(name, uid, gid, reduced)


def _system_user() -> pwd.struct_passwd:
    # Two concurrent `useradd` of one name may both succeed, and the second entry replaces the first: a start
    # could use a user id that no longer exists. So the lookup needs the lock too.
    with _adding_alone():
        try:
            return pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            _add_system_user()
    for name in (SYSTEM_USER, *FALLBACK_USERS):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise StartupError("PostgreSQL does not run as root, and there is no system user to run it: make one "
                       f"with `useradd --system {SYSTEM_USER}`, or start the service as an ordinary user.")


@contextmanager
def _adding_alone() -> Iterator[None]:
    """Locks the creation of the user; without a lock if `/run` is read-only."""
    with ExitStack() as stack:
        with suppress(OSError):
            descriptor = os.open(ADDING_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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
            [useradd, "--system", *group, "--no-create-home", "--home-dir", "/nonexistent",
             "--shell", nologin, SYSTEM_USER], check=False, capture_output=True, timeout=20)


# The kernel's sun_path without its final NUL.
LONGEST_ADDRESS_BYTES = 103 if sys.platform == "darwin" else 107
LONGEST_NAME = ".s.PGSQL.5432"
# Needs no quoting in postgresql.conf, redis.conf and a URL.
PLAIN = re.compile(r"[A-Za-z0-9/._-]+")


def open_socket_directory(home: Home, account: Account) -> Path:
    """Creates a directory for the account only: in the home, or a temporary one if that path is too long."""
    for directory in _candidates(home, account):
        if _fits(directory) and account.reaches(directory.parent):
            with home.explained():
                _claim(directory, account)
            return directory
    raise StartupError(f"{home.path} is too long a path for a socket and no temporary directory can take its "
                       "place: set AGENTCORE_HOME to a shorter one.")


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
        raise StartupError(f"{directory} is not a directory of ours: remove it and start again.") from cause
    try:
        owner = os.fstat(descriptor).st_uid
        if owner not in (account.uid, os.geteuid()):
            raise StartupError(f"{directory} belongs to another user ({owner}): remove it, or set "
                               "AGENTCORE_HOME to a shorter path.")
        account.give(descriptor)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)
