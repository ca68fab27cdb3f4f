"""The index keeper: vector indexes made on real rows, rebuilt without blocking as a partition grows.

Searching is exact while a partition is small. An ivfflat index takes its centroids from the rows that are
there when it is made, so it is never made by a migration. Names begin with `ann_`; what an index was built on
stands in its comment.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from agentcore.database import Connection, Database, query, shaped_query
from agentcore.errors import DependencyUnavailable
from agentcore.memory.vector_store import lists_for
from agentcore.telemetry import describe_failure

logger = logging.getLogger(__name__)
MIN_ROWS = 10_000
GROWTH = 2.0
MAX_INDEXED_DIMENSIONS = 4_000


@dataclass(frozen=True)
class IndexPlan:
    """What is to be done to one partition: an index to make (0 lists: none), and indexes to drop.

    Of those to drop, `replaced` are in use until the new one stands.
    """

    partition: str
    lists: int
    rows: int
    drop: tuple[str, ...]
    replaced: tuple[str, ...] = ()


def plan(row: Mapping[str, Any], model: str) -> IndexPlan | None:
    """What a partition's size and indexes call for; None if all is well."""
    rows = max(int(row["rows"]), int(row["live_rows"] or 0))
    facts = {each["name"]: _built_on(each) if each["valid"] else None for each in row["indexes"]}
    # Invalid, or without the comment that ends the work: somebody was stopped while making it.
    half_made = tuple(name for name, found in facts.items() if found is None)
    current = {name: found["rows"] for name, found in facts.items() if found and found["model"] == model}
    if rows >= MIN_ROWS and rows >= GROWTH * max(current.values(), default=0):
        return IndexPlan(row["partition"], lists_for(rows), rows, (*half_made, *current), tuple(current))
    return IndexPlan(row["partition"], 0, rows, half_made) if half_made else None


def _built_on(index: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        found = json.loads(index["comment"] or "null")
    except ValueError:
        return None
    told = isinstance(found, dict) and "model" in found and isinstance(found.get("rows"), int)
    return found if told else None


async def keep_indexes(database: Database, model: str, dimensions: int) -> int:
    """Make, rebuild and sweep the vector indexes of one model; how many partitions changed.

    One that fails is logged and tried again in the next round; the others are served.
    """
    if dimensions > MAX_INDEXED_DIMENSIONS:
        return 0
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("partition_sizes"))).fetchall()
    plans = [each for each in (plan(row, model) for row in rows) if each is not None]
    changed = 0
    for each in plans:
        try:
            async with database.owner_autocommit() as connection:
                await _carry_out(connection, each, model, dimensions)
        except (psycopg.Error, DependencyUnavailable) as failure:
            logger.warning("the vector index of %s waits", each.partition, extra={
                "failure": describe_failure(failure)})
        else:
            changed += 1
    return changed


async def _carry_out(connection: Connection, todo: IndexPlan, model: str, dimensions: int) -> None:
    # What was left half made goes first: a build that fails again and again leaves one, not many.
    await _drop(connection, [name for name in todo.drop if name not in todo.replaced])
    if todo.lists:
        await _build(connection, todo, model, dimensions)
    await _drop(connection, todo.replaced)


async def _drop(connection: Connection, names: Sequence[str]) -> None:
    for name in names:
        await connection.execute(shaped_query("drop_vector_index", index=sql.Identifier(name)))


async def _build(connection: Connection, todo: IndexPlan, model: str, dimensions: int) -> None:
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
    built_on = json.dumps({"model": model, "rows": todo.rows, "lists": todo.lists, "built_at": time.time()})
    await connection.execute(
        shaped_query("describe_vector_index", index=index, description=sql.Literal(built_on))
    )
