"""What lay in the archive while what it was made of went, or changed: facts and summaries follow even so.

A summary whose sources say something else by now is made anew once it is back: that is `staleness`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.consequences.llm_work import PERIOD_FORM, SESSION_FORM
from agentcore.memory.consequences.overtaken import restored
from agentcore.memory.consequences.supersession import FOLLOWS, Supersession, take_places
from agentcore.memory.models import FACT_FORM
from agentcore.memory.rows.cluster_rows import FORM as CLUSTER_FORM
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.summaries.summarizing import SUMMARY_RELATION

Copies = Mapping[UUID, Mapping[str, Any]]
_ENDS = ("source_id", "target_id")
_SUMMARIES = frozenset({CLUSTER_FORM, SESSION_FORM, PERIOD_FORM})


async def orphans(transaction: MemoryTransaction, copies: Copies) -> dict[UUID, UUID]:
    """Which of these copies hold words that are no more, each with the memory that said them.

    That one is neither there nor archived; or a model read a fact from it and it has other words. Nobody
    deletes what the others are of before the end.
    """
    made_of = {memory_id: _sources(copy) for memory_id, copy in copies.items()}
    wanted = {source for sources in made_of.values() for source in sources}
    if not wanted:
        return {}
    # What will be tied to them is held here, too: locks are taken in one order.
    tied = {UUID(tie[end]) for copy in copies.values() for tie in copy.get("links", ()) for end in _ENDS}
    archived = transaction.archived
    await archived.held(wanted | tied)
    kept = await archived.visible(list(wanted)) | await archived.buried(wanted) | copies.keys()
    found = {memory_id: min(gone) for memory_id, sources in made_of.items() if (gone := sources - kept)}
    facts = [
        (memory_id, _parent(copy), datetime.fromisoformat(copy["created_at"]))
        for memory_id, copy in copies.items()
        if _follows_words(copy)
    ]
    return found | await transaction.facts.reworded_since(facts)


async def supersede_followers(
    transaction: MemoryTransaction, caller: Caller, copies: Copies, archived_at: Mapping[UUID, datetime]
) -> list[UUID]:
    """File facts that are back as superseded where their memories were meanwhile; which these are."""
    facts = {memory_id: archived_at[memory_id] for memory_id, copy in copies.items() if _follows_words(copy)}
    if not facts:
        return []
    found = [
        Supersession(
            restored(row["memory_id"], copies[row["memory_id"]]),
            row["superseded_by"],
            None,
            row["valid_to"],
            FOLLOWS,
        )
        for row in await transaction.facts.superseded_since(facts)
    ]
    return [row["memory_id"] for row in await take_places(transaction, caller, found)]


def _sources(copy: Mapping[str, Any]) -> set[UUID]:
    form = copy["provenance"].get("form")
    if form == FACT_FORM:
        return {_parent(copy)}
    if form not in _SUMMARIES:
        return set()
    own = (tie for tie in copy.get("links", ()) if tie["source_id"] == copy["memory_id"])
    return {UUID(tie["target_id"]) for tie in own if tie["relation"] == SUMMARY_RELATION}


def _parent(copy: Mapping[str, Any]) -> UUID:
    return UUID(copy["parent_memory_id"])


def _follows_words(copy: Mapping[str, Any]) -> bool:
    told = (change["before"] or {} for change in copy.get("history", ()))
    its_own = copy["pinned"] or any("content" in before for before in told)
    return copy["provenance"].get("form") == FACT_FORM and not its_own
