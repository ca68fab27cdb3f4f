"""The Embedder protocol, its table of implementations, and batching.

To make a running embedder, wrap one: `CachingEmbedder(BatchingEmbedder(provider), redis)`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agentcore.errors import DependencyUnavailable

__all__ = [
    "EMBEDDERS",
    "RELATION_CLASSIFIERS",
    "BatchingEmbedder",
    "Embedder",
    "EmbedderLayer",
    "EmbedderOptions",
    "EmbeddingKind",
    "RelationClassifier",
    "Vectors",
    "refused_by",
    "unit_rows",
]

EmbeddingKind = Literal["document", "query"]
Vectors: TypeAlias = NDArray[np.float32]

# The providers, by the name `EMBEDDING_MODEL` gives them. Each class is constructed with EmbedderOptions.
EMBEDDERS: Mapping[str, str] = {
    "local": "agentcore.providers.e5:E5Embedder",
    "minilm": "agentcore.providers.minilm:MiniLmEmbedder",
    "hashing": "agentcore.providers.hashing:HashingEmbedder",
    "openai": "agentcore.providers.openai_embedder:OpenAiEmbedder",
    "cohere": "agentcore.providers.cohere_embedder:CohereEmbedder",
}

RELATION_CLASSIFIERS: Mapping[str, str] = {"local": "agentcore.providers.e5:LocalRelations"}

# The model of a provider where `EMBEDDING_MODEL_NAME` names none.
DEFAULT_MODEL_NAMES: Mapping[str, str] = {
    "local": "multilingual-e5-small-adapted",
    "minilm": "all-MiniLM-L6-v2",
    "openai": "text-embedding-3-small",
    "cohere": "embed-english-v3.0",
}


class Embedder(Protocol):
    """Turns texts into vectors of one model."""

    @property
    def model(self) -> str:
        """The name stored beside each vector. Vectors of equal names are comparable, others are not."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    @property
    def kind_matters(self) -> bool:
        """Whether a text has another vector as a query than as a document."""

    @property
    def batch_size(self) -> int:
        """How many texts are best embedded together; `embed` itself takes any number."""

    @property
    def parallel_requests(self) -> int:
        """How many calls of `embed` for one kind are worth having under way together."""

    async def open(self) -> None:
        """Make it ready. Raises ConfigurationError or StartupError where it never can be."""

    async def close(self) -> None:
        """Let go of what `open` took. Does nothing where it was not open."""

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        """One L2-normalised row for each text, in their order. Raises DependencyUnavailable."""


class RelationClassifier(Protocol):
    """Decides whether a message changes what an earlier one states."""

    async def changes(self, pairs: Sequence[tuple[str, str]]) -> Vectors:
        """Returns for each pair (earlier, later) the probability that the later text changes the other."""

    def close(self) -> None:
        """Ends its thread."""


@dataclass(frozen=True)
class EmbedderOptions:
    """What a provider may need to know; each takes what concerns it. 0 `threads`: one for each core."""

    model_name: str
    dimensions: int
    cache_directory: Path
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout_seconds: float = 10.0
    max_attempts: int = 3
    batch_size: int = 64
    threads: int = 0
    model_directory: Path | None = None


def unit_rows(rows: ArrayLike, *, count: int, dimensions: int) -> Vectors:
    """A provider's answer as L2-normalised float32 rows.

    Raises DependencyUnavailable where it has another shape than `(count, dimensions)`, holds a value that is
    no number, or a row without direction.
    """
    try:
        vectors = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        raise DependencyUnavailable("The embedding model answered with what is no vector.") from cause
    if vectors.shape != (count, dimensions):
        raise DependencyUnavailable(
            f"The embedding model answered with the shape {vectors.shape} where ({count}, {dimensions}) "
            f"was asked for.", data={"shape": list(vectors.shape)})
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
        raise DependencyUnavailable("The embedding model answered with a vector that has no direction.")
    return cast(Vectors, vectors / lengths)


def refused_by(model: str) -> str:
    """What stands in the place of a memory's model where that model refuses its text."""
    return f"refused:{model}"


class EmbedderLayer:
    """What stands around an embedder and passes itself off as it."""

    def __init__(self, inner: Embedder) -> None:
        self.model = inner.model
        self.dimensions = inner.dimensions
        self.kind_matters = inner.kind_matters
        self.batch_size = inner.batch_size
        self.parallel_requests = inner.parallel_requests
        self._inner = inner

    async def open(self) -> None:
        await self._inner.open()


# --- batches -----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Request:
    """One caller's texts and the future of its vectors; `alone`: never batched with others."""

    texts: Sequence[str]
    answer: asyncio.Future[Vectors]
    alone: bool = False


class _Lane:
    """Pending requests of one kind: those that arrive during a batch form the next one."""

    def __init__(self, inner: Embedder, kind: EmbeddingKind) -> None:
        self._inner = inner
        self._kind: EmbeddingKind = kind
        self._waiting: deque[_Request] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        request = _Request(texts, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._start()
        return await request.answer

    async def drain(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._inner.parallel_requests:
            batch = self._take()
            if batch:
                task = asyncio.create_task(self._run(batch), name=f"embed {self._kind}")
                self._running.add(task)
                task.add_done_callback(lambda done, batch=batch: self._ended(done, batch))  # type: ignore[misc]

    def _take(self) -> list[_Request]:
        batch: list[_Request] = []
        room = self._inner.batch_size
        while self._waiting:
            request = self._waiting[0]
            if batch and (request.alone or batch[0].alone or len(request.texts) > room):
                break
            self._waiting.popleft()
            if not request.answer.done():
                batch.append(request)
                room -= len(request.texts)
        return batch

    async def _run(self, batch: Sequence[_Request]) -> None:
        texts = [text for request in batch for text in request.texts]
        vectors = await self._inner.embed(texts, self._kind)
        start = 0
        for request in batch:
            end = start + len(request.texts)
            if not request.answer.done():
                request.answer.set_result(vectors[start:end])
            start = end

    def _ended(self, task: asyncio.Task[None], batch: Sequence[_Request]) -> None:
        self._running.discard(task)
        failure = DependencyUnavailable("The embedder was closed.") if task.cancelled() else task.exception()
        unanswered = [request for request in batch if not request.answer.done()]
        if isinstance(failure, DependencyUnavailable) and failure.data.get("refused") and len(batch) > 1:
            # One request's text may be at fault; the others must not fail with it.
            for request in reversed(unanswered):
                request.alone = True
                self._waiting.appendleft(request)
        elif failure is not None:
            for request in unanswered:
                request.answer.set_exception(failure)
        self._start()


class BatchingEmbedder(EmbedderLayer):
    """Merges requests that come while others are under way; a lone one starts at once.

    Queries and documents have a lane each, so that a query never waits behind a long import. A batch the
    provider refuses (`data.refused` of the error) is tried again request by request.
    """

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self._lanes: Mapping[EmbeddingKind, _Lane] = {
            "document": _Lane(inner, "document"), "query": _Lane(inner, "query")}

    async def close(self) -> None:
        for lane in self._lanes.values():
            await lane.drain()
        await self._inner.close()

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return await self._lanes[kind].embed(texts)
