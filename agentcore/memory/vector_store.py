"""Finding candidates: the arms of a search in PostgreSQL, filtered before anything is ranked.

Two round trips: the arms, then what ranking must know of everything they found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast
from uuid import UUID

from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import Connection, Database, query, shaped_query
from agentcore.memory.lexical import LexicalStatistics, bm25
from agentcore.memory.retrieval import Candidate, Tie

Row = Mapping[str, Any]

VECTOR_STORES: Mapping[str, str] = {"pgvector": "agentcore.memory.vector_store:PgVectorStore"}


ROWS_A_LIST = 100
MIN_LISTS, MAX_LISTS = 32, 1_000
# Of the lists of an index, the share that is searched: measured, docs/decisions/0014.
PROBED_SHARE = 0.09


def lists_for(rows: int) -> int:
    """Into how many lists an ivfflat index divides so many rows: small ones, for recall at a low price.

    More than MAX_LISTS would need over 256 MB to train (it grows with their square).
    """
    return min(MAX_LISTS, max(MIN_LISTS, math.ceil(rows / ROWS_A_LIST)))


def probes_for(rows: int) -> int:
    """How many of those lists a search looks into."""
    return math.ceil(PROBED_SHARE * lists_for(rows))


@dataclass(frozen=True)
class SearchLimits:
    """How far a search looks."""

    exact_search_limit: int = 5_000
    arm_candidates: int = 60
    leading_candidates: int = 20
    link_candidates: int = 20


@dataclass(frozen=True)
class SearchRequest:
    """What is searched: the vector (or none), the query's terms with their weights, and the filters."""

    conditions: Mapping[str, Any]
    vector: NDArray[Any] | None
    model: str | None
    term_keys: Sequence[int]
    term_weights: Sequence[float]
    scored_keys: Sequence[int]
    statistics: LexicalStatistics


@dataclass(frozen=True)
class Found:
    """Candidates of all arms with the ties between them, and how many each arm gave."""

    candidates: Sequence[Candidate]
    ties: Sequence[Tie]
    counts: Mapping[str, int]
    mode: str


class VectorStore(Protocol):
    """Where candidates come from."""

    name: str

    async def statistics(self, agent_id: str, term_keys: Sequence[int]) -> LexicalStatistics: ...

    async def search(self, agent_id: str, request: SearchRequest) -> Found: ...


class PgVectorStore:
    """pgvector beside the rows: exact while an agent is small, through the keeper's ivfflat index after."""

    name = "pgvector"

    def __init__(self, database: Database, dimensions: int, limits: SearchLimits) -> None:
        self._database = database
        self._limits = limits
        self._indexed_arm = shaped_query("vector_arm_indexed", dimensions=sql.Literal(dimensions))

    async def statistics(self, agent_id: str, term_keys: Sequence[int]) -> LexicalStatistics:
        """The agent's size and in how many of its memories each term stands."""
        values = {"agent_id": agent_id, "term_keys": list(set(term_keys))}
        async with self._database.transaction(agent_id, read=True) as connection:
            totals = await connection.execute(query("lexical_totals"), values)
            frequencies = await connection.execute(query("lexical_frequencies"), values)
            total = cast(Row, await totals.fetchone())
            rows = cast(list[Row], await frequencies.fetchall())
        count = max(0, int(total["memory_count"]))
        return LexicalStatistics(
            memory_count=count,
            mean_length=max(1.0, int(total["term_count"]) / max(1, count)),
            document_frequency={row["term_key"]: max(0, int(row["memory_count"])) for row in rows},
        )

    async def search(self, agent_id: str, request: SearchRequest) -> Found:
        """Candidates of every arm, each with all that ranking must know of it."""
        mode = self._mode(request)
        values: dict[str, Any] = {
            "agent_id": agent_id,
            "filter": Jsonb(request.conditions),
            "model": request.model,
            "vector": None if request.vector is None else HalfVector(request.vector),
            "limit": self._limits.arm_candidates,
            "link_limit": self._limits.link_candidates,
        }
        async with self._database.transaction(agent_id, read=True) as connection:
            arms = await self._arms(connection, values, request, mode)
            ids = {each for found in arms.values() for each in found}
            leading = [each for found in arms.values() for each in found[: self._limits.leading_candidates]]
            values |= {"memory_ids": list(ids), "leading_ids": leading}
            features = await connection.execute(query("candidate_features"), values)
            ties = await connection.execute(
                query("link_arm"), {**values, "limit": 4 * self._limits.arm_candidates}
            )
            candidates = [_candidate(row, request) for row in await features.fetchall()]
            tied = [Tie(**row) for row in await ties.fetchall()]
        counts = {name: len(found) for name, found in arms.items()}
        counts["links"] = sum(each.memory_id not in ids for each in candidates)
        return Found(candidates, tied, counts, mode)

    def _mode(self, request: SearchRequest) -> str:
        if request.vector is None:
            return "words"
        large = request.statistics.memory_count > self._limits.exact_search_limit
        return "indexed" if large else "exact"

    async def measured_recall(self, agent_id: str, vector: NDArray[Any], model: str, k: int) -> float:
        """The share of the exact `k` nearest that the indexed search finds too; 1.0 with nothing stored."""
        values = {
            "agent_id": agent_id,
            "filter": Jsonb({}),
            "model": model,
            "vector": HalfVector(vector),
            "limit": k,
        }
        async with self._database.transaction(agent_id, read=True) as connection:
            counted = await (await connection.execute(query("lexical_totals"), values)).fetchone()
            exact = await (await connection.execute(query("vector_arm_exact"), values)).fetchall()
            await self._look_through_index(
                connection, int(counted["memory_count"]) if counted else 0, filtered=False
            )
            indexed = await (await connection.execute(self._indexed_arm, values)).fetchall()
        wanted = {row["memory_id"] for row in exact}
        return len(wanted & {row["memory_id"] for row in indexed}) / len(wanted) if wanted else 1.0

    async def _look_through_index(self, connection: Connection, rows: int, *, filtered: bool) -> None:
        """A filter may leave few rows: the planner may then sort them, and the index is read to its end."""
        await connection.execute(
            query("search_settings"),
            {"probes": str(probes_for(rows)), "sort": "on" if filtered else "off"},
        )

    async def _arms(
        self, connection: Connection, values: Mapping[str, Any], request: SearchRequest, mode: str
    ) -> dict[str, list[UUID]]:
        cursors = {}
        if request.term_keys:
            cursors["lexical"] = await connection.execute(
                query("lexical_arm"),
                {**values, "term_keys": list(request.term_keys), "weights": list(request.term_weights)},
            )
        if mode == "indexed":
            filtered = bool(set(request.conditions) - {"current"})
            await self._look_through_index(connection, request.statistics.memory_count, filtered=filtered)
            cursors["vector"] = await connection.execute(self._indexed_arm, values)
            await connection.execute("SELECT set_config('enable_sort', 'on', true)")
        elif mode == "exact":
            cursors["vector"] = await connection.execute(query("vector_arm_exact"), values)
        return {
            name: [row["memory_id"] for row in await cursor.fetchall()] for name, cursor in cursors.items()
        }


def _candidate(row: Row, request: SearchRequest) -> Candidate:
    return Candidate(
        memory_id=row["memory_id"],
        timestamp=row["timestamp"],
        relevance_score=row["relevance_score"],
        similarity=row["similarity"],
        words=bm25(request.scored_keys, row["term_keys"], request.statistics),
        access_count=row["access_count"],
        last_accessed=row["last_accessed"],
        text=(bytes(row["content_hash"]), row["speaker"], row["user_id"], row["namespace"]),
    )
