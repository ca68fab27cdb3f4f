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
            raise ValueError("after must lie before 'before'")
        if _are_turned_round(self.archived_after, self.archived_before):
            raise ValueError("archived_after must lie before archived_before")
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
        None, description="`next_cursor` of the page before."
    )


class ArchivedMemory(Strict):
    """One archived memory: the index entry, without its archived copy."""

    memory_id: UUID
    memory_type: MemoryType
    version: int
    timestamp: datetime | None = Field(None, description="Null where an older version archived it.")
    task_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    namespace: str | None = None
    tags: list[str] = Field(default_factory=list)
    object_key: str
    sha256: str = Field(description="Of the compressed copy before it is sealed, in hexadecimal digits.")
    size_bytes: int = Field(description="Of the compressed copy.")
    reason: str = Field(description="The strategy that took it.")
    archived_at: datetime
    archive_id: UUID | None = Field(
        None, description="The archive that contains the copy; null where an older version archived it."
    )
    elsewhere: bool | None = Field(
        None,
        description="True: the copy is not in this server's archive, so it can neither restore nor erase it. "
        "Null: not known, or the archive does not answer.",
    )


class ArchivedResult(Strict):
    memories: list[ArchivedMemory] = Field(description="Those archived last come first.")
    next_cursor: str | None
    receipt: Receipt


class RestoreParams(ArchiveFilters):
    """Selects the archived memories to restore: by ids, by filters, or `all`."""

    memory_ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_RESTORED)] | None = None
    all: Flag = Field(False, description="Everything in the archive; instead of ids and filters.")
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_RESTORED)] = Field(
        MAX_RESTORED, description="How many at most by filter, those archived last first."
    )
    cursor: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="`next_cursor` of the call before: goes on behind what was refused. Not beside ids."
    )
    dry_run: Flag = Field(False, description="Read and check the copies, and bring nothing back.")

    @model_validator(mode="after")
    def _says_what(self) -> RestoreParams:
        if sum((self.memory_ids is not None, bool(self.conditions()), self.all)) != 1:
            raise ValueError("give either memory_ids, or filters, or all: true")
        if self.memory_ids is not None and self.cursor is not None:
            raise ValueError("memory_ids are restored all at once: give no cursor")
        return self


class LostLink(Strict):
    """A link that was not restored: the other memory no longer exists."""

    memory_id: UUID
    other_id: UUID
    relation: str


class RestoreResult(Strict):
    restored_count: int = Field(description="How many are back; 0 in a dry run.")
    memory_ids: list[UUID] = Field(description="What is back, or would be in a dry run.")
    lost_links: list[LostLink] = Field(
        default_factory=list,
        description="Ties left out, since the other memory has gone. Always empty in a dry run.",
    )
    renewed_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories whose time to live ran out in the archive: they got what they had left when "
        "they were archived, counted from now, and a day at least.",
    )
    superseded_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories that came back superseded: a fact stored meanwhile has their place, or that of "
        "the memory they were read from. Always empty in a dry run.",
    )
    refused_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories that match and stay archived: facts and summaries of a memory that was deleted "
        "meanwhile, and facts of one that has other words; 1,000 at most. Named by its id, such "
        "a memory is a conflict.",
    )
    unreadable_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories that match and stay archived: their copy is missing, damaged, or in another "
        "archive; 1,000 at most. Where ids are given and none of their copies can be read, the call "
        "fails with the error of the first.",
    )
    waiting_for_embedding_ids: list[UUID] = Field(
        default_factory=list,
        description="Memories archived with another model's vector, or none: found by their words until they "
        "are embedded again, in the background. Always empty in a dry run.",
    )
    dry_run: bool = False
    complete: bool = Field(
        True,
        description="False: more match than `limit`, or time was over: call again, with `next_cursor` to go "
        "on behind what was refused.",
    )
    next_cursor: str | None = Field(None, description="Where to go on; null once all that matches was met.")
    receipt: Receipt


class EraseParams(Strict):
    """Erases memories permanently, from every place: all of the agent's, or those of one user."""

    user_id: Identifier | None = Field(None, description="This user's memories, and what was made of them.")
    all: Flag = Field(False, description="Everything that the agent has; instead of user_id.")
    confirm: Flag = Field(False, description="Needed: nothing brings it back.")
    continues: Annotated[str, Field(max_length=16_384)] | None = Field(
        None,
        description="`signed_receipt` of the call before, where that was not complete: this call's `erased` "
        "and receipt include what it erased.",
    )

    @model_validator(mode="after")
    def _says_whose(self) -> EraseParams:
        if self.all == (self.user_id is not None):
            raise ValueError("give either user_id, or all: true")
        if not self.confirm:
            raise ValueError("erasing needs confirm: true")
        return self


class EraseResult(Strict):
    erased: dict[str, int] = Field(
        description="How much was erased by this call, and by those that it `continues`, by place: rows of "
        "tables, objects, jobs, copies."
    )
    verified: bool = Field(
        description="Afterwards every place was searched, and nothing was left or out of reach."
    )
    left: dict[str, int] = Field(
        default_factory=dict, description="What was left, by place: written meanwhile, or not to be read."
    )
    unreachable: dict[str, int] = Field(
        default_factory=dict,
        description="Copies in archives that this server does not use, by the archive's id; 'unknown' where "
        "none is recorded. They and their tombstones stay: erase again on a server that uses the archive. "
        "'redis <id>': another Redis, which may contain working memory of any agent; it expires.",
    )
    complete: bool = Field(
        True, description="False: the call's time ran out; call again, with `continues`, to go on."
    )
    signed_receipt: str | None = Field(
        None, description="What was erased from `since` to `at`, signed by the service."
    )
    receipt: Receipt
