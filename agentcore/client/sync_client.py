"""The memory API for synchronous code: a `MemoryClient` on an event loop in a thread."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from agentcore.client.connection import TokenSource
from agentcore.client.memory_client import MemoryClient
from agentcore.errors import ClientClosed
from agentcore.memory.api import Call, MemoryApi, Method, P, ParamsT
from agentcore.memory.models import Interaction, MemorySummary, Strict
from agentcore.memory.params.memories import StoreResult

HOLDS_LOOP_UP = (
    "This call waits, and would hold up the event loop that it is called on: use MemoryClient there, or a thread."
)

ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT", bound=Strict)


class _Waiting(Generic[P, ParamsT, AnswerT]):
    def __init__(self, method: Method[P, ParamsT, AnswerT]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: type[SyncMemoryClient]) -> Self: ...

    @overload
    def __get__(self, owner: SyncMemoryClient, kind: type[SyncMemoryClient]) -> Call[P, ParamsT, AnswerT]: ...

    def __get__(self, owner: SyncMemoryClient | None, kind: type[SyncMemoryClient]) -> Self | Call[P, ParamsT, AnswerT]:
        if owner is None:
            return self
        asked = owner
        return Call(self._method, lambda params: asked._run(lambda memory: memory.call(self._method, params)))


class _LoopThread:
    def __init__(self) -> None:
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    def open(self) -> None:
        if self._portal is None:
            self._portal = self._stack.enter_context(start_blocking_portal())

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a last call and stops the loop; pending calls raise ClientClosed."""
        portal, self._portal = self._portal, None
        if portal is not None:
            portal.call(last)
            portal.call(portal.stop, True)
            self._stack.close()

    def run(self, call: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        portal = self._portal
        if portal is None:
            raise ClientClosed("This client is not open: use it in a `with` block.")
        if _in_event_loop():
            raise RuntimeError(HOLDS_LOOP_UP)
        try:
            answer: Future[ResultT] = portal.start_task_soon(call)
        except RuntimeError as cause:  # it stopped after the check
            raise ClientClosed from cause
        try:
            return answer.result()
        except CancelledError as cause:
            raise ClientClosed from cause
        finally:
            answer.cancel()  # the caller was interrupted, as by Ctrl-C


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class SyncMemoryClient:
    """One agent's memory over HTTP, for synchronous code; threads may share one. Use it with `with`.

    `options` are those of `MemoryClient`. Raises RuntimeError on a running event loop, which a call would
    block: use `MemoryClient` there. `batched` and `in_process` exist only in `MemoryClient`.
    """

    def __init__(self, url: str, token: TokenSource, **options: Any) -> None:
        self._memory = MemoryClient(url, token, **options)
        self._thread = _LoopThread()

    def __enter__(self) -> Self:
        self._thread.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and ends the thread; later calls, also of views, raise ClientClosed."""
        self._thread.close(self._memory.close)

    def traced(self, *, traceparent: str | None = None, a2a_context: Mapping[str, Any] | None = None) -> Self:
        """Returns a view with the same connections and thread; see `MemoryClient.traced`."""
        view = copy.copy(self)
        view._memory = self._memory.traced(traceparent=traceparent, a2a_context=a2a_context)
        return view

    def _run(self, call: Callable[[MemoryClient], Coroutine[Any, Any, ResultT]]) -> ResultT:
        return self._thread.run(lambda: call(self._memory))

    def add_interaction(self, /, interaction: Interaction, **options: Any) -> StoreResult:
        return self._run(lambda memory: memory.add_interaction(interaction, **options))

    def retrieve_memories(self, /, query: str, k: int = 5, **options: Any) -> tuple[MemorySummary, ...]:
        return self._run(lambda memory: memory.retrieve_memories(query, k, **options))

    def get_relevant_context(
        self, /, query: str, task_id: str | None = None, max_tokens: int = 2_000, **options: Any
    ) -> str:
        return self._run(lambda memory: memory.get_relevant_context(query, task_id, max_tokens, **options))

    store = _Waiting(MemoryApi.store)
    store_batch = _Waiting(MemoryApi.store_batch)
    retrieve = _Waiting(MemoryApi.retrieve)
    get_context = _Waiting(MemoryApi.get_context)
    update = _Waiting(MemoryApi.update)
    history = _Waiting(MemoryApi.history)
    revert = _Waiting(MemoryApi.revert)
    feedback = _Waiting(MemoryApi.feedback)
    prune = _Waiting(MemoryApi.prune)
    restore = _Waiting(MemoryApi.restore)
    archived = _Waiting(MemoryApi.archived)
    get = _Waiting(MemoryApi.get)
    list = _Waiting(MemoryApi.list)
    count = _Waiting(MemoryApi.count)
    facets = _Waiting(MemoryApi.facets)
    project = _Waiting(MemoryApi.project)
    delete = _Waiting(MemoryApi.delete)
    stats = _Waiting(MemoryApi.stats)
    capabilities = _Waiting(MemoryApi.capabilities)
    complete_task = _Waiting(MemoryApi.complete_task)
    add_session = _Waiting(MemoryApi.add_session)
    end_session = _Waiting(MemoryApi.end_session)
    summarize = _Waiting(MemoryApi.summarize)
    clear = _Waiting(MemoryApi.clear)
    settings = _Waiting(MemoryApi.settings)
    configure = _Waiting(MemoryApi.configure)
    consolidate = _Waiting(MemoryApi.consolidate)
    jobs = _Waiting(MemoryApi.jobs)
    change_job = _Waiting(MemoryApi.change_job)
    erase = _Waiting(MemoryApi.erase)
