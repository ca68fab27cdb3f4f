"""A memory that fails open, over any other: where it cannot be read, what is read is empty."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from agentcore.memory.api import MemoryApi
from agentcore.memory.empty_results import EMPTY_RESULTS, UNAVAILABLE, degraded_receipt
from agentcore.memory.methods import METHODS
from agentcore.memory.models import Strict

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
    view: type[MemoryApi] = type("FailingOpen", (MemoryApi,), methods)
    return view()
