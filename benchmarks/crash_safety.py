"""Crash safety: kill -9 of the server, PostgreSQL, Redis or all of them during a stream of writes.

Stores memories through store_batch. In each round concurrent writers store singly and in batches over HTTP;
the victim is killed at a random moment; once the service is back, its data is compared with the acknowledged
writes: no loss, no duplicate, no partial write, correct counts. Then unanswered writes are repeated with the
same idempotency keys. A task's working memory keeps its entries and remaining time (AC-8). The exit status is
1 after any violation.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from typing import Any

from redis.asyncio import Redis

from agentcore.memory.forgetting.inventory import WORKING_MEMORY
from agentcore.memory.params.memories import GetContextParams, StoreParams
from benchmarks.crash.served import Served, Victim, served
from benchmarks.crash.stream import Account, Stream
from benchmarks.crash.verdict import Verdict, judge
from benchmarks.ledger import append

AGENT = "crash-agent"
FILL_BATCH = 500
WRITERS = 8
EARLIEST, LATEST = 5, 60  # answered writes of a round before its kill
LONGEST_DELAY_SECONDS = 0.03
AFTER_KILL = 30  # further answered writes if no write fails
TTL_TOLERANCE_SECONDS = 3.0
TASK = "the task that survives"


@dataclass(frozen=True)
class Round:
    """One kill and its result. `found_later`: unanswered writes that were stored."""

    victim: str
    acknowledged: int
    unanswered: int
    found_later: int
    back_seconds: float
    ttl_drift_seconds: float
    working_memory_kept: bool
    verdict: Verdict

    @property
    def wrong(self) -> int:
        """Returns the total of violations."""
        late = self.ttl_drift_seconds > TTL_TOLERANCE_SECONDS
        return self.verdict.wrong + late + (not self.working_memory_kept)


@dataclass(frozen=True)
class Copy:
    """A task's working memory in Redis, and its expiry."""

    entries: tuple[bytes | str, ...]
    ends_at: float


class Trial:
    """A served home with memories, and the account of all sent writes."""

    def __init__(self, service: Served, seed: int) -> None:
        self._service = service
        self._chance = random.Random(seed)
        self.account = Account(seed)

    async def fill(self, memories: int) -> float:
        """Stores the memories and one task's working memory; returns the seconds."""
        started = time.perf_counter()
        async with self._service.client(AGENT) as memory:
            for start in range(0, memories, FILL_BATCH):
                write = self.account.make(min(FILL_BATCH, memories - start))
                self.account.acknowledge(write, await write.send(memory))
        # With another agent, since the account does not contain these memories.
        async with self._service.client(f"{AGENT}'s task") as memory:
            for number in range(3):
                await memory.store(StoreParams(content=f"Step {number} of the task is done.", task_id=TASK))
            await memory.get_context(GetContextParams(query="steps", task_id=TASK))
        return time.perf_counter() - started

    async def round(self, victim: Victim) -> Round:
        """Writes, kills, recovers, judges, repeats unanswered writes, judges again."""
        before, acknowledged = await self._copy(), len(self.account.acknowledged)
        targets = list(self.account.acknowledged.values())[:1_000]
        async with self._service.client(AGENT) as memory:
            stream = Stream(memory, self.account, targets)
            stream.start(WRITERS)
            await stream.until(answered=self._chance.randint(EARLIEST, LATEST))
            await asyncio.sleep(self._chance.uniform(0, LONGEST_DELAY_SECONDS))
            killed, at = self._service.kill(victim), time.perf_counter()
            await stream.until(answered=len(stream.answered) + AFTER_KILL, failed=1)
            await stream.stop()
        acknowledged = len(self.account.acknowledged) - acknowledged
        await self._service.until_back(victim, killed)
        back_seconds = time.perf_counter() - at
        after = await self._copy()
        first = await self._judge(stream)
        found_later = await self._repeat(stream)
        second = await self._judge(stream)
        return Round(
            victim.value,
            acknowledged,
            len(self.account.names(stream.unanswered)),
            found_later,
            back_seconds,
            abs(after.ends_at - before.ends_at),
            before.entries == after.entries != (),
            _sum_of(first, second),
        )

    async def restart(self) -> Round:
        """Stops as an operator does, and restarts."""
        before, at = await self._copy(), time.perf_counter()
        if await self._service.stop() != 0:
            raise RuntimeError(self._service.said.decode(errors="replace"))
        await self._service.start()
        back_seconds, after = time.perf_counter() - at, await self._copy()
        verdict = await judge(self._database_url(), AGENT, self.account, [])
        return Round(
            "nothing, a plain restart",
            0,
            0,
            0,
            back_seconds,
            abs(after.ends_at - before.ends_at),
            before.entries == after.entries != (),
            verdict,
        )

    async def _repeat(self, stream: Stream) -> int:
        """Repeats unanswered writes; returns how many had been stored."""
        found = 0
        async with self._service.client(AGENT) as memory:
            for write in stream.unanswered:
                results = await write.send(memory)
                found += sum(result.status == "existing" for result in results)
                self.account.acknowledge(write, results)
        if self.account.refused:
            raise RuntimeError(f"the service refused {self.account.refused[:3]}")
        return found

    async def _judge(self, stream: Stream) -> Verdict:
        return await judge(self._database_url(), AGENT, self.account, [*stream.answered, *stream.unanswered])

    def _database_url(self) -> str:
        return self._service.urls().database_url or ""

    async def _copy(self) -> Copy:
        async with Redis.from_url(self._service.urls().redis_url or "") as redis:
            [key] = [each async for each in redis.scan_iter(WORKING_MEMORY.pattern(f"{AGENT}'s task"))]
            milliseconds = await redis.pttl(key)
            ends_at = time.time() + milliseconds / 1_000
            return Copy(tuple(await redis.lrange(key, 0, -1)), ends_at)


