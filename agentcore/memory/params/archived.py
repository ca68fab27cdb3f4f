"""Params and results of the methods about the archive and erasing; unknown fields are errors."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, model_validator

from agentcore.limits import MAX_ARCHIVED_PAGE, MAX_RESTORED
from agentcore.memory.models import FilterUsers, Flag, Identifier, Labels, MemoryType, Moment, Receipt, Strict


class ArchiveFilters(Strict):
    """Filters of archived memories: all fields that are set must match, a list matches any of its values."""

    memory_types: Annotated[list[MemoryType], Field(min_length=1, max_length=len(MemoryType))] | None = Field(
        None, description="Only these layers."
    )
    task_id: Identifier | None = None
    session_id: Identifier | None = None
    user_id: FilterUsers | None = None
    namespace: Identifier | None = None
    tags: Labels | None = None
    after: Moment | None = Field(None, description="Timestamp at or after this time.")
    before: Moment | None = Field(None, description="Timestamp before this time.")
    archived_after: Moment | None = Field(None, description="Archived at or after this time.")
    archived_before: Moment | None = Field(None, description="Archived before this time.")

    @model_validator(mode="after")
    def _ranges_have_sense(self) -> ArchiveFilters:
        if _are_turned_round(self.after, self.before):
            raise ValueError("after must be earlier than before")
        if _are_turned_round(self.archived_after, self.archived_before):
            raise ValueError("archived_after must be earlier than archived_before")
        return self

    def conditions(self) -> dict[str, Any]:
        """Returns the filters that are set as JSON values; same keys as `archived_matches` in the schema."""
        return self.model_dump(mode="json", include=set(ArchiveFilters.model_fields), exclude_none=True)


def _are_turned_round(first: datetime | None, last: datetime | None) -> bool:
    return first is not None and last is not None and first >= last


class ArchivedParams(ArchiveFilters):
    """Filters and page size."""

    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_ARCHIVED_PAGE)] = 50
    cursor: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="`next_cursor` of the previous page."
    )


class ArchivedMemory(Strict):
    """One archived memory: the index entry, without its archived copy."""

    memory_id: UUID
    memory_type: MemoryType
    version: int
    timestamp: datetime | None = Field(None, description="Null if archived by an older version.")
    task_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    namespace: str | None = None
    tags: list[str] = Field(default_factory=list)
    object_key: str
    sha256: str = Field(description="SHA-256 of the compressed copy before encryption, hexadecimal.")
    size_bytes: int = Field(description="Size of the compressed copy.")
    reason: str = Field(description="The pruning strategy that archived it.")
    archived_at: datetime
    archive_id: UUID = Field(description="The archive that contains the copy.")
    elsewhere: bool | None = Field(
        None,
        description="True: the copy is not in this server's archive, so it can neither restore nor erase it. "
        "Null: the archive is not available.",
    )


class ArchivedResult(Strict):
    memories: list[ArchivedMemory] = Field(description="Most recently archived first.")
    next_cursor: str | None
    receipt: Receipt


class RestoreParams(ArchiveFilters):
    """Selects the archived memories to restore: by ids, by filters, or `all`."""

    memory_ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_RESTORED)] | None = None
    all: Flag = Field(False, description="Restore all archived memories; without ids and filters.")
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_RESTORED)] = Field(
        MAX_RESTORED, description="Maximum number by filters or `all`, most recently archived first."
    )
    cursor: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="`next_cursor` of the previous call, to continue after refused memories. Not with ids."
    )
    dry_run: Flag = Field(False, description="Read and check the copies; restore none.")

    @model_validator(mode="after")
    def _says_what(self) -> RestoreParams:
        if sum((self.memory_ids is not None, bool(self.conditions()), self.all)) != 1:
            raise ValueError("pass either memory_ids, or filters, or all: true")
        if self.memory_ids is not None and self.cursor is not None:
            raise ValueError("memory_ids are restored in one call: pass no cursor")
        return self


class LostLink(Strict):
    """A link that was not restored: the other memory no longer exists."""

    memory_id: UUID
    other_id: UUID
    relation: str


class RestoreResult(Strict):
    restored_count: int = Field(description="Memories restored; 0 in a dry run.")
    memory_ids: list[UUID] = Field(description="The memories restored, or to restore in a dry run.")
    lost_links: list[LostLink] = Field(
        default_factory=list,
        description="Links not restored, since the other memory no longer exists. Empty in a dry run.",
    )
    renewed_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories that expired in the archive. Their TTL is now what remained when they were "
        "archived, at least one day.",
    )
    superseded_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories restored as superseded: a fact stored meanwhile replaced them or their source. "
        "Empty in a dry run.",
    )
    refused_ids: list[UUID] = Field(
        default_factory=list,
        description="Matching memories that remain archived: facts and summaries whose source was deleted, "
        "and facts whose source has another text; at most 1,000. Requested by id, such a memory raises a "
        "conflict.",
    )
    unreadable_ids: list[UUID] = Field(
        default_factory=list,
        description="Matching memories that remain archived: their copy is missing, damaged, or in another "
        "archive; at most 1,000. If ids are passed and none of the copies is readable, the call fails with "
        "the error of the first.",
    )
    waiting_for_embedding_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories archived without a vector or with one of another model. They are found by "
        "words until the background job embeds them. Empty in a dry run.",
    )
    dry_run: bool = False
    complete: bool = Field(
        True,
        description="False: more memories match than `limit`, or the call reached its time limit. Call "
        "again, with `next_cursor` to continue after refused ones.",
    )
    next_cursor: str | None = Field(None, description="Cursor of the next call; null after the last match.")
    receipt: Receipt


class EraseParams(Strict):
    """Erases memories permanently, from every place: all of the agent's, or those of one user."""

    user_id: Identifier | None = Field(
        None, description="Erase the memories of this user and what was derived from them."
    )
    all: Flag = Field(False, description="Erase all data of the agent; instead of user_id.")
    confirm: Flag = Field(False, description="Required: erasing cannot be undone.")
    continues: Annotated[str, Field(max_length=16_384)] | None = Field(
        None,
        description="`signed_receipt` of the previous incomplete call; the result and the receipt of this "
        "call include its counts.",
    )

    @model_validator(mode="after")
    def _says_whose(self) -> EraseParams:
        if self.all == (self.user_id is not None):
            raise ValueError("pass either user_id, or all: true")
        if not self.confirm:
            raise ValueError("erasing requires confirm: true")
        return self


class EraseResult(Strict):
    erased: dict[str, int] = Field(
        description="Rows, objects, jobs and copies erased by this call and by those that it `continues`, by place."
    )
    verified: bool = Field(description="A final search of every place found no data, and every place was reachable.")
    left: dict[str, int] = Field(
        default_factory=dict, description="Data left, by place: written meanwhile, or not readable."
    )
    unreachable: dict[str, int] = Field(
        default_factory=dict,
        description="Copies in archives that this server does not use, by archive id. "
        "They and their tombstones remain: erase again on a server that uses the archive. "
        "'redis <id>': another Redis that may contain working memory until it expires.",
    )
    complete: bool = Field(True, description="False: the call reached its time limit; call again with `continues`.")
    signed_receipt: str | None = Field(
        None, description="The counts of all calls from `since` to `at`, signed by the service."
    )
    receipt: Receipt
