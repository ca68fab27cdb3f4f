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
    """Wraps a memory so that searches, contexts and summaries fail open."""
    return _FailingOpen(memory, timeout_seconds)


class NotAsked(DependencyUnavailable):
    """An empty result of a memory that failed open."""


def must_be_asked(receipt: Receipt) -> None:
    """Raises NotAsked for an empty result that does not mean "no match"."""
    if was_not_asked(receipt):
        raise NotAsked


class Patience:
    """The seconds that the calls of one step share."""

    def __init__(self, memory: MemoryApi) -> None:
        seconds = memory.fails_open_after_seconds
        self._ends = None if seconds is None else asyncio.get_running_loop().time() + seconds

    def left(self) -> float | None:
        """Returns the seconds left; None if the memory does not fail open."""
        return None if self._ends is None else max(0.0, self._ends - asyncio.get_running_loop().time())

    def half_of_what_is_left(self) -> float | None:
        left = self.left()
        return None if left is None else left / 2


async def if_answered(
    memory: MemoryApi, use: str, otherwise: AnswerT, answer: Awaitable[AnswerT], *, within: float | None = None
) -> AnswerT:
    """Awaits an answer within the time of a memory that fails open; else logs a warning and returns `otherwise`."""
    patience = memory.fails_open_after_seconds if within is None else within
    if patience is None:
        return await answer
    try:
        async with asyncio.timeout(patience):
            return await answer
    except NotAsked:
        return otherwise
    except TimeoutError:
        reason = f"It did not answer within {round(patience, 2):g} s."
    except UNAVAILABLE as failure:
        reason = failure.message
    logger.warning("%s goes without memory: %s", use, reason)
    return otherwise
