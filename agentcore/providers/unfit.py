"""Stands in the place of a model that this process cannot make: searches go by words, stores wait."""

from __future__ import annotations

from collections.abc import Sequence

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import EmbeddingKind, Vectors


class UnfitEmbedder:
    """Answers every text with the same sentence."""

    kind_matters = False
    batch_size = 64
    parallel_requests = 1

    def __init__(self, model: str, dimensions: int, sentence: str) -> None:
        self.model = model
        self.dimensions = dimensions
        self._sentence = sentence

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """There is nothing to close."""

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        raise DependencyUnavailable(self._sentence, data={"restart": True})
