"""One refused text among many: the others get their vectors all the same."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import Embedder, EmbeddingKind, Vectors

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
