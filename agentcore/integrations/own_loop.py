"""The event loop a memory was opened on: its calls run there, whoever makes them and from wherever.

Frameworks call from worker threads, from loops of their own, and from code without `await`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Event
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal

from agentcore.memory.api import MemoryApi

ResultT = TypeVar("ResultT")

NO_LOOP = (
    "There is no event loop to wait on: make this object inside one, give it `loop`, or open the memory with "
    "memory_in_thread."
)
SAME_LOOP = (
    "This waits for the event loop that it is called on, or that waits for this thread: use the async form "
    "of the call."
)
CLOSED_LOOP = "The event loop that the memory was opened on is closed: the memory is as well."
# A loop that turns takes a call up at once; one that does not in this time waits for who calls.
TAKEN_UP_SECONDS = 5.0


class OwnLoop:
    """Runs calls on `loop`, or on the one running where this is made; without any, on the caller's."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or _running()

    async def awaited(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """The call's result, in whichever loop it is awaited."""
        if self._loop is None or self._loop is _running():
            return await call
        if self._loop.is_closed():
            call.close()
            raise RuntimeError(CLOSED_LOOP)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def waited(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """The call's result, for code without `await`. Raises RuntimeError where waiting would never end."""
        try:
            loop = self._turning()
        except RuntimeError:
            call.close()
            raise
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    def _turning(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop is _running():
            raise RuntimeError(NO_LOOP if self._loop is None else SAME_LOOP)
        turned = Event()
        try:
            self._loop.call_soon_threadsafe(turned.set)
        except RuntimeError as cause:
            raise RuntimeError(CLOSED_LOOP) from cause
        if not turned.wait(TAKEN_UP_SECONDS):
            raise RuntimeError(SAME_LOOP)
        return self._loop


@contextmanager
def memory_in_thread(
    opening: AbstractAsyncContextManager[MemoryApi]
) -> Iterator[tuple[MemoryApi, asyncio.AbstractEventLoop]]:
    """A memory opened on an event loop in a thread of its own, and that loop, for code without `await`.

        with memory_in_thread(open_memory(agent_id="ada")) as (memory, loop):
            retriever = MemoryRetriever(memory=memory, loop=loop)
    """
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as memory:
        yield memory, portal.call(_this_loop)


async def _this_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
