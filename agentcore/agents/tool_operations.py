"""Operations of the memory tools, and the confirmation of what to forget."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, Self
from uuid import UUID

from agentcore.agents.failing_open import must_be_asked
from agentcore.agents.prefetch import prefetched
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tool_contract import (
    MOST_NEIGHBOURS,
    ForgetMemory,
    MemorySession,
    PrefetchMemory,
    RecallMemory,
    SaveMemory,
    UpdateMemory,
    bounded,
    told,
)
from agentcore.agents.working_template import is_template
from agentcore.errors import Conflict, NotFound
from agentcore.limits import MAX_PAGE
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import SUMMARY_RELATION, MemoryRecord, MemorySummary, MemoryType, Strict
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import DeleteParams, GetParams, ListParams, RetrieveParams, StoreParams

CONFIRMATION_SECONDS = 600
# Hex characters for each memory. It prevents mistakes, not attacks: a caller can request one.
MARK_CHARS = 6


class Confirmations:
    """Confirmations of memories at their current versions, within a scope.

    Processes with the same `key` accept each other's; without a key only this object's are valid.
    """

    def __init__(
        self,
        key: bytes | None = None,
        *,
        seconds: int = CONFIRMATION_SECONDS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._key = secrets.token_bytes(32) if key is None else hashlib.sha256(b"forget|" + key).digest()
        self._seconds = seconds
        self._now = now

    def given(self, versions: Mapping[UUID, int], scope: Strict) -> str:
        """Returns a confirmation of these memories, valid for any subset."""
        expires = int(self._now().timestamp()) + self._seconds
        marks = (self._mark(expires, *named, scope) for named in sorted(versions.items()))
        return f"{expires:x}-{''.join(marks)}"

    def problem(self, confirmation: str, versions: Mapping[UUID, int], scope: Strict) -> str | None:
        """Returns why the confirmation is invalid; None if it is valid."""
        stamp, _, marks = confirmation.strip().partition("-")
        try:
            expires = int(stamp, 16)
        except ValueError:
            return "is not one that forget_memory gave"
        held = {marks[start : start + MARK_CHARS] for start in range(0, len(marks), MARK_CHARS)}
        if any(self._mark(expires, *named, scope) not in held for named in versions.items()):
            return "does not belong to all of these memories, or one of them has changed since"
        if self._now().timestamp() >= expires:
            return "has expired"
        return None

    def _mark(self, expires: int, memory_id: UUID, version: int, scope: Strict) -> str:
        said = f"{scope.model_dump_json()}|{expires}|{memory_id}:{version}"
        return hmac.new(self._key, said.encode(), hashlib.sha256).hexdigest()[:MARK_CHARS]


# Below this probability that any hit answers the query, no memory is proposed.
SURE_FIT = 0.2
# Threshold of a match that is sufficient alone; of one that stands out; and its ratio to the median of
# others.
SURE_MATCH, STANDING_MATCH, TIMES_THE_TYPICAL = 0.45, 0.2, 2.5
# With fewer others the median has no meaning.
FEWEST_OTHERS = 3
# Hits with at least this share of the best match are proposed with it.
SHARE_OF_BEST = 0.73
_NOT_OF_THE_MATCH = ("recency", "frequency", "importance", "repetition", "freshness")


def surely_meant(found: Sequence[MemorySummary]) -> list[MemorySummary]:
    """Returns the unambiguous hits of a search with `explain`."""
    matches = [_match(memory) for memory in found]
    if not matches or not _stands(sorted(matches, reverse=True)):
        return []
    least = SHARE_OF_BEST * max(matches)
    return [memory for memory, match in zip(found, matches, strict=True) if match >= least]


def _match(memory: MemorySummary) -> float:
    added = sum(term.contribution for name, term in (memory.terms or {}).items() if name in _NOT_OF_THE_MATCH)
    return (memory.score or 0.0) - added


def _stands(matches: Sequence[float]) -> bool:
    best, *others = matches
    if best >= SURE_MATCH:
        return True
    typical = median(others) if len(others) >= FEWEST_OTHERS else best
    return best >= STANDING_MATCH and best >= TIMES_THE_TYPICAL * typical


NEXT_STEP = (
    "Nothing is deleted yet. Show these to the user; call forget_memory with the memory_ids of those they "
    "agree to, all or fewer, and the confirmation."
)
NOTHING_FITS = "Nothing in memory fits."
LINES_OF = "The memory_id of each numbered line"
NOTHING_SURE = (
    "Nothing in memory surely is what you mean; nothing is proposed. recall_memory shows what is near: "
    "call forget_memory with the memory_ids of what is meant."
)
NO_SESSION = "There is no such session. Give a session_id as recall_memory answered it."
EARLIER = "There is more before: call memory_session with the memory_id of the first of these."
MOST_SOURCES = 20
# A host may have stored the current words up to this number of times, in several conversations.
MOST_REPEATED = 5
# Timestamps have microsecond precision.
SHORTEST_TIME = timedelta(microseconds=1)
# Limit of memories that a query may propose to forget.
MOST_PROPOSED = 25


class ToolOperations:
    def __init__(self, memory: MemoryApi, scope: MemoryScope, confirmations: Confirmations) -> None:
        self._memory = memory
        self._scope = scope
        self._confirmations = confirmations
        self._said: Collection[str] = ()

    def apart_from(self, said: Collection[str]) -> Self:
        view = copy.copy(self)
        view._said = frozenset(said)
        return view

    async def save(self, asked: SaveMemory) -> dict[str, Any]:
        """Stores the sentence; returns the outcome."""
        given: dict[str, Any] = {} if asked.importance is None else {"importance": asked.importance}
        stored = await self._memory.store(
            StoreParams(
                content=asked.content,
                memory_type=MemoryType(asked.memory_type),
                tags=asked.tags,
                **given,
                **self._scope.labels(),
            )
        )
        return {
            "status": stored.status,
            "memory_id": None if stored.memory_id is None else str(stored.memory_id),
            "reason": stored.reason,
            "took_the_place_of": [str(each) for each in stored.superseded],
            "nearly_the_same_as": None if stored.near_duplicate_of is None else str(stored.near_duplicate_of),
        }

    async def recall(self, asked: RecallMemory) -> dict[str, Any]:
        given = asked.model_dump(include={"after", "before", "tags", "memory_types"}, exclude_none=True)
        spare = MOST_REPEATED if self._said else 0
        found = await self._memory.retrieve(
            RetrieveParams(query=asked.query, k=asked.limit + spare, **given, **self._scope.filters())
        )
        must_be_asked(found.receipt)  # a failed search must not look like "no match"
        memories = [
            told(memory, score=memory.score)
            for memory in found.memories
            if memory.content not in self._said and not is_template(memory.namespace)
        ][: asked.limit]
        return bounded(memories) if memories else {"note": NOTHING_FITS}

    async def prefetch(self, asked: PrefetchMemory) -> str | dict[str, Any]:
        built = await prefetched(self._memory, asked.message, self._scope)
        if built is not None:
            must_be_asked(built.receipt)
        if built is None or not built.memory_ids:
            return {"note": NOTHING_FITS}
        named = " ".join(f"{line}={memory_id}" for line, memory_id in enumerate(built.memory_ids, 1))
        return f"{built.context.strip()}\n\n{LINES_OF}: {named}"

    async def update(self, asked: UpdateMemory) -> dict[str, Any]:
        await self._record(asked.memory_id)
        updates = asked.model_dump(exclude={"memory_id"}, exclude_none=True)
        changed = await self._memory.update(UpdateParams(memory_id=asked.memory_id, updates=Updates(**updates)))
        return {"status": "updated", "memory_id": str(changed.memory_id), "version": changed.version}

    async def forget(self, asked: ForgetMemory) -> dict[str, Any]:
        """Proposes memories to delete; with a confirmation deletes the proposed ones."""
        wanted = list(dict.fromkeys(asked.memory_ids or ()))
        if asked.confirmation is not None:
            return await self._forgotten(wanted, asked.confirmation)
        if wanted:
            return self._proposal(await self._records(wanted), dict.fromkeys(wanted))
        scores = await self._meant(asked.query or "")
        return self._proposal(await self._those_there(list(scores)), scores)

    async def session(self, asked: MemorySession) -> dict[str, Any]:
        if asked.memory_id is None:
            return await self._last_of(asked.session_id)
        record = await self._record(asked.memory_id)
        around = await self._neighbours(record, asked.before, asked.after)
        lines = [{**told(each), "this_one": each.memory_id == record.memory_id or None} for each in around]
        return {**bounded(lines), "made_from": [told(each) for each in await self._sources(record)]}

    async def _last_of(self, session_id: str | None) -> dict[str, Any]:
        page = await self._memory.list(
            ListParams(session_id=session_id, limit=MOST_NEIGHBOURS, consistent=True, **self._scope.filters())
        )
        records = [record for record in page.memories if not is_template(record.namespace)]
        if not records:
            return {"note": NO_SESSION}
        last = bounded([told(record) for record in records])
        earlier = page.next_cursor is not None or last["left_out"]
        return {"memories": last["memories"][::-1], "next": EARLIER if earlier else None}

    async def _record(self, memory_id: UUID) -> MemoryRecord:
        record = (await self._memory.get(GetParams(memory_id=memory_id, consistent=True))).memory
        if not self._scope.holds(record) or is_template(record.namespace):
            raise NotFound
        return record

    async def _records(self, memory_ids: Sequence[UUID]) -> list[MemoryRecord]:
        return await asyncio.gather(*(self._record(memory_id) for memory_id in memory_ids))

    async def _those_there(self, memory_ids: Sequence[UUID]) -> list[MemoryRecord]:
        found = await asyncio.gather(*map(self._record, memory_ids), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException) and not isinstance(each, NotFound):
                raise each
        return [each for each in found if isinstance(each, MemoryRecord)]

    async def _meant(self, query: str) -> dict[UUID, float | None]:
        found = await self._memory.retrieve(
            RetrieveParams(
                query=query, k=MOST_PROPOSED, distinct=False, min_fit=SURE_FIT, explain=True, **self._scope.filters()
            )
        )
        must_be_asked(found.receipt)
        # Without vectors the service ignores `min_fit`.
        memories = found.memories if (found.receipt.fit or 0.0) >= SURE_FIT else []
        return {memory.memory_id: memory.score for memory in surely_meant(memories)}

    def _proposal(self, records: Sequence[MemoryRecord], scores: Mapping[UUID, float | None]) -> dict[str, Any]:
        if not records:
            return {"note": NOTHING_SURE}
        would_go = bounded([told(record, score=scores[record.memory_id]) for record in records])
        kept = records[: len(would_go["memories"])]
        confirmation = self._confirmations.given(_versions(kept), self._scope)
        return {
            "status": "proposed",
            "would_forget": would_go["memories"],
            "confirmation": confirmation,
            "next": NEXT_STEP,
        }

    async def _forgotten(self, memory_ids: Sequence[UUID], confirmation: str) -> dict[str, Any]:
        try:
            records = await self._records(memory_ids)
        except NotFound as cause:
            raise Conflict(
                "One of these memories is not there any more. Nothing was deleted: propose the "
                "others again without a confirmation."
            ) from cause
        problem = self._confirmations.problem(confirmation, _versions(records), self._scope)
        if problem is not None:
            raise Conflict(
                f"The confirmation {problem}. Nothing was deleted: propose it again without a "
                "confirmation, and show the new list to the user."
            )
        deleted = await self._memory.delete(DeleteParams(memory_ids=list(memory_ids)))
        return {"status": "forgotten", "deleted_count": deleted.deleted_count}

    async def _neighbours(self, record: MemoryRecord, before: int, after: int) -> list[MemoryRecord]:
        if record.session_id is not None:
            within = {"session_id": record.session_id}
        elif record.task_id is not None:
            within = {"task_id": record.task_id}
        else:
            return [record]
        filters = {**within, **self._scope.filters()}
        # The upper bound is exclusive: one microsecond later, so that the memory itself is included.
        upto = ListParams(before=record.timestamp + SHORTEST_TIME, **filters)
        since = ListParams(after=record.timestamp, descending=False, **filters)
        earlier = await self._behind(record, upto, before)
        return [*earlier[::-1], record, *await self._behind(record, since, after)]

    async def _behind(self, record: MemoryRecord, asked: ListParams, count: int) -> list[MemoryRecord]:
        behind: list[MemoryRecord] = []
        seen, cursor, limit = False, None, count + 1
        while len(behind) < count:
            page = await self._memory.list(asked.model_copy(update={"limit": limit, "cursor": cursor}))
            for each in page.memories:
                if seen and not is_template(each.namespace):
                    behind.append(each)
                seen = seen or each.memory_id == record.memory_id
            cursor, limit = page.next_cursor, MAX_PAGE
            if cursor is None:
                break
        return behind[:count]

    async def _sources(self, record: MemoryRecord) -> list[MemoryRecord]:
        named = [
            record.parent_memory_id,
            *(link.target_id for link in record.links if link.relation == SUMMARY_RELATION),
        ]
        sources: list[MemoryRecord] = []
        for memory_id in dict.fromkeys(each for each in named if each is not None):
            if len(sources) == MOST_SOURCES:
                break
            try:
                sources.append(await self._record(memory_id))
            except NotFound:
                continue
        return sources


def _versions(records: Sequence[MemoryRecord]) -> dict[UUID, int]:
    return {record.memory_id: record.version for record in records}
