"""Naming, as stories: set an alias, delete one, list them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from agentcore.errors import InvalidParams
from agentcore.memory.aliases import MAX_FORM_TERMS, checked, keyed
from agentcore.memory.api import Caller
from agentcore.memory.cursors import read_cursor, write_cursor
from agentcore.memory.lexical import phrase, phrase_key
from agentcore.memory.params.aliases import DeleteAliasParams, KnownAlias, ListAliasesParams, SetAliasParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.owned_rows import Row

_OF_NO_MEMORY = UUID(int=0)


async def set_alias(parts: MemoryParts, caller: Caller, params: SetAliasParams) -> None:
    """Keep what the caller says. Raises InvalidParams where the words could not be looked up."""
    pair = checked(params.alias, params.means)
    if pair is None:
        for field in ("alias", "means"):
            if not 0 < len(phrase(getattr(params, field))) <= MAX_FORM_TERMS:
                problem = f"{field} needs one to {MAX_FORM_TERMS} words that are no stop words"
                raise InvalidParams(problem, data={"field": field})
        raise InvalidParams("means says the same words as alias", data={"field": "means"})
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await transaction.aliases.set(keyed(caller.agent_id, pair))


async def delete_alias(parts: MemoryParts, caller: Caller, params: DeleteAliasParams) -> int:
    """Remove every meaning of an alias; how many there were."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        return await transaction.aliases.delete(phrase_key(caller.agent_id, phrase(params.alias)))


async def list_aliases(
    parts: MemoryParts, caller: Caller, params: ListAliasesParams
) -> tuple[list[KnownAlias], str | None]:
    """One page, and the cursor of the next if there is one. Raises InvalidParams for a foreign cursor."""
    after = None if params.cursor is None else read_cursor(params.cursor, _place)
    rows = await parts.storage.aliases(caller.agent_id, after, params.limit + 1)
    page = rows[: params.limit]
    cursor = write_cursor(_place_of(page[-1])) if len(rows) > params.limit else None
    return [KnownAlias.model_construct(**row) for row in page], cursor


def _place_of(row: Row) -> list[str]:
    return [row["alias"], row["means"], str(row["memory_id"] or _OF_NO_MEMORY)]


def _place(alias: Any, means: Any, memory_id: Any) -> tuple[str, str, str]:
    if "\0" in f"{alias}{means}".encode().decode():
        raise ValueError("no page ends there")
    return str(alias), str(means), str(UUID(memory_id))
