"""What stands in the place of an item that was refused before anything was done with it. Pure."""

from __future__ import annotations

from agentcore.errors import JsonRpcErrorCode
from agentcore.memory.params.memories import StoreResult
from agentcore.memory.params.refused_items import RefusedItem


def answer_to(item: RefusedItem) -> StoreResult:
    """Its result: with a code where something is wrong with it, without one where it is passed over."""
    code = int(JsonRpcErrorCode.INVALID_PARAMS) if item.is_wrong else None
    return StoreResult(success=False, memory_id=None, status="rejected", reason=item.problem, code=code)
