"""What embedders behind an HTTP interface share: requests of a fitting size, each tried again."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from agentcore.errors import ConfigurationError
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors, unit_rows
from agentcore.providers.remote_request import Failures, RequestFailed, persist

PARALLEL_REQUESTS = 4


class RemoteEmbedder(ABC):
    """Embeds through a provider's SDK. A subclass makes single requests and names what it talks to."""

    vendor: ClassVar[str]
    key_setting: ClassVar[str]
    kind_matters: ClassVar[bool] = False
    # What one request may hold at most; a token is at least one byte.
    request_texts: ClassVar[int]
    request_bytes: ClassVar[int]

    parallel_requests = PARALLEL_REQUESTS

    def __init__(self, options: EmbedderOptions, *, sizes: Sequence[int], sizable: bool) -> None:
        """`sizes`: dimensions the model can make, none if that is unknown. `sizable`: they can be chosen."""
        if sizes and options.dimensions not in sizes:
            every = isinstance(sizes, range)
            made = f"{sizes[0]} to {sizes[-1]}" if every else " or ".join(map(str, sizes))
            raise ConfigurationError([
                f"EMBEDDING_DIMENSIONS={options.dimensions}: {options.model_name} makes {made}; "
                f"set EMBEDDING_DIMENSIONS={sizes[-1]}."])
        size = f"@{options.dimensions}" if sizable else ""
        self.model = f"{self.vendor.lower()}/{options.model_name}{size}"
        self.dimensions = options.dimensions
        self.batch_size = min(options.batch_size, self.request_texts)
        self._options = options
        self._failures = Failures(
            vendor=self.vendor, work="embed", answer="list of embeddings", model_name=options.model_name,
            key_setting=self.key_setting, model_setting="EMBEDDING_MODEL_NAME",
            timeout_seconds=options.timeout_seconds)
        self._known = bool(sizes)
        self._slots = asyncio.Semaphore(PARALLEL_REQUESTS)

    async def open(self) -> None:
        """Connects. An unknown model is asked for its dimensions; a provider that is away is no error."""
        await self._connect()
        if self._known:
            return
        try:
            rows = np.asarray(await self._ask(["dimensions"], "query"), np.float32)
        except (RequestFailed, ValueError):
            return
        if rows.ndim == 2 and rows.shape[1] != self.dimensions:
            await self.close()
            raise ConfigurationError([
                f"EMBEDDING_DIMENSIONS={self.dimensions}: {self._options.model_name} makes {rows.shape[1]}; "
                f"set EMBEDDING_DIMENSIONS={rows.shape[1]}."])

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        fitting = [await self._fit(text) for text in texts]
        try:
            async with asyncio.TaskGroup() as group:
                parts = [group.create_task(self._embed_part(part, kind)) for part in self._parts(fitting)]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return np.concatenate([part.result() for part in parts])

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def _connect(self) -> None: ...

    @abstractmethod
    async def _ask(self, texts: Sequence[str], kind: EmbeddingKind) -> ArrayLike:
        """One request, tried once: a row for each text, in order. Raises RequestFailed."""

    async def _fit(self, text: str) -> str:
        return text or " "

    def _parts(self, texts: Sequence[str]) -> Iterator[list[str]]:
        part: list[str] = []
        part_bytes = 0
        for text in texts:
            text_bytes = len(text.encode("utf-8", "surrogatepass"))
            if part and (len(part) == self.batch_size or part_bytes + text_bytes > self.request_bytes):
                yield part
                part, part_bytes = [], 0
            part.append(text)
            part_bytes += text_bytes
        yield part

    async def _embed_part(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        async with self._slots:
            try:
                rows = await persist(lambda: self._ask(texts, kind), attempts=self._options.max_attempts)
            except RequestFailed as failure:
                raise failure.unavailable() from failure
        return unit_rows(rows, count=len(texts), dimensions=self.dimensions)
