"""`agentcore serve` as a process on one home: it and its parts can be killed and restarted."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

import httpx

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.config import Settings
from agentcore.embedded import EmbeddedUrls, Home, attach
from agentcore.embedded.process import REDIS_SERVERS, processes_in

ROOT = Path(__file__).resolve().parents[2]
LISTENS = re.compile(rb"listens on (http://\S+)")
START_SECONDS = 120.0
STOP_SECONDS = 60.0
LOOK_SECONDS = 0.05


class Victim(StrEnum):
    """The processes that a round kills."""

    SERVER = "server"
    POSTGRESQL = "PostgreSQL"
    REDIS = "Redis"
    EVERYTHING = "everything"


class Served:
    """One home and its server process."""

    def __init__(self, home: Path) -> None:
        self.home = Home(home)
        self.url = ""
        self.said = bytearray()
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the server; returns once it is ready."""
        settings = {name.upper() for name in Settings.model_fields}
        environment = {name: value for name, value in os.environ.items() if name not in settings}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "AGENTCORE_HOME": str(self.home.path),
            "EMBEDDING_MODEL": "hashing",
            "RATE_LIMIT_PER_MINUTE": "0",
            "LOG_LEVEL": "WARNING",
        }
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "agentcore",
            "serve",
            "--port",
            "0",
            cwd=self.home.path.parent,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._listening = asyncio.create_task(self._listen(self._process, told))
        self.url = await asyncio.wait_for(told, START_SECONDS)
        await self.until_ready()

    async def _listen(self, process: asyncio.subprocess.Process, told: asyncio.Future[str]) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.said += line
            found = LISTENS.search(line)
            if found and not told.done():
                told.set_result(found[1].decode())
        if not told.done():
            told.set_exception(RuntimeError(f"the server ended:\n{self.said.decode(errors='replace')}"))

    async def until_ready(self) -> None:
        """Waits until /readyz reports that every part responds."""
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=STOP_SECONDS) as http:

            async def ready() -> bool:
                return (await http.get("/readyz")).status_code == 200

            deadline = time.monotonic() + START_SECONDS
            while not await ready():
                if time.monotonic() > deadline:
                    said = (await http.get("/readyz")).text
                    raise TimeoutError(f"not ready in {START_SECONDS:.0f} s: {said}")
                await asyncio.sleep(LOOK_SECONDS)

    def urls(self) -> EmbeddedUrls:
        """Returns the URLs of the running parts."""
        return attach(self.home)

    def client(self, agent_id: str) -> MemoryClient:
        """Returns a client of an agent's memory without retries."""
        token = mint_token(self.home.secret("jwt"), agent_id, ["memory:read", "memory:write"], 86_400)
        return MemoryClient(self.url, token, max_attempts=1)

    def pids(self, victim: Victim) -> list[int]:
        """Returns the current process ids of a victim."""
        assert self._process is not None
        find: dict[Victim, Callable[[], list[int]]] = {
            Victim.SERVER: lambda: [] if self._process is None else [self._process.pid],
            Victim.POSTGRESQL: self._postmasters,
            Victim.REDIS: lambda: processes_in(self.home.redis_data, REDIS_SERVERS),
        }
        wanted = find if victim is Victim.EVERYTHING else {victim: find[victim]}
        return [pid for each in wanted.values() for pid in each()]

    def _postmasters(self) -> list[int]:
        try:
            written = (self.home.postgres_data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [int(written[0])] if written else []

    def kill(self, victim: Victim) -> list[int]:
        """Runs kill -9; returns the ids of the killed processes."""
        hit = self.pids(victim)
        for pid in hit:
            os.kill(pid, signal.SIGKILL)
        return hit

    async def until_back(self, victim: Victim, killed: list[int]) -> None:
        """Waits until the parts have restarted; restarts a killed server."""
        if victim in (Victim.SERVER, Victim.EVERYTHING):
            await self._ended()
            await self.start()
            return
        deadline = time.monotonic() + START_SECONDS
        while not (now := self.pids(victim)) or set(now) & set(killed):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{victim} did not come back:\n{self.said.decode(errors='replace')}")
            await asyncio.sleep(LOOK_SECONDS)
        await self.until_ready()

    async def stop(self) -> int:
        """Stops the server as Ctrl-C does; returns its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return await self._ended()

    async def _ended(self) -> int:
        assert self._process is not None
        assert self._listening is not None
        status = await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        await self._listening
        return status

    async def close(self) -> None:
        """Ends all processes in any state."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.terminate()
        await self._ended()


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    """Runs a server on a new home, which is deleted at the end."""
    place = Path(tempfile.mkdtemp(prefix="agentcore-crash-"))
    # If we are root, the system user of the parts needs access.
    await asyncio.to_thread(place.chmod, 0o755)
    running = Served(place / "home")
    try:
        await running.start()
        yield running
    finally:
        await running.close()
        shutil.rmtree(place, ignore_errors=True)
