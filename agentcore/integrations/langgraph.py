"""Memory as LangGraph's store: each item is a memory; a put updates it. Items without a TTL are pinned."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from agentcore.agents.failing_open import deadline, if_answered, must_be_asked
from agentcore.agents.recordable import searchable
from agentcore.agents.scope import MemoryScope
from agentcore.errors import NotFound
from agentcore.integrations import listed, not_installed, store_all
from agentcore.integrations.langgraph_items import (
    METADATA_KEY,
    Namespace,
    StoredItem,
    lines_of,
    matches_filter,
    matches_namespace,
    parse_item,
    searched_text,
    session_of,
    tag_of,
)
from agentcore.integrations.own_loop import OwnLoop
from agentcore.limits import MAX_K
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemoryRecord, MemorySummary, MemoryType
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import DeleteParams, ListParams, RetrieveParams, StoreParams

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )
except ImportError as cause:
    raise not_installed("langgraph", cause) from cause

PAGE = 200
CALLS_AT_ONCE = 8

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class _Held:
    """An item and its memory; `ends_at`: its expiry, None if unknown."""

    memory_id: UUID
    kept: StoredItem
    score: float | None = None
    ends_at: datetime | None = None

    def is_worn(self, now: datetime) -> bool:
        if self.kept.ttl is None:
            return False
        return self.ends_at is None or self.ends_at - now < timedelta(minutes=self.kept.ttl)

    def item(self) -> Item:
        return Item(**self._told())

    def found(self) -> SearchItem:
        return SearchItem(**self._told(), score=self.score)

    def _told(self) -> dict[str, Any]:
        kept = self.kept
        return {
            "namespace": tuple(kept.namespace),
            "key": kept.key,
            "value": kept.value,
            "created_at": datetime.fromisoformat(kept.created_at),
            "updated_at": kept.changed_at,
        }


class AgentCoreStore(BaseStore):
    """A store for `compile(store=...)` over any `MemoryApi`, within `scope`.

    `fields` are the paths of a value to index if a put names none; default: all of it. `ttl` is LangGraph's
    own configuration. The sync methods require that the memory's event loop runs in another thread. `loop` is
    that loop; default: the one running now.

    Over a memory that fails open, reads are empty while it is unavailable. A put always raises, since no
    other copy of the value exists.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: MemoryApi,
        scope: MemoryScope | None = None,
        *,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.ttl_config = ttl
        self._memory = memory
        self._scope = (scope or MemoryScope()).filters()
        self._fields = fields
        self._loop = OwnLoop(loop)
        self._writing = asyncio.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Returns results in order. Reads see the state before the batch; the last put wins."""
        return self._loop.waited(self._batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs `batch` asynchronously."""
        return await self._loop.awaited(self._batch(list(ops)))

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        results = await _each(self._read, ops)
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if puts:
            async with self._writing:
                await self._write(list(puts.values()))
        return results

    async def _read(self, op: Op) -> Result:
        until = deadline(self._memory)
        match op:
            case GetOp():
                held = await if_answered(self._memory, "a get of LangGraph's store", [], self._get(op))
                await self._renew(held if op.refresh_ttl else [], until)
                return held[0].item() if held else None
            case SearchOp():
                held = await if_answered(self._memory, "a search of LangGraph's store", [], self._search(op))
                await self._renew(held if op.refresh_ttl else [], until)
                return [each.found() for each in held]
            case ListNamespacesOp():
                return await if_answered(self._memory, "a list of LangGraph's namespaces", [], self._namespaces(op))
            case PutOp():
                return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    async def _get(self, op: GetOp) -> list[_Held]:
        items = await self._held(op.namespace, op.key)
        return [max(items, key=lambda each: each.kept.changed_at)] if items else []

    async def _search(self, op: SearchOp) -> list[_Held]:
        wanted = op.offset + op.limit
        taken: dict[tuple[Namespace, str], _Held] = {}
        async for each in self._candidates(op, wanted):
            before = taken.get(each.kept.identity, each)
            newer = before is each or before.kept.changed_at < each.kept.changed_at
            if newer and matches_filter(each.kept.value, op.filter):
                taken[each.kept.identity] = replace(each, score=before.score)
            if len(taken) >= wanted:
                break
        return list(taken.values())[op.offset : wanted]

    async def _candidates(self, op: SearchOp, wanted: int) -> AsyncIterator[_Held]:
        if (asked := searchable(op.query or "")) and wanted > 0:
            found = await self._memory.retrieve(
                RetrieveParams(
                    query=asked,
                    k=MAX_K if op.filter else min(MAX_K, wanted),
                    min_fit=0.0,
                    distinct=False,
                    tags=[tag_of(op.namespace_prefix, searched=True)],
                    **self._scope,
                )
            )
            must_be_asked(found.receipt)
            for each in _items(found.memories):
                yield each
        async for each in self._under(op.namespace_prefix):
            yield each

    async def _under(self, prefix: Namespace) -> AsyncIterator[_Held]:
        async for record in listed(self._memory, tags=[tag_of(prefix)], descending=False, limit=PAGE, **self._scope):
            for each in _items([record]):
                yield each

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found = {tuple(each.kept.namespace) async for each in self._under(())}
        matching = {
            each[: op.max_depth]
            for each in found
            if all(
                matches_namespace(each, condition.path, condition.match_type) for condition in op.match_conditions or ()
            )
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    async def _held(self, namespace: Namespace, key: str) -> list[_Held]:
        """Returns the memories of one item: several after concurrent first puts. The first by id is kept."""
        page = await self._memory.list(
            ListParams(session_id=session_of(namespace, key), tags=[tag_of(())], consistent=True, **self._scope)
        )
        return sorted(_items(page.memories), key=lambda each: each.memory_id)

    async def _write(self, puts: Sequence[PutOp]) -> None:
        for op in puts:
            _must_be_json(op)
        deletions = [op for op in puts if op.value is None]
        gone = await _each(lambda op: self._held(op.namespace, op.key), deletions)
        await self._delete([each for items in gone for each in items])
        changed = await _each(self._put, [op for op in puts if op.value is not None])
        fresh = [each for each in changed if each is not None]
        await store_all(self._memory, [stored for _, stored in fresh])
        await _each(self._settle, [op for op, _ in fresh])

    async def _settle(self, op: PutOp) -> None:
        """Merges the memories of concurrent first puts into one; the last put to get here wins."""
        items = await self._held(op.namespace, op.key)
        if len(items) > 1:
            await self._put(op, items)

    async def _put(self, op: PutOp, items: Sequence[_Held] | None = None) -> tuple[PutOp, StoreParams] | None:
        if items is None:
            items = await self._held(op.namespace, op.key)
        now = datetime.now(UTC).isoformat()
        created_at = min((each.kept.created_at for each in items), default=now)
        kept = StoredItem(list(op.namespace), op.key, dict(op.value or {}), created_at, now, op.ttl)
        fields = kept.memory(self._text(op))
        for each in items[:1]:
            try:
                await self._memory.update(UpdateParams(memory_id=each.memory_id, updates=Updates(**fields)))
            except NotFound:
                return await self._put(op)
            await self._delete(items[1:])
            return None
        return op, StoreParams(
            **fields,
            memory_type=MemoryType.SEMANTIC,
            session_id=session_of(op.namespace, op.key),
            force=True,
            supersede=False,
            idempotency_key=f"{METADATA_KEY}:{uuid.uuid4()}",
            **self._scope,
        )

    async def _delete(self, items: Sequence[_Held]) -> None:
        if items:
            await self._memory.delete(DeleteParams(memory_ids=[each.memory_id for each in items]))

    async def _renew(self, items: Sequence[_Held], until: float | None) -> None:
        now = datetime.now(UTC)

        async def renewed(each: _Held) -> None:
            with suppress(NotFound):
                await self._memory.update(UpdateParams(memory_id=each.memory_id, updates=Updates(renew=True)))

        worn = [each for each in items if each.is_worn(now)]
        await if_answered(self._memory, "a renewal in LangGraph's store", [], _each(renewed, worn), until=until)

    def _text(self, op: PutOp) -> str:
        if op.index is False:
            return ""
        lines: list[str] = []
        for path in self._fields if op.index is None else op.index:
            lines += lines_of(dict(op.value or {})) if path == "$" else get_text_at_path(op.value, path)
        return searched_text(lines)


async def _each(do: Callable[[ItemT], Awaitable[ResultT]], items: Sequence[ItemT]) -> list[ResultT]:
    results: list[ResultT] = []
    for start in range(0, len(items), CALLS_AT_ONCE):
        results += await asyncio.gather(*(do(item) for item in items[start : start + CALLS_AT_ONCE]))
    return results


def _must_be_json(op: PutOp) -> None:
    try:
        json.dumps(op.value)
    except (TypeError, ValueError) as cause:
        place = "/".join((*op.namespace, op.key))
        raise TypeError(f"The value to put at {place!r} has no form in JSON: {cause}.") from cause


def _items(memories: Iterable[MemoryRecord | MemorySummary]) -> list[_Held]:
    """Skips memories that have an item's tag but no item."""
    items: list[_Held] = []
    for memory in memories:
        kept = parse_item(memory.metadata)
        if kept is not None:
            score = memory.score if isinstance(memory, MemorySummary) else None
            ends_at = memory.expires_at if isinstance(memory, MemoryRecord) else None
            items.append(_Held(memory.memory_id, kept, score, ends_at))
    return items
