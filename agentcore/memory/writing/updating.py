"""What a caller asks to change: an update, field by field, and feedback on how a memory served."""

from __future__ import annotations

from typing import Any

from agentcore.errors import InvalidParams
from agentcore.memory.api import Caller
from agentcore.memory.intake import check_length
from agentcore.memory.params.changes import FeedbackParams, UpdateParams, Updates
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.owned_rows import Row
from agentcore.memory.scoring import after_feedback
from agentcore.memory.writing.changing import Changing, Wanted


class Updating(Changing):
    """One update of one memory."""

    operation = "update"

    def __init__(self, parts: MemoryParts, caller: Caller, params: UpdateParams) -> None:
        super().__init__(parts, caller, params.memory_id, params.updates.if_version)
        self._updates = params.updates

    async def _wanted(self, row: Row) -> Wanted:
        updates = self._updates
        if self.memory_id in {link.target_id for link in updates.links}:
            raise InvalidParams("a memory cannot be linked to itself", data={"field": "updates.links"})
        content = updates.content
        if updates.context is not None:
            content = f"{row['content']}\n{updates.context}"
            check_length(content, "updates.context")
        return Wanted(
            content=content,
            columns=_plain_columns(updates, row),
            ttl_seconds=updates.ttl_seconds,
            never_expires="ttl_seconds" in updates.model_fields_set and updates.ttl_seconds is None,
            current=updates.current is True,
            unlink=updates.unlink,
            links=updates.links,
        )


def _plain_columns(updates: Updates, row: Row) -> dict[str, Any]:
    importance = updates.relevance_score if updates.relevance_score is not None else updates.importance
    columns: dict[str, Any] = {"relevance_score": importance, "tags": updates.tags, "pinned": updates.pinned}
    if updates.metadata is not None:
        merged = {**row["metadata"], **updates.metadata}
        columns["metadata"] = {name: value for name, value in merged.items() if value is not None}
    return {name: value for name, value in columns.items() if value is not None}


class Judging(Changing):
    """One verdict on one memory."""

    operation = "feedback"

    def __init__(self, parts: MemoryParts, caller: Caller, params: FeedbackParams) -> None:
        super().__init__(parts, caller, params.memory_id)
        self._params = params
        self.relevance_score = 0.0

    async def _wanted(self, row: Row) -> Wanted:
        self.relevance_score = after_feedback(row["relevance_score"], self._params.verdict)
        told = self._params.model_dump(include={"verdict", "note"}, exclude_none=True)
        return Wanted(columns={"relevance_score": self.relevance_score}, told=told)
