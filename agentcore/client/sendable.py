"""What of a call's items is sent, and every item's answer in its place.

A refused item is not: what is wrong with it JSON may have no form for, and would change on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from agentcore.errors import InternalError
from agentcore.memory.params.memories import StoreBatchResult, answer_to
from agentcore.memory.params.refused_items import RefusedItem
from agentcore.memory.params.sessions import AddSessionResult

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT", StoreBatchResult, AddSessionResult)


def sendable(items: Sequence[ItemT]) -> list[ItemT]:
    """The items that nothing is wrong with, in order."""
    return [item for item in items if not isinstance(item, RefusedItem)]


def whole(items: Sequence[object], answered: AnswerT) -> AnswerT:
    """The service's answer to what was sent, with a result for each item; no success where one is refused.

    Raises InternalError where some lack.
    """
    sent = len(sendable(items))
    if len(answered.results) != sent:
        raise InternalError(f"The service answered {len(answered.results)} items of {sent}.")
    given = iter(answered.results)
    results = [answer_to(item) if isinstance(item, RefusedItem) else next(given) for item in items]
    refused = any(answer_to(item).code is not None for item in items if isinstance(item, RefusedItem))
    return answered.model_copy(update={"results": results, "success": answered.success and not refused})
