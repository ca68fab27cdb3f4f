"""One part's process and its bounded log: started apart from us, watched, ended, never left behind."""

from __future__ import annotations

import asyncio
import os
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

from agentcore.embedded.account import Account
from agentcore.embedded.home import Home
from agentcore.errors import StartupError

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


SILENCE_SECONDS = 60.0
LOOK_SECONDS = 0.01
Command = Sequence[str | Path]
Steps = Sequence[tuple[signal.Signals, float]]

# Ends the part when our end of its pipe closes: the kernel closes it however we die. PR_SET_PDEATHSIG fires
# when the starting thread ends, not the process, is forgotten when the user changes, and is Linux only.
GUARD = 'read -r _; kill -s "$2" "$1"'


def run_once(
    command: Command, *, directory: Path, account: Account, password: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as the account, apart from the terminal."""
    user, group, groups = _identity(account)
    return subprocess.run(  # noqa: S603 - programs found in `programs.py`
        command, cwd=directory, env={**_environment(), "PGPASSWORD": password}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, start_new_session=True, user=user, group=group,
        extra_groups=groups)


class Child:
    """A running part and the guard that ends it when this process dies without a word."""

    def __init__(self, command: Command, *, directory: Path, account: Account, log: LogFile,
                 farewell: signal.Signals) -> None:
        """Raises StartupError where the program cannot be run at all."""
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
        """The exit status, negative for a signal, once there is one."""
        return await asyncio.wrap_future(self._exit)

    async def until(self, ready: Callable[[], Awaitable[bool]]) -> None:
        """Wait until `ready`. A recovery may take long but tells of itself: only silence is a failure."""
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
        """End the process: each signal in turn, with that many seconds to follow it."""
        for number, seconds in steps:
            if not self._exit.done():
                with suppress(ProcessLookupError):
                    self._process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.exited(), seconds)
                break
        # The guard first: on a closed pipe it would signal a process id that may by now be somebody else's.
        self._guard.kill()
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()


def processes_in(directory: Path, names: Collection[str]) -> list[int]:
    """Processes of those programs that work in `directory`: a mark that outlives every file."""
    place = str(directory.resolve())
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.cwd() == place and each.name() in names:
                found.append(each.pid)
    return found


async def end_processes(find: Callable[[], list[int]], steps: Steps) -> None:
    """End processes that are not our children, until `find` finds none.

    Raises StartupError where even the last signal did not help.
    """
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


def _spawn(command: Command, directory: Path, account: Account, source: int, output: int | FileIO,
           ) -> subprocess.Popen[bytes]:
    user, group, groups = _identity(account)
    try:
        # Its own session: Ctrl-C in the terminal reaches us alone; the parts end after our last statement.
        return subprocess.Popen(  # noqa: S603 - programs found in `programs.py`, or the guard
            command, cwd=directory, env=_environment(), stdin=source, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True, user=user, group=group, extra_groups=groups)
    except OSError as cause:
        raise StartupError(f"{command[0]} cannot be run: {cause}.") from cause


def _identity(account: Account) -> tuple[int | None, int | None, list[int] | None]:
    return (account.uid, account.gid, []) if account.reduced else (None, None, None)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": os.defpath, **kept, "LC_ALL": "C", "TZ": "UTC"}
