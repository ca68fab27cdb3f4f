"""The verdict: one snapshot of PostgreSQL after a crash, compared with the acknowledged writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import dict_row

from benchmarks.crash.stream import Account, Write

HALF_WRITTEN = """
SELECT count(*) FROM memories
 WHERE agent_id = %(agent_id)s
   AND (content = '' OR summary = '' OR embedding IS NULL OR embedding_model IS NULL OR token_count = 0
        OR cardinality(term_keys) = 0 OR external_id IS NULL OR valid_from IS NULL OR version <> 1)"""
# Foreign keys should prevent the first two, but a crash test checks them as well.
DANGLING = """
SELECT (SELECT count(*) FROM memory_links l WHERE agent_id = %(agent_id)s AND NOT EXISTS (
            SELECT FROM memories m WHERE m.agent_id = l.agent_id AND m.memory_id = l.target_id))
     + (SELECT count(*) FROM memory_links l WHERE agent_id = %(agent_id)s AND NOT EXISTS (
            SELECT FROM memories m WHERE m.agent_id = l.agent_id AND m.memory_id = l.source_id))
     + (SELECT count(*) FROM idempotency_keys k WHERE agent_id = %(agent_id)s AND NOT EXISTS (
            SELECT FROM memories m WHERE m.agent_id = k.agent_id AND m.memory_id = k.memory_id
                                     AND m.external_id = k.idempotency_key))
     + (SELECT count(*) FROM memories m WHERE agent_id = %(agent_id)s AND NOT EXISTS (
            SELECT FROM idempotency_keys k WHERE k.agent_id = m.agent_id AND k.memory_id = m.memory_id))"""
HELD = "SELECT external_id, memory_id, content FROM memories WHERE agent_id = %(agent_id)s"
LINKS = "SELECT source_id, target_id FROM memory_links WHERE agent_id = %(agent_id)s"
MISCOUNTED = """
WITH noted AS (
    SELECT term_key, sum(memory_count) AS memories FROM (
        SELECT term_key, memory_count FROM lexical_terms WHERE agent_id = %(agent_id)s
        UNION ALL
        SELECT delta.term_key, delta.memories
          FROM lexical_deltas d, unnest(d.term_keys, d.term_memories) AS delta (term_key, memories)
         WHERE d.agent_id = %(agent_id)s) AS parts
     GROUP BY term_key HAVING sum(memory_count) <> 0
), real AS (
    SELECT term_key, count(*) AS memories FROM (
        SELECT DISTINCT memory_id, unnest(term_keys) AS term_key FROM memories
         WHERE agent_id = %(agent_id)s) AS postings
     GROUP BY term_key
), totals AS (
    SELECT coalesce(sum(memory_count), 0) AS memories, coalesce(sum(term_count), 0) AS terms FROM (
        SELECT memory_count, term_count FROM lexical_totals WHERE agent_id = %(agent_id)s
        UNION ALL
        SELECT memory_count, term_count FROM lexical_deltas WHERE agent_id = %(agent_id)s) AS parts
)
SELECT (SELECT count(*) FROM noted FULL JOIN real USING (term_key)
         WHERE noted.memories IS DISTINCT FROM real.memories)
     + (SELECT count(*) FROM totals,
                (SELECT count(*) AS memories, coalesce(sum(cardinality(term_keys)), 0) AS terms
                   FROM memories WHERE agent_id = %(agent_id)s) AS held
         WHERE (totals.memories, totals.terms) IS DISTINCT FROM (held.memories, held.terms))"""


@dataclass(frozen=True)
class Verdict:
    """Violations, each a count that should be 0; and the stored memories."""

    memories: int
    lost: int
    doubled: int
    altered: int
    torn: int
    half_written: int
    dangling: int
    miscounted: int

    @property
    def wrong(self) -> int:
        """Returns the total of violations."""
        return self.lost + self.doubled + self.altered + self.torn + self.half_written + self.dangling + self.miscounted


async def judge(database_url: str, agent_id: str, account: Account, unanswered: Sequence[Write]) -> Verdict:
    """Compares the rows with the account. An unanswered batch is stored completely or not at all."""
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)

        async def rows(statement: str) -> list[dict[str, Any]]:
            return await (await connection.execute(statement, {"agent_id": agent_id})).fetchall()

        async def number(statement: str) -> int:
            return int(next(iter((await rows(statement))[0].values())))

        found = await rows(HELD)
        links = {(row["source_id"], row["target_id"]) for row in await rows(LINKS)}
        held = {row["external_id"]: row["memory_id"] for row in found}
        return Verdict(
            memories=len(found),
            lost=len(account.acknowledged.keys() - held.keys()),
            doubled=sum(count - 1 for count in Counter(row["external_id"] for row in found).values()),
            altered=_altered(found, account) + _unlinked(links, held, unanswered),
            torn=sum(_is_torn(write, held) for write in unanswered),
            half_written=await number(HALF_WRITTEN),
            dangling=await number(DANGLING),
            miscounted=await number(MISCOUNTED),
        )


def _altered(found: Sequence[Mapping[str, Any]], account: Account) -> int:
    """Counts memories with changed content or id, and ones that were never sent."""
    return sum(
        account.contents.get(row["external_id"]) != row["content"]
        or account.acknowledged.get(row["external_id"], row["memory_id"]) != row["memory_id"]
        for row in found
    )


def _unlinked(links: set[tuple[UUID, UUID]], held: Mapping[str, UUID], writes: Sequence[Write]) -> int:
    """Counts links that were not stored with their memory."""
    return sum(
        (held[item.external_id or ""], link.target_id) not in links
        for write in writes
        for item in write.items
        if (item.external_id or "") in held
        for link in item.links
    )


def _is_torn(write: Write, held: Mapping[str, UUID]) -> bool:
    there = sum((item.external_id or "") in held for item in write.items)
    return 0 < there < len(write.items)
