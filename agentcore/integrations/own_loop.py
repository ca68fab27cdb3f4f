"""The event loop a memory was opened on: its calls run there, whoever makes them and from wherever.

Frameworks call from worker threads, from loops of their own, and from code without `await`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal

from agentcore.memory.api import MemoryApi

ResultT = TypeVar("ResultT")

NO_LOOP = (
    "There is no event loop to wait on: make this object inside one, give it `loop`, or open the memory with "
    "memory_in_thread."
)
SAME_LOOP = "This waits for the event loop that it is called on: use the async form of the call."


class OwnLoop:
    """Runs calls on `loop`, or on the one running where this is made; without any, on the caller's."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or _running()

    async def awaited(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """The call's result, in whichever loop it is awaited."""
        if self._loop is None or self._loop is _running():
            return await call
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def waited(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """The call's result, for code without `await`. Raises RuntimeError where waiting would never end."""
        if self._loop is None or self._loop is _running():
            call.close()
            raise RuntimeError(NO_LOOP if self._loop is None else SAME_LOOP)
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


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
