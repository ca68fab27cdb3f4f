"""Rows of life times, and of how the layers of an agent forget. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast
from uuid import UUID

from psycopg.types.json import Jsonb

from agentcore.memory.params.own_rules import OwnRules
from agentcore.memory.rows.owned_rows import OwnedRows, Row


class LifeRows(OwnedRows):
    """The lives of one agent's memories inside one transaction."""

    async def renew(self, memory_id: UUID) -> Row | None:
        """Let the memory live its time from now on; its version and its task, None where there is none."""
        rows = await self._rows("renew_memory", memory_id=memory_id)
        return rows[0] if rows else None

    async def complete_task(self, task_id: str, token_id: str | None, trace_id: str | None) -> None:
        """Mark a task as ended and expire its working-layer rows, which goes into their histories."""
        await self._run("complete_task", task_id=task_id)
        await self._run("expire_working_rows", task_id=task_id, token_id=token_id, trace_id=trace_id)

    async def end_session(self, session_id: str, **rules: Any) -> list[Row]:
        """Let a session's working memories last or end by these rules; a row for each."""
        return await self._rows("end_session_rows", session_id=session_id, **rules)

    async def count_accesses(
        self,
        counts: Mapping[UUID, int],
        moments: Mapping[UUID, datetime],
        extend_after_uses: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Add accesses and extend what they keep alive, in id order so that two flushes never deadlock."""
        ids = sorted(counts)
        await self._run(
            "count_accesses",
            memory_ids=ids,
            counts=[counts[each] for each in ids],
            moments=[moments[each] for each in ids],
        )
        await self._run(
            "extend_used",
            memory_ids=ids,
            moments=[moments[each] for each in ids],
            extend_after_uses=Jsonb(dict(extend_after_uses)),
        )


class RuleRows(OwnedRows):
    """The rules of one agent inside one transaction."""

    async def hold(self) -> OwnRules:
        """The agent's own rules, which nobody else changes before the end."""
        return cast(OwnRules, (await self._rows("hold_agent_rules"))[0]["layers"])

    async def set(self, rules: Mapping[str, Mapping[str, int]]) -> None:
        """These from now on."""
        await self._run("set_agent_rules", layers=Jsonb(rules))
