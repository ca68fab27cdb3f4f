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

    content: FilledText | None = Field(None, description="The corrected text; summary and vector follow.")
    context: FilledText | None = Field(None, description="New information, added below the content.")
    relevance_score: Share | None = None
    importance: Share | None = Field(None, description="The same as relevance_score.")
    tags: Labels | None = None
    metadata: Metadata | None = Field(None, description="Merged into the metadata; null removes a key.")
    pinned: Flag | None = None
    ttl_seconds: TtlSeconds | None = Field(
        None, description="Seconds from now until it expires; null: it never does."
    )
    links: Annotated[list[Link], Field(max_length=MAX_LINKS_A_CALL)] = Field(
        default_factory=list, description="Links to add."
    )
    unlink: Annotated[list[UUID], Field(max_length=MAX_LINKS_A_CALL)] = Field(
        default_factory=list, description="Targets whose links go."
    )
    current: Literal[True] | None = Field(None, description="A superseded memory holds again.")
    renew: Literal[True] | None = Field(
        None,
        description="Its time to live begins anew, once a twentieth of it is over. Stands alone: a use is no "
        "change; version and history stay.",
    )
    if_version: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        None, description="Change only this version; else a conflict."
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
            raise ValueError("names no field to change")
        for name in sorted(self.model_fields_set - {"ttl_seconds"}):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is null")
        if self.renew is not None and self.model_fields_set != {"renew"}:
            raise ValueError("renew stands alone")
        if self.relevance_score is not None and self.importance is not None:
            raise ValueError("relevance_score and importance are the same field: give one")
        if self.content is not None and self.context is not None:
            raise ValueError("give either content (a correction) or context (an addition)")
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
        None, description="`next_cursor` of the page before."
    )


class HistoryEntry(Strict):
    """One change: operation, resulting version, time, author and differences."""

    number: int = Field(description="Its place among the memory's changes, from 1.")
    operation: str
    version: int | None = Field(None, description="The version it made; null for changes of older services.")
    changed_at: datetime
    token_id: str | None = Field(None, description="The `jti` of the token that was used.")
    trace_id: str | None = None
    before: dict[str, Any] | None = Field(None, description="The fields that changed, as they were.")
    after: dict[str, Any] | None = Field(
        None, description="The same fields as they became; `links`: ties that went (before) or came (after)."
    )


class HistoryResult(Strict):
    changes: list[HistoryEntry] = Field(description="The latest first; empty where nothing was changed.")
    version: int = Field(description="The version the memory stands at.")
    created_at: datetime
    provenance: dict[str, Any] = Field(description="Who stored it, and on which trace.")
    next_cursor: int | None
    receipt: Receipt


class RevertParams(Strict):
    """The memory to revert, and the version to revert to."""

    memory_id: UUID
    version: VersionNumber = Field(description="What the memory held at this version, it holds again.")
    if_version: VersionNumber | None = Field(None, description="Revert only this version; else a conflict.")


class RevertResult(Strict):
    success: bool
    memory_id: UUID
    version: int = Field(description="The new version: a revert is a change like any other.")
    receipt: Receipt


class FeedbackParams(Strict):
    """Rates a memory's usefulness: changes its relevance score."""

    memory_id: UUID
    verdict: Verdict = Field(
        description="helpful: a tenth of the way to 1; unhelpful: a tenth of the way to 0; wrong: half of it."
    )
    note: Annotated[FilledText, Field(max_length=MAX_NOTE_CHARS)] | None = Field(
        None, description="Why; kept in the memory's history."
    )


class FeedbackResult(Strict):
    success: bool
    memory_id: UUID
    version: int
    relevance_score: float = Field(description="After the verdict, 0 to 1.")
    receipt: Receipt
