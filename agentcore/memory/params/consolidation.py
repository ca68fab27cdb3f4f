"""Params and result of the method that consolidates: the contract, refusing unknown fields by name."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from agentcore.memory.models import Flag, Receipt, Strict

DEFAULT_ARCHIVE_AFTER_DAYS = 30

Days = Annotated[int, Field(strict=True, ge=1, le=36_500)]


class ConsolidateParams(Strict):
    """Whether it is only shown, from where it goes on, and what becomes of the sources."""

    dry_run: Flag = Field(False, description="List what it would make; nothing is written.")
    again: Flag = Field(False, description="Look at every episodic memory again, not only at new ones.")
    archive_sources: Flag = Field(
        False, description="Then archive the sources of standing summaries that are old enough."
    )
    archive_sources_after_days: Days = Field(
        DEFAULT_ARCHIVE_AFTER_DAYS, description="How old a source must be for that, counted from its time."
    )


class ConsolidatedCluster(Strict):
    """Memories that tell one thing together, and the summary they have or would get."""

    memory_id: UUID | None = Field(description="The summary's memory; null in a dry run.")
    source_ids: list[UUID] = Field(description="What it is of, the oldest first.")
    summary: str = Field(description="Sentences of the sources themselves.")
    facts: list[str] = Field(description="The sources' facts, each once.")
    replaces: UUID | None = Field(description="The older summary that it supersedes.")


class ConsolidateResult(Strict):
    success: bool
    dry_run: bool
    clusters: list[ConsolidatedCluster]
    looked_at_count: int = Field(description="New episodic memories that were looked at.")
    archived_count: int = Field(description="Sources that went to the archive; of a dry run, that would.")
    complete: bool = Field(description="False: time or number ran out; a call without `again` goes on.")
    receipt: Receipt
