"""Refreshing, as a story: summaries of sessions whose sources changed say what those say now."""

from __future__ import annotations

from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.consequences.llm_work import BUSY, do_each, failing_since
from agentcore.memory.deriving.remaking import (
    BY_LLM,
    Anew,
    Standing,
    leave,
    metadata_of,
    remove,
    worded,
    write,
)
from agentcore.memory.deriving.session_summaries import MOST_LOOKS, message_of
from agentcore.memory.deriving.summary_providers import AS_SAID, EXTRACTED
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.owned_rows import Row

BATCH = 20


class Refreshing:
    """The summaries of sessions of one agent that wait to be made anew: one batch a run."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    async def run(self) -> bool:
        """Make a batch anew; whether more wait. Raises DependencyUnavailable: go on later.

        What fails by itself does not keep the others from being made.
        """
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.summaries.waiting_refreshes(BATCH + 1)
        await do_each([row["memory_id"] for row in rows[:BATCH]], self._refresh)
        return len(rows) > BATCH

    async def _refresh(self, memory_id: UUID) -> None:
        for _ in range(MOST_LOOKS):
            standing = await self._look(memory_id)
            if standing is None or standing.row is None:
                return
            try:
                await self._make(standing, standing.row)
            except (Conflict, NotFound):
                continue
            return
        raise DependencyUnavailable("Others are at work on what this summary is of.", data={BUSY: True})

    async def _look(self, memory_id: UUID) -> Standing | None:
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            waiting = await transaction.summaries.waits("refresh", memory_id)
            if not waiting:
                return None
            row = await transaction.summaries.standing(memory_id)
            sources = await transaction.summaries.sources(memory_id)
            rules = await transaction.llm.summary_rules()
        since = failing_since(waiting, self._parts.clock())
        return Standing(row, sources, rules, "refresh", [memory_id], [memory_id], since)

    async def _make(self, standing: Standing, row: Row) -> None:
        if standing.stays:
            await leave(self._parts, self._caller, standing)
            return
        messages = [message_of(each) for each in standing.sources]
        summary = await worded(self._parts, self._caller, standing, _provider(standing), messages)
        if not summary.text:
            await remove(self._parts, self._caller, standing, row)
            return
        provenance = {**row["provenance"], "of": standing.digest}
        anew = Anew(summary, metadata_of(row, summary), provenance, row["timestamp"])
        await write(self._parts, self._caller, standing, row, anew)


def _provider(standing: Standing) -> str:
    name = EXTRACTED if standing.rules is None else standing.rules.provider
    return name if name in (EXTRACTED, AS_SAID) else BY_LLM
