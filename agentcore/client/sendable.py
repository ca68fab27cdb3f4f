"""What of a call's items is sent, and every item's answer in its place.

A refused item is not: what is wrong with it JSON may have no form for, and would change on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from agentcore.errors import InternalError
from agentcore.memory.params import StoreResult
from agentcore.memory.refused_answers import answer_to
from agentcore.memory.refused_items import RefusedItem

ItemT = TypeVar("ItemT")


def sendable(items: Sequence[ItemT]) -> list[ItemT]:
    """The items that nothing is wrong with, in order."""
    return [item for item in items if not isinstance(item, RefusedItem)]


def in_place(items: Sequence[object], answered: Sequence[StoreResult]) -> list[StoreResult]:
    """A result for each item: the service's for what was sent. Raises InternalError where some lack."""
    if len(answered) != len(sendable(items)):
        raise InternalError(f"The service answered {len(answered)} items of {len(sendable(items))}.")
    given = iter(answered)
    return [answer_to(item) if isinstance(item, RefusedItem) else next(given) for item in items]
