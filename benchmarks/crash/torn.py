"""Prunes and restores killed at a fault point, and the verdict on the remaining memories."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.errors import AgentCoreError, Conflict, NotFound
from agentcore.failpoints import FAILPOINTS, VARIABLE
from agentcore.memory.api import SCOPES, Caller, MemoryApi
from agentcore.memory.archival import Archive, ArchivedObject, read_copy
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import Link, MemoryType
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.memories import DeleteParams, PruneParams, StoreBatchParams, StoreParams
from agentcore.memory.parts import MemoryParts
from benchmarks.corpus import sentence
from benchmarks.crash.nursery import Nursery
from benchmarks.crash.records import records
from benchmarks.crash.verdict import MISCOUNTED

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
FEWEST, MOST = 4, 14
PINNED_SHARE = LINKED_SHARE = 0.3
ONCE_A_COPY = {"archive.drafted", "archive.placed", "archive.put"}
PATIENCE_SECONDS = 30.0
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %(name)s"
KILLED = -9
TOMBSTONES = "SELECT memory_id, object_key, sha256 FROM archived_memories WHERE agent_id = %(agent_id)s"


def points(kind: str) -> list[str]:
    """Returns the fault points of prune, archive, restore, erase or reembed."""
    return [name for name in FAILPOINTS if name.startswith(f"{kind}.")]


@dataclass(frozen=True)
class Remains:
    """Violations after a kill; each count should be 0."""

    lost: int = 0
    doubled: int = 0
    altered: int = 0
    miscounted: int = 0
    unfinished: int = 0
    survived: int = 0

    @property
    def wrong(self) -> int:
        """Returns the total of violations."""
        return sum(vars(self).values())

    def __add__(self, other: Remains) -> Remains:
        return Remains(*(sum(each) for each in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Place:
    """The environment of the trials: the parts of an in-process service, and the variables of another
    process."""

    parts: MemoryParts
    archive: Archive
    database_url: str
    environment: Mapping[str, str]


class Tearing:
    """Trials on one place, each with a separate agent."""

    def __init__(self, place: Place, nursery: Nursery, chance: random.Random, *, telling: str = "rightly") -> None:
        self._place = place
        self._nursery = nursery
        self._chance = chance
        self._telling = telling
        self._secret = place.environment["JWT_SECRET_KEY"]
        self.kills = 0
        self._name = f"victim-{chance.randrange(10**9)}"

    async def trial(self, point: str) -> Remains:
        """Fills, kills at the point, judges, repeats, judges, restores everything, judges."""
        agent_id = f"torn-{time.time_ns()}"
        memory = MemoryManager(self._place.parts, Caller(agent_id))
        going = await self._fill(memory, agent_id)
        before = await records(self._place.database_url, agent_id)
        operation = _prune(len(going))
        if point.startswith("restore."):
            await operation(memory)
            operation = _restore
        which = self._chance.randint(1, len(going)) if point in ONCE_A_COPY else 1
        survived = await self._kill(f"{point}:{which}", agent_id, operation)
        found = await self._judge(agent_id, before) + Remains(survived=survived)
        if found.lost:
            return found
        found += await self._finish(agent_id, memory, operation, before, going)
        await memory.delete(DeleteParams(all=True, confirm=True))
        return found

    async def _fill(self, memory: MemoryApi, agent_id: str) -> list[UUID]:
        """Stores a few memories with links, accesses, names and pins; returns those that a prune may
        remove."""
        chance = self._chance
        count = chance.randint(FEWEST, MOST)
        pinned = [chance.random() < PINNED_SHARE for _ in range(count - 1)] + [False]
        items = [
            StoreParams(
                content=f"Note {number}, of Heron {number} (H{number}x): {sentence(chance)}",
                pinned=pinned[number],
                importance=round(chance.random(), 3),
                task_id=chance.choice([None, "task"]),
                tags=["a"],
                metadata={"n": chance.random()},
                timestamp=FIRST + timedelta(minutes=number),
            )
            for number in range(count)
        ]
        results = (await memory.store_batch(StoreBatchParams(items=items))).results
        ids = [each.memory_id for each in results if each.memory_id is not None]
        async with self._place.parts.storage.transaction(agent_id) as transaction:
            for number, memory_id in enumerate(ids[1:]):
                if chance.random() < LINKED_SHARE:
                    target_id = ids[chance.randint(0, number)]
                    await transaction.links.add(memory_id, [Link(target_id=target_id, relation="after")])
            used = chance.sample(ids, len(ids) // 2)
            await transaction.life.count_accesses(dict.fromkeys(used, 2), dict.fromkeys(used, FIRST))
        return [each for each, stays in zip(ids, pinned, strict=True) if not stays]

    async def _kill(self, armed: str, agent_id: str, operation: Operation) -> int:
        """Runs an operation on a server that dies at the armed point; returns 1 if it survived."""
        database_url = f"{self._place.environment['DATABASE_URL']}&application_name={self._name}"
        environment = {**self._place.environment, "DATABASE_URL": database_url, VARIABLE: armed}
        self.kills += 1
        url = await self._nursery.start(environment, telling=self._telling)
        token = mint_token(self._secret, agent_id, SCOPES, 600)
        async with MemoryClient(url, token, max_attempts=1) as client:
            try:
                await operation(client)
            except AgentCoreError:
                survived = int(await self._nursery.ended() != KILLED)
            else:
                raise RuntimeError(f"the server lived on at {armed}")
        await until_let_go(self._place.database_url, self._name)
        return survived

    async def _finish(
        self,
        agent_id: str,
        memory: MemoryManager,
        operation: Operation,
        before: Mapping[UUID, Sequence[str]],
        going: Sequence[UUID],
    ) -> Remains:
        """Repeats the interrupted operation and restores everything; all must be complete and unchanged."""
        await operation(memory)
        after = await records(self._place.database_url, agent_id)
        wanted = set(before) if operation is _restore else set(before) - set(going)
        unfinished = len(set(after) ^ wanted)
        found = await self._judge(agent_id, before) + Remains(unfinished=unfinished)
        await _restore(memory)
        end = await records(self._place.database_url, agent_id)
        altered = sum(end.get(each) != rows for each, rows in before.items()) + len(set(end) - set(before))
        return found + Remains(altered=altered)

    async def _judge(self, agent_id: str, before: Mapping[UUID, Sequence[str]]) -> Remains:
        now = await records(self._place.database_url, agent_id)
        tombstones = {row["memory_id"]: row for row in await self._rows(TOMBSTONES, agent_id=agent_id)}
        whole = {each for each, row in tombstones.items() if await self._is_whole(each, row)}
        return Remains(
            lost=len(set(before) - set(now) - whole),
            doubled=len(set(now) & set(tombstones)) + len(set(now) - set(before)),
            altered=sum(_own(now[each]) != _own(rows) for each, rows in before.items() if each in now),
            miscounted=await self._number(MISCOUNTED, agent_id=agent_id),
        )

    async def _is_whole(self, memory_id: UUID, row: Mapping[str, Any]) -> bool:
        kept = ArchivedObject(row["object_key"], bytes(row["sha256"]), 0)
        try:
            await read_copy(self._place.archive, memory_id, kept)
        except (NotFound, Conflict):
            return False
        return True

    async def _rows(self, statement: str, **values: str) -> list[dict[str, Any]]:
        return await rows_of(self._place.database_url, statement, **values)

    async def _number(self, statement: str, **values: str) -> int:
        [row] = await self._rows(statement, **values)
        return int(next(iter(row.values())))


async def rows_of(database_url: str, statement: str, **values: str) -> list[dict[str, Any]]:
    """Runs a query as the database owner."""
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as connection:
        return await (await connection.execute(statement.encode(), values)).fetchall()


async def until_let_go(database_url: str, name: str) -> None:
    """Waits until PostgreSQL has ended the sessions of the killed process with this name."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (await rows_of(database_url, SESSIONS, name=name))[0]["count"]:
        if time.monotonic() > deadline:
            raise TimeoutError("PostgreSQL still holds a session of the victim")
        await asyncio.sleep(0.005)


def _own(rows: Sequence[str]) -> list[str]:
    """Removes links, which depend on the memory at their other end."""
    return [row for row in rows if not row.startswith("memory_links ")]


Operation = Callable[[MemoryApi], Awaitable[None]]


def _prune(count: int) -> Operation:
    params = PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=max(1, count))

    async def prune(memory: MemoryApi) -> None:
        await memory.prune(params)

    return prune


async def _restore(memory: MemoryApi) -> None:
    await memory.restore(RestoreParams(all=True))
