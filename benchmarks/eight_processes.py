"""Eight processes on one PostgreSQL and one Redis: deadlocks, lost updates, leaders, errors by kind.

Servers and workers run as separate processes, each of which may lead. Clients store, retrieve, correct with
and without `if_version`, link memories in both directions, give feedback, delete and prune the memories of a
few shared agents through the servers in turn. Every acknowledged change must be in its memory's history under
the acknowledged version, and the memory at 1 + their number. PostgreSQL must have aborted no deadlock, and
every sample must show exactly one leader. Layers have a capacity, so that jobs prune, too. The exit status is
1 after any violation, or if a call failed for another reason than a conflict.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from benchmarks.crash.standing import standing
from benchmarks.ledger import append, percentiles
from benchmarks.together.processes import Member, together
from benchmarks.together.traffic import Account, Client, counted_memories
from benchmarks.together.verdict import Leaders, deadlocks, judge

TOLD_EVERY_SECONDS = 10.0
# PostgreSQL accepts a hundred sessions.
SETTINGS = {
    "MAINTENANCE_IN_SERVER": "true",
    "MAINTENANCE_INTERVAL_SECONDS": "2",
    "DATABASE_POOL_SIZE": "4",
    "MEMORY_EPISODIC_CAPACITY": "400",
    "RATE_LIMIT_PER_MINUTE": "0",
}


async def traffic(
    members: list[Member], secret: str, options: argparse.Namespace, account: Account, tell: Callable[[str], None]
) -> list[str]:
    """Runs the clients for the given seconds; returns the agents they used."""
    chance = random.Random(options.seed)
    agent_ids = [f"agent-{options.seed}-{number}" for number in range(options.agents)]
    urls = [member.url for member in members if member.url]
    async with AsyncExitStack() as open_clients:
        clients = []
        until = time.monotonic() + options.seconds
        for agent_id in agent_ids:
            token = mint_token(secret, agent_id, ["memory:read", "memory:write"], 86_400)
            servers = [await open_clients.enter_async_context(MemoryClient(url, token, max_attempts=1)) for url in urls]
            counted = await counted_memories(servers[0], agent_id)
            clients += [
                Client(agent_id, servers, counted, account, random.Random(chance.random()))
                for _ in range(options.clients)
            ]
        async with asyncio.TaskGroup() as running:
            for client in clients:
                running.create_task(client.run(until))
            telling = running.create_task(_tell(account, until, tell))
            await telling
    return agent_ids


async def _tell(account: Account, until: float, tell: Callable[[str], None]) -> None:
    while (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(TOLD_EVERY_SECONDS, left))
        tell(
            f"{max(0.0, until - time.monotonic()):.0f} s left, {account.calls.total()} calls, "
            f"{account.refused.total()} refused, {account.errors.total()} failed"
        )


async def measure(
    database_url: str, environment: Mapping[str, str], options: argparse.Namespace, tell: Callable[[str], None] = print
) -> tuple[bool, dict[str, Any]]:
    """Returns whether no violation was found, and the figures."""
    account, leaders = Account(), Leaders()
    broken = await deadlocks(database_url)
    async with together({**environment, **SETTINGS}, options.servers, options.workers) as members:
        tell(f"{len(members)} processes run")
        watching = asyncio.create_task(leaders.watch(database_url))
        agent_ids = await traffic(members, environment["JWT_SECRET_KEY"], options, account, tell)
        watching.cancel()
        await watching
    wrong = await judge(database_url, account, agent_ids)
    # The processes have ended, so every session has reported its statistics.
    figures = {
        "calls": account.calls.total(),
        "calls_per_second": round(account.calls.total() / options.seconds, 1),
        "by_kind": dict(account.calls),
        "acknowledged_changes": sum(map(len, account.versions.values())),
        "refused": dict(account.refused),
        "errors": dict(account.errors),
        "unanswered": account.unanswered.total(),
        "deadlocks": await deadlocks(database_url) - broken,
        **wrong,
        "leaders": {str(count): looks for count, looks in sorted(leaders.counts.items())},
        "sessions_that_led": len(leaders.pids),
        "longest_without_leader_seconds": round(leaders.longest_without_seconds, 1),
        "milliseconds": {name: percentiles(values) for name, values in account.milliseconds.items()},
    }
    good = not sum(wrong.values()) and not account.errors and not figures["deadlocks"]
    return good and set(leaders.counts) == {1}, figures


async def run(options: argparse.Namespace) -> tuple[bool, dict[str, Any]]:
    """Runs on a separate home."""
    async with standing() as (_, place):
        return await measure(place.database_url, place.environment, options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="of traffic")
    parser.add_argument("--servers", type=int, default=6, help="`agentcore serve` processes")
    parser.add_argument("--workers", type=int, default=2, help="`agentcore worker` processes")
    parser.add_argument("--agents", type=int, default=3, help="whose memories are called for")
    parser.add_argument("--clients", type=int, default=5, help="of each agent, side by side")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of all that is random")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    good, figures = asyncio.run(run(options))
    for name, value in figures.items():
        print(f"{name:<32} {value}")
    append("eight_processes", vars(options), figures)
    return 0 if good else 1
