"""Memory as LangGraph's store: each item is a memory of the agent, found by its words and by its meaning.

Values come back exactly as they were put. A put changes its memory, so that earlier values stay readable in
the memory's history; what has no time to live is pinned.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

from agentcore.agents.holdable import searchable
from agentcore.agents.scope import MemoryScope
from agentcore.errors import NotFound
from agentcore.integrations.extras import not_installed
from agentcore.integrations.langgraph_matching import Namespace, passes, under
from agentcore.integrations.own_loop import OwnLoop
from agentcore.integrations.store_all import store_all
from agentcore.memory.api import MemoryApi
from agentcore.memory.change_params import UpdateParams, Updates
from agentcore.memory.models import MAX_ID_CHARS, MAX_TEXT_CHARS, MemoryRecord, MemoryType
from agentcore.memory.params import (
    MAX_K,
    DeleteParams,
    ListParams,
    RetrieveParams,
    StoreParams,
)

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

KEPT = "langgraph"
NOT_SEARCHED = "(not searched)"
DEEPEST = 31
PAGE = 200
CALLS_AT_ONCE = 8
# An item lives so much longer than asked, and a read renews its life only once so much of it is over: else
# each read were a write.
TTL_SLACK = 0.05

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class _Kept:
    """An item as its memory's metadata holds it; times in ISO 8601, `ttl` in minutes."""

    namespace: Sequence[str]
    key: str
    value: dict[str, Any]
    created_at: str
    updated_at: str
    touched_at: str
    ttl: float | None

    @property
    def place(self) -> tuple[Namespace, str]:
        return tuple(self.namespace), self.key

    def metadata(self) -> dict[str, Any]:
        """As one text, which is given back to the letter."""
        return {KEPT: json.dumps(asdict(self))}

    def worn(self, now: datetime) -> bool:
        """Whether enough of its time to live is over for a read to renew it."""
        touched = datetime.fromisoformat(self.touched_at)
        return self.ttl is not None and (now - touched).total_seconds() >= self.ttl * 60 * TTL_SLACK

    def item(self) -> Item:
        return Item(**self._told())

    def found(self, score: float | None) -> SearchItem:
        return SearchItem(**self._told(), score=score)

    def _told(self) -> dict[str, Any]:
        return {
            "namespace": tuple(self.namespace), "key": self.key, "value": self.value,
            "created_at": datetime.fromisoformat(self.created_at),
            "updated_at": datetime.fromisoformat(self.updated_at),
        }


