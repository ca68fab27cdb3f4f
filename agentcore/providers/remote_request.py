"""One request to a provider over HTTP: its failures, their messages, and the retries."""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import stamina
from numpy.typing import ArrayLike

from agentcore.errors import ConfigurationError, DependencyUnavailable, Unreachable
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors, unit_rows

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 20.0
TRANSIENT = frozenset({408, 409, 425, 429})
REFUSED = frozenset({400, 413, 422})

Answer = TypeVar("Answer")


class RequestFailed(Exception):
    """A request failed with a status, or without a response. Contains no text and no key."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: str | None = None,
        final: bool = False,
        unreadable: bool = False,
        late: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.unreadable = unreadable
        self.retry_after_seconds = _seconds(retry_after)
        self.late = late
        self.transient = not final and (status is None or status in TRANSIENT or status >= 500)

    def unavailable(self) -> DependencyUnavailable:
        """`data.refused`: the text itself was refused; `data.unreadable`: the response was malformed; `data.late`:
        timeout.
        """
        told = {"unreadable": self.unreadable, "late": self.late}
        details = {"status": self.status, "refused": self.status in REFUSED}
        answered = self.status is not None or self.unreadable
        return (DependencyUnavailable if answered else Unreachable)(
            self.message, data={**details, **{name: True for name, holds in told.items() if holds}}
        )


@dataclass(frozen=True)
class Failures:
    """Builds the failures of one kind of request, with messages such as "Cohere failed to embed (500)"."""

    vendor: str
    work: str
    answer: str
    model_name: str
    key_setting: str
    model_setting: str
    timeout_seconds: float

    def status(self, status: int, *, retry_after: str | None = None, final: bool = False) -> RequestFailed:
        """Quotes no text of the response: it may contain the key or a text."""
        if status in (401, 403):
            message = f"{self.vendor} refused the key ({status}): check {self.key_setting}."
        elif status == 404:
            message = f"{self.vendor} has no model {self.model_name!r} here ({status}): check {self.model_setting}."
        elif status in REFUSED:
            message = f"{self.vendor} refused to {self.work} a text with {self.model_name!r} ({status})."
        elif status == 429:
            message = f"{self.vendor} takes no more requests for now ({status})."
        else:
            message = f"{self.vendor} failed to {self.work} ({status})."
        return RequestFailed(message, status=status, retry_after=retry_after, final=final)

    def unanswered(self) -> RequestFailed:
        message = f"{self.vendor} did not answer within {self.timeout_seconds:g} seconds."
        return RequestFailed(message, late=True)

    def unreachable(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} cannot be reached.")

    def unreadable(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} answered with what is no {self.answer}.", unreadable=True)

    def declined(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} declined to {self.work}.", final=True, unreadable=True)


async def persist(
    ask: Callable[[], Awaitable[Answer]], *, attempts: int, longest_wait_seconds: float = LONGEST_WAIT_SECONDS
) -> Answer:
    """Retries transient failures of `ask`, after Retry-After if it is not too long. Raises RequestFailed."""

    def wait(failure: Exception) -> bool | float:
        if not isinstance(failure, RequestFailed) or not failure.transient:
            return False
        if failure.retry_after_seconds is None:
            return True
        return failure.retry_after_seconds <= longest_wait_seconds and failure.retry_after_seconds

    first_wait_seconds = min(FIRST_WAIT_SECONDS, longest_wait_seconds)
    tries = stamina.retry_context(
        on=wait,
        attempts=attempts,
        timeout=None,
        wait_initial=first_wait_seconds,
        wait_max=longest_wait_seconds,
        wait_jitter=first_wait_seconds,
    )
    async for attempt in tries:
        with attempt:
            return await ask()
    raise AssertionError("stamina gave no attempt")


def _seconds(retry_after: str | None) -> float | None:
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


PARALLEL_REQUESTS = 4
# Below this latency, requests are sent one at a time: texts that arrive meanwhile are batched, which takes less
# processor time than more requests.
FAST_SECONDS = 0.03


class RemoteEmbedder(ABC):
    vendor: ClassVar[str]
    key_setting: ClassVar[str]
    distinguishes_queries: ClassVar[bool] = False
    # Limits of one request; a token has at least one byte.
    request_texts: ClassVar[int]
    request_bytes: ClassVar[int]

    def __init__(self, options: EmbedderOptions, *, sizes: Sequence[int], sizable: bool) -> None:
        """`sizes`: dimensions of the model, empty if unknown. `sizable`: a request can choose them."""
        if sizes and options.dimensions not in sizes:
            every = isinstance(sizes, range)
            made = f"{sizes[0]} to {sizes[-1]}" if every else " or ".join(map(str, sizes))
            raise ConfigurationError(
                [
                    f"EMBEDDING_DIMENSIONS={options.dimensions}: {options.model_name} makes {made}; "
                    f"set EMBEDDING_DIMENSIONS={sizes[-1]}."
                ]
            )
        size = f"@{options.dimensions}" if sizable else ""
        self.model = f"{self.vendor.lower()}/{options.model_name}{size}"
        self.dimensions = options.dimensions
        self.batch_size = min(options.batch_size, self.request_texts)
        self._options = options
        self._failures = Failures(
            vendor=self.vendor,
            work="embed",
            answer="list of embeddings",
            model_name=options.model_name,
            key_setting=self.key_setting,
            model_setting="EMBEDDING_MODEL_NAME",
            timeout_seconds=options.timeout_seconds,
        )
        self._known = bool(sizes)
        self._slots = asyncio.Semaphore(PARALLEL_REQUESTS)
        self._latest_seconds = math.inf
        self._started: list[float] = []

    @property
    def parallel_requests(self) -> int:
        """1 while the endpoint is fast."""
        running_seconds = time.monotonic() - self._started[0] if self._started else 0.0
        return 1 if max(running_seconds, self._latest_seconds) < FAST_SECONDS else PARALLEL_REQUESTS

    async def open(self) -> None:
        """Requests the dimensions of an unknown model; an unavailable provider is no error."""
        await self._connect()
        if self._known:
            return
        try:
            rows = np.asarray(await self._ask(["dimensions"], "query"), np.float32)
        except (RequestFailed, ValueError):
            return
        if rows.ndim == 2 and rows.shape[1] != self.dimensions:
            await self.close()
            raise ConfigurationError(
                [
                    f"EMBEDDING_DIMENSIONS={self.dimensions}: {self._options.model_name} makes {rows.shape[1]}; "
                    f"set EMBEDDING_DIMENSIONS={rows.shape[1]}."
                ]
            )

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
        """Sends one request; returns a row for each text, in order. Raises RequestFailed."""

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
            began = time.monotonic()
            self._started.append(began)
            seconds = math.inf
            try:
                rows = await persist(lambda: self._ask(texts, kind), attempts=self._options.max_attempts)
            except RequestFailed as failure:
                raise failure.unavailable() from failure
            else:
                seconds = time.monotonic() - began
            finally:
                self._started.remove(began)
                self._latest_seconds = seconds
        return unit_rows(rows, count=len(texts), dimensions=self.dimensions)
