"""What is called by two names, as rows: told by a memory, or set by the caller. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from agentcore.database import query
from agentcore.memory.rows.owned_rows import OwnedRows

KeyedAlias = Mapping[str, str | int]


class AliasRows(OwnedRows):
    """The aliases of one agent inside one transaction; a `KeyedAlias` is what `aliases.keyed` makes."""

    async def learn(self, told: Mapping[UUID, Sequence[KeyedAlias]]) -> None:
        """Keep what new memories tell, by the memory's id."""
        rows = [
            {**pair, "agent_id": self._agent_id, "memory_id": memory_id}
            for memory_id, pairs in told.items()
            for pair in pairs
        ]
        if rows:
            await self._connection.cursor().executemany(query("insert_alias"), rows)

    async def learn_anew(self, memory_id: UUID, pairs: Sequence[KeyedAlias]) -> None:
        """Keep what a memory tells now, and nothing of what it told before."""
        await self._run("forget_learnt_aliases", memory_id=memory_id)
        await self.learn({memory_id: pairs})

    async def set(self, pair: KeyedAlias) -> None:
        """Keep what the caller says, in the place of what it said of this alias before."""
        await self._run("set_alias", **pair)

    async def delete(self, alias_key: int) -> int:
        """Remove every meaning of an alias, set or learnt; how many."""
        return len(await self._rows("delete_alias", alias_key=alias_key))

    async def forget_set(self) -> None:
        """Remove everything that the caller set."""
        await self._run("forget_set_aliases")

