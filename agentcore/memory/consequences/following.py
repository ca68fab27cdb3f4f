"""Updates facts and summaries after their source memories were changed, deleted, archived or restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.columns import StoredMemory
from agentcore.memory.consequences.pending_work import (
    PERIOD_FORM,
    SESSION_FORM,
    after_deletion,
    enqueue_reworded,
    enqueue_unread,
    mark_summaries_stale,
)
from agentcore.memory.consequences.supersession import FOLLOWS, Supersession, restored, write_supersessions
from agentcore.memory.intake import subjects_of
from agentcore.memory.models import FACT_FORM, SUMMARY_RELATION, SUPERSEDES, Link
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import CLUSTER_SUMMARY_KIND
from agentcore.memory.rows.memory_rows import Change, Row, Superseded, succession
from agentcore.memory.storage import MemoryTransaction

Copies = Mapping[UUID, Mapping[str, Any]]
_ENDS = ("source_id", "target_id")
_SUMMARIES = frozenset({CLUSTER_SUMMARY_KIND, SESSION_FORM, PERIOD_FORM})


async def orphans(transaction: MemoryTransaction, copies: Copies) -> dict[UUID, UUID]:
    """Returns the copies whose source was deleted or reworded, each with that source.

    A source counts as deleted if it neither exists nor is archived. A fact is an orphan, too, if its memory
    was reworded. Locks the sources of the others against deletion.
    """
    made_of = {memory_id: _sources(copy) for memory_id, copy in copies.items()}
    wanted = {source for sources in made_of.values() for source in sources}
    if not wanted:
        return {}
    # Later link targets are locked here, too: locks are taken in one order.
    tied = {UUID(tie[end]) for copy in copies.values() for tie in copy.get("links", ()) for end in _ENDS}
    archived = transaction.archived
    await archived.lock_existing(wanted | tied)
    kept = await archived.visible_ids(list(wanted)) | await archived.archived_ids(wanted) | copies.keys()
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
    """Supersedes restored facts whose memory was superseded meanwhile; returns their ids."""
    facts = {memory_id: archived_at[memory_id] for memory_id, copy in copies.items() if _follows_words(copy)}
    if not facts:
        return []
    found = [
        Supersession(
            restored(row["memory_id"], copies[row["memory_id"]]), row["superseded_by"], None, row["valid_to"], FOLLOWS
        )
        for row in await transaction.facts.superseded_since(facts)
    ]
    return [row["memory_id"] for row in await write_supersessions(transaction, caller, found)]


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


async def after_rewording(
    transaction: MemoryTransaction, parts: MemoryParts, caller: Caller, memory: StoredMemory
) -> None:
    """Deletes the facts of a reworded memory, marks its summaries stale and enqueues it for fact extraction.

    Call it last in a transaction.
    """
    facts = await transaction.facts.unmodified_facts(memory.memory_id)
    if facts:
        changed = await relink_superseded(transaction, caller, await transaction.delete(facts))
        await after_deletion(transaction, parts, changed, also=[memory.memory_id])
    else:
        await mark_summaries_stale(transaction, [memory.memory_id])
    await enqueue_reworded(transaction, parts, memory)


async def after_reinstatement(
    transaction: MemoryTransaction, parts: MemoryParts, caller: Caller, operation: str, memory_id: UUID, successor: UUID
) -> None:
    """Makes the facts of a memory current again that is no longer superseded by this successor.

    Call it last in a transaction.
    """
    for fact in await transaction.facts.superseded_with(memory_id, successor):
        await _make_current(transaction, caller, operation, fact)
    await mark_summaries_stale(transaction, [memory_id])
    await enqueue_unread(transaction, parts, [memory_id])


async def _make_current(transaction: MemoryTransaction, caller: Caller, operation: str, fact: Superseded) -> None:
    memory_id = fact.memory_id
    version = await transaction.subjects.succeed(memory_id, superseded_by=None, valid_to=None)
    await transaction.subjects.reinstate(memory_id, subjects_of(caller.agent_id, fact))
    before = succession(fact.superseded_by, fact.valid_to)
    after = {"superseded_by": None, "valid_to": None}
    source = caller.token_id, caller.trace_id
    await transaction.history.append(Change(memory_id, operation, version, *source, before, after))


async def relink_superseded(transaction: MemoryTransaction, caller: Caller, deleted: Sequence[Row]) -> list[Superseded]:
    """Relinks what deleted memories had superseded to their own successor; returns the memories changed.

    Without a successor (`superseded_by` None) they are current again. An expired memory is skipped.
    """
    gone: dict[UUID | None, Row] = {row["memory_id"]: row for row in deleted}
    changed: list[Superseded] = []
    for each in await transaction.subjects.superseded_by([row["memory_id"] for row in deleted]):
        last = _last_of(gone, each.superseded_by)
        successor, valid_to = last["superseded_by"], last["valid_to"]
        version = await transaction.subjects.succeed(each.memory_id, superseded_by=successor, valid_to=valid_to)
        if successor is None:
            await transaction.subjects.learn_anew(each.memory_id, subjects_of(caller.agent_id, each))
            await transaction.clusters.enqueue_late([each.memory_id])
        else:
            await transaction.links.add(successor, [Link(target_id=each.memory_id, relation=SUPERSEDES)])
        before, after = succession(each.superseded_by, each.valid_to), succession(successor, valid_to)
        source = caller.token_id, caller.trace_id
        await transaction.history.append(Change(each.memory_id, "successor_deleted", version, *source, before, after))
        changed.append(replace(each, superseded_by=successor, valid_to=valid_to))
    return changed


def _last_of(gone: Mapping[UUID | None, Row], successor: UUID | None) -> Row:
    seen: set[UUID | None] = set()
    while gone[successor]["superseded_by"] in gone.keys() - seen:
        seen.add(successor)
        successor = gone[successor]["superseded_by"]
    return gone[successor]
