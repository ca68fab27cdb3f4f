"""Late embedding: memories stored while the embedder did not answer get their vectors."""

from __future__ import annotations

from operator import itemgetter

from pgvector import HalfVector

from agentcore.database import Database, query
from agentcore.memory.embeddings import Embedder, refused_by
from agentcore.memory.encoding import embedding_text
from agentcore.memory.writing.document_vectors import embed_each

ROWS_A_ROUND = 256


async def embed_waiting(database: Database, embedder: Embedder) -> int:
    """Embed the oldest memories that have no vector; how many were dealt with.

    One whose text the model refuses is set aside, so that those behind it get their turn. Raises
    DependencyUnavailable.
    """
    refused = refused_by(embedder.model)
    async with database.owner_transaction() as connection:
        rows = await (
            await connection.execute(
                query("memories_without_vector"), {"limit": ROWS_A_ROUND, "refused": refused}
            )
        ).fetchall()
    if not rows:
        return 0
    texts = [embedding_text(row["content"], row["speaker"]) for row in rows]
    vectors = await embed_each(embedder, texts, "document")
    values = [
        {
            **row,
            "embedding": None if vector is None else HalfVector(vector),
            "embedding_model": refused if vector is None else embedder.model,
        }
        for row, vector in zip(rows, vectors, strict=True)
    ]
    # Several are held at once, in the order in which everybody holds them.
    values.sort(key=itemgetter("agent_id", "memory_id"))
    async with database.owner_transaction() as connection:
        await connection.cursor().executemany(query("set_embedding"), values)
    return len(rows)
