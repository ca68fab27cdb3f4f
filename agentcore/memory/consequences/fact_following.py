"""Facts that a model read follow the memory they were read from: they go with its words, and hold with it.

How they are superseded with it stands where places are taken, in `supersession`.
"""

from __future__ import annotations

from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.consequences.llm_work import after_deletion, read_again, read_at_last
from agentcore.memory.consequences.staleness import let_summaries_wait
from agentcore.memory.consequences.succession import hand_on
from agentcore.memory.intake import subjects_of
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.history_rows import Change
from agentcore.memory.rows.owned_rows import Row
from agentcore.memory.storage import MemoryTransaction


async def after_rewording(
    transaction: MemoryTransaction, parts: MemoryParts, caller: Caller, row: Row
) -> None:
    """A memory has other words: the old ones' facts go, it waits to be read and told anew. Among the last."""
    facts = await transaction.facts.as_read(row["memory_id"])
    if facts:
        changed = await hand_on(transaction, caller, await transaction.delete(facts))
        await after_deletion(transaction, parts, changed, also=[row["memory_id"]])
    else:
        await let_summaries_wait(transaction, [row["memory_id"]])
    await read_again(transaction, parts, row["memory_id"], row)


async def after_reinstatement(
    transaction: MemoryTransaction, parts: MemoryParts, caller: Caller, operation: str, row: Row
) -> None:
    """A memory holds again that `row` tells of as superseded, and so do its facts. Among the last acts."""
    for fact in await transaction.facts.superseded_with(row["memory_id"], row["superseded_by"]):
        await _hold_again(transaction, caller, operation, fact)
    await let_summaries_wait(transaction, [row["memory_id"]])
    await read_at_last(transaction, parts, [row["memory_id"]])


async def _hold_again(transaction: MemoryTransaction, caller: Caller, operation: str, fact: Row) -> None:
    memory_id: UUID = fact["memory_id"]
    version = await transaction.subjects.succeed(memory_id, superseded_by=None, valid_to=None)
    await transaction.subjects.reinstate(memory_id, subjects_of(caller.agent_id, fact))
    before = {"superseded_by": str(fact["superseded_by"]), "valid_to": fact["valid_to"].isoformat()}
    after = {"superseded_by": None, "valid_to": None}
    source = caller.token_id, caller.trace_id
    await transaction.history.append(Change(memory_id, operation, version, *source, before, after))
