"""Erases all data of an agent or a user.

Derived memories before their sources, archive copies before tombstones: a retry after a crash finds the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agentcore.cancellation import run_to_completion
from agentcore.errors import DependencyUnavailable, InvalidParams, NotFound
from agentcore.failpoints import failpoint
from agentcore.memory.api import Caller
from agentcore.memory.archival import READS_AT_ONCE, Archive, archive_id, memory_of, object_key, read_stray
from agentcore.memory.embedding_cache import AgentEmbedder
from agentcore.memory.external_vectors import PointFilter
from agentcore.memory.forgetting.erase_receipt import key_id_of, read_receipt, sign_receipt
from agentcore.memory.forgetting.inventory import ARCHIVE, JOBS, REMAINS, TABLES, VECTOR_STORE, WORKING_MEMORY
from agentcore.memory.forgetting.removing import Deadline
from agentcore.memory.models import SUMMARY_RELATION, JsonObject, MemoryType
from agentcore.memory.params.archived import EraseParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.archive_rows import EraseRows
from agentcore.memory.rows.memory_rows import Row

ERASE_CHUNK = 500
# Copies in memory at a time.
READ_CHUNK = 32
# A call plans twice, before and after it erases: together shorter than WRITE_DEADLINE_SECONDS.
PLANNING_SECONDS = 12.0
# A further pass erases concurrent writes.
MAX_PASSES = 3
# Changes for the vector store, which passing them on removes.
CHANGES = "vector_changes"
_LAYERS = [layer.value for layer in MemoryType]
_WORD_COUNTS = {"lexical_terms", "lexical_totals", "lexical_deltas"}
# Tables with rows of one memory, dependent rows first.
_BY_MEMORY = (
    *(
        (each.name, "memory_id")
        for each in TABLES
        if "memory_id" in each.labels and each.name not in ("memories", "archived_copies", CHANGES)
    ),
    ("memory_links", "source_id"),
    ("memory_links", "target_id"),
    ("memories", "memory_id"),
)
# Tables whose rows belong to no memory. Rows that refer to a copy are deleted with it only.
_OF_NO_MEMORY = [
    table.name
    for table in TABLES
    if table.name not in {"memories", "archived_memories", "archived_copies", CHANGES, *_WORD_COUNTS}
]
logger = logging.getLogger(__name__)


@dataclass
class Erased:
    """Counts erased rows and copies by store, and what is left. `complete`: no timeout."""

    erased: Counter[str] = field(default_factory=Counter)
    left: dict[str, int] = field(default_factory=dict)
    unreachable: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True
    signed_receipt: str | None = None

    @property
    def verified(self) -> bool:
        """Returns whether every store was searched and is empty; False with an unreachable copy."""
        return self.complete and not self.left and not self.unreachable


@dataclass(frozen=True)
class _Extent:
    """Rows and archive keys before the plan. `unreachable`: copies elsewhere, by place."""

    archive: Archive | None
    place: UUID | None
    rows: Sequence[UUID]
    tombstones: Mapping[UUID, Row]
    listed: Sequence[str]
    recorded: Sequence[Row]
    unreachable: Counter[str]

    def copies(self) -> dict[UUID, str]:
        return {memory_id: key for key in self.listed if (memory_id := memory_of(key)) is not None}


@dataclass
class _Plan:
    """What to erase, in order. `loose`: objects of no memory; `elsewhere`: rows of copies in other archives."""

    memory_ids: list[UUID]
    keys: set[str]
    found: dict[str, int]
    archive_id: UUID | None
    unreachable: Counter[str]
    elsewhere: Counter[str]
    loose: list[str] = field(default_factory=list)
    unreadable: int = 0


class Erasing:
    def __init__(self, parts: MemoryParts, caller: Caller, params: EraseParams) -> None:
        self._parts = parts
        self._caller = caller
        self._agent_id = caller.agent_id
        self._user_id = params.user_id
        self._continues = params.continues
        self._since = parts.clock().isoformat()
        self._done = Erased()

    async def run(self) -> Erased:
        """Raises DependencyUnavailable; InvalidParams for a receipt that cannot be continued."""
        # First: without a key no receipt can be signed, and nothing is erased.
        key = await self._parts.storage.receipt_key()
        if self._continues is not None:
            await self._continue(self._continues)
        await self._passes(Deadline())
        self._done.signed_receipt = sign_receipt(key["key_id"], key["key"], self._receipt_claims())
        logger.info(
            "memories were erased: %s; verified: %s; copies out of reach: %d",
            ", ".join(f"{place} {count}" for place, count in sorted(self._done.erased.items())) or "none",
            self._done.verified,
            sum(self._done.unreachable.values()),
            extra={"agent_id": self._agent_id, "trace_id": self._caller.trace_id},
        )
        return self._done

    async def _continue(self, receipt: str) -> None:
        claims = read_receipt(await self._parts.storage.receipt_keys_of(key_id_of(receipt)), receipt)
        whose = claims["agent_id"], claims.get("user_id")
        if whose != (self._agent_id, self._user_id) or claims.get("complete", True):
            raise InvalidParams("`continues` must be the receipt of an incomplete erasure of the same agent and user.")
        self._since = claims["since"]
        self._done.erased.update(claims["erased"])

    async def _passes(self, deadline: Deadline) -> None:
        try:
            plan = await self._planned_in_time()
        except TimeoutError as cause:
            raise DependencyUnavailable(
                f"Nothing was erased: finding what to erase took longer than {PLANNING_SECONDS:g} s. Hint: "
                "archived memories without a user are read from the archive; restore them, then call again."
            ) from cause
        failpoint("erase.planned")
        for _ in range(MAX_PASSES):
            self._done.unreachable = plan.unreachable
            if not await self._chunks(plan, deadline):
                self._done.complete = False
                break
            await self._sweep(plan)
            failpoint("erase.swept")
            try:
                async with asyncio.timeout(deadline.seconds_left()):
                    await self._erase_points()
                plan = await self._planned_in_time()
            except TimeoutError:
                self._done.complete = False
                break
            self._done.left = await self._left(plan)
            if not self._done.left:
                break
        self._done.unreachable = plan.unreachable
        failpoint("erase.verified")

    def _receipt_claims(self) -> JsonObject:
        whose = {"agent_id": self._agent_id}
        if self._user_id is not None:
            whose["user_id"] = self._user_id
        return {
            **whose,
            "erased": dict(self._done.erased),
            "since": self._since,
            "complete": self._done.complete,
            "verified": self._done.verified,
            "left": self._done.left,
            "unreachable": dict(self._done.unreachable),
            "not_purged": [REMAINS.name],
            "at": self._parts.clock().isoformat(),
            "token_id": self._caller.token_id,
            "trace_id": self._caller.trace_id,
        }

    async def _planned_in_time(self) -> _Plan:
        async with asyncio.timeout(PLANNING_SECONDS):
            return await self._planned()

    async def _planned(self) -> _Plan:
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            rows = await transaction.erasing.memories(self._user_id)
            tombstones = await transaction.erasing.tombstones(self._user_id)
            recorded = await transaction.erasing.copies(self._user_id)
        archive = self._parts.archive
        if archive is None and tombstones:
            raise DependencyUnavailable(
                "MEMORY_ARCHIVAL_ENABLED=false, and copies of archived memories cannot be erased: "
                "switch the archive on, then call again."
            )
        place = None if archive is None else await archive_id(archive)
        listed = [] if archive is None else await archive.keys(ARCHIVE.folder(self._agent_id))
        unreachable = _elsewhere(tombstones, recorded, place)
        other_redis = await self._parts.storage.other_redis(await self._parts.working.instance_id())
        unreachable.update({f"redis {each}": 1 for each in other_redis})
        extent = _Extent(archive, place, rows, tombstones, listed, recorded, unreachable)
        return await (self._of_the_agent(extent) if self._user_id is None else self._of_the_user(extent))

    async def _of_the_agent(self, extent: _Extent) -> _Plan:
        rows, tombstones, recorded = extent.rows, extent.tombstones, extent.recorded
        place, copies = extent.place, extent.copies()
        own = {row["memory_id"] for row in recorded if row["archive_id"] == place}
        known = {*rows, *tombstones, *own}
        strays = [(each, key) for each, key in copies.items() if each not in known]
        others = {copies.pop(each) for each in await self._foreign_copies(extent.archive, strays)}
        listed = [key for key in extent.listed if key not in others]
        here = sum(row["archive_id"] == place for row in tombstones.values())
        found = {"memories": len(rows), "archived_memories": here, ARCHIVE.name: len(listed)}
        elsewhere = Counter(archived_memories=len(tombstones) - here)
        elsewhere["archived_copies"] = len(recorded) - len(own)
        loose = [key for key in listed if memory_of(key) is None]
        ids = sorted({*rows, *tombstones, *copies, *own})
        return _Plan(ids, set(listed), found, place, extent.unreachable, elsewhere, loose)

    async def _foreign_copies(self, archive: Archive | None, strays: Sequence[tuple[UUID, str]]) -> list[UUID]:
        if archive is None or archive.name != "directory":
            return []
        return [each async for each, copy in _read(archive, strays) if copy and not self._is_own(copy)]

    def _is_own(self, copy: Mapping[str, Any]) -> bool:
        return bool(copy.get("agent_id", self._agent_id) == self._agent_id)

    async def _of_the_user(self, extent: _Extent) -> _Plan:
        tombstones, place, copies = extent.tombstones, extent.place, extent.copies()
        archived = {each for each, row in tombstones.items() if _is_of(row, self._user_id)}
        own = [*extent.rows, *archived]
        named = {
            row["memory_id"]
            for row in extent.recorded
            if row["archive_id"] == place and row["user_id"] == self._user_id
        }
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            known = await transaction.erasing.known_ids({*copies, *own, *named})
        strays = [(each, key) for each, key in copies.items() if each not in known | archived]
        unreadable, read, sources = await self._attributed(extent.archive, strays)
        ordered = await self._with_derived([*own, *read, *(named - known)], sources)
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            there = await transaction.archived.lock_existing(ordered)
        here = [each for each in ordered.keys() & tombstones if tombstones[each]["archive_id"] == place]
        keys = {copies[each] for each in ordered if each in copies}
        found = {
            "memories": len(there),
            "archived_memories": len(here),
            ARCHIVE.name: len(keys),
            "archived_copies": len(named),
        }
        ids, none = [*reversed(ordered)], Counter[str]()
        return _Plan(ids, keys, found, place, extent.unreachable, none, unreadable=unreadable)

    async def _attributed(
        self, archive: Archive | None, strays: Sequence[tuple[UUID, str]]
    ) -> tuple[int, list[UUID], dict[UUID, set[UUID]]]:
        """Returns the number of unreadable copies, the user's, and the sources of those without a user."""
        unreadable, own, sources = 0, list[UUID](), dict[UUID, set[UUID]]()
        if archive is not None:
            async for each, copy in _read(archive, strays):
                if copy is None:
                    unreadable += 1
                elif not copy or (self._is_own(copy) and _names(copy, self._user_id)):
                    own.append(each)
                elif self._is_own(copy) and copy["user_id"] is None:
                    sources[each] = _sources(copy)
        return unreadable, own, sources

    async def _with_derived(self, own: Sequence[UUID], sources: Mapping[UUID, set[UUID]]) -> dict[UUID, None]:
        """Returns these memories and all derived from them, sources first."""
        ordered = dict.fromkeys(own)
        newest: set[UUID] = set(own)
        while True:
            async with self._parts.storage.transaction(self._agent_id) as transaction:
                derived = await transaction.erasing.derived(newest, SUMMARY_RELATION, self._user_id)
            derived += [each for each, made_of in sources.items() if made_of & newest]
            newest = set(derived) - ordered.keys()
            ordered |= dict.fromkeys(newest)
            if not newest:
                return ordered

    async def _chunks(self, plan: _Plan, deadline: Deadline) -> bool:
        for start in range(0, len(plan.memory_ids), ERASE_CHUNK):
            if not deadline.leaves_time():
                return False
            await run_to_completion(self._chunk(plan.memory_ids[start : start + ERASE_CHUNK], plan))
        return True

    async def _chunk(self, memory_ids: Sequence[UUID], plan: _Plan) -> None:
        done = False
        while not done:
            # Memories derived from a user's have no user id: a retry after a crash, without the copy, could not
            # attribute the tombstone.
            if self._user_id is not None:
                async with self._parts.storage.transaction(self._agent_id) as transaction:
                    await transaction.erasing.assign_user(memory_ids, self._user_id)
                failpoint("erase.named")
            done = await self._erase_chunk(memory_ids, plan)

    async def _erase_chunk(self, memory_ids: Sequence[UUID], plan: _Plan) -> bool:
        erased: Counter[str] = Counter()
        keys = {object_key(self._agent_id, each) for each in memory_ids}
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            erasing = transaction.erasing
            await erasing.lock_layers(_LAYERS)
            tombstones = await erasing.lock_tombstones(memory_ids)
            if self._user_id is not None and any(each["user_id"] is None for each in tombstones):
                return False
            kept = {each["memory_id"] for each in tombstones if each["archive_id"] != plan.archive_id}
            keys |= {each["object_key"] for each in tombstones}
            rows = await erasing.lock_for_erasure(memory_ids)
            failpoint("erase.held")
            erased[ARCHIVE.name] = await self._delete_copies(keys, plan)
            failpoint("erase.unarchived")
            erased += await self._erase_rows(erasing, memory_ids, kept)
            erased["archived_copies"] = await erasing.erase_copies(memory_ids, plan.archive_id)
            if rows:
                await transaction.append_terms([row["term_keys"] for row in rows], sign=-1)
            tasks = {row["task_id"] for row in rows if row["task_id"] is not None}
            erased["completed_tasks"] = await erasing.erase_ended_tasks(tasks)
            failpoint("erase.deleted")
        failpoint("erase.committed")
        self._done.erased += erased
        return True

    @staticmethod
    async def _erase_rows(erasing: EraseRows, memory_ids: Sequence[UUID], kept: set[UUID]) -> Counter[str]:
        erased: Counter[str] = Counter()
        for table, column in _BY_MEMORY:
            ids = [each for each in memory_ids if table != "archived_memories" or each not in kept]
            erased[table] += await erasing.erase(table, column, ids)
        return erased

    async def _delete_copies(self, keys: set[str], plan: _Plan) -> int:
        archive = self._parts.archive
        if archive is None:
            return 0
        await archive.delete(keys)
        if await archive_id(archive) != plan.archive_id:
            raise DependencyUnavailable("The archive was replaced during the call: call again.")
        return len(keys & plan.keys)

    async def _sweep(self, plan: _Plan) -> None:
        erased: Counter[str] = Counter()
        if isinstance(self._parts.embedder, AgentEmbedder):
            await self._parts.embedder.forget()
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

    async def _erase_points(self) -> None:
        if self._parts.vectors.external is not None:
            self._done.erased[VECTOR_STORE.name] += await self._parts.vectors.external.erase(self._where())

    def _where(self) -> PointFilter:
        return PointFilter(self._agent_id, None if self._user_id is None else (self._user_id,))

    async def _stale_copies(self) -> list[bytes]:
        """Returns copies in working memory: the agent's, or a user's without a row.

        Ends the generation first: a call that read rows before they were erased writes no copy afterwards.
        """
        await self._parts.working.end_generation(self._agent_id)
        held = await self._parts.working.held(self._agent_id)
        if self._user_id is None or not held:
            return [*held]
        async with self._parts.storage.transaction(self._agent_id) as transaction:
            there = await transaction.archived.lock_existing(set().union(*held.values()))
        return [key for key, memory_ids in held.items() if memory_ids - there]

    async def _left(self, plan: _Plan) -> dict[str, int]:
        left = Counter({**plan.found, WORKING_MEMORY.name: len(await self._stale_copies())})
        left[ARCHIVE.name] += plan.unreadable
        if self._parts.vectors.external is not None:
            left[VECTOR_STORE.name] = await self._parts.vectors.external.count(self._where())
        if self._user_id is None:
            async with self._parts.storage.transaction(self._agent_id) as transaction:
                for table in TABLES:
                    left[table.name] = await transaction.erasing.count(table.name)
                left -= plan.elsewhere
                jobs = await transaction.jobs.forget()
            self._done.erased[JOBS.name] += jobs
        return dict(+left)


