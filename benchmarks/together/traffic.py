"""Clients that store, search, correct, rate, delete and prune a few agents' memories through any server."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError, Conflict, NotFound
from agentcore.memory.models import MemoryType
from agentcore.memory.params.changes import FeedbackParams, UpdateParams
from agentcore.memory.params.memories import (
    DeleteParams,
    GetParams,
    PruneParams,
    RetrieveParams,
    StoreBatchParams,
    StoreParams,
)
from benchmarks.corpus import question, sentence

COUNTED = 4
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
# Allowed errors: another call was first, or the memory was deleted.
EXPECTED = (Conflict, NotFound)


@dataclass
class Account:
    """The acknowledged, refused and unanswered calls."""

    calls: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    versions: dict[tuple[str, UUID], list[int]] = field(default_factory=lambda: defaultdict(list))
    increments: Counter[tuple[str, UUID]] = field(default_factory=Counter)
    unanswered: Counter[tuple[str, UUID]] = field(default_factory=Counter)
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


class Client:
    """One caller of one agent, which uses the servers in turn."""

    def __init__(
        self,
        agent_id: str,
        servers: Sequence[MemoryClient],
        counted: Sequence[UUID],
        account: Account,
        chance: random.Random,
    ) -> None:
        self._agent_id = agent_id
        self._servers = servers
        self._counted = counted
        self._account = account
        self._chance = chance
        self._known: list[UUID] = []
        self._work: list[tuple[str, int, Callable[[MemoryClient], Awaitable[object]]]] = [
            ("count", 25, self._count),
            ("store", 14, self._store),
            ("state", 5, self._state),
            ("retrieve", 18, self._retrieve),
            ("cross", 15, self._cross),
            ("judge", 8, self._judge),
            ("correct", 8, self._correct),
            ("delete", 4, self._delete),
            ("prune", 3, self._prune),
        ]

    async def run(self, until: float) -> None:
        """Runs sequential calls until this time.monotonic value."""
        weights = [weight for _, weight, _ in self._work]
        while time.monotonic() < until:
            [(name, _, work)] = self._chance.choices(self._work, weights)
            began = time.perf_counter()
            self._account.calls[name] += 1
            try:
                await work(self._chance.choice(self._servers))
            except EXPECTED as error:
                self._account.refused[f"{name}: {type(error).__name__}"] += 1
            except AgentCoreError as error:
                self._account.errors[f"{name}: {type(error).__name__}: {error.message}"] += 1
            self._account.milliseconds[name].append((time.perf_counter() - began) * 1_000)

    async def _count(self, memory: MemoryClient) -> None:
        """Increments a shared counter in a memory: reads, adds, and writes under `if_version`."""
        memory_id = self._chance.choice(self._counted)
        record = (await memory.get(GetParams(memory_id=memory_id))).memory
        count = int(record.metadata["count"]) + 1
        updates: dict[str, object] = {"metadata": {"count": count}, "if_version": record.version}
        if self._chance.random() < 0.3:
            updates["content"] = f"The meter of {self._agent_id} stands at {count}."
        await self._change(memory_id, memory.update(_updates(memory_id, **updates)))
        self._account.increments[self._agent_id, memory_id] += 1

    async def _cross(self, memory: MemoryClient) -> None:
        """Links two memories while another client links them in the opposite direction."""
        one, other = self._chance.sample(list(self._counted), 2)
        updates: dict[str, object] = {"unlink": [str(other)]}
        if self._chance.random() < 0.7:
            updates = {"links": [{"target_id": str(other), "relation": "beside"}]}
        await self._change(one, memory.update(_updates(one, **updates)))

    async def _judge(self, memory: MemoryClient) -> None:
        memory_id = self._chance.choice(self._counted)
        verdict = FeedbackParams(memory_id=memory_id, verdict=self._chance.choice(["helpful", "unhelpful"]))
        await self._change(memory_id, memory.feedback(verdict))

    async def _change(self, memory_id: UUID, call: Awaitable[object]) -> None:
        place = self._agent_id, memory_id
        try:
            result = await call
        except EXPECTED:
            raise
        except AgentCoreError:
            self._account.unanswered[place] += 1
            raise
        self._account.versions[place].append(int(getattr(result, "version")))  # noqa: B009 - two results have it

    async def _store(self, memory: MemoryClient) -> None:
        items = [
            StoreParams(content=f"{sentence(self._chance)} ({self._chance.random()})", force=True)
            for _ in range(self._chance.randint(1, 6))
        ]
        results = (await memory.store_batch(StoreBatchParams(items=items))).results
        self._known = [*self._known, *(each.memory_id for each in results if each.memory_id)][-50:]

    async def _state(self, memory: MemoryClient) -> None:
        """Stores a fact that supersedes the previous one."""
        name = self._chance.choice(["Heron", "Finch", "Kite"])
        budget = self._chance.randint(1, 10_000)
        await memory.store(StoreParams(content=f"The budget of project {name} is {budget} euros."))

    async def _retrieve(self, memory: MemoryClient) -> None:
        found = await memory.retrieve(RetrieveParams(query=question(self._chance)))
        self._known = [*self._known, *(each.memory_id for each in found.memories)][-50:]

    async def _correct(self, memory: MemoryClient) -> None:
        if changing := self._others():
            updates = {
                "content": sentence(self._chance),
                "links": [{"target_id": str(self._chance.choice(self._counted)), "relation": "beside"}],
            }
            await memory.update(_updates(self._chance.choice(changing), **updates))

    async def _delete(self, memory: MemoryClient) -> None:
        if going := self._others()[-12:]:
            await memory.delete(DeleteParams(memory_ids=self._chance.sample(going, min(3, len(going)))))

    def _others(self) -> list[UUID]:
        """Returns memories that it recently stored or found, without counters."""
        return [each for each in self._known if each not in self._counted]

    async def _prune(self, memory: MemoryClient) -> None:
        share = self._chance.choice([0.02, 0.05])
        await memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=share))


def _updates(memory_id: UUID, **updates: object) -> UpdateParams:
    return UpdateParams.model_validate({"memory_id": memory_id, "updates": updates})


async def counted_memories(memory: MemoryClient, agent_id: str) -> list[UUID]:
    """Stores counters at 0, version 1, which no call deletes."""
    items = [
        StoreParams(
            content=f"Meter {number} of {agent_id} stands at 0.",
            pinned=True,
            force=True,
            memory_type=MemoryType.SEMANTIC,
            metadata={"count": 0},
            supersede=False,
        )
        for number in range(COUNTED)
    ]
    results = (await memory.store_batch(StoreBatchParams(items=items))).results
    return [each.memory_id for each in results if each.memory_id is not None]
