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
from collections.abc import Sequence
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


class Http:
    """JSON over kept connections: a general client would take as much of the machine as some systems' searches."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def request(self, method: str, path: str, body: Row | None = None, token: str = "") -> tuple[int, bytes]:
        """Returns the status and the body of the response. Raises OSError if the server does not answer."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-type: application/json\r\n"
        head += f"authorization: Bearer {token}\r\n" if token else ""
        message = f"{head}content-length: {len(sent)}\r\n\r\n".encode() + sent
        while self._free:
            reader, writer = self._free.pop()
            try:
                return await self._exchange(reader, writer, message)
            except (ConnectionError, asyncio.IncompleteReadError):
                # The server has closed an idle connection.
                writer.close()
        return await self._exchange(*await asyncio.open_connection("127.0.0.1", self._port), message)

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes
    ) -> tuple[int, bytes]:
        writer.write(message)
        status, _, lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().partition("\r\n")
        fields = dict(line.split(": ", 1) for line in lines.split("\r\n") if line)
        answer = await reader.readexactly(int(fields["content-length"]))
        if fields.get("connection") == "close":
            writer.close()
        else:
            self._free.append((reader, writer))
        return int(status.split()[1]), answer

    async def answers(self, path: str) -> bool:
        """Checks whether a GET returns 200."""
        try:
            return (await self.request("GET", path))[0] == 200
        except (OSError, asyncio.IncompleteReadError):
            return False


class Server:
    """A system that runs as an HTTP server on a free port; arguments contain `{port}`."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.http = Http(self.port)
        self._arguments = [each.format(port=self.port) for each in arguments]
        self._environment = {**os.environ, **environment}

    async def start(self, stack: AsyncExitStack, ready: str) -> None:
        """Starts it, and returns once a GET of `ready` succeeds. Raises RuntimeError if it ends before."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *self._arguments, env=self._environment, stdout=sys.stderr
        )
        stack.push_async_callback(self.stop)
        async with asyncio.timeout(START_SECONDS):
            while True:
                if await self.http.answers(ready):
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
