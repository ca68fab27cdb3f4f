"""Crash safety (AC-8): processes are killed during a stream of writes.

The default is one kill of each kind among 2,000 memories. `make bench ARGS=crash_safety` sets
CRASH_ROUNDS=20 and CRASH_MEMORIES=10000: five kills of each kind.
"""

from __future__ import annotations

import os
import time

import pytest
from psycopg import AsyncConnection

from benchmarks.crash.served import Victim
from benchmarks.crash.stream import Account, Write
from benchmarks.crash.verdict import Verdict, judge
from benchmarks.crash_safety import run
from tests.fixtures.memory import Agent

ROUNDS = int(os.environ.get("CRASH_ROUNDS", len(Victim)))
MEMORIES = int(os.environ.get("CRASH_MEMORIES", "2000"))


@pytest.mark.shows("issue2-kill-9")
async def test_kills_lose_double_and_halve_nothing_and_a_task_keeps_its_time() -> None:
    told: list[str] = []
    done, figures = await run(ROUNDS, MEMORIES, time.time_ns(), told.append)
    table = "\n".join(told)
    assert [each for each in done if each.wrong] == [], table
    assert len(done) == ROUNDS + 1  # the last is a plain restart
    assert figures["working_memory_kept"], table
    # Without acknowledged writes the kills tested no write.
    assert figures["acknowledged"] > 0, table
    assert figures["without_answer"] > 0 or ROUNDS == 0, table


@pytest.fixture
async def stored(agent: Agent) -> tuple[Agent, Account, list[Write]]:
    """Stores single and batch writes of an agent, all acknowledged."""
    account = Account(seed=1)
    first = account.make(30)
    account.acknowledge(first, await first.send(agent.memory))
    writes = [account.make(1 + 9 * (n % 2), targets=list(account.acknowledged.values())) for n in range(8)]
    for write in writes:
        account.acknowledge(write, await write.send(agent.memory))
    return agent, account, [first, *writes]


async def judged(stored: tuple[Agent, Account, list[Write]], damage: str = "") -> Verdict:
    """Returns the verdict after damage by a statement that the service never runs."""
    agent, account, writes = stored
    url = agent.runtime.database.url
    async with await AsyncConnection.connect(url) as connection:
        if damage:
            await connection.execute(damage, {"agent": agent.agent_id})
    return await judge(url, agent.agent_id, account, writes)


async def test_the_verdict_finds_nothing_where_nothing_happened(stored: tuple[Agent, Account, list[Write]]) -> None:
    verdict = await judged(stored)
    assert verdict.memories == 30 + 4 * 1 + 4 * 10
    assert verdict.wrong == 0


COPIED = (
    "memory_type, content, summary, embedding, embedding_model, timestamp, external_id, task_id, session_id, "
    "entities, entity_keys, facts, keywords, tags, metadata, relevance_score, provenance, content_hash, "
    "term_keys, token_count, valid_from, valid_to, event_from, event_to, expires_at"
)


@pytest.mark.parametrize(
    ("damage", "seen"),
    [
        (
            "DELETE FROM memories WHERE agent_id = %(agent)s AND external_id = 'write-3'",
            {"lost", "torn", "dangling", "miscounted"},
        ),
        (
            f"INSERT INTO memories (agent_id, memory_id, {COPIED}) "  # noqa: S608 - constants
            f"SELECT agent_id, gen_random_uuid(), {COPIED} FROM memories "
            "WHERE agent_id = %(agent)s AND external_id = 'write-3'",
            {"doubled", "altered", "dangling", "miscounted"},
        ),
        ("UPDATE memories SET content = 'x' WHERE agent_id = %(agent)s AND external_id = 'write-3'", {"altered"}),
        (
            "UPDATE memories SET embedding = NULL WHERE agent_id = %(agent)s AND external_id = 'write-3'",
            {"half_written"},
        ),
        ("DELETE FROM memory_links WHERE agent_id = %(agent)s", {"altered"}),
        ("DELETE FROM idempotency_keys WHERE agent_id = %(agent)s AND idempotency_key = 'write-3'", {"dangling"}),
        ("UPDATE lexical_deltas SET memory_count = memory_count + 1 WHERE agent_id = %(agent)s", {"miscounted"}),
    ],
)
async def test_the_verdict_sees(stored: tuple[Agent, Account, list[Write]], damage: str, seen: set[str]) -> None:
    verdict = await judged(stored, damage)
    found = {name for name in Verdict.__dataclass_fields__ if name != "memories" and getattr(verdict, name)}
    assert found == seen
