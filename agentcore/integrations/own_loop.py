"""Runs calls of a memory on the event loop that it was opened on, from any thread or loop."""

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
    "This waits for the event loop that it is called on, or that waits for this thread: use the async form of the call."
)
CLOSED_LOOP = "The event loop that the memory was opened on is closed: the memory is as well."
# A running loop schedules a call at once; one that does not within this time is blocked by the caller.
TAKEN_UP_SECONDS = 5.0


class OwnLoop:
    """Runs calls on `loop`; default: the loop running at creation, or else the caller's."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or _running()

    async def awaited(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Returns the call's result; may be awaited in any loop."""
        if self._loop is None or self._loop is _running():
            return await call
        if self._loop.is_closed():
            call.close()
            raise RuntimeError(CLOSED_LOOP)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def waited(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Returns the call's result to synchronous code. Raises RuntimeError if that would deadlock."""
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
    opening: AbstractAsyncContextManager[MemoryApi],
) -> Iterator[tuple[MemoryApi, asyncio.AbstractEventLoop]]:
    """Opens a memory on an event loop in its own thread, for synchronous code; yields it and the loop.

    with memory_in_thread(open_memory(agent_id="ada")) as (memory, loop):
        retriever = MemoryRetriever(memory=memory, loop=loop)
    """
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as memory:
        yield memory, portal.call(asyncio.get_running_loop)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
