"""A process that has loaded all modules and forks `agentcore` processes, one at a time, to be killed.

Loading takes longer than serving: without it each kill would take five seconds. Each input line starts a
process: a JSON object with its arguments, environment and variant, faulty for the negative controls. The
output reports the end of that process and its exit status.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentcore import assembly, cli
from agentcore.cli import maintenance as maintenance_commands
from agentcore.cli import serve as serve_command
from agentcore.config import Settings
from agentcore.memory.tokens import TokenCounter
from agentcore.providers import hashing, s3_archive
from agentcore.registry import resolve
from benchmarks.crash.wrong import TELLINGS

ROOT = Path(__file__).resolve().parents[2]
LISTENS = re.compile(r"listens on (http://\S+)")
ENDED = re.compile(r"^ended (-?\d+)$")
READY = re.compile("^ready$")
LONGEST_SECONDS = 60.0
SERVE = ("serve", "--port", "0")
# Modules that a forked process would otherwise load first.
LOADED = (serve_command, maintenance_commands, hashing, s3_archive, resolve)


def main() -> None:
    """Forks a process for each line of stdin."""
    TokenCounter(assembly.cache_of(Settings(_env_file=None)), "o200k_base").count("load the tables")
    print("ready", flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _live(wanted)
        _, status = os.waitpid(pid, 0)
        print(f"\nended {os.waitstatus_to_exitcode(status)}", flush=True)


def _live(wanted: Mapping[str, Any]) -> None:
    os.environ.update(wanted["environment"])
    TELLINGS[wanted["telling"]]()
    status = 1
    try:
        cli.main(wanted["arguments"])
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        os._exit(status)


class Nursery:
    """The client side of the nursery; one process at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._said: list[str] = []

    async def start(self, environment: Mapping[str, str], *, telling: str = "rightly") -> str:
        """Starts a server and returns its URL once it listens."""
        self._begin(SERVE, environment, telling)
        return (await self._heard(LISTENS))[1]

    async def run(self, arguments: Sequence[str], environment: Mapping[str, str], *, telling: str = "rightly") -> int:
        """Runs a command; returns its exit status, -9 if it was killed."""
        self._begin(arguments, environment, telling)
        return await self.ended()

    def _begin(self, arguments: Sequence[str], environment: Mapping[str, str], telling: str) -> None:
        assert self._process.stdin is not None
        wanted = {"arguments": [*arguments], "environment": dict(environment), "telling": telling}
        self._process.stdin.write(f"{json.dumps(wanted)}\n")
        self._process.stdin.flush()

    async def ended(self) -> int:
        """Waits for the end of the process; returns its exit status, -9 if it was killed."""
        return int((await self._heard(ENDED))[1])

    async def _heard(self, pattern: re.Pattern[str]) -> re.Match[str]:
        try:
            return await asyncio.wait_for(asyncio.to_thread(self.until, pattern), LONGEST_SECONDS)
        except TimeoutError:
            # Otherwise the thread keeps reading, and the event loop blocks on it when it closes.
            os.killpg(self._process.pid, signal.SIGKILL)
            raise

    def until(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Returns the first matching line from here on. Raises RuntimeError if a process ends before."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line)
            if found := pattern.search(line.rstrip("\n")):
                return found
            if ENDED.search(line.rstrip("\n")):
                break
        raise RuntimeError("".join(self._said[-40:]))


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Starts a nursery; ends it and its processes with the block."""
    settings = {name.upper() for name in Settings.model_fields}
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.crash.nursery"],
        cwd=ROOT,
        start_new_session=True,
        text=True,
        env=environment | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with process:
        try:
            made = Nursery(process)
            made.until(READY)
            yield made
        finally:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
