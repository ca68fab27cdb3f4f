"""The leader over time; and the database compared with the acknowledged calls."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from agentcore.maintenance.rounds import LOCK_KEY
from benchmarks.crash.verdict import MISCOUNTED
from benchmarks.together.traffic import Account

LOOK_SECONDS = 0.1
LEADERS = """
SELECT pid FROM pg_locks
 WHERE locktype = 'advisory' AND granted AND objsubid = 1
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND (classid::bigint << 32) | objid::bigint = %(key)s"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
COUNTED = """
SELECT m.version, (m.metadata ->> 'count')::integer AS count,
       ARRAY(SELECT h.version FROM memory_history h
              WHERE h.agent_id = m.agent_id AND h.memory_id = m.memory_id AND h.version IS NOT NULL
              ORDER BY h.version) AS versions
  FROM memories m WHERE m.agent_id = %(agent_id)s AND m.memory_id = %(memory_id)s"""
IN_BOTH_PLACES = """
SELECT count(*) AS count FROM archived_memories a JOIN memories m USING (agent_id, memory_id)"""


@dataclass
class Leaders:
    """How often each number of leaders was sampled, and their sessions."""

    counts: Counter[int] = field(default_factory=Counter)
    pids: set[int] = field(default_factory=set)
    longest_without_seconds: float = 0.0

    async def watch(self, database_url: str) -> None:
        """Samples from the first leader on, until cancelled."""
        led_at = None
        with suppress(asyncio.CancelledError):
            async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
                while True:
                    rows = await (await connection.execute(LEADERS, {"key": LOCK_KEY})).fetchall()
                    now = time.monotonic()
                    if rows:
                        led_at = now
                    if led_at is not None:
                        self.counts[len(rows)] += 1
                        self.pids |= {row[0] for row in rows}
                        self.longest_without_seconds = max(self.longest_without_seconds, now - led_at)
                    await asyncio.sleep(LOOK_SECONDS)


async def deadlocks(database_url: str) -> int:
    """Returns the number of deadlocks that PostgreSQL has aborted in this database."""
    # A session reports its statistics when it ends or is idle.
    return int((await _rows(database_url, DEADLOCKS))[0]["deadlocks"])


async def judge(database_url: str, account: Account, agent_ids: list[str]) -> dict[str, int]:
    """Returns violations, each a count that should be 0."""
    found: Counter[str] = Counter()
    for (agent_id, memory_id), versions in account.versions.items():
        [row] = await _rows(database_url, COUNTED, agent_id=agent_id, memory_id=memory_id)
        place = agent_id, memory_id
        spare = account.unanswered[place]
        twice = len(versions) - len(set(versions))
        found["lost_updates"] += len(set(versions) - set(row["versions"])) + twice
        found["wrong_versions"] += not 0 <= row["version"] - 1 - len(versions) <= spare
        found["torn_histories"] += row["versions"] != list(range(2, row["version"] + 1))
        found["wrong_counts"] += not 0 <= row["count"] - account.increments[place] <= spare
    for agent_id in agent_ids:
        [words] = await _rows(database_url, MISCOUNTED, agent_id=agent_id)
        found["miscounted_words"] += int(words["?column?"])
    found["in_both_places"] = int((await _rows(database_url, IN_BOTH_PLACES))[0]["count"])
    return dict(found)


async def _rows(database_url: str, statement: str, **values: str | UUID) -> list[dict[str, Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as connection:
        return await (await connection.execute(statement.encode(), values)).fetchall()
