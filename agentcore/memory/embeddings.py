"""The Embedder protocol, its table of implementations, and batching.

A complete embedder is composed: `CachingEmbedder(BatchingEmbedder(provider), redis)`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import Model

EmbeddingKind = Literal["document", "query"]
Vectors: TypeAlias = NDArray[np.float32]

# By value of `EMBEDDING_MODEL`; constructed with EmbedderOptions.
EMBEDDERS: Mapping[str, str] = {
    "local": "agentcore.providers.e5:E5Embedder",
    "hashing": "agentcore.providers.hashing:HashingEmbedder",
    "openai": "agentcore.providers.openai_models:OpenAiEmbedder",
    "cohere": "agentcore.providers.cohere_embedder:CohereEmbedder",
}

RELATION_CLASSIFIERS: Mapping[str, str] = {"local": "agentcore.providers.e5:LocalRelations"}

# Default model of a provider if `EMBEDDING_MODEL_NAME` is not set.
DEFAULT_MODEL_NAMES: Mapping[str, str] = {
    "local": "multilingual-e5-small-adapted",
    "openai": "text-embedding-3-small",
    "cohere": "embed-english-v3.0",
}


class Embedder(Model, Protocol):
    """Embeds texts with one model; only vectors of models with equal names are comparable.

    `distinguishes_queries`: a text has another vector as a query than as a document. `batch_size`: the preferred
    number of texts per call. `parallel_requests`: how many concurrent calls per kind are useful.
    """

    @property
    def dimensions(self) -> int: ...

    @property
    def distinguishes_queries(self) -> bool: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def parallel_requests(self) -> int: ...

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        """Returns one L2-normalized row per text, in order. Raises DependencyUnavailable."""


class RelationClassifier(Protocol):
    """Returns for pairs (earlier, later) the probability that the later text changes what the other states."""

    async def changes(self, pairs: Sequence[tuple[str, str]]) -> Vectors: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class EmbedderOptions:
    """Options of all providers; each uses those that apply to it. `threads` 0: one per core."""

    model_name: str
    dimensions: int
    cache_directory: Path
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout_seconds: float = 10.0
    max_attempts: int = 3
    batch_size: int = 64
    threads: int = 0


def unit_rows(rows: ArrayLike, *, count: int, dimensions: int) -> Vectors:
    """Returns a provider's answer as L2-normalized float32 rows. Raises DependencyUnavailable for invalid rows."""
    try:
        vectors = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        raise DependencyUnavailable("The embedding model answered with what is no vector.") from cause
    if vectors.shape != (count, dimensions):
        raise DependencyUnavailable(
            f"The embedding model answered with the shape {vectors.shape} where ({count}, {dimensions}) was asked for.",
            data={"shape": list(vectors.shape)},
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
        raise DependencyUnavailable("The embedding model answered with a vector that has no direction.")
    return cast(Vectors, vectors / lengths)


def refused_by(model: str) -> str:
    return f"refused:{model}"


class EmbedderLayer:
    """Base class of embedder wrappers; delegates the attributes."""

    def __init__(self, inner: Embedder) -> None:
        self.model = inner.model
        self.dimensions = inner.dimensions
        self.distinguishes_queries = inner.distinguishes_queries
        self.batch_size = inner.batch_size
        self._inner = inner

    @property
    def parallel_requests(self) -> int:
        return self._inner.parallel_requests

    async def open(self) -> None:
        await self._inner.open()


@dataclass(eq=False)
class _Request:
    """One caller's texts and the future of its vectors; `alone`: never batched with other requests."""

    texts: Sequence[str]
    answer: asyncio.Future[Vectors]
    alone: bool = False


class _Lane:
    """Queue of one kind: requests that arrive during a batch form the next one."""

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
                task.add_done_callback(partial(self._ended, batch=batch))

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
            # One request's text may be at fault: retry each request alone.
            for request in reversed(unanswered):
                request.alone = True
                self._waiting.appendleft(request)
        elif failure is not None:
            for request in unanswered:
                request.answer.set_exception(failure)
        self._start()


class BatchingEmbedder(EmbedderLayer):
    """Batches requests that arrive while others are running.

    Queries and documents have separate queues, so a long import does not delay queries. A batch that the
    provider refuses (`data.refused` of the error) is retried one request at a time.
    """

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        kinds: tuple[EmbeddingKind, ...] = get_args(EmbeddingKind)
        self._lanes: Mapping[EmbeddingKind, _Lane] = {kind: _Lane(inner, kind) for kind in kinds}

    async def close(self) -> None:
        for lane in self._lanes.values():
            await lane.drain()
        await self._inner.close()

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return await self._lanes[kind].embed(texts)
