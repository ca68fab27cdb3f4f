"""The process of one system under test: commands as JSON lines on standard input, replies on standard output.

Runs in the system's own environment, so it needs the standard library only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

Row = dict[str, Any]
START_SECONDS = 180


@dataclass(frozen=True)
class Options:
    """`database`: a PostgreSQL URL of an empty database; `embeddings`: an OpenAI-compatible endpoint.

    `environment`: settings of a system that runs as a server.
    """

    database: str
    embeddings: str
    dimensions: int
    directory: str
    redis: str
    environment: dict[str, str]

    def database_for(self, scheme: str) -> str:
        """Returns the URL with another scheme, such as `postgresql+asyncpg`."""
        return scheme + "://" + self.database.partition("://")[2]

    def file(self, name: str) -> str:
        """Returns the path of a file of the system."""
        return str(Path(self.directory) / name)


class System(ABC):
    """A memory system through its public API."""

    @abstractmethod
    async def open(self, options: Options, stack: AsyncExitStack) -> None:
        """Connects and makes the schema; the stack closes what was opened."""

    @abstractmethod
    async def store(self, user: str, rows: Sequence[Row]) -> None:
        """Stores messages `{id, text, at, session, speaker}` in the system's own batch, if it has one."""

    @abstractmethod
    async def search(self, user: str, query: Row, k: int) -> list[str]:
        """Returns the ids of at most k messages, best first; `query`: `{text, at}`."""

    async def settle(self, complete: bool) -> None:
        """Returns once background work has ended: all of it, or the part that searches need."""
        await asyncio.sleep(0)

    def processes(self) -> list[int]:
        """Returns the processes of the system: this one for a library."""
        return [os.getpid()]


class Server:
    """A system that runs as an HTTP server on a free port; arguments contain `{port}`."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._arguments = [each.format(port=self.port) for each in arguments]
        self._environment = {**os.environ, **environment}

    async def start(self, stack: AsyncExitStack, answers: Callable[[], Awaitable[bool]]) -> None:
        """Starts it, and returns once `answers` is true. Raises RuntimeError if it ends before."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *self._arguments, env=self._environment, stdout=sys.stderr
        )
        stack.push_async_callback(self.stop)
        async with asyncio.timeout(START_SECONDS):
            while True:
                if await answers():
                    return
                if self.process.returncode is not None:
                    raise RuntimeError("the server ended")
                await asyncio.sleep(0.2)

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()


def time_of(row: Row) -> datetime:
    return datetime.fromisoformat(row["at"])


async def store(system: System, command: Row) -> Row:
    rows, size = command["rows"], command["batch"]
    began = time.perf_counter()
    for at in range(0, len(rows), size):
        await system.store(command["user"], rows[at : at + size])
    return {"seconds": time.perf_counter() - began}


async def search(system: System, command: Row) -> Row:
    user, k = command["user"], command["k"]
    return {"ids": [await system.search(user, query, k) for query in command["queries"]]}


async def load(system: System, command: Row) -> Row:
    """Searches with several callers until the time has passed; returns milliseconds of every search."""
    queries, taken = iter(command["queries"]), list[float]()
    began = time.perf_counter()
    ends = began + command["seconds"]

    async def caller() -> None:
        while (start := time.perf_counter()) < ends:
            await system.search(command["user"], next(queries), command["k"])
            taken.append((time.perf_counter() - start) * 1_000)

    await asyncio.gather(*(caller() for _ in range(command["callers"])))
    return {"milliseconds": taken, "seconds": time.perf_counter() - began}


async def settle(system: System, command: Row) -> Row:
    began = time.perf_counter()
    await system.settle(command["complete"])
    return {"seconds": time.perf_counter() - began}


async def processes(system: System, _: Row) -> Row:
    return {"processes": system.processes()}


COMMANDS = {"store": store, "search": search, "load": load, "settle": settle, "processes": processes}


async def serve(system: System) -> None:
    """Answers commands until standard input ends; the first line has the options."""
    # Libraries print to standard output; replies have a copy of it for themselves.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=2**30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with AsyncExitStack() as stack:
        await system.open(Options(**json.loads(await reader.readline())), stack)
        print("{}", file=replies, flush=True)
        while line := await reader.readline():
            command = json.loads(line)
            reply = await COMMANDS[command["do"]](system, command)
            print(json.dumps(reply), file=replies, flush=True)


def run(system: System) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(system))
