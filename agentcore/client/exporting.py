"""Memories as lines of JSON, in the form that `agentcore import` reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import ListParams

EXPORT_PAGE = 250


async def export_pages(memory: MemoryApi, filters: ListParams) -> AsyncIterator[list[bytes]]:
    """Yields the lines of all matching memories page by page, oldest first."""
    order = {"order_by": "timestamp", "descending": False, "limit": EXPORT_PAGE, "vectors": True}
    params = filters.model_copy(update=order)
    while True:
        page = await memory.list(params)
        yield [encoded_line(record) for record in page.memories]
        if page.next_cursor is None:
            return
        params = params.model_copy(update={"cursor": page.next_cursor})


def encoded_line(record: MemoryRecord) -> bytes:
    return json.dumps(line_of(record), ensure_ascii=False).encode() + b"\n"


def line_of(record: MemoryRecord) -> dict[str, Any]:
    begins = None if record.valid_from == record.timestamp else _written(record.valid_from)
    line = {
        "memory_id": str(record.memory_id),
        "memory_type": record.memory_type.value,
        "speaker": record.speaker,
        "text": record.content,
        "time": record.timestamp.isoformat(),
        "session": record.session_id,
        "task": record.task_id,
        "user": record.user_id,
        "namespace": record.namespace,
        "importance": record.relevance_score,
        "tags": record.tags or None,
        "metadata": record.metadata or None,
        "external_id": record.external_id,
        "pinned": record.pinned or None,
        "expires_at": _written(record.expires_at),
        "actions": record.actions or None,
        "outcome": record.outcome,
        "interaction_id": record.interaction_id,
        "parent_memory_id": _written(record.parent_memory_id),
        "valid_from": begins,
        "valid_to": _written(record.valid_to),
        "superseded_by": _written(record.superseded_by),
        "embedding": record.embedding,
        "links": [link.model_dump(mode="json") for link in record.links] or None,
    }
    # It was accepted once: skip the write gate and deduplication.
    return {name: value for name, value in line.items() if value is not None} | {"force": True}


def _written(value: datetime | UUID | None) -> str | None:
    if value is None:
        return None
    return value.isoformat() if isinstance(value, datetime) else str(value)
