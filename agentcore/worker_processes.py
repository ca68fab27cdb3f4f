"""Further processes of one service: they answer calls on its socket, and share its metrics.

Each ends when its standard input ends, so none outlives the service.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket

from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

RESTART_SECONDS = 1.0
# The time for a process to end after its calls had their grace time, and for one to return its metrics.
END_SECONDS, METRICS_SECONDS = 5.0, 2.0
PROGRAM = "agentcore.cli.worker_process"

Exposition = Callable[[], Awaitable[bytes]]

logger = logging.getLogger(__name__)


@asynccontextmanager
async def worker_processes(
    count: int, address: socket, directory: Path, grace_seconds: float, forced: asyncio.Event
) -> AsyncIterator[None]:
    """Runs `count` processes that answer calls on this socket until the block ends; restarts those that end.

    Then they have `grace_seconds` for running calls, less once `forced` is set. `directory` is for their metrics.
    """
    keepers = [asyncio.create_task(_Keeper(address, directory, grace_seconds, forced).run()) for _ in range(count)]
    try:
        yield
    finally:
        for each in keepers:
            each.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)


@dataclass(frozen=True)
class _Keeper:
    """Keeps one process running."""

    address: socket
    directory: Path
    grace_seconds: float
    forced: asyncio.Event

    async def run(self) -> None:
        while True:
            process = await asyncio.shield(self._start())
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                await self._stop(process)
                raise
            logger.warning("a worker process ended: it is restarted", extra={"failure": f"exit code {code}"})
            await asyncio.sleep(RESTART_SECONDS)

    async def _start(self) -> Process:
        descriptor = self.address.fileno()
        arguments = ("-m", PROGRAM, str(descriptor), str(self.directory))
        return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, pass_fds=(descriptor,))

    async def _stop(self, process: Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        ending = {asyncio.create_task(process.wait()), asyncio.create_task(self.forced.wait())}
        await asyncio.wait(ending, timeout=self.grace_seconds + END_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        for each in ending:
            each.cancel()


@asynccontextmanager
async def shared_metrics(own: Callable[[], bytes], directory: Path) -> AsyncIterator[Exposition]:
    """Serves this process's metrics to the others until the block ends; yields what returns those of all processes."""
    name = f"{os.getpid()}.sock"

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(own())
        writer.close()

    async def exposition() -> bytes:
        others = await asyncio.to_thread(_sockets, directory, name)
        return summed([own(), *await asyncio.gather(*map(_read, others))])

    async with await asyncio.start_unix_server(answer, directory / name):
        try:
            yield exposition
        finally:
            (directory / name).unlink(missing_ok=True)


def _sockets(directory: Path, own: str) -> list[Path]:
    return [each for each in sorted(directory.glob("*.sock")) if each.name != own]


async def _read(path: Path) -> bytes:
    """Returns the metrics of another process; nothing if it has ended."""
    try:
        async with asyncio.timeout(METRICS_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                return await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""


def summed(expositions: Iterable[bytes]) -> bytes:
    """Returns one exposition in Prometheus's text format with the sum of each sample, and the earliest `_created`."""
    metrics: dict[str, Metric] = {}
    values: defaultdict[tuple[str, str, tuple[tuple[str, str], ...]], list[float]] = defaultdict(list)
    for text in expositions:
        for family in text_string_to_metric_families(text.decode()):
            metrics.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                values[family.name, sample.name, tuple(sample.labels.items())].append(sample.value)
    for (family_name, name, labels), found in values.items():
        value = min(found) if name.endswith("_created") else sum(found)
        metrics[family_name].add_sample(name, dict(labels), value)
    return generate_latest(_Fixed(metrics.values()))


class _Fixed(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics
