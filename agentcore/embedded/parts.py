"""The embedded Redis, and both parts together: started in parallel, supervised, stopped."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self
from urllib.parse import quote

from agentcore.embedded.home import (
    Account,
    Home,
    ServerLock,
    choose_account,
    close_socket_directory,
    grant_access,
    open_socket_directory,
)
from agentcore.embedded.postgres import PostgresPart
from agentcore.embedded.process import REDIS_SERVERS, Child, LogFile, end_processes, find_redis, processes_in
from agentcore.errors import StartupError

ANSWER_SECONDS = 1.0
SAVE_THEN_FORCED = ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0))
BROKEN_FILE = "Bad file format reading the append only file"

CONFIGURATION = """\
# Written by agentcore at each start.
port 0
unixsocket {socket}
unixsocketperm 700
daemonize no
dir ./
appendonly yes
appendfsync everysec
aof-load-truncated yes
aof-use-rdb-preamble yes
save ""
maxmemory 256mb
maxmemory-policy volatile-lru
logfile ""
"""


class RedisPart:
    name = "Redis"

    def __init__(self, home: Home, account: Account, sockets: Path, tell: Callable[[str], None]) -> None:
        self._home = home
        self._account = account
        self._socket = sockets / "redis.sock"
        self._tell = tell
        self._data = home.redis_data
        self.log = LogFile(home, "redis")
        self.child: Child | None = None

    async def start(self) -> str:
        """A file that Redis cannot parse is moved aside: it only copies rows."""
        try:
            await self.launch()
        except StartupError as error:
            if BROKEN_FILE not in error.message:
                raise
            aside = self._data.with_name(f"redis.broken-{datetime.now(UTC):%Y%m%dT%H%M%S}")
            with self._home.startup_errors():
                self._data.rename(aside)
            self._tell(f"Redis cannot read its file and starts empty; the file is kept in {aside}")
            await self.launch()
        return f"unix://{quote(str(self._socket))}?db=0"

    async def launch(self) -> None:
        """Ends any earlier process first."""
        await self.stop()
        configuration = self._home.directory(self._data) / "redis.conf"
        self._account.make_owner(self._data)
        self._home.write(configuration, CONFIGURATION.format(socket=self._socket))
        self._account.make_owner(configuration)
        self.child = Child(
            [self._program, configuration],
            directory=self._data,
            account=self._account,
            log=self.log,
            farewell=signal.SIGTERM,
        )
        await self.child.until(self._ready)

    async def stop(self) -> None:
        if self.child is not None:
            await self.child.end(SAVE_THEN_FORCED)
            self.child = None
        if self._processes():
            self._tell("Ending the Redis of an earlier server")
            await end_processes(self._processes, SAVE_THEN_FORCED)
        self._socket.unlink(missing_ok=True)

    @cached_property
    def _program(self) -> Path:
        return find_redis(self._home, self._account)

    async def _ready(self) -> bool:
        """It answers with an error while it loads its file."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    writer.write(b"PING\r\n")
                    return (await reader.readline()).startswith(b"+PONG")
                finally:
                    writer.close()
                    await writer.wait_closed()
        except OSError:
            return False

    def _processes(self) -> list[int]:
        return processes_in(self._data, REDIS_SERVERS)


FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
# After a run this long, the backoff restarts at the first pause.
WELL_SECONDS = 1.0
TRIM_SECONDS = 60.0

Part = PostgresPart | RedisPart


@dataclass(frozen=True)
class EmbeddedUrls:
    """None for a part that is not embedded."""

    database_url: str | None = None
    redis_url: str | None = None


class EmbeddedParts:
    """With neither part wanted it takes no lock: any number of servers may share a home."""

    def __init__(self, home: Home, *, postgres: bool, redis: bool, log: Callable[[str], None]) -> None:
        self._home = home
        parts: dict[str, type[Part]] = {"database_url": PostgresPart, "redis_url": RedisPart}
        wanted = {"database_url": postgres, "redis_url": redis}
        self._wanted = {url: part for url, part in parts.items() if wanted[url]}
        self._log = log
        self._open = AsyncExitStack()
        self._parts: list[Part] = []
        self.urls = EmbeddedUrls()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> EmbeddedUrls:
        """Returns once the parts answer. Raises StartupError with a fix."""
        if not self._wanted:
            return self.urls
        async with AsyncExitStack() as opening:
            self._home.directory(self._home.run)
            lock = ServerLock(self._home)
            lock.acquire()
            opening.callback(lock.release)
            account = await asyncio.to_thread(choose_account, self._home)
            await asyncio.to_thread(grant_access, self._home, account)
            sockets = open_socket_directory(self._home, account)
            opening.callback(close_socket_directory, self._home, sockets)
            parts = {url: part(self._home, account, sockets, self._log) for url, part in self._wanted.items()}
            self._parts = list(parts.values())
            opening.push_async_callback(self._stop_parts)
            self.urls = EmbeddedUrls(**dict(zip(parts, await self._start_parts(), strict=True)))
            self._home.write(_urls_file(self._home), json.dumps(asdict(self.urls)))
            opening.callback(_urls_file(self._home).unlink, missing_ok=True)
            self._open = opening.pop_all()
        return self.urls

    async def stop(self) -> None:
        """Cancel `supervise` first, or it restarts them."""
        await self._open.aclose()

    async def supervise(self) -> NoReturn:
        """Restarts a part that exits; ends only by cancellation."""
        async with asyncio.TaskGroup() as keeping:
            for part in self._parts:
                keeping.create_task(self._keep(part))
            while True:
                await asyncio.sleep(TRIM_SECONDS)
                for part in self._parts:
                    part.log.trim()

    async def _start_parts(self) -> list[str]:
        started = await asyncio.gather(*(part.start() for part in self._parts), return_exceptions=True)
        for failure in started:
            if isinstance(failure, BaseException):
                raise failure
        return [url for url in started if isinstance(url, str)]

    async def _stop_parts(self) -> None:
        parts, self._parts = self._parts, []
        for failure in await asyncio.gather(*(part.stop() for part in parts), return_exceptions=True):
            if isinstance(failure, BaseException):
                raise failure

    async def _keep(self, part: Part) -> None:
        pause, well = FIRST_PAUSE_SECONDS, True
        while True:
            begun = time.monotonic()
            if well and part.child is not None:
                status = await part.child.exited()
                self._log(f"{part.name} ended by itself (status {status}), starting it again")
            pause = FIRST_PAUSE_SECONDS if time.monotonic() - begun > WELL_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            try:
                await part.launch()
                well = True
            except (StartupError, OSError) as error:
                self._log(f"{part.name} does not start: {error}")
                well = False


def runs_on(home: Home) -> bool:
    """Raises StartupError if the home is not readable."""
    return ServerLock(home).held_by_a_server()


def attach(home: Home) -> EmbeddedUrls:
    """Raises StartupError if no server runs."""
    if not runs_on(home):
        raise StartupError(
            f"No agentcore server runs on {home.path}: start one with `agentcore serve`, set "
            "AGENTCORE_HOME to that of one that runs, or set DATABASE_URL and REDIS_URL."
        )
    with home.startup_errors():
        try:
            urls = json.loads(_urls_file(home).read_text())
        except FileNotFoundError as cause:
            raise StartupError(f"The agentcore server on {home.path} is starting or stopping: try again.") from cause
    return EmbeddedUrls(**urls)


def _urls_file(home: Home) -> Path:
    return home.run / "urls.json"
