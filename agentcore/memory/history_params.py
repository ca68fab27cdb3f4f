"""Params and results of the methods about a memory's past: history, revert, feedback. The contract."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from agentcore.memory.models import FilledText, Receipt, Strict

MAX_CHANGES = 1_000
MAX_NOTE_CHARS = 2_000

Verdict = Literal["helpful", "unhelpful", "wrong"]
VersionNumber = Annotated[int, Field(strict=True, ge=1)]


class HistoryParams(Strict):
    """Which memory, and how many changes a page."""

    memory_id: UUID
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_CHANGES)] = 50
    cursor: Annotated[int, Field(strict=True, ge=1, lt=2**63)] | None = Field(
        None, description="`next_cursor` of the page before."
    )


class HistoryEntry(Strict):
    """One change: which operation made which version, when, by whom, and what differs."""

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
    """Which memory goes back to which of its versions."""

    memory_id: UUID
    version: VersionNumber = Field(description="What the memory held at this version, it holds again.")
    if_version: VersionNumber | None = Field(None, description="Revert only this version; else a conflict.")


class RevertResult(Strict):
    success: bool
    memory_id: UUID
    version: int = Field(description="The new version: a revert is a change like any other.")
    receipt: Receipt


class FeedbackParams(Strict):
    """How a memory served: it moves the memory's relevance score."""

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
