"""Where the parts listen: a directory of their own user's, with a name short enough for a socket address."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from agentcore.embedded.account import Account
from agentcore.embedded.home import Home
from agentcore.errors import StartupError

# The kernel's sun_path, less its closing NUL.
LONGEST_ADDRESS_BYTES = 103 if sys.platform == "darwin" else 107
LONGEST_NAME = ".s.PGSQL.5432"
# What needs no quoting in postgresql.conf, redis.conf and a URL.
PLAIN = re.compile(r"[A-Za-z0-9/._-]+")


def open_socket_directory(home: Home, account: Account) -> Path:
    """A directory for the account alone: in the home, or a temporary one where that path is too long."""
    for directory in _candidates(home, account):
        if _fits(directory) and account.reaches(directory.parent):
            with home.explained():
                _claim(directory, account)
            return directory
    raise StartupError(f"{home.path} is too long a path for a socket and no temporary directory can take its "
                       "place: set AGENTCORE_HOME to a shorter one.")


def close_socket_directory(home: Home, directory: Path) -> None:
    """Take away what lies in the temporary directory; the one in the home may stay."""
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
