"""The embedded Redis: a socket, an append-only file, a bounded memory."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from agentcore.embedded.account import Account
from agentcore.embedded.home import Home
from agentcore.embedded.process import Child, LogFile, end_processes, processes_in
from agentcore.embedded.programs import REDIS_SERVERS, find_redis
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
    """Redis on a socket of one home."""

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
        """Start on the data kept. A file that Redis cannot read is set aside: it is only a copy of rows."""
        try:
            await self.launch()
        except StartupError as error:
            if BROKEN_FILE not in error.message:
                raise
            aside = self._data.with_name(f"redis.broken-{datetime.now(UTC):%Y%m%dT%H%M%S}")
            with self._home.explained():
                self._data.rename(aside)
            self._tell(f"Redis cannot read its file and starts empty; the file is kept in {aside}")
            await self.launch()
        return f"unix://{quote(str(self._socket))}?db=0"

    async def launch(self) -> None:
        """Start the server on the data it has, whatever an earlier one left behind."""
        await self.stop()
        configuration = self._home.directory(self._data) / "redis.conf"
        self._account.give(self._data)
        self._home.write(configuration, CONFIGURATION.format(socket=self._socket))
        self._account.give(configuration)
        self.child = Child([self._program, configuration], directory=self._data, account=self._account,
                           log=self.log, farewell=signal.SIGTERM)
        await self.child.until(self._ready)

    async def stop(self) -> None:
        """End the server, ours or one that outlived its agentcore."""
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
        """Whether it answers PING; while it reads its file it answers with an error."""
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
