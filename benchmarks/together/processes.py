"""Servers and workers as separate processes on one PostgreSQL and one Redis."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from agentcore.config import Settings

ROOT = Path(__file__).resolve().parents[2]
STARTED = re.compile(rb"listens on (http://\S+)|(background work runs)")
START_SECONDS = 180.0
STOP_SECONDS = 60.0


class Member:
    """One process: a server with its URL, or a worker without one."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.url = ""
        self.said = b""
        self._reading: asyncio.Task[None] | None = None

    async def until_started(self) -> None:
        """Waits until it is ready. Raises RuntimeError if it exits before."""
        assert self._process.stdout is not None
        while found := await self._process.stdout.readline():
            self.said += found
            if started := STARTED.search(found):
                self.url = (started[1] or b"").decode()
                self._reading = asyncio.create_task(self._read())
                return
        raise RuntimeError(self.said.decode(errors="replace"))

    async def _read(self) -> None:
        assert self._process.stdout is not None
        self.said += await self._process.stdout.read()

    async def stop(self) -> int:
        """Stops it as an operator does; returns its exit status."""
        if self._process.returncode is None:
            self._process.terminate()
        status = await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        if self._reading is not None:
            await self._reading
        return status


@asynccontextmanager
async def together(environment: Mapping[str, str], servers: int, workers: int) -> AsyncIterator[list[Member]]:
    """Starts the processes and stops them at the end of the block; none may exit before."""
    commands = [("serve", "--port", "0")] * servers + [("worker",)] * workers
    settings = {name.upper() for name in Settings.model_fields}
    clean = {name: value for name, value in os.environ.items() if name not in settings}
    members: list[Member] = []
    try:
        for command in commands:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "agentcore",
                *command,
                cwd=ROOT,
                env={**clean, "PYTHONPATH": str(ROOT), **environment},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            members.append(Member(process))
        async with asyncio.timeout(START_SECONDS), asyncio.TaskGroup() as starting:
            for member in members:
                starting.create_task(member.until_started())
        yield members
    finally:
        statuses = await asyncio.gather(*(member.stop() for member in members))
    if any(statuses):
        said = "".join(member.said.decode(errors="replace")[-2_000:] for member in members)
        raise RuntimeError(f"a process ended wrongly, {statuses}:\n{said}")
