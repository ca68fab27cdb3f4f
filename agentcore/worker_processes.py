"""Additional processes of one service: they answer calls on its socket, and share its metrics.

Each exits when its stdin is closed, so none outlives the first process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket

from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

WORKER_MODULE = "agentcore.cli.worker_process"
# Exponential backoff between restarts; reset after a process ran longer than MAX_RESTART_SECONDS.
FIRST_RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 30.0
PACKAGE_PARENT = Path(__file__).resolve().parents[1]
# Added to the grace time of calls, for the process to close its resources.
EXIT_SECONDS = 5.0
METRICS_SECONDS = 2.0
# Terminator, an exposition comment: a response without it is truncated.
END_OF_METRICS = b"# EOF\n"

ReadMetrics = Callable[[], Awaitable[bytes]]

logger = logging.getLogger(__name__)


@asynccontextmanager
async def worker_processes(
    count: int,
    listener: socket,
    metrics_directory: Path,
    grace_seconds: float,
    *,
    stopping: asyncio.Event,
    forced: asyncio.Event,
) -> AsyncIterator[None]:
    """Runs `count` processes on this socket; restarts those that end.

    Once `stopping` is set, or at the end of the block, they have `grace_seconds` for running calls; `forced` kills
    them.
    """
    ending = asyncio.Event()
    supervisor = _Supervisor(listener, metrics_directory, grace_seconds, ending, forced)
    supervising = [asyncio.create_task(supervisor.run()) for _ in range(count)]
    watching = asyncio.create_task(_set_after(stopping, ending))
    try:
        yield
    finally:
        ending.set()
        watching.cancel()
        await asyncio.gather(*supervising)


async def _set_after(first: asyncio.Event, then: asyncio.Event) -> None:
    await first.wait()
    then.set()


@dataclass(frozen=True)
class _Supervisor:
    """Keeps one process running per call of `run`."""

    listener: socket
    metrics_directory: Path
    grace_seconds: float
    ending: asyncio.Event
    forced: asyncio.Event

    async def run(self) -> None:
        delay = FIRST_RESTART_SECONDS
        while not self.ending.is_set():
            started_at = time.monotonic()
            try:
                process = await self._start()
            except OSError as failure:
                logger.warning("a worker process could not start", extra={"failure": str(failure)})
            else:
                await self._until_exit(process)
                (self.metrics_directory / f"{process.pid}.sock").unlink(missing_ok=True)
            if time.monotonic() - started_at > MAX_RESTART_SECONDS:
                delay = FIRST_RESTART_SECONDS
            if not self.ending.is_set():
                await _first_of(self.ending.wait(), timeout=delay)
            delay = min(2 * delay, MAX_RESTART_SECONDS)

    async def _start(self) -> Process:
        descriptor = self.listener.fileno()
        # -P keeps the current directory off sys.path. In its own session it gets no SIGINT from the terminal:
        # the first process stops it.
        command = (sys.executable, "-P", "-m", WORKER_MODULE, str(descriptor), str(self.metrics_directory))
        paths = [str(PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])]
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            pass_fds=(descriptor,),
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    async def _until_exit(self, process: Process) -> None:
        await _first_of(process.wait(), self.ending.wait())
        if not self.ending.is_set():
            logger.warning("a worker process ended: restarting", extra={"failure": f"exit code {process.returncode}"})
            return
        if process.stdin is not None:
            process.stdin.close()
        await _first_of(process.wait(), self.forced.wait(), timeout=self.grace_seconds + EXIT_SECONDS)
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _first_of(*events: Awaitable[object], timeout: float | None = None) -> None:  # noqa: ASYNC109 - of all
    waits = [asyncio.ensure_future(each) for each in events]
    await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for each in waits:
        each.cancel()


@asynccontextmanager
async def shared_metrics(local: Callable[[], bytes], directory: Path) -> AsyncIterator[ReadMetrics]:
    """Serves this process's metrics to the others; yields a function that merges those of all."""
    name = f"{os.getpid()}.sock"

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(local() + END_OF_METRICS)
        finally:
            writer.close()

    async def merged() -> bytes:
        others = await asyncio.to_thread(_other_sockets, directory, name)
        texts = [local(), *await asyncio.gather(*map(_read, others))]
        return await asyncio.to_thread(merge_metrics, texts)

    async with await asyncio.start_unix_server(answer, directory / name):
        try:
            yield merged
        finally:
            (directory / name).unlink(missing_ok=True)


def _other_sockets(directory: Path, own: str) -> list[Path]:
    return [each for each in sorted(directory.glob("*.sock")) if each.name != own]


async def _read(path: Path) -> bytes:
    """Returns another process's metrics; empty if it ends or does not answer in time."""
    try:
        async with asyncio.timeout(METRICS_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                text = await reader.read()
                return text if text.endswith(END_OF_METRICS) else b""
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""


def merge_metrics(expositions: Iterable[bytes]) -> bytes:
    """Returns the sum of each sample, and the earliest `_created`.

    Samples of exited processes are missing, so counters may decrease, which rate() reads as a reset.
    """
    metrics: dict[str, Metric] = {}
    samples: defaultdict[tuple[str, str, tuple[tuple[str, str], ...]], list[float]] = defaultdict(list)
    for text in expositions:
        for family in text_string_to_metric_families(text.decode()):
            metrics.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                samples[family.name, sample.name, tuple(sample.labels.items())].append(sample.value)
    for (family_name, name, labels), values in samples.items():
        value = min(values) if name.endswith("_created") else sum(values)
        metrics[family_name].add_sample(name, dict(labels), value)
    return generate_latest(_StaticCollector(metrics.values()))


class _StaticCollector(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics
