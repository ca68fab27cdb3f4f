"""Timeouts, and work that must complete although its task was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_to_completion(work: Coroutine[Any, Any, Result]) -> Result:
    """Cancellation takes effect when the work ends: a thread cannot be cancelled."""
    running = asyncio.create_task(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        raise


_ending: set[asyncio.Future[Any]] = set()


async def run_with_timeout(seconds: float, work: Awaitable[Result]) -> Result:
    """Raises TimeoutError at the limit, while the cancelled work cleans up.

    `asyncio.timeout` would block until then: seconds, with a hung server.
    """
    running = asyncio.ensure_future(work)
    try:
        await asyncio.wait([running], timeout=seconds)
        if running.done():
            return running.result()
        raise TimeoutError
    finally:
        if not running.done():
            running.cancel()
            _ending.add(running)
            running.add_done_callback(_ended)


def _ended(task: asyncio.Future[Any]) -> None:
    _ending.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not report it
