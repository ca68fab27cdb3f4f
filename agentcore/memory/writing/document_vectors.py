"""Embeds texts to store, and in the background the later passages of long memories."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from agentcore.errors import DependencyUnavailable
from agentcore.failpoints import failpoint
from agentcore.memory.api import Caller
from agentcore.memory.columns import VectorColumns
from agentcore.memory.embeddings import Embedder, EmbeddingKind, Vectors, refused_by
from agentcore.memory.encoding import embedding_text
from agentcore.memory.language.passages import Passage, passages
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import EmbeddedPassage
from agentcore.memory.rows.memory_rows import Row

NOT_EMBEDDED = "embedding: the embedder does not answer; the memory is kept and embedded later"
OTHER_MODEL = "embedding: archived with another model's vector; found by words until it is embedded again"
REFUSED = "embedding: the embedder refuses a text; the memory is kept and found by its words"


async def embed_each(embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind) -> list[Vectors | None]:
    """Returns a vector for each text, None for those that the embedder refuses; bisects a refused batch.

    Raises DependencyUnavailable if the embedder does not answer, or refuses every text.
    """
    try:
        return list(await embedder.embed(texts, kind))
    except DependencyUnavailable as failure:
        if not failure.data.get("refused"):
            raise
    # An invalid setting is refused with the same error as an invalid text: probe with a text in no cache.
    await embedder.embed([f"probe {secrets.token_hex(8)}"], kind)
    return await _embed_halves(embedder, texts, kind)


async def _embed_halves(embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind) -> list[Vectors | None]:
    if len(texts) == 1:
        return [None]
    vectors: list[Vectors | None] = []
    for half in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
        try:
            vectors += list(await embedder.embed(half, kind))
        except DependencyUnavailable as failure:
            if not failure.data.get("refused"):
                raise
            vectors += await _embed_halves(embedder, half, kind)
    return vectors


async def vector_columns(parts: MemoryParts, texts: Sequence[str]) -> tuple[list[VectorColumns], list[str]]:
    """Returns the vector of each text, and the receipt's `degraded`."""
    if parts.embedder is None or not texts:
        return [VectorColumns() for _ in texts], []
    try:
        vectors = await embed_each(parts.embedder, texts, "document")
    except DependencyUnavailable:
        return [VectorColumns() for _ in texts], [NOT_EMBEDDED]
    model, refused = parts.vector_model, refused_by(parts.vector_model)
    columns = [VectorColumns(each, refused if each is None else model) for each in vectors]
    return columns, [REFUSED] if any(vector is None for vector in vectors) else []


MEMORIES = 8
# Per run; between runs, jobs of other agents can run.
MOST_PASSAGES = 128
# Limits how long a concurrent query or store has to queue for the embedder.
BATCH = 8


async def embed_pending_passages(parts: MemoryParts, caller: Caller) -> bool:
    """Embeds passages of the longest pending memories; returns whether more may be pending.

    Commits each batch, so a later run continues after it. Raises DependencyUnavailable.
    """
    embedder, storage = parts.embedder, parts.storage
    if embedder is None:
        return False
    model, refused = embedder.model, refused_by(embedder.model)
    async with storage.transaction(caller.agent_id) as transaction:
        rows = await transaction.passages.pending([model, refused], MEMORIES)
    missing = await asyncio.to_thread(_missing, rows)
    now, later = missing[:MOST_PASSAGES], missing[MOST_PASSAGES:]
    for start in range(0, len(now), BATCH):
        batch = now[start : start + BATCH]
        vectors = await embed_each(embedder, [_text(row, each) for row, _, each in batch], "document")
        failpoint("passages.embedded")
        made = [
            EmbeddedPassage(
                row["memory_id"], row["version"], number, each, refused if vector is None else model, vector
            )
            for (row, number, each), vector in zip(batch, vectors, strict=True)
        ]
        async with storage.transaction(caller.agent_id) as transaction:
            await transaction.passages.add(made)
        failpoint("passages.written")
    left = {row["memory_id"] for row, _, _ in later}
    done = {row["memory_id"]: row["version"] for row in rows if row["memory_id"] not in left}
    if done:
        async with storage.transaction(caller.agent_id) as transaction:
            await transaction.llm.dequeue_unchanged("passages", done)
    return bool(left) or len(rows) == MEMORIES


def _missing(rows: Sequence[Row]) -> list[tuple[Row, int, Passage]]:
    embedded = [{*row["embedded"]} for row in rows]
    return [
        (row, number, each)
        for row, done in zip(rows, embedded, strict=True)
        for number, each in enumerate(passages(row["content"]))
        if number > 0 and number not in done
    ]


def _text(row: Row, passage: Passage) -> str:
    return embedding_text(row["content"][passage.start : passage.end], row["speaker"])
