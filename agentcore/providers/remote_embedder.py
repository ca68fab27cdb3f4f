"""What embedders behind an HTTP interface share: requests of a fitting size, retries, one form of failure."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import stamina
from numpy.typing import ArrayLike

from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors, unit_rows

PARALLEL_REQUESTS = 4
FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 20.0
TRANSIENT = frozenset({408, 409, 425, 429})
REFUSED = frozenset({400, 413, 422})


class RequestFailed(Exception):
    """One request came to nothing: with a status, or for want of an answer. Holds no text and no key."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: str | None = None,
                 final: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.retry_after_seconds = _seconds(retry_after)
        self.transient = not final and (status is None or status in TRANSIENT or status >= 500)


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
        """The text as the provider takes it: providers refuse an empty one."""
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
                rows = await self._persist(texts, kind)
            except RequestFailed as failure:
                details = {"status": failure.status, "refused": failure.status in REFUSED}
                raise DependencyUnavailable(failure.message, data=details) from failure
        return unit_rows(rows, count=len(texts), dimensions=self.dimensions)

    async def _persist(self, texts: Sequence[str], kind: EmbeddingKind) -> ArrayLike:
        attempts = stamina.retry_context(
            on=_wait, attempts=self._options.max_attempts, timeout=None,
            wait_initial=FIRST_WAIT_SECONDS, wait_max=LONGEST_WAIT_SECONDS, wait_jitter=FIRST_WAIT_SECONDS)
        async for attempt in attempts:
            with attempt:
                return await self._ask(texts, kind)
        raise AssertionError("stamina gave no attempt")

    def _failure(self, status: int, *, retry_after: str | None = None, final: bool = False) -> RequestFailed:
        """What an answer's status means, without a word of the answer: it may quote the key or a text."""
        name = self._options.model_name
        if status in (401, 403):
            message = f"{self.vendor} refused the key ({status}): check {self.key_setting}."
        elif status == 404:
            message = f"{self.vendor} has no model {name!r} here ({status}): check EMBEDDING_MODEL_NAME."
        elif status in REFUSED:
            message = f"{self.vendor} refused to embed a text with {name!r} ({status})."
        elif status == 429:
            message = f"{self.vendor} takes no more requests for now ({status})."
        else:
            message = f"{self.vendor} failed to embed ({status})."
        return RequestFailed(message, status=status, retry_after=retry_after, final=final)

    def _unanswered(self) -> RequestFailed:
        seconds = self._options.timeout_seconds
        return RequestFailed(f"{self.vendor} did not answer within {seconds:g} seconds.")

    def _unreachable(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} cannot be reached.")

    def _unreadable(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} answered with what is no list of embeddings.")


def _wait(failure: Exception) -> bool | float:
    """Whether to try again, and after how long where the provider says so."""
    if not isinstance(failure, RequestFailed) or not failure.transient:
        return False
    if failure.retry_after_seconds is None:
        return True
    return failure.retry_after_seconds <= LONGEST_WAIT_SECONDS and failure.retry_after_seconds


def _seconds(retry_after: str | None) -> float | None:
    """A Retry-After header in seconds. Its other form, a date, is rare, and left to the usual backoff."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
