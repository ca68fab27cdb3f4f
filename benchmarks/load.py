"""Load over HTTP: throughput, fairness between agents, and overload of `agentcore serve`.

Fills one agent, then starts the service as a process. Each caller sends memory.retrieve over one connection, one
call at a time: 10 and 100 callers with new queries, 10 with cached query vectors, one caller of another agent
beside 100, and `--crowd` callers at once. The callers run on the same machine; a connection stays with one
process of the service. Milliseconds are of answered calls, without waits after a 429. DESIGN section 7.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from agentcore.auth import mint_token
from agentcore.server import ENDPOINT
from benchmarks.corpus import question
from benchmarks.ledger import append, percentiles
from benchmarks.retrieval_latency import AGENT, fill, settle
from benchmarks.service import SECRET, run, running_service

OTHER = "other-agent"
# Distinct queries of callers with cached vectors.
CACHED_QUERIES = 200
START_SECONDS = 120.0

Ask = Callable[[], str]
Row = dict[str, Any]


@dataclass
class Done:
    """Milliseconds of answered calls by agent, and the seconds of each `Retry-After`."""

    taken: dict[str, list[float]] = field(default_factory=dict)
    retry_after: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    async def post(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, method: str, params: Row
    ) -> int:
        """Runs one call; returns 0, or the seconds of `Retry-After`. Raises RuntimeError for an error."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        writer.write(
            f"POST {ENDPOINT} HTTP/1.1\r\nhost: {self.host}\r\nauthorization: Bearer {token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        answer = json.loads(await reader.readexactly(int(fields["content-length"])))
        if head.split(" ", 2)[1] == "429":
            return int(fields["retry-after"])
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return 0


async def caller(address: Address, agent_id: str, ask: Ask, ends: float, done: Done) -> None:
    """Runs sequential searches until `ends`; after a 429 waits as long as it says."""
    token = mint_token(SECRET, agent_id, ["memory:read"], 86_400, now=time.time())
    reader, writer = await asyncio.open_connection(address.host, address.port)
    taken = done.taken.setdefault(agent_id, [])
    try:
        while time.perf_counter() < ends:
            began = time.perf_counter()
            params = {"query": ask(), "k": 5}
            if seconds := await address.post(reader, writer, token, "memory.retrieve", params):
                done.retry_after.append(seconds)
                await asyncio.sleep(min(seconds, max(0.0, ends - time.perf_counter())))
            else:
                taken.append((time.perf_counter() - began) * 1_000)
    finally:
        writer.close()


async def phase(address: Address, callers: dict[str, int], ask: Ask, seconds: float) -> Row:
    """Runs the given number of callers of each agent at once; returns the figures of all, and of each agent."""
    done, began = Done(), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for agent_id, count in callers.items():
            for _ in range(count):
                tasks.create_task(caller(address, agent_id, ask, began + seconds, done))
    elapsed = time.perf_counter() - began
    figures: Row = {"per_second": round(sum(map(len, done.taken.values())) / elapsed, 1)}
    for agent_id, taken in done.taken.items():
        figures[f"{agent_id}_ms"] = percentiles(taken) if taken else {}
    if done.retry_after:
        figures |= {"rejected": len(done.retry_after), "longest_retry_after": max(done.retry_after)}
    return figures


@asynccontextmanager
async def serving(home: Path, options: argparse.Namespace, *, maintenance: bool = False) -> AsyncIterator[Address]:
    """Runs `agentcore serve` on this home until the block ends, without background work unless `maintenance`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address(*free.getsockname()[:2])
    environment = {
        **os.environ,
        "AGENTCORE_HOME": str(home),
        "JWT_SECRET_KEY": SECRET,
        "EMBEDDING_MODEL": options.embedder,
        "MAINTENANCE_IN_SERVER": str(maintenance).lower(),
        "RATE_LIMIT_PER_MINUTE": "0",
        "LOG_LEVEL": "WARNING",
    }
    arguments = ["serve", "--port", str(address.port), "--workers", str(options.workers)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agentcore", *arguments, env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await _answers(address):
                assert process.returncode is None, "the service ended"
                await asyncio.sleep(0.2)
        yield address
    finally:
        process.terminate()
        await process.wait()


async def _answers(address: Address) -> bool:
    try:
        _, writer = await asyncio.open_connection(address.host, address.port)
    except OSError:
        return False
    writer.close()
    return True


def memory_of_service() -> list[int]:
    """Returns the resident memory of each Python process of the service, in MiB."""
    own = psutil.Process().children(recursive=True)
    those = [each for each in own if "agentcore" in " ".join(each.cmdline()) and "python" in each.name()]
    return [round(each.memory_info().rss / 2**20) for each in those]


@contextmanager
def home_of(options: argparse.Namespace) -> Iterator[Path]:
    if options.home is not None:
        yield options.home
        return
    with tempfile.TemporaryDirectory(prefix="agentcore-bench-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory) / "home"


async def measure(options: argparse.Namespace) -> Row:
    """Fills the home, then runs all phases."""
    # Not from the seed: a kept home keeps the vectors of earlier queries.
    chance = random.Random(time.time_ns())
    with home_of(options) as home:
        async with running_service(home, embedding_model=options.embedder, maintenance_in_server=False) as service:
            await fill(service, AGENT, options.memories, options.seed)
            await fill(service, OTHER, 100, options.seed + 1)
            await settle(service)
        known = [question(chance) for _ in range(CACHED_QUERIES)]

        def new_query() -> str:
            return f"{question(chance)} ({chance.randrange(10**9)})"

        async with serving(home, options) as address:
            seconds = options.seconds
            # Loads the model and fills the cache of query vectors.
            await phase(address, {AGENT: 10}, lambda: chance.choice(known), seconds)
            return {
                "callers_10": await phase(address, {AGENT: 10}, new_query, seconds),
                "callers_100": await phase(address, {AGENT: 100}, new_query, seconds),
                "callers_10_cached": await phase(address, {AGENT: 10}, lambda: chance.choice(known), seconds),
                "beside_100": await phase(address, {AGENT: 100, OTHER: 1}, new_query, seconds),
                "crowd": await phase(address, {AGENT: options.crowd, OTHER: 1}, new_query, 2 * seconds),
                "resident_mib": memory_of_service(),
            }


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options of a benchmark that fills a home and starts the service on it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    parser.add_argument("--embedder", default="local", help="local | hashing")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--home", type=Path, help="a home to fill, which is kept")
    return parser


def report(benchmark: str, options: argparse.Namespace, figures: Row) -> None:
    """Prints the figures and appends them to the ledger."""
    for name, value in figures.items():
        print(f"{name:<34} {value}")
    append(benchmark, {name: value for name, value in vars(options).items() if name != "home"}, figures)


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--crowd", type=int, default=800, help="callers of the phase with too many")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each phase; twice as long with the crowd")
    options = parser.parse_args()
    report("load", options, run(measure(options)))
    return 0
