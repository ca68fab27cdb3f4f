"""Late embedding: memories stored while the embedder did not answer get their vectors."""

from __future__ import annotations

from pgvector import HalfVector

from agentcore.database import Database, query
from agentcore.memory.embeddings import Embedder
from agentcore.memory.encoding import encode

ROWS_A_ROUND = 256


async def embed_waiting(database: Database, embedder: Embedder) -> int:
    """Embed the oldest memories that have no vector; how many. Raises DependencyUnavailable."""
    async with database.owner_transaction() as connection:
        rows = await (
            await connection.execute(query("memories_without_vector"), {"limit": ROWS_A_ROUND})
        ).fetchall()
    if not rows:
        return 0
    texts = [encode(row["content"], speaker=row["speaker"]).embedding_text for row in rows]
    vectors = await embedder.embed(texts, "document")
    values = [
        {**row, "embedding": HalfVector(vector), "embedding_model": embedder.model}
        for row, vector in zip(rows, vectors, strict=True)
    ]
    async with database.owner_transaction() as connection:
        await connection.cursor().executemany(query("set_embedding"), values)
    return len(rows)
