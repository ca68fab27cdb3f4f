"""Erasing, as a story: all of an agent, or of a user within it, goes from every place of the inventory.

What was made of other memories goes before them, and a copy before its tombstone: whatever a call that was
killed has left, the same call still finds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agentcore.cancellation import to_its_end
from agentcore.errors import AgentCoreError, DependencyUnavailable, NotFound
from agentcore.failpoints import failpoint
from agentcore.memory.api import Caller
from agentcore.memory.archival import READS_AT_ONCE, Archive, memory_of, object_key, read_stray
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.encoding import embedding_text
from agentcore.memory.forgetting.deadlines import Deadline
from agentcore.memory.forgetting.erase_receipt import sign_receipt
from agentcore.memory.forgetting.inventory import ARCHIVE, JOBS, REMAINS, TABLES, WORKING_MEMORY
from agentcore.memory.models import MemoryType
from agentcore.memory.params.erasing import EraseParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.summaries.summarizing import SUMMARY_RELATION

ERASE_CHUNK = 500
# How often what others wrote meanwhile is looked for.
ROUNDS = 3
_LAYERS = [layer.value for layer in MemoryType]
_WORD_COUNTS = {"lexical_terms", "lexical_totals", "lexical_deltas"}
# The rows of one memory, those that hang on it first.
_BY_MEMORY = (
    *((each.name, "memory_id") for each in TABLES if "memory_id" in each.labels and each.name != "memories"),
    ("memory_links", "source_id"),
    ("memory_links", "target_id"),
    ("memories", "memory_id"),
)
# What belongs to no memory. Tombstones go with their copies alone.
_OF_NO_MEMORY = [
    table.name for table in TABLES if table.name not in {"memories", "archived_memories", *_WORD_COUNTS}
]
logger = logging.getLogger(__name__)


@dataclass
class Erased:
    """What went by place, what is left, and whether there was time for all of it."""

    erased: Counter[str] = field(default_factory=Counter)
    left: dict[str, int] = field(default_factory=dict)
    complete: bool = True
    signed_receipt: str | None = None

    @property
    def verified(self) -> bool:
        """Whether every place was looked through, and is empty."""
        return self.complete and not self.left


@dataclass
class _Plan:
    """What goes, in order; `found` by place; `loose` are objects of no memory."""

    memory_ids: list[UUID]
    keys: set[str]
    found: dict[str, int]
    loose: list[str] = field(default_factory=list)
    unreadable: int = 0


class Erasing:
    """One erasure for good."""

    def __init__(self, parts: MemoryParts, caller: Caller, params: EraseParams) -> None:
        self._parts = parts
        self._caller = caller
        self._agent_id = caller.agent_id
        self._user_id = params.user_id
        self._done = Erased()

    async def run(self) -> Erased:
        """Erase in chunks, until nothing is found or the time is over. Raises DependencyUnavailable."""
        # First of all: what cannot be attested in the end is not begun.
        key = await asyncio.to_thread(self._parts.receipt_key)
        deadline, plan = Deadline(), await self._planned()
        failpoint("erase.planned")
        for _ in range(ROUNDS):
            if not await self._chunks(plan, deadline):
                self._done.complete = False
                break
            await self._sweep(plan)
            failpoint("erase.swept")
            plan = await self._planned()
            self._done.left = await self._left(plan)
            if not self._done.left:
                break
        failpoint("erase.verified")
        if self._done.complete:
            self._done.signed_receipt = sign_receipt(key, self._told())
        logger.info(
            "memories were erased: %s; verified: %s",
            ", ".join(f"{place} {count}" for place, count in sorted(self._done.erased.items())) or "none",
            self._done.verified,
            extra={"agent_id": self._agent_id, "trace_id": self._caller.trace_id},
        )
        return self._done

    def _told(self) -> dict[str, Any]:
        whose = {"agent_id": self._agent_id}
        if self._user_id is not None:
            whose["user_id"] = self._user_id
        return {
            **whose,
            "erased": dict(self._done.erased),
            "verified": self._done.verified,
            "left": self._done.left,
            "not_purged": [REMAINS.name],
            "at": self._parts.clock().isoformat(),
            "token_id": self._caller.token_id,
            "trace_id": self._caller.trace_id,
        }

    # --- what goes -----------------------------------------------------------------------------------------

    async def _planned(self) -> _Plan:
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            rows = await transaction.erasing.memories(self._user_id)
            tombstones = await transaction.erasing.tombstones(self._user_id)
        archive = self._parts.archive
        if archive is None and tombstones:
            raise DependencyUnavailable(
                "MEMORY_ARCHIVAL_ENABLED=false, and copies of archived memories cannot be erased: "
                "switch the archive on, then call again."
            )
        listed = [] if archive is None else await archive.keys(ARCHIVE.folder(self._agent_id))
        copies = {memory_id: key for key in listed if (memory_id := memory_of(key)) is not None}
        if self._user_id is None:
            ids = {*rows, *tombstones, *copies}
            loose = [key for key in listed if memory_of(key) is None]
            found = {"memories": len(rows), "archived_memories": len(tombstones), ARCHIVE.name: len(listed)}
            return _Plan(sorted(ids), set(listed), found, loose)
        return await self._of_the_user(archive, rows, tombstones, copies)

    async def _of_the_user(
        self,
        archive: Archive | None,
        rows: Sequence[UUID],
        tombstones: Mapping[UUID, str | None],
        copies: Mapping[UUID, str],
    ) -> _Plan:
        """The user's own, what was made of it, and copies of which nothing but themselves tells whose."""
        own = [*rows, *(each for each, user_id in tombstones.items() if user_id == self._user_id)]
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            known = await transaction.erasing.known({*copies, *own})
        strays = {each: key for each, key in copies.items() if each not in known}
        told, unreadable = ({}, 0) if archive is None else await _read(archive, strays)
        own += [each for each, copy in told.items() if not copy or copy["user_id"] == self._user_id]
        ordered = dict.fromkeys(own)
        newest: set[UUID] = set(own)
        while True:
            async with self._parts.storage.transaction(self._agent_id) as transaction:
                derived = await transaction.erasing.derived(newest, SUMMARY_RELATION, self._user_id)
            derived += [each for each, copy in told.items() if _is_made_of(copy, newest, self._user_id)]
            newest = set(derived) - ordered.keys()
            ordered |= dict.fromkeys(newest)
            if not newest:
                break
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            there = await transaction.archived.held(ordered)
        archived = ordered.keys() & tombstones.keys()
        keys = {copies[each] for each in ordered if each in copies}
        found = {"memories": len(there), "archived_memories": len(archived), ARCHIVE.name: len(keys)}
        return _Plan([*reversed(ordered)], keys, found, unreadable=unreadable)

    # --- how it goes ---------------------------------------------------------------------------------------

    async def _chunks(self, plan: _Plan, deadline: Deadline) -> bool:
        """Whether there was time for all of them."""
        for start in range(0, len(plan.memory_ids), ERASE_CHUNK):
            if not deadline.leaves_time():
                return False
            await to_its_end(self._chunk(plan.memory_ids[start : start + ERASE_CHUNK], plan.keys))
        return True

    async def _chunk(self, memory_ids: Sequence[UUID], listed: set[str]) -> None:
        """No prune copies them meanwhile, and no restore brings them back: both are waited for."""
        while not await self._erase_chunk(memory_ids, listed):
            # What was made of a user's memories names nobody. Were its copy gone and this call killed,
            # nothing would tell whose the tombstone is.
            async with self._parts.storage.transaction(self._agent_id) as transaction:
                await transaction.erasing.name_tombstones(memory_ids, self._user_id)
            failpoint("erase.named")

    async def _erase_chunk(self, memory_ids: Sequence[UUID], listed: set[str]) -> bool:
        """False, and nothing has gone, where archived memories must first be given the user's name."""
        erased: Counter[str] = Counter()
        keys = {object_key(self._agent_id, each) for each in memory_ids}
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            erasing = transaction.erasing
            await erasing.hold_layers(_LAYERS)
            tombstones = await erasing.hold_tombstones(memory_ids)
            if self._user_id is not None and any(each["user_id"] is None for each in tombstones):
                return False
            keys |= {each["object_key"] for each in tombstones}
            rows = await erasing.hold(memory_ids)
            await self._forget_vectors([*rows, *await self._copies(keys & listed)])
            failpoint("erase.held")
            if self._parts.archive is not None:
                await self._parts.archive.delete(keys)
                erased[ARCHIVE.name] = len(keys & listed)
            failpoint("erase.unarchived")
            await self._erase_rows(transaction, memory_ids, erased)
            if rows:
                await transaction.append_terms([row["term_keys"] for row in rows], sign=-1)
            tasks = {row["task_id"] for row in rows if row["task_id"] is not None}
            erased["completed_tasks"] = await erasing.erase_ended_tasks(tasks)
            failpoint("erase.deleted")
        failpoint("erase.committed")
        self._done.erased += erased
        return True

    async def _erase_rows(
        self, transaction: MemoryTransaction, memory_ids: Sequence[UUID], erased: Counter[str]
    ) -> None:
        for table, column in _BY_MEMORY:
            erased[table] += await transaction.erasing.erase(table, column, memory_ids)

    async def _copies(self, keys: Iterable[str]) -> list[Mapping[str, Any]]:
        """What of the copies can be read, for the vectors of their texts alone."""
        archive, slots = self._parts.archive, asyncio.Semaphore(READS_AT_ONCE)
        if archive is None or not isinstance(self._parts.embedder, CachingEmbedder):
            return []

        async def copy(key: str) -> Mapping[str, Any] | None:
            async with slots:
                try:
                    return await read_stray(archive, key)
                except AgentCoreError:
                    return None

        return [each for each in await asyncio.gather(*map(copy, keys)) if each is not None]

    async def _forget_vectors(self, rows: Iterable[Mapping[str, Any]]) -> None:
        if isinstance(self._parts.embedder, CachingEmbedder):
            said = {(text, row["speaker"]) for row in rows for text in _texts(row)}
            texts = {text for text, _ in said} | {embedding_text(*each) for each in said}
            await self._parts.embedder.forget(sorted(texts))

    async def _sweep(self, plan: _Plan) -> None:
        """What belongs to no memory, and the copies in working memory."""
        erased: Counter[str] = Counter()
        if self._user_id is None:
            self._parts.accesses.forget(self._agent_id)
            if self._parts.archive is not None and plan.loose:
                await self._parts.archive.delete(plan.loose)
                erased[ARCHIVE.name] = len(plan.loose)
            failpoint("erase.loose")
            async with self._parts.storage.transaction(self._agent_id) as transaction:
                for table in _OF_NO_MEMORY:
                    erased[table] = await transaction.erasing.erase_table(table)
                erased.update(await transaction.erasing.erase_word_counts())
                erased[JOBS.name] = await transaction.jobs.forget()
                failpoint("erase.emptied")
            failpoint("erase.cleared")
        copies = await self._stale_copies()
        await self._parts.working.drop(copies)
        erased[WORKING_MEMORY.name] = len(copies)
        self._done.erased += erased

    async def _stale_copies(self) -> list[bytes]:
        """The agent's copies in working memory; of a user's erasure those that hold what has no row."""
        held = await self._parts.working.held(self._agent_id)
        if self._user_id is None or not held:
            return [*held]
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            there = await transaction.archived.held(set().union(*held.values()))
        return [key for key, memory_ids in held.items() if memory_ids - there]

    async def _left(self, plan: _Plan) -> dict[str, int]:
        """What every place still holds."""
        left = Counter({**plan.found, WORKING_MEMORY.name: len(await self._stale_copies())})
        left[ARCHIVE.name] += plan.unreadable
        if self._user_id is None:
            async with self._parts.storage.transaction(self._agent_id) as transaction:
                for table in TABLES:
                    left[table.name] = await transaction.erasing.count(table.name)
                left[JOBS.name] = await transaction.jobs.forget()
        return dict(+left)


