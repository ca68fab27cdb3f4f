"""The index keeper: vector indexes made on real rows, rebuilt without blocking as a partition grows.

Searching is exact while a partition is small. An ivfflat index takes its centroids from the rows that are
there when it is made, so it is never made by a migration. Names begin with `ann_`; what an index was built on
stands in its comment.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from agentcore.database import Database, query, shaped_query
from agentcore.memory.vector_store import lists_for

MIN_ROWS = 10_000
GROWTH = 2.0
MAX_INDEXED_DIMENSIONS = 4_000


@dataclass(frozen=True)
class IndexPlan:
    """What is to be done to one partition: an index to make (0 lists: none), and indexes to drop."""

    partition: str
    lists: int
    rows: int
    drop: tuple[str, ...]


def plan(row: Mapping[str, Any], model: str) -> IndexPlan | None:
    """What a partition's size and indexes call for; None if all is well."""
    rows = max(int(row["rows"]), int(row["live_rows"] or 0))
    invalid = tuple(each["name"] for each in row["indexes"] if not each["valid"])
    current = [each for each in row["indexes"] if each["valid"] and _built_on(each).get("model") == model]
    trained_on = max((_built_on(each)["rows"] for each in current), default=0)
    if rows >= MIN_ROWS and rows >= GROWTH * trained_on:
        return IndexPlan(row["partition"], lists_for(rows), rows, (*invalid, *(each["name"] for each in current)))
    return IndexPlan(row["partition"], 0, rows, invalid) if invalid else None


def _built_on(index: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found = json.loads(index["comment"] or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def keep_indexes(database: Database, model: str, dimensions: int) -> int:
    """Make, rebuild and sweep the vector indexes of one model; how many partitions changed."""
    if dimensions > MAX_INDEXED_DIMENSIONS:
        return 0
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("partition_sizes"))).fetchall()
    plans = [each for each in (plan(row, model) for row in rows) if each is not None]
    for each in plans:
        await _carry_out(database, each, model, dimensions)
    return len(plans)


async def _carry_out(database: Database, todo: IndexPlan, model: str, dimensions: int) -> None:
    async with database.owner_autocommit() as connection:
        if todo.lists:
            digest = hashlib.sha256(model.encode()).hexdigest()[:8]
            index = sql.Identifier(f"ann_{todo.partition}_{digest}_{int(time.time())}")
            await connection.execute("SET maintenance_work_mem = '256MB'")
            await connection.execute(
                shaped_query(
                    "build_vector_index",
                    index=index,
                    partition=sql.Identifier(todo.partition),
                    dimensions=sql.Literal(dimensions),
                    lists=sql.Literal(todo.lists),
                    model=sql.Literal(model),
                )
            )
            built_on = json.dumps(
                {"model": model, "rows": todo.rows, "lists": todo.lists, "built_at": time.time()}
            )
            await connection.execute(
                shaped_query("describe_vector_index", index=index, description=sql.Literal(built_on))
            )
        for name in todo.drop:
            await connection.execute(shaped_query("drop_vector_index", index=sql.Identifier(name)))
