"""The vectors of texts that are stored: what gets none now is found by its words, and embedded later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import refused_by
from agentcore.memory.parts import MemoryParts
from agentcore.memory.writing.refusals import NOT_EMBEDDED, REFUSED, embed_each


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
