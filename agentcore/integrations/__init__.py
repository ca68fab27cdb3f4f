"""Memory in other frameworks: each module needs the extra of its name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agentcore.errors import JsonRpcErrorCode, from_wire
from agentcore.limits import MAX_BATCH_ITEMS
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import ListParams, StoreBatchParams, StoreParams


def not_installed(extra: str, cause: ImportError) -> ImportError:
    return ModuleNotFoundError(
        f"This integration needs {extra}, which is not installed (there is no module {cause.name}): "
        f"pip install 'agentcore-memory[{extra}]'.",
        name=cause.name,
    )


async def listed(memory: MemoryApi, **params: Any) -> AsyncIterator[MemoryRecord]:
    """Yields all memories of `memory.list` with these params, page by page."""
    cursor: str | None = None
    while True:
        page = await memory.list(ListParams(cursor=cursor, **params))
        for record in page.memories:
            yield record
        cursor = page.next_cursor
        if cursor is None:
            return


async def store_all(
    memory: MemoryApi, items: Sequence[StoreParams], *, pass_over: frozenset[JsonRpcErrorCode] = frozenset()
) -> None:
    """Stores the items in order. Raises the first error whose code is not in `pass_over`."""
    for start in range(0, len(items), MAX_BATCH_ITEMS):
        batch = StoreBatchParams(items=list(items[start : start + MAX_BATCH_ITEMS]))
        for result in (await memory.store_batch(batch)).results:
            if result.code is not None and result.code not in pass_over:
                raise from_wire(result.code, result.reason or "")
