"""A memory that fails open, over any other: where it cannot be read, what is read is empty."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from agentcore.errors import DependencyUnavailable
from agentcore.memory.api import MemoryApi
from agentcore.memory.empty_results import EMPTY_RESULTS, UNAVAILABLE, degraded_receipt, was_not_asked
from agentcore.memory.methods import METHODS
from agentcore.memory.models import Receipt, Strict

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


async def if_answered(memory: MemoryApi, use: str, otherwise: AnswerT, answer: Awaitable[AnswerT]) -> AnswerT:
    """What is asked of memory in several calls; of one that fails open `otherwise` where it does not answer.

    The calls have the patience of one, together. A warning names the `use`, once: a NotAsked was told of
    where it arose.
    """
    patience = memory.fails_open_after_seconds
    if patience is None:
        return await answer
    try:
        async with asyncio.timeout(patience):
            return await answer
    except NotAsked:
        return otherwise
    except TimeoutError:
        reason = f"It did not answer within {patience:g} s."
    except UNAVAILABLE as failure:
        reason = failure.message
    logger.warning("%s goes without memory: %s", use, reason)
    return otherwise