def _is_of(tombstone: Row, user_id: str | None) -> bool:
    return tombstone["user_id"] == user_id or user_id in (tombstone["users"] or ())


def _elsewhere(tombstones: Mapping[UUID, Row], recorded: Sequence[Row], place: UUID | None) -> Counter[str]:
    found = {(row["memory_id"], row["archive_id"]) for row in (*tombstones.values(), *recorded)}
    return Counter(str(each) for _, each in found if each != place)


async def _read(
    archive: Archive, strays: Sequence[tuple[UUID, str]]
) -> AsyncIterator[tuple[UUID, Mapping[str, Any] | None]]:
    """Yields copies: None for an unreadable one, empty for a draft."""
    slots = asyncio.Semaphore(READS_AT_ONCE)

    async def copy(key: str) -> Mapping[str, Any] | None:
        async with slots:
            try:
                return await read_stray(archive, key)
            except NotFound:
                return {}

    for start in range(0, len(strays), READ_CHUNK):
        chunk = strays[start : start + READ_CHUNK]
        read = await asyncio.gather(*(copy(key) for _, key in chunk))
        for (memory_id, _), data in zip(chunk, read, strict=True):
            yield memory_id, data


def _names(copy: Mapping[str, Any], user_id: str | None) -> bool:
    if copy["user_id"] is not None:
        return bool(copy["user_id"] == user_id)
    return user_id in (copy.get("provenance") or {}).get("users", ())


def _sources(copy: Mapping[str, Any]) -> set[UUID]:
    ends = [
        link["target_id"]
        for link in copy.get("links", ())
        if link["relation"] == SUMMARY_RELATION and link["source_id"] == copy["memory_id"]
    ]
    parents = [copy["parent_memory_id"]] if copy["parent_memory_id"] is not None else []
    return {UUID(each) for each in (*ends, *parents, *(copy.get("provenance") or {}).get("sources", ()))}
