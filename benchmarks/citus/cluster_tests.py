"""Calls on a cluster while callers change the same memories, shards move, a worker is killed, another joins and all
memories are embedded again; then searches through a vector index, and row security.

python -m benchmarks.citus.cluster_tests TARGET_DIR [--seconds 20] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from agentcore import migration
from agentcore.errors import StartupError
from benchmarks import ledger
from benchmarks.citus import isolation, vector_index
from benchmarks.citus.cluster import Cluster, Node, cluster
from benchmarks.service import CallFailed, Service, run, running_service

AGENTS = 8
USERS = ("user-0", "user-1", "user-2")
REEMBEDDED = 256
PORTS = """
SELECT agent_id, nodeport FROM unnest(%s::text[]) AS agent_id
  JOIN citus_shards ON table_name = 'memories'::regclass
   AND shardid = get_shard_id_for_distribution_column('memories'::regclass, agent_id)"""
MOVE = """
SELECT citus_move_shard_placement(
    get_shard_id_for_distribution_column('memories'::regclass, %s::text), '127.0.0.1', %s, '127.0.0.1', %s,
    shard_transfer_mode => %s::citus.shard_transfer_mode)"""
REBALANCE = "SELECT rebalance_table_shards(shard_transfer_mode => 'force_logical')"
DEADLOCKS = ("deadlock detected", "distributed deadlock")


@dataclass
class Caller:
    """An agent that stores one memory after the other, and retrieves the last."""

    agent_id: str
    stored: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    longest_call_s: float = 0.0
    longest_pause_s: float = 0.0
    last_success: float = field(default_factory=time.perf_counter)
    has_succeeded: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, service: Service, stop: asyncio.Event) -> None:
        while not stop.is_set():
            text = f"Note {time.perf_counter_ns()} of {self.agent_id}: the meter shows {random.randrange(10**6)}."
            began = time.perf_counter()
            try:
                stored = await service.call(self.agent_id, "memory.store", {"content": text})
                self.stored.append(stored["memory_id"])
                await service.call(self.agent_id, "memory.retrieve", {"query": text, "k": 3})
            except CallFailed as failure:
                self.errors[described(failure)] += 1
                await asyncio.sleep(0.05)
            else:
                now = time.perf_counter()
                self.longest_pause_s, self.last_success = max(self.longest_pause_s, now - self.last_success), now
                self.has_succeeded.set()
            self.longest_call_s = max(self.longest_call_s, time.perf_counter() - began)


def described(failure: CallFailed) -> str:
    error = failure.error
    data = error.get("data", {})
    return f"{error['code']} {data.get('cause', error['message'][:60])} retryable={data.get('retryable')}"


@asynccontextmanager
async def load(service: Service, agents: list[str]) -> AsyncIterator[list[Caller]]:
    stop = asyncio.Event()
    callers = [Caller(agent) for agent in agents]
    tasks = [asyncio.create_task(caller.run(service, stop)) for caller in callers]
    await asyncio.sleep(2)
    yield callers
    await asyncio.sleep(2)
    stop.set()
    await asyncio.gather(*tasks)


async def rows(url: str, statement: str, *values: Any) -> list[Any]:
    def execute() -> list[Any]:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    return await asyncio.to_thread(execute)


async def outcome(running: Cluster, callers: list[Caller]) -> dict[str, Any]:
    """Returns what callers saw, and how many acknowledged memories are missing."""
    agents = [caller.agent_id for caller in callers]
    found = await rows(running.url, "SELECT memory_id::text FROM memories WHERE agent_id = ANY (%s)", agents)
    stored = {memory_id for caller in callers for memory_id in caller.stored}
    return {
        "acknowledged": len(stored),
        "lost": len(stored - {memory_id for (memory_id,) in found}),
        "errors": dict(sum((caller.errors for caller in callers), Counter())),
        "longest_call_s": round(max(caller.longest_call_s for caller in callers), 2),
        "longest_pause_s": round(max(caller.longest_pause_s for caller in callers), 2),
    }


async def timed(work: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await work
    return round(time.perf_counter() - began, 2)


async def move_shards(running: Cluster, service: Service, agents: list[str]) -> dict[str, Any]:
    """Moves the shards of one of the agents to the other worker and back, in both modes."""
    figures: dict[str, Any] = {}
    for mode in ("force_logical", "block_writes"):
        async with load(service, agents) as callers:
            [(_, source)] = await rows(running.superuser_url, PORTS, agents[:1])
            target = next(worker.port for worker in running.workers if worker.port != source)
            seconds = await timed(rows(running.superuser_url, MOVE, agents[0], source, target, mode))
        figures[mode] = {"seconds": seconds, **await outcome(running, callers)}
    return figures


async def add_worker(running: Cluster, service: Service, agents: list[str]) -> dict[str, Any]:
    """Adds a third worker and moves a share of all shards to it."""
    worker = await running.make_worker()
    async with load(service, agents) as callers:
        joining = await timed(rows(running.superuser_url, "SELECT citus_add_node('127.0.0.1', %s)", worker.port))
        moving = await timed(rows(running.superuser_url, REBALANCE))
    ports = dict(await rows(running.superuser_url, PORTS, agents))
    own = [agent for agent in agents if ports[agent] == worker.port]
    for agent in own:
        await service.call(agent, "memory.retrieve", {"query": "the meter", "k": 3})
    figures = await outcome(running, callers)
    return {"join_s": joining, "rebalance_s": moving, "agents_on_the_new_worker": len(own), **figures}


async def lose_worker(running: Cluster, service: Service, agents: list[str], seconds: float) -> dict[str, Any]:
    """Kills the postmaster of a worker with SIGKILL, and starts it again after `seconds`."""
    lost = running.workers[0]
    ports = dict(await rows(running.superuser_url, PORTS, agents))
    async with load(service, agents) as callers:
        there = [caller for caller in callers if ports[caller.agent_id] == lost.port]
        others = [caller for caller in callers if caller not in there]
        assert lost.child is not None
        await lost.child.end(((signal.SIGKILL, 10.0),))
        before = sum(len(caller.stored) for caller in others)
        await asyncio.sleep(seconds)
        meanwhile = sum(len(caller.stored) for caller in others) - before
        launched = time.perf_counter()
        await _launch(running, lost)
        up = time.perf_counter()
        for caller in callers:
            caller.has_succeeded.clear()
        await asyncio.wait_for(asyncio.gather(*(caller.has_succeeded.wait() for caller in callers)), 120)
        served = time.perf_counter()
    return {
        "agents_there": len(there),
        "stored_by_others_meanwhile": meanwhile,
        "errors_of_others": dict(sum((caller.errors for caller in others), Counter())),
        "start_of_the_worker_s": round(up - launched, 2),
        "all_served_after_its_start_s": round(served - up, 2),
        **await outcome(running, callers),
    }


async def _launch(running: Cluster, node: Node) -> None:
    """Backends of the killed server may still be ending."""
    for _ in range(20):
        try:
            await running.launch(node)
        except StartupError:
            await asyncio.sleep(0.5)
        else:
            return
    raise TimeoutError(f"{node.name} does not start")


async def change_the_same(running: Cluster, service: Service, seconds: float) -> dict[str, Any]:
    """Sixteen callers, half of them with tokens bound to a user, change the memories of two agents for `seconds`.

    Counts errors, and deadlocks in the logs.
    """
    calls: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    # By agent and user of a bound token; None: of all callers of the agent.
    ids: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    ends = time.monotonic() + seconds
    before = _deadlocks(running)

    def params(agent: str, bound: str | None, chance: random.Random) -> tuple[str, dict[str, Any]]:
        known = ids[agent, bound][-25:]
        one, two, *more = chance.sample(known, min(6, len(known))) if len(known) > 1 else ("", "")
        user, text = bound or chance.choice(USERS), f"I moved to house {chance.randrange(50)} in Oslo."
        session = f"session-{chance.randrange(4)}"
        item = {"content": text, "user_id": user, "session_id": session}
        item["memory_type"] = chance.choice(["episodic", "semantic"])
        store = ("memory.store_batch", {"items": [{**item, "content": f"{text} {chance.random()}"} for _ in range(5)]})
        if not two:
            return store
        links = [{"target_id": each} for each in more]
        choices: list[tuple[str, dict[str, Any]]] = [
            store,
            ("memory.update", {"memory_id": one, "updates": {"content": text}}),
            ("memory.update", {"memory_id": two, "updates": {"links": links, "importance": chance.random()}}),
            ("memory.feedback", {"memory_id": one, "verdict": "helpful"}),
            ("memory.delete", {"memory_ids": [two, one]}),
            # Refused to tokens that are bound to users.
            ("memory.end_session", {"session_id": session}),
            ("memory.prune", {"memory_layer": item["memory_type"], "target": 3}),
            ("memory.erase", {"user_id": user, "confirm": True}),
        ]
        return chance.choices(choices, weights=[8, 6, 6, 3, 2, *([0, 0, 0] if bound else [3, 1, 0.5])])[0]

    async def change(number: int) -> None:
        agent, chance = f"shared-{number % 2}", random.Random(number)
        user = USERS[number % len(USERS)] if number < 8 else None
        while time.monotonic() < ends:
            method, values = params(agent, user, chance)
            calls[f"{method}{' bound' if user else ''}"] += 1
            try:
                result = await service.call(agent, method, values, users=(user,) if user else ())
            except CallFailed as failure:
                errors[f"{method}{' bound' if user else ''} {described(failure)}"] += 1
            else:
                stored = [each["memory_id"] for each in result.get("results", ()) if each.get("memory_id")]
                for key in {(agent, None), (agent, user)}:
                    ids[key] += stored

    await asyncio.gather(*(change(number) for number in range(16)))
    after = _deadlocks(running)
    return {
        "calls": dict(calls),
        "errors": dict(errors),
        "deadlocks": {name: after[name] - before[name] for name in after},
    }


async def reembed(running: Cluster, service: Service, agents: list[str]) -> dict[str, Any]:
    """Embeds all memories again with the command line, while callers store and search."""
    command = [sys.executable, "-m", "agentcore", "reembed", "--model", "hashing", "--dimensions", str(REEMBEDDED)]
    environment = {**os.environ, "DATABASE_URL": running.url}
    async with load(service, agents) as callers:
        began = time.perf_counter()
        child = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.DEVNULL)
        code = await child.wait()
        seconds = round(time.perf_counter() - began, 1)
    await service.settle()
    models = await rows(running.url, "SELECT coalesce(embedding_model, 'none'), count(*) FROM memories GROUP BY 1")
    return {"exit_code": code, "seconds": seconds, "by_model": dict(models), **await outcome(running, callers)}


def _deadlocks(running: Cluster) -> dict[str, int]:
    logs = [node.log.path.read_text(errors="replace") for node in running.nodes]
    return {words: sum(text.count(words) for text in logs) for words in DEADLOCKS}


async def measure(installation: Path, seconds: float, only: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {"embedding_model": "hashing", "embedding_dimensions": 384}
    async with cluster(installation) as running:
        migration.upgrade(running.url, distribute=True)
        async with running_service(None, database_url=running.url, **settings) as service:
            agents = [f"agent-{number}" for number in range(AGENTS)]
            runs: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
                "lock_order": lambda: change_the_same(running, service, seconds),
                "moving_shards": lambda: move_shards(running, service, agents),
                "losing_a_worker": lambda: lose_worker(running, service, agents, seconds / 2),
                "adding_a_worker": lambda: add_worker(running, service, agents),
                "vector_index": lambda: vector_index.measure(running, service),
                "isolation": lambda: asyncio.to_thread(isolation.check, running),
                # Last: the others need vectors of the first size.
                "reembedding": lambda: reembed(running, service, agents),
            }
            figures: dict[str, Any] = {}
            for name in only or runs:
                figures[name] = await runs[name]()
                print(name, json.dumps(figures[name], indent=2), flush=True)
            return figures


def has_failed(figures: dict[str, Any]) -> bool:
    """Returns whether a memory was lost, a deadlock occurred, or rows of another agent were seen."""
    lost = re.search(r'"lost": [1-9]', json.dumps(figures))
    deadlocks = figures.get("lock_order", {}).get("deadlocks", {})
    old = [
        model for model in figures.get("reembedding", {}).get("by_model", {}) if not model.endswith(f"@{REEMBEDDED}")
    ]
    unfinished = old or figures.get("reembedding", {}).get("exit_code")
    return bool(lost or unfinished or any(deadlocks.values()) or figures.get("isolation", {}).get("violations"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("installation", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    found = run(measure(arguments.installation, arguments.seconds, arguments.only))
    if not arguments.only:
        ledger.append("citus_cluster_tests", {"agents": AGENTS, "seconds": arguments.seconds}, found)
    raise SystemExit(has_failed(found))
