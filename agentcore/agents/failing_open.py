"""A memory that fails open, over any other: where it cannot be read, what is read is empty."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from agentcore.errors import DependencyUnavailable
from agentcore.memory.api import MemoryApi
from agentcore.memory.methods import METHODS
from agentcore.memory.models import Receipt, Strict
from agentcore.memory.params.empty_results import EMPTY_RESULTS, UNAVAILABLE, degraded_receipt, was_not_asked

AnswerT = TypeVar("AnswerT")

logger = logging.getLogger(__name__)


def failing_open(memory: MemoryApi, *, timeout_seconds: float = 30.0) -> MemoryApi:
    """The same memory, as `fail_open` of a client has it: a search, a context or a summary that it cannot
    give within `timeout_seconds` is empty, with a warning and a receipt that says so.

    All else is as it is: what cannot be stored, bad params and tokens raise.
    """
    async def or_empty(attribute: str, params: Strict) -> Any:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await getattr(memory, attribute)(params)
        except TimeoutError:
            reason = f"It did not answer within {timeout_seconds:g} s."
        except UNAVAILABLE as failure:
            reason = failure.message
        logger.warning("memory.%s goes without memory: %s", attribute, reason)
        return EMPTY_RESULTS[attribute](degraded_receipt(reason))

    def passed_on(attribute: str) -> Callable[..., Any]:
        async def call(self: MemoryApi, params: Strict) -> Any:
            if attribute in EMPTY_RESULTS:
                return await or_empty(attribute, params)
            return await getattr(memory, attribute)(params)

        return call

    methods = {method.attribute: passed_on(method.attribute) for method in METHODS}
    patience = {"fails_open_after_seconds": timeout_seconds}
    view: type[MemoryApi] = type("FailingOpen", (MemoryApi,), {**methods, **patience})
    return view()


class NotAsked(DependencyUnavailable):
    """Memory does not answer: the search is empty because it was not made."""


def must_be_asked(receipt: Receipt) -> None:
    """Raises NotAsked for an empty result of a memory that failed open: it says nothing of what is kept."""
    if was_not_asked(receipt):
        raise NotAsked


class Patience:
    """How long one step waits for a memory that fails open, from now on, whatever it asks of it."""

    def __init__(self, memory: MemoryApi) -> None:
        seconds = memory.fails_open_after_seconds
        self._ends = None if seconds is None else asyncio.get_running_loop().time() + seconds

    def left(self) -> float | None:
        """In seconds, never below 0; None of a memory that does not fail open."""
        return None if self._ends is None else max(0.0, self._ends - asyncio.get_running_loop().time())

    def half_of_what_is_left(self) -> float | None:
        """What a call may take that another one follows."""
        left = self.left()
        return None if left is None else left / 2


async def if_answered(memory: MemoryApi, use: str, otherwise: AnswerT, answer: Awaitable[AnswerT], *,
                      within: float | None = None) -> AnswerT:
    """What is asked of memory in several calls; of one that fails open `otherwise` where it does not answer.

    The calls have the patience of one, together; `within`: less of it, in seconds. A warning names the `use`,
    once: a NotAsked was told of where it arose.
    """
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
