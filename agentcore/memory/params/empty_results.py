"""What a reading call answers where memory cannot be asked and the caller goes on without it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentcore.errors import (
    AgentCoreError,
    DependencyUnavailable,
    InternalError,
    NotReady,
    RateLimited,
)
from agentcore.memory.models import Receipt, Strict
from agentcore.memory.params.memories import GetContextResult, RetrieveResult
from agentcore.memory.params.sessions import SummarizeResult

# The service's failures. Of the caller's own (params, token, scope) nobody must stay unaware.
UNAVAILABLE: tuple[type[AgentCoreError], ...] = (DependencyUnavailable, NotReady, RateLimited, InternalError)

# By the attribute of `MemoryApi`: what finds nothing where nothing can be found.
EMPTY_RESULTS: Mapping[str, Callable[[Receipt], Strict]] = {
    "retrieve": lambda receipt: RetrieveResult(memories=[], receipt=receipt),
    "get_context": lambda receipt: GetContextResult(
        context="", token_count=0, memory_ids=[], encoding=None, receipt=receipt),
    "summarize": lambda receipt: SummarizeResult(
        summary="", token_count=0, memory_ids=[], memory_count=0, receipt=receipt),
}


_NOT_ASKED = "memory was not asked: "


def degraded_receipt(reason: str) -> Receipt:
    """The receipt of an empty result: it says that nothing was asked, and why."""
    return Receipt(degraded=[f"{_NOT_ASKED}{reason}"])


def was_not_asked(receipt: Receipt) -> bool:
    """Whether a result is empty because memory could not be asked, and not because nothing fits."""
    return any(part.startswith(_NOT_ASKED) for part in receipt.degraded)
