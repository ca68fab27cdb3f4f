"""Params and results of the methods about aliases: the contract, refusing unknown fields by name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from agentcore.memory.models import FilledText, Receipt, Strict

MAX_ALIAS_CHARS = 100
MAX_ALIASES = 1_000

Form = Annotated[FilledText, Field(max_length=MAX_ALIAS_CHARS)]


class SetAliasParams(Strict):
    """What something is called too, and what that means; the same alias set again gets another meaning."""

    alias: Form = Field(description="Of one to six words that are no stop words.")
    means: Form = Field(description="The other form, of as many; each finds what was said in the other.")


class SetAliasResult(Strict):
    success: bool
    receipt: Receipt


class DeleteAliasParams(Strict):
    """Which alias goes, with each of its meanings."""

    alias: Form


class DeleteAliasResult(Strict):
    success: bool = Field(description="False: there was none.")
    deleted_count: int = Field(
        description="How many went, set or learnt; a memory stored or changed later may teach it anew."
    )
    receipt: Receipt


class ListAliasesParams(Strict):
    """How many a page."""

    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_ALIASES)] = 100
    cursor: Annotated[str, Field(max_length=2_048)] | None = Field(
        None, description="`next_cursor` of the page before."
    )


class KnownAlias(Strict):
    """One thing in two forms, as written, and who said so."""

    alias: str
    means: str
    memory_id: UUID | None = Field(None, description="The memory it was learnt from; null where it was set.")
    created_at: datetime


class ListAliasesResult(Strict):
    aliases: list[KnownAlias] = Field(description="In the order of their words.")
    next_cursor: str | None
    receipt: Receipt
