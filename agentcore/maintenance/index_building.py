"""Building, describing and dropping one vector index, without blocking those who read and write meanwhile."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable

from psycopg import sql

from agentcore.database import Connection, query, shaped_query
from agentcore.failpoints import failpoint
from agentcore.memory.rows.vector_index import HNSW_CONSTRUCTION, VectorIndex

# To train the most lists there are, ivfflat asks for 200 MB and for 100 kB more with each dimension.
BUILDING_MEMORY_KB, BUILDING_KB_A_DIMENSION = 215_000, 115


def building_memory_kb(dimensions: int) -> int:
    """How much memory a build may take: 253 MB for 384 dimensions, 296 MB for 768, 659 MB for 4,000."""
    return BUILDING_MEMORY_KB + BUILDING_KB_A_DIMENSION * dimensions


async def build(
    connection: Connection, partition: str, index: VectorIndex, dimensions: int, *, moving: str | None = None
) -> None:
    """Make the index, and then its comment: one that lacks it was never finished.

    `moving` is a model whose vectors stand in either place, and whom the index is then over.
    """
    memory = str(building_memory_kb(dimensions))
    await connection.execute(query("index_building_session"), {"memory": memory})
    shape = {
        "index": sql.Identifier(index.name),
        "partition": sql.Identifier(partition),
        "dimensions": sql.Literal(dimensions),
        "shape": sql.Literal(index.shape),
        "construction": sql.Literal(HNSW_CONSTRUCTION),
        "model": sql.Literal(index.model if moving is None else moving),
    }
    statement = f"build_{index.kind}_index" if moving is None else f"build_moving_{index.kind}_index"
    await connection.execute(shaped_query(statement, **shape))
    failpoint("reembed.built")
    await remember(connection, index)


async def remember(connection: Connection, index: VectorIndex) -> None:
    """Write down what the index was built on and what was measured of it."""
    description = sql.Literal(index.comment())
    await connection.execute(
        shaped_query("describe_vector_index", index=sql.Identifier(index.name), description=description)
    )


async def drop(connection: Connection, names: Iterable[str]) -> None:
    """Take these indexes away."""
    for name in names:
        await connection.execute(shaped_query("drop_vector_index", index=sql.Identifier(name)))


def new_name(partition: str, model: str) -> str:
    """A name that no other index has."""
    digest = hashlib.sha256(model.encode()).hexdigest()[:8]
    return f"ann_{partition}_{digest}_{time.time_ns() // 1_000_000}"
