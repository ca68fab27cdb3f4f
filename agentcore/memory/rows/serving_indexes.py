"""Which vector indexes serve an agent, and how: what the index keeper left in their comments."""

from __future__ import annotations

import time

from psycopg import sql

from agentcore.database import Database, Statement, has_iterative_scans, query, shaped_query
from agentcore.memory.rows.vector_index import ServingIndex, described, serving

# What the keeper does to an index in use counts on every process having read it again after so long.
LIFE_SECONDS = 2.0
MAX_AGENTS = 10_000


class ServingIndexes:
    """What serves each agent's searches, at most LIFE_SECONDS old; then one small query reads it again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[str, str, str], tuple[float, ServingIndex | None]] = {}

    async def of(
        self, agent_id: str, model: str, table: str = "memories", few: int = 0
    ) -> ServingIndex | None:
        """Returns how the agent's vectors of this model in the table are searched through an index.

        None if no index contains them, or the agent has `few` rows or fewer.
        """
        known = self._known.get((agent_id, table, model))
        now = time.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        [rows] = await self._database.fetch(
            agent_id,
            [(shaped_query("indexes_of_agent", table=sql.Identifier(table)),
              {"agent_id": agent_id, "few": few})],
        )
        indexes = [described(row["name"], row["comment"]) for row in rows]
        iterative = bool(rows) and has_iterative_scans(rows[0]["pgvector"])
        found = serving(
            [index for index in indexes if index is not None and index.model == model], iterative=iterative
        )
        if len(self._known) >= MAX_AGENTS:
            self._known.clear()
        self._known[agent_id, table, model] = (now + LIFE_SECONDS, found)
        return found


def index_settings(index: ServingIndex, *, filtered: bool) -> Statement:
    """A filter may leave few rows: the planner may then sort them, and more of the index is read."""
    iterative = "search_settings" if index.iterative else "search_settings_without_iterative_scans"
    return query(iterative), {
        "probes": str(index.probes_for(filtered=filtered)),
        "ef_search": str(index.ef_search_for(filtered=filtered)),
        "sort": "on" if filtered else "off",
    }