def _sum_of(first: Verdict, second: Verdict) -> Verdict:
    """Adds both verdicts of a round; the memories are the final ones."""
    summed = {name: value + getattr(first, name) for name, value in asdict(second).items()}
    return Verdict(**{**summed, "memories": second.memories})


@asynccontextmanager
async def trial(memories: int, seed: int) -> AsyncIterator[tuple[Trial, float]]:
    """Yields a filled home, and the seconds to fill it."""
    async with served() as service:
        begun = Trial(service, seed)
        yield begun, await begun.fill(memories)


async def run(
    rounds: int, memories: int, seed: int, tell: Callable[[str], None] = print
) -> tuple[list[Round], dict[str, Any]]:
    """Runs kills with each victim in turn, then a plain restart; returns the rounds and the total figures."""
    async with trial(memories, seed) as (begun, fill_seconds):
        tell(f"{memories} memories stored in {fill_seconds:.1f} s\n{HEADING}")
        done: list[Round] = []
        for victim in islice(cycle(Victim), rounds):
            done.append(await begun.round(victim))
            tell(line(len(done), done[-1]))
        done.append(await begun.restart())
        tell(line(len(done), done[-1]))
    return done, figures(done, fill_seconds)


COLUMNS = {
    "acknowledged": 13,
    "unanswered": 11,
    "found_later": 12,
    "memories": 9,
    "lost": 5,
    "doubled": 8,
    "altered": 8,
    "torn": 5,
    "half_written": 13,
    "dangling": 9,
    "miscounted": 11,
    "back_seconds": 13,
    "ttl_drift_seconds": 18,
}
HEADING = f"{'':>3} {'killed':<25}" + "".join(f"{name:>{width}}" for name, width in COLUMNS.items())


def line(number: int, each: Round) -> str:
    values = {**asdict(each), **asdict(each.verdict)}
    cells = (f"{round(values[name], 3):>{width}}" for name, width in COLUMNS.items())
    return f"{number:>3} {each.victim:<25}{''.join(cells)}{'' if each.wrong == 0 else '  WRONG'}"


def figures(done: list[Round], fill_seconds: float) -> dict[str, Any]:
    counts = ("lost", "doubled", "altered", "torn", "half_written", "dangling", "miscounted")
    return {
        "kills": len(done) - 1,
        "acknowledged": sum(each.acknowledged for each in done),
        "without_answer": sum(each.unanswered for each in done),
        "found_later": sum(each.found_later for each in done),
        **{name: sum(getattr(each.verdict, name) for each in done) for name in counts},
        "working_memory_kept": all(each.working_memory_kept for each in done),
        "largest_ttl_drift_seconds": round(max(each.ttl_drift_seconds for each in done), 3),
        "longest_back_seconds": round(max(each.back_seconds for each in done), 2),
        "fill_seconds": round(fill_seconds, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="kills")
    parser.add_argument("--memories", type=int, default=10_000, help="stored before the first kill")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of moments and texts")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    done, summed = asyncio.run(run(options.rounds, options.memories, options.seed))
    print("\n".join(f"{name:<28}{value}" for name, value in summed.items()))
    append("crash_safety", vars(options), summed)
    return int(any(each.wrong for each in done))