async def _read(
    archive: Archive, strays: Mapping[UUID, str]
) -> tuple[dict[UUID, Mapping[str, Any]], int]:
    """The copies, empty where there is but a draft of one; and how many cannot be opened."""
    slots = asyncio.Semaphore(READS_AT_ONCE)

    async def copy(key: str) -> Mapping[str, Any] | None:
        async with slots:
            try:
                return await read_stray(archive, key)
            except NotFound:
                return {}

    read = await asyncio.gather(*map(copy, strays.values()))
    told = {each: data for each, data in zip(strays, read, strict=True) if data is not None}
    return told, len(strays) - len(told)


def _is_made_of(copy: Mapping[str, Any], sources: set[UUID], user_id: str | None) -> bool:
    """Whether an archived memory that names no user was made of one of these, or of the user's."""
    if not copy or copy["user_id"] is not None:
        return False
    provenance = copy.get("provenance") or {}
    if user_id in provenance.get("users", ()):
        return True
    ends = [
        tie["target_id"]
        for tie in copy.get("links", ())
        if tie["relation"] == SUMMARY_RELATION and tie["source_id"] == copy["memory_id"]
    ]
    parents = [copy["parent_memory_id"]] if copy["parent_memory_id"] is not None else []
    return any(UUID(each) in sources for each in (*ends, *parents, *provenance.get("sources", ())))


def _texts(row: Mapping[str, Any]) -> list[str]:
    """All that a row, or a copy of one, says or once said."""
    if "texts" in row:
        return list(row["texts"])
    sides = [change[side] or {} for change in row.get("history", ()) for side in ("before", "after")]
    return [row["content"], *(side["content"] for side in sides if side.get("content") is not None)]
