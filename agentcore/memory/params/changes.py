"""Params and results of update, history, revert and feedback: the contract. Unknown fields raise an error."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from agentcore.limits import MAX_CHANGES, MAX_LINKS_A_CALL
from agentcore.memory.models import (
    FilledText,
    Flag,
    JsonObject,
    Labels,
    Link,
    MemoryRecord,
    Metadata,
    Receipt,
    Share,
    Strict,
    TtlSeconds,
)

MAX_NOTE_CHARS = 2_000

Verdict = Literal["helpful", "unhelpful", "wrong"]
VersionNumber = Annotated[int, Field(strict=True, ge=1)]


class Updates(Strict):
    """Fields to change; absent fields stay unchanged, and only ttl_seconds may be null."""

    content: FilledText | None = Field(None, description="The corrected text; summary and vector are derived from it.")
    context: FilledText | None = Field(None, description="New information, appended to the content.")
    relevance_score: Share | None = None
    importance: Share | None = Field(None, description="Alias of relevance_score.")
    tags: Labels | None = None
    metadata: Metadata | None = Field(None, description="Merged into the metadata; null removes a key.")
    pinned: Flag | None = None
    ttl_seconds: TtlSeconds | None = Field(None, description="Seconds from now until it expires; null: never.")
    links: Annotated[list[Link], Field(max_length=MAX_LINKS_A_CALL)] = Field(
        default_factory=list, description="Links to add."
    )
    unlink: Annotated[list[UUID], Field(max_length=MAX_LINKS_A_CALL)] = Field(
        default_factory=list, description="Targets of the links to remove."
    )
    current: Literal[True] | None = Field(None, description="Make a superseded memory current again.")
    renew: Literal[True] | None = Field(
        None,
        description="Restart its TTL, if at least a twentieth of it has passed. Not with other fields; "
        "version and history do not change.",
    )
    if_version: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        None, description="Fail with a conflict if the memory has another version."
    )

    @model_validator(mode="before")
    @classmethod
    def _names_what_may_change(cls, given: Any) -> Any:
        others = set(MemoryRecord.model_fields) - set(cls.model_fields)
        fixed = sorted(others.intersection(given if isinstance(given, dict) else ()))
        if fixed:
            raise ValueError(f"{', '.join(fixed)} cannot be changed; {', '.join(cls.model_fields)} can")
        return given

    @model_validator(mode="after")
    def _changes_something(self) -> Updates:
        if not self.model_fields_set - {"if_version"}:
            raise ValueError("has no field to change")
        for name in sorted(self.model_fields_set - {"ttl_seconds"}):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is null")
        if self.renew is not None and self.model_fields_set != {"renew"}:
            raise ValueError("renew cannot be combined with other fields")
        if self.relevance_score is not None and self.importance is not None:
            raise ValueError("relevance_score and importance are the same field: pass one")
        if self.content is not None and self.context is not None:
            raise ValueError("pass either content (a correction) or context (an addition)")
        return self


class UpdateParams(Strict):
    """The memory to update, and its changes."""

    memory_id: UUID
    updates: Updates


class UpdateResult(Strict):
    success: bool
    memory_id: UUID
    version: int
    receipt: Receipt


class HistoryParams(Strict):
    """The memory whose history to list, and the page size."""

    memory_id: UUID
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_CHANGES)] = 50
    cursor: Annotated[int, Field(strict=True, ge=1, lt=2**63)] | None = Field(
        None, description="`next_cursor` of the previous page."
    )


class HistoryEntry(Strict):
    """One change: operation, resulting version, time, author and differences."""

    number: int = Field(description="Sequence number of the change, from 1.")
    operation: str
    version: int | None = Field(
        None, description="The resulting version; null for changes by older versions of the service."
    )
    changed_at: datetime
    token_id: str | None = Field(None, description="The `jti` of the caller's token.")
    trace_id: str | None = None
    before: JsonObject | None = Field(None, description="The previous values of the changed fields.")
    after: JsonObject | None = Field(
        None, description="The new values of these fields. `links`: those removed (before) or added (after)."
    )


class HistoryResult(Strict):
    changes: list[HistoryEntry] = Field(description="Latest first; empty if the memory never changed.")
    version: int = Field(description="The memory's current version.")
    created_at: datetime
    provenance: JsonObject = Field(description="Who stored it: token, trace and form.")
    next_cursor: int | None
    receipt: Receipt


class RevertParams(Strict):
    """The memory to revert, and the version to revert to."""

    memory_id: UUID
    version: VersionNumber = Field(description="Restore the fields of this version.")
    if_version: VersionNumber | None = Field(
        None, description="Fail with a conflict if the memory has another version."
    )


class RevertResult(Strict):
    success: bool
    memory_id: UUID
    version: int = Field(description="The resulting version; a revert is a new change.")
    receipt: Receipt


class FeedbackParams(Strict):
    """Rates a memory's usefulness: changes its relevance score."""

    memory_id: UUID
    verdict: Verdict = Field(
        description="helpful: moves the score 10 % towards 1; unhelpful: 10 % towards 0; wrong: halves it."
    )
    note: Annotated[FilledText, Field(max_length=MAX_NOTE_CHARS)] | None = Field(
        None, description="Reason; stored in the memory's history."
    )


class FeedbackResult(Strict):
    success: bool
    memory_id: UUID
    version: int
    relevance_score: float = Field(description="The new relevance score, 0 to 1.")
    receipt: Receipt
