"""Embeds texts to store; without a vector they are found by words and embedded later."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import Embedder, EmbeddingKind, Vectors, refused_by
from agentcore.memory.parts import MemoryParts

NOT_EMBEDDED = "embedding: the embedder does not answer; the memory is kept and embedded later"
OTHER_MODEL = "embedding: archived with another model's vector; found by words until it is embedded again"
REFUSED = "embedding: the embedder refuses a text; the memory is kept and found by its words"


async def embed_each(embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind) -> list[Vectors | None]:
    """A vector for each text, None for those the embedder refuses: one bad text does not spoil the others.

    Raises DependencyUnavailable where it does not answer, or refuses whatever is asked.
    """
    try:
        return list(await embedder.embed(texts, kind))
    except DependencyUnavailable as failure:
        if not failure.data.get("refused"):
            raise
    # A wrong setting is refused in the same words as a bad text. No cache knows this one.
    await embedder.embed([f"probe {secrets.token_hex(8)}"], kind)
    return await _embed_halves(embedder, texts, kind)


async def _embed_halves(
    embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind
) -> list[Vectors | None]:
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


async def vector_columns(parts: MemoryParts, texts: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The columns `embedding` and `embedding_model` for each text, and what a receipt says of it.

    What the maintenance is to embed has no model, what was refused the name of who refused it.
    """
    nothing: dict[str, Any] = {"embedding": None, "embedding_model": None}
    if parts.embedder is None or not texts:
        return [nothing for _ in texts], []
    try:
        vectors = await embed_each(parts.embedder, texts, "document")
    except DependencyUnavailable:
        return [nothing for _ in texts], [NOT_EMBEDDED]
    refused = {"embedding": None, "embedding_model": refused_by(parts.vector_model)}
    columns = [
        refused if vector is None else {"embedding": vector, "embedding_model": parts.vector_model}
        for vector in vectors
    ]
    return columns, [REFUSED] if any(vector is None for vector in vectors) else []
