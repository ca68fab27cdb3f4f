"""A stream of concurrent writes with an account of acknowledged and unanswered requests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from agentcore.errors import AgentCoreError
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import Link
from agentcore.memory.params.memories import StoreBatchParams, StoreParams, StoreResult
from benchmarks.corpus import sentence

BATCH = 20
BATCH_SHARE = 0.4
LINK_SHARE = 0.3
TASK_SHARE = 0.2
LONGEST_WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Write:
    """One request. Each item's external id is also its idempotency key."""

    items: tuple[StoreParams, ...]
    is_batch: bool

    async def send(self, memory: MemoryApi) -> list[StoreResult]:
        """Sends one call and returns a result for each item."""
        if self.is_batch:
            return (await memory.store_batch(StoreBatchParams(items=list(self.items)))).results
        return [await memory.store(self.items[0])]


class Account:
    """All sent items: contents by external id, and the acknowledged memory ids."""

    def __init__(self, seed: int) -> None:
        self.contents: dict[str, str] = {}
        self.acknowledged: dict[str, UUID] = {}
        self.refused: list[str] = []
        self._chance = random.Random(seed)

    def make(self, count: int, *, targets: Sequence[UUID] = ()) -> Write:
        """Returns a write of `count` new items; some are linked to a target, some belong to a task."""
        return Write(tuple(self._item(targets) for _ in range(count)), count > 1)

    def _item(self, targets: Sequence[UUID]) -> StoreParams:
        chance, name = self._chance, f"write-{len(self.contents)}"
        content = f"{name}: {sentence(chance)}"
        self.contents[name] = content
        linked = bool(targets) and chance.random() < LINK_SHARE
        links = [Link(target_id=chance.choice(targets), relation="after")] if linked else []
        task_id = f"task-{chance.randrange(5)}" if chance.random() < TASK_SHARE else None
        return StoreParams(content=content, external_id=name, idempotency_key=name, links=links, task_id=task_id)

    def next_write(self, targets: Sequence[UUID]) -> Write:
        """Returns a single store or a batch."""
        return self.make(BATCH if self._chance.random() < BATCH_SHARE else 1, targets=targets)

    def acknowledge(self, write: Write, results: Sequence[StoreResult]) -> None:
        """Records the acknowledged ids."""
        for item, result in zip(write.items, results, strict=True):
            name = item.external_id or ""
            if result.memory_id is None or result.status not in ("stored", "existing"):
                self.refused.append(f"{name}: {result.status} {result.reason}")
            else:
                self.acknowledged[name] = result.memory_id

    def names(self, writes: Sequence[Write]) -> list[str]:
        """Returns the external ids of these writes."""
        return [item.external_id or "" for write in writes for item in write.items]


class Stream:
    """Writers that run until stopped; a failed write is recorded, and the next one is sent."""

    def __init__(self, memory: MemoryApi, account: Account, targets: Sequence[UUID]) -> None:
        self._memory = memory
        self._account = account
        self._targets = targets
        self._changed = asyncio.Condition()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self.answered: list[Write] = []
        self.unanswered: list[Write] = []
        self.failures: dict[str, int] = {}

    def start(self, writers: int) -> None:
        self._tasks = [asyncio.create_task(self._work()) for _ in range(writers)]

    async def until(self, *, answered: int, failed: int | None = None) -> None:
        """Waits until this many writes are answered, or this many have failed."""
        async with asyncio.timeout(LONGEST_WAIT_SECONDS), self._changed:
            await self._changed.wait_for(
                lambda: len(self.answered) >= answered or (failed is not None and len(self.unanswered) >= failed)
            )

    async def stop(self) -> None:
        """Stops each writer after its current write."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def _work(self) -> None:
        while not self._stopping:
            write = self._account.next_write(self._targets)
            try:
                results = await write.send(self._memory)
            except AgentCoreError as failure:
                self.unanswered.append(write)
                self._tally(failure)
            else:
                self._account.acknowledge(write, results)
                self.answered.append(write)
            async with self._changed:
                self._changed.notify_all()

    def _tally(self, failure: AgentCoreError) -> None:
        name = f"{type(failure).__name__}: {failure.message.partition('http')[0]}"
        self.failures[name] = self.failures.get(name, 0) + 1
