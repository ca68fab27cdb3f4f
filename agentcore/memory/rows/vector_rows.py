"""The embedding model in force, the column of its vectors, and the indexes that serve searches.

Until the first re-embedding there are no rows of models, and the settings apply.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from psycopg import sql

from agentcore.database import Database, query, shaped_query
from agentcore.memory.rows.vector_index import ServingIndex, described, serving

Stage = Literal["filling", "moving", "settled"]


@dataclass(frozen=True)
class KnownModel:
    """An embedding model: its stored name, and the settings that select it.

    `filling`: memories are being embedded with it. `moving`: in force, its vectors move into the main column.
    `seconds`: time in this stage.
    """

    model: str
    provider: str
    model_name: str | None
    dimensions: int
    stage: Stage
    seconds: float = 0.0

    @property
    def moving(self) -> bool:
        """Whether its vectors are in either of two columns."""
        return self.stage == "moving"

    def arguments(self) -> str:
        """Returns the options of `agentcore reembed`."""
        name = f" --name {self.model_name}" if self.model_name else ""
        return f"--model {self.provider}{name} --dimensions {self.dimensions}"

    def sentence(self) -> str:
        """Returns the settings that select it."""
        name = f" EMBEDDING_MODEL_NAME={self.model_name}" if self.model_name else ""
        return f"EMBEDDING_MODEL={self.provider}{name} EMBEDDING_DIMENSIONS={self.dimensions}"


async def known_models(database: Database) -> list[KnownModel]:
    """Returns the models recorded in the database. Raises DependencyUnavailable."""
    rows = await database.owner_rows(query("embedding_models"))
    return [KnownModel(**row) for row in rows]


async def model_in_force(database: Database) -> KnownModel | None:
    """Returns the model that is searched, None if the settings decide."""
    return next((each for each in await known_models(database) if each.stage != "filling"), None)


@dataclass(frozen=True)
class VectorPlace:
    """SQL of a memory's vector, and of the condition that it has one of the model searched.

    `index_prefix` precedes the model in the comment of an index: an index covers one column only.
    """

    stored: sql.SQL
    held: sql.SQL
    index_prefix: str = ""

    @property
    def shape(self) -> dict[str, sql.Composable]:
        """The placeholders of a search for any filter, in all partitions."""
        return {
            "stored": self.stored,
            "held": self.held,
            "memories": sql.Identifier("memories"),
            "matches": query("matches_filter"),
        }

    def prepared_shape(self, partition: str, model: str, *, current: bool) -> dict[str, sql.Composable]:
        """The same without parameters that decide the plan: in one partition, without a filter or for `current`."""
        held = sql.SQL(self.held.as_string().replace("%(model)s", sql.Literal(model).as_string()))
        matches = query("matches_current" if current else "matches_all")
        return {"stored": self.stored, "held": held, "memories": sql.Identifier(partition), "matches": matches}

    def index_model(self, model: str) -> str:
        return f"{self.index_prefix}{model}"


SETTLED = VectorPlace(sql.SQL("m.embedding"), sql.SQL("m.embedding_model = %(model)s"))
MOVING = VectorPlace(
    sql.SQL("(CASE WHEN m.embedding_model = %(model)s THEN m.embedding ELSE m.next_embedding END)"),
    sql.SQL("(m.embedding_model = %(model)s OR m.next_embedding_model = %(model)s)"),
    "moving:",
)


# Cache time. The index keeper relies on every process having read the indexes again after it.
LIFE_SECONDS = 2.0
MAX_AGENTS = 10_000


class ServingIndexes:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[str, str, str], tuple[float, ServingIndex | None]] = {}

    async def of(self, agent_id: str, model: str, table: str = "memories", few: int = 0) -> ServingIndex | None:
        """Returns how the agent's vectors are searched; None without an index, or with `few` rows or fewer."""
        known = self._known.get((agent_id, table, model))
        now = time.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        [rows] = await self._database.fetch(
            agent_id,
            [(shaped_query("indexes_of_agent", table=sql.Identifier(table)), {"agent_id": agent_id, "few": few})],
        )
        indexes = [described(row["name"], row["comment"]) for row in rows]
        found = serving(
            [index for index in indexes if index is not None and index.model == model],
            rows[0]["partition"] if rows else "",
        )
        if len(self._known) >= MAX_AGENTS:
            self._known.clear()
        self._known[agent_id, table, model] = (now + LIFE_SECONDS, found)
        return found


def index_settings(index: ServingIndex, *, filtered: bool, prepared: bool = False) -> Mapping[str, str]:
    """Returns the settings of an index search's transaction. If `filtered`, more lists are probed.

    Iterative scans continue until there are enough rows, in an ivfflat index to its end if necessary; their order is
    approximate. Without a filter sorting is off, so that the index is used. `prepared`: one plan per connection.
    """
    return {
        "ivfflat.probes": str(index.probes_for(filtered=filtered)),
        "hnsw.ef_search": str(index.ef_search),
        "ivfflat.iterative_scan": "relaxed_order",
        "ivfflat.max_probes": "32768",
        "hnsw.iterative_scan": "relaxed_order",
        "enable_sort": "on" if filtered else "off",
        "plan_cache_mode": "force_generic_plan" if prepared else "force_custom_plan",
    }
