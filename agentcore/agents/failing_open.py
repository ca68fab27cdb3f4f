"""Memory that fails open: reads return empty results while it is unavailable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar, cast

from agentcore.errors import DependencyUnavailable
from agentcore.memory.api import (
    EMPTY_RESULTS,
    UNAVAILABLE,
    MemoryApi,
    Method,
    P,
    ParamsT,
    ResultT,
    degraded_receipt,
    was_not_asked,
)
from agentcore.memory.models import Receipt

AnswerT = TypeVar("AnswerT")

logger = logging.getLogger(__name__)


class _FailingOpen(MemoryApi):
    def __init__(self, memory: MemoryApi, timeout_seconds: float) -> None:
        self._memory, self._timeout_seconds = memory, timeout_seconds

    @property
    def fails_open_after_seconds(self) -> float:
        return self._timeout_seconds

    async def call(self, method: Method[P, ParamsT, ResultT], params: ParamsT) -> ResultT:
        if method.attribute not in EMPTY_RESULTS:
            return await self._memory.call(method, params)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._memory.call(method, params)
        except TimeoutError:
            reason = f"It did not answer within {self._timeout_seconds:g} s."
        except UNAVAILABLE as failure:
            reason = failure.message
        logger.warning("%s goes without memory: %s", method.name, reason)
        return cast(ResultT, EMPTY_RESULTS[method.attribute](degraded_receipt(reason)))


def failing_open(memory: MemoryApi, *, timeout_seconds: float = 30.0) -> MemoryApi:
    """Wraps a memory so that it fails open, like `fail_open` of a client.

    A search, context or summary that fails or exceeds `timeout_seconds` is empty, with a warning and a
    receipt that says so. Writes, invalid params and refused tokens still raise.
    """
    return _FailingOpen(memory, timeout_seconds)


class NotAsked(DependencyUnavailable):
    """Memory is unavailable: the result is empty because no search was made."""


def must_be_asked(receipt: Receipt) -> None:
    """Raises NotAsked for the empty result of a memory that failed open: it does not mean "no match"."""
    if was_not_asked(receipt):
        raise NotAsked


def deadline(memory: MemoryApi) -> float | None:
    """Returns the time of the event loop when calls from now on must end; None if the memory does not fail open."""
    seconds = memory.fails_open_after_seconds
    return None if seconds is None else asyncio.get_running_loop().time() + seconds


async def if_answered(
    memory: MemoryApi, use: str, otherwise: AnswerT, answer: Awaitable[AnswerT], *, until: float | None = None
) -> AnswerT:
    """Awaits an answer until the deadline of a memory that fails open; else logs a warning, returns `otherwise`."""
    until = deadline(memory) if until is None else until
    if until is None:
        return await answer
    seconds = until - asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(until):
            return await answer
    except NotAsked:  # logged where it was raised
        return otherwise
    except TimeoutError:
        reason = f"It did not answer within {max(0.0, round(seconds, 2)):g} s."
    except UNAVAILABLE as failure:
        reason = failure.message
    logger.warning("%s goes without memory: %s", use, reason)
    return otherwise