class AgentCoreStore(BaseStore):
    """A store for `compile(store=...)` over any `MemoryApi`, within `scope`.

    `fields` are the paths of a value that are searched where a put does not say; absent: all of it. `ttl` is
    LangGraph's own configuration. The sync methods work wherever the memory's event loop runs in another
    thread; `loop` names that loop, absent: the one running now.
    """

    supports_ttl = True

    def __init__(
        self, memory: MemoryApi, scope: MemoryScope | None = None, *, fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None, loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.ttl_config = ttl
        self._memory = memory
        self._scope = (scope or MemoryScope()).filters()
        self._fields = fields
        self._loop = OwnLoop(loop)
        self._writing = asyncio.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results in the order of the operations. Reads see what was there before; the last put holds."""
        return self._loop.waited(self._batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, awaited."""
        return await self._loop.awaited(self._batch(list(ops)))

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        results = await _each(self._read, ops)
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if puts:
            async with self._writing:
                await self._write(list(puts.values()))
        return results

    async def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await self._get(op)
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._namespaces(op)
            case PutOp():
                return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    async def _get(self, op: GetOp) -> Item | None:
        records = await self._records(op.namespace, op.key)
        if not records:
            return None
        await self._touch([records[0]] if op.refresh_ttl else [])
        return records[0][1].item()

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        """What the query finds, best first, then the rest in the order it was first put."""
        wanted = op.offset + op.limit
        taken: dict[tuple[Namespace, str], tuple[UUID, _Kept, float | None]] = {}
        async for memory_id, kept, score in self._candidates(op, wanted):
            if kept.place not in taken and passes(kept.value, op.filter):
                taken[kept.place] = memory_id, kept, score
            if len(taken) >= wanted:
                break
        page = list(taken.values())[op.offset:wanted]
        await self._touch([(memory_id, kept) for memory_id, kept, _ in page] if op.refresh_ttl else [])
        return [kept.found(score) for _, kept, score in page]

    async def _candidates(
        self, op: SearchOp, wanted: int
    ) -> AsyncIterator[tuple[UUID, _Kept, float | None]]:
        if (asked := searchable(op.query or "")) and wanted > 0:
            found = await self._memory.retrieve(RetrieveParams(
                query=asked, k=MAX_K if op.filter else min(MAX_K, wanted), min_fit=0.0,
                distinct=False, tags=[_tag(op.namespace_prefix, searched=True)], **self._scope))
            for memory in found.memories:
                if (kept := _kept(memory.metadata)) is not None:
                    yield memory.memory_id, kept, memory.score
        async for memory_id, kept in self._under(op.namespace_prefix):
            yield memory_id, kept, None

    async def _under(self, prefix: Namespace) -> AsyncIterator[tuple[UUID, _Kept]]:
        """All items below a namespace, as they were first put."""
        cursor: str | None = None
        while True:
            page = await self._memory.list(ListParams(
                tags=[_tag(prefix)], descending=False, limit=PAGE, cursor=cursor, **self._scope))
            for each in _items(page.memories):
                yield each
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found = {tuple(kept.namespace) async for _, kept in self._under(())}
        matching = {each[:op.max_depth] for each in found if all(
            under(each, condition.path, condition.match_type) for condition in op.match_conditions or ())}
        return sorted(matching)[op.offset:op.offset + op.limit]

    async def _records(self, namespace: Namespace, key: str) -> list[tuple[UUID, _Kept]]:
        """The memory of one item; of several, which only puts at the same time make, the first holds."""
        page = await self._memory.list(ListParams(
            session_id=_name(namespace, key), tags=[_tag(())], descending=False, **self._scope))
        return _items(page.memories)

    async def _write(self, puts: Sequence[PutOp]) -> None:
        held = await _each(lambda op: self._records(op.namespace, op.key), puts)
        now = datetime.now(UTC).isoformat()
        surplus = [memory_id for op, records in zip(puts, held, strict=True)
                   for memory_id, _ in records[0 if op.value is None else 1:]]
        fresh = await _each(
            lambda put: self._changed(*put, now), list(zip(puts, [each[:1] for each in held], strict=True)))
        new = [each for each in fresh if each is not None]
        await store_all(self._memory, new)
        if surplus:
            await self._memory.delete(DeleteParams(memory_ids=surplus))

    async def _changed(
        self, op: PutOp, held: Sequence[tuple[UUID, _Kept]], now: str
    ) -> StoreParams | None:
        """Change the memory of an item; what to store where it has none."""
        if op.value is None:
            return None
        created_at = held[0][1].created_at if held else now
        kept = _Kept(list(op.namespace), op.key, dict(op.value), created_at, now, now, op.ttl)
        said = self._text(op)
        fields: dict[str, Any] = {
            "content": said or NOT_SEARCHED, "tags": _tags(op.namespace, searched=bool(said)),
            "metadata": kept.metadata(), "pinned": op.ttl is None, "ttl_seconds": _seconds(op.ttl),
        }
        for memory_id, _ in held:
            try:
                await self._memory.update(UpdateParams(memory_id=memory_id, updates=Updates(**fields)))
            except NotFound:
                break
            return None
        return StoreParams(
            **fields, memory_type=MemoryType.SEMANTIC, session_id=_name(op.namespace, op.key), force=True,
            supersede=False, **self._scope)

    async def _touch(self, items: Sequence[tuple[UUID, _Kept]]) -> None:
        """Let what was read live its time from now on."""
        now = datetime.now(UTC)

        async def renewed(each: tuple[UUID, _Kept]) -> None:
            memory_id, kept = each
            updates = Updates(ttl_seconds=_seconds(kept.ttl),
                              metadata=replace(kept, touched_at=now.isoformat()).metadata())
            try:
                await self._memory.update(UpdateParams(memory_id=memory_id, updates=updates))
            except NotFound:
                return

        await _each(renewed, [each for each in items if each[1].worn(now)])

    def _text(self, op: PutOp) -> str:
        """What an item is searched by; empty where it is not to be."""
        if op.index is False:
            return ""
        texts: list[str] = []
        for path in self._fields if op.index is None else op.index:
            texts += _lines(dict(op.value or {})) if path == "$" else get_text_at_path(op.value, path)
        said = "\n".join(texts).replace("\x00", " ").encode(errors="replace").decode()[:MAX_TEXT_CHARS]
        return said if said.strip() else ""


async def _each(do: Callable[[ItemT], Awaitable[ResultT]], items: Sequence[ItemT]) -> list[ResultT]:
    """What comes of each, in order; a few at a time."""
    results: list[ResultT] = []
    for start in range(0, len(items), CALLS_AT_ONCE):
        results += await asyncio.gather(*(do(item) for item in items[start:start + CALLS_AT_ONCE]))
    return results


def _items(records: Iterable[MemoryRecord]) -> list[tuple[UUID, _Kept]]:
    read = ((record.memory_id, _kept(record.metadata)) for record in records)
    return [(memory_id, kept) for memory_id, kept in read if kept is not None]


def _kept(metadata: dict[str, Any]) -> _Kept | None:
    """The item in a memory; None in one that somebody else gave an item's tag."""
    text = metadata.get(KEPT)
    return _Kept(**json.loads(text)) if isinstance(text, str) else None


def _lines(value: Any, name: str = "") -> list[str]:
    """A value as lines of text, each leaf with its name."""
    match value:
        case dict():
            return [line for key, each in value.items()
                    for line in _lines(each, f"{name}.{key}" if name else str(key))]
        case list() | tuple():
            return [line for each in value for line in _lines(each, name)]
        case None:
            return []
    return [f"{name}: {value}"]


def _seconds(ttl: float | None) -> int | None:
    return None if ttl is None else max(1, math.ceil(ttl * 60 * (1 + TTL_SLACK)))


def _tags(namespace: Namespace, *, searched: bool) -> list[str]:
    """One for each namespace it lies below. Raises ValueError where those are too many."""
    if len(namespace) > DEEPEST:
        raise ValueError(f"a namespace of {len(namespace)} labels is too deep; {DEEPEST} is the most")
    prefixes = [namespace[:depth] for depth in range(len(namespace) + 1)]
    return [_tag(prefix, searched=each) for each in ((False, True) if searched else (False,))
            for prefix in prefixes]


def _tag(prefix: Namespace, *, searched: bool = False) -> str:
    return _bounded(f"{KEPT}{'-searched' if searched else ''}:", _path(prefix))


def _name(namespace: Namespace, key: str) -> str:
    """What only this item's memory has as its session: by that it is found at once."""
    return _bounded(f"{KEPT}:", f"{_path(namespace)}?{_quoted(key)}")


def _path(namespace: Namespace) -> str:
    return "".join(f"/{_quoted(label)}" for label in namespace) or "/"


def _quoted(text: str) -> str:
    return quote(text, safe=" ", errors="surrogatepass")


def _bounded(kind: str, text: str) -> str:
    if len(kind) + len(text) <= MAX_ID_CHARS:
        return kind + text
    return f"{kind}#{hashlib.sha256(text.encode()).hexdigest()}"
