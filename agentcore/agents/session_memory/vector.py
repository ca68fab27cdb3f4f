"""Session memory in the service, verbatim or compressed."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote, unquote
from uuid import UUID

from agentcore.agents.failing_open import if_answered
from agentcore.agents.scope import SESSION_MESSAGES
from agentcore.agents.session_memory.memory import (
    DEFAULT_RETRIEVE,
    DEFAULT_SUMMARIZE,
    SessionParts,
    VerbatimSessionMemory,
)
from agentcore.agents.session_memory.messages import (
    DEFAULT_PAGE_SIZE,
    MAX_LIMIT,
    QUOTED_ROLE,
    Capability,
    MemoryUsage,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
    checked_session_id,
    completed,
    session_key,
)
from agentcore.agents.session_memory.selection import (
    LEAST_SIMILARITY,
    Place,
    checked_limit,
    first_places,
    lies_behind,
    place_of,
    said_words,
)
from agentcore.errors import ConfigurationError, Conflict, InvalidParams, NotFound
from agentcore.memory.api import MemoryApi
from agentcore.memory.keys import encode_segment
from agentcore.memory.lexical import terms
from agentcore.memory.models import MemoryRecord, MemorySummary
from agentcore.memory.params.memories import (
    CountParams,
    DeleteParams,
    GetContextParams,
    GetParams,
    ListParams,
    RetrieveParams,
    StoreParams,
)

NAMESPACE = SESSION_MESSAGES
_TICK = timedelta(microseconds=1)


class VectorSessionMemory(VerbatimSessionMemory):
    """An agent's sessions as memories in a namespace of their own, never deduplicated, merged or superseded.

    Over a memory that fails open, reads are empty; listing raises, since an empty list means the end.
    """

    def __init__(self, memory: MemoryApi, *, namespace: str = NAMESPACE, ttl_seconds: int | None = None) -> None:
        self._memory = memory
        self._namespace = namespace
        self._ttl_seconds = ttl_seconds

    @classmethod
    def over(cls, parts: SessionParts) -> VectorSessionMemory:
        if parts.memory is None:
            raise ConfigurationError(["Session memory searched by meaning needs a memory (any MemoryApi)."])
        return cls(parts.memory)

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        kept = completed(message, metadata, now=datetime.now(UTC))
        key = session_key(session_id)
        given: dict[str, Any] = {} if self._ttl_seconds is None else {"ttl_seconds": self._ttl_seconds}
        params = StoreParams.model_validate(
            {
                "content": kept.content,
                "session_id": key,
                "namespace": self._namespace,
                "speaker": kept.name or kept.role,
                "timestamp": kept.timestamp,
                "importance": kept.importance,
                "tags": kept.tags,
                "external_id": kept.message_id,
                "force": True,
                "supersede": False,
                "metadata": {"role": kept.role, "name": kept.name, "given": kept.metadata, **_shortened(session_id)},
                **given,
            }
        )
        # An idempotency key outlives a message that was cleared: then the next key is used.
        times_gone = 0
        while True:
            known = await self._known(
                params.model_copy(
                    update={"idempotency_key": _digest(self._namespace, key, kept.message_id or "", times_gone)}
                )
            )
            held = kept if known is None else await self._held(known)
            if held is not None:
                return held
            times_gone += 1

    async def _known(self, params: StoreParams) -> UUID | None:
        try:
            answer = await self._memory.store(params)
        except Conflict as error:  # the id exists, with another text or time
            return UUID(error.data["memory_id"])
        return answer.memory_id if answer.status == "existing" else None

    async def _held(self, memory_id: UUID) -> SessionMessage | None:
        try:
            found = await self._memory.get(GetParams(memory_id=memory_id, consistent=True))
        except NotFound:
            return None
        return _message(found.memory)

    async def _records(self, **filters: Any) -> AsyncIterator[MemoryRecord]:
        cursor = None
        while True:
            page = await self._memory.list(ListParams(limit=MAX_LIMIT, cursor=cursor, **filters))
            for record in page.memories:
                yield record
            cursor = page.next_cursor
            if cursor is None:
                return

    async def newest(self, session_id: str, options: RetrieveOptions) -> list[SessionMessage]:
        listing = self._memory.list(ListParams(limit=options.limit, **self._filters(session_id, options)))
        page = await if_answered(self._memory, "a session's messages", None, listing)
        return [] if page is None else [_message(record) for record in page.memories]

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]:
        asked = options.asking(query)
        # A single session has too few messages to calibrate abstention: min_fit is 0.
        found = await self._memory.retrieve(
            RetrieveParams(query=query, k=asked.limit, min_fit=0.0, distinct=False, **self._filters(session_id, asked))
        )
        words = frozenset(terms(query))
        return [
            ScoredMessage(message=message, score=each.score or 0.0)
            for each, message in ((each, _message(each)) for each in found.memories)
            if (each.similarity or 0.0) >= LEAST_SIMILARITY or words & said_words(message)
        ]

    async def clear(self, session_id: str) -> int:
        count, complete = 0, False
        while not complete:
            deleted = await self._memory.delete(
                DeleteParams(session_id=session_key(session_id), namespace=self._namespace, confirm=True)
            )
            count, complete = count + deleted.deleted_count, deleted.complete
        return count

    def capabilities(self) -> tuple[Capability, ...]:
        return (
            "basic_retrieval",
            "semantic_search",
            "summarization",
            "persistence",
            "ttl",
            "importance_weighting",
            "time_travel",
        )

    async def session_count(self, session_id: str) -> int:
        counted = await self._memory.count(CountParams(session_id=session_key(session_id), namespace=self._namespace))
        return counted.count

    async def sessions(
        self, limit: int = DEFAULT_PAGE_SIZE, after: SessionListing | None = None
    ) -> list[SessionListing]:
        """Lists sessions; reads messages from `after` on until enough sessions are found."""
        behind = place_of(after)
        newest = await self._newest_of_each(checked_limit(limit), behind)
        return [
            SessionListing(session_id=session_id, newest=moment, message_count=await self.session_count(session_id))
            for moment, session_id in first_places(newest, limit, behind)
        ]

    async def _newest_of_each(self, limit: int, after: Place | None) -> dict[str, datetime]:
        """Returns newest timestamps of `limit` sessions, and of ties with the last one."""
        until = {} if after is None else {"before": after[0] + _TICK}
        found: dict[str, datetime] = {}
        seen = set[str]()
        last: datetime | None = None
        async for record in self._records(namespace=self._namespace, **until):
            if len(found) >= limit and record.timestamp != last:
                break
            session_id = _session_id(record)
            if session_id is None or session_id in seen:
                continue
            seen.add(session_id)
            if await self._is_behind((record.timestamp, session_id), after):
                last = found[session_id] = record.timestamp
        return found

    async def _is_behind(self, place: Place, after: Place | None) -> bool:
        if after is None:
            return True
        if not lies_behind(place, after):
            return False
        later = await self._memory.count(
            CountParams(session_id=session_key(place[1]), namespace=self._namespace, after=after[0] + _TICK)
        )
        return not later.count

    async def usage(self) -> MemoryUsage:
        counted = await self._memory.count(CountParams(namespace=self._namespace))
        return MemoryUsage(messages=counted.count, sessions=None, limits={"ttl_seconds": self._ttl_seconds or 0})

    def _filters(self, session_id: str, options: RetrieveOptions) -> dict[str, Any]:
        within = options.time_range
        given = {
            "session_id": session_key(session_id),
            "namespace": self._namespace,
            "tags": options.tags or None,
            "min_importance": options.importance_threshold,
            "after": None if within is None else within.start,
            "before": None if within is None else within.end,
        }
        return {name: value for name, value in given.items() if value is not None}


def _message(memory: MemoryRecord | MemorySummary) -> SessionMessage:
    return SessionMessage.model_validate(
        {
            "content": memory.content,
            "role": memory.metadata.get("role", "user"),
            "name": memory.metadata.get("name"),
            "timestamp": memory.timestamp,
            "message_id": memory.external_id,
            # The database stores single precision; the given value has fewer digits.
            "importance": round(memory.relevance_score, 6),
            "tags": memory.tags,
            "metadata": memory.metadata.get("given", {}),
        }
    )


def _shortened(session_id: str) -> dict[str, str]:
    told = unquote(session_key(session_id)) == session_id
    return {} if told else {"session": quote(session_id, safe="")}


def _session_id(record: MemoryRecord) -> str | None:
    session_id = unquote(str(record.metadata.get("session") or record.session_id or ""))
    return session_id if encode_segment(session_id) == record.session_id else None


def _digest(*parts: str | int) -> str:
    return f"session:{hashlib.sha256(chr(31).join(map(str, parts)).encode()).hexdigest()}"


CONTEXT_TOKENS = 2_000
WHOLE_SESSION = "What was said, decided and left open so far?"


class CompressedContextProvider(Protocol):
    """Any store that compresses what it keeps."""

    async def store_context(
        self, session_id: str, messages: Sequence[SessionMessage], metadata: Mapping[str, Any]
    ) -> None: ...

    async def retrieve_context(self, session_id: str, query: str, limit: int) -> list[SessionMessage]: ...

    async def summarize_context(self, session_id: str, options: SummarizeOptions) -> str: ...

    async def clear_context(self, session_id: str) -> None: ...


class MemoryContextProvider:
    """A provider over any `MemoryApi`; `across_sessions`: a context may include all sessions."""

    def __init__(
        self,
        memory: MemoryApi,
        *,
        max_tokens: int = CONTEXT_TOKENS,
        namespace: str = NAMESPACE,
        across_sessions: bool = False,
    ) -> None:
        self._memory = memory
        self._messages = VectorSessionMemory(memory, namespace=namespace)
        self._namespace = namespace
        self._max_tokens = max_tokens
        self._across_sessions = across_sessions

    async def store_context(
        self, session_id: str, messages: Sequence[SessionMessage], metadata: Mapping[str, Any]
    ) -> None:
        for message in messages:
            await self._messages.store(session_id, message, metadata)

    async def retrieve_context(self, session_id: str, query: str, limit: int) -> list[SessionMessage]:
        """Returns one message of quoted data within the token budget, or none. Ignores `limit`."""
        within = {} if self._across_sessions else {"session_id": session_key(session_id)}
        built = await self._memory.get_context(
            GetContextParams(query=query, max_tokens=self._max_tokens, namespace=self._namespace, min_fit=0.0, **within)
        )
        if not built.context.strip():
            return []
        return [
            SessionMessage(
                role=QUOTED_ROLE,
                content=built.context,
                metadata={"token_count": built.token_count, "memory_ids": [str(each) for each in built.memory_ids]},
            )
        ]

    async def summarize_context(self, session_id: str, options: SummarizeOptions) -> str:
        return (await self._messages.summarize(session_id, options)).content

    async def clear_context(self, session_id: str) -> None:
        await self._messages.clear(session_id)


class EndlessSessionMemory:
    """Returns compressed context, not the original messages."""

    def __init__(self, provider: CompressedContextProvider) -> None:
        self._provider = provider

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        kept = completed(message, metadata, now=datetime.now(UTC))
        await self._provider.store_context(checked_session_id(session_id), [kept], metadata or {})
        return kept

    async def retrieve(self, session_id: str, options: RetrieveOptions = DEFAULT_RETRIEVE) -> list[SessionMessage]:
        """Returns the compressed context. Raises InvalidParams for filters, which no provider supports."""
        refused = options.time_range, options.importance_threshold, options.tags
        if any(each not in (None, []) for each in refused):
            raise InvalidParams("A compressed session has no time range, importance or tags to choose by.")
        query = options.query or WHOLE_SESSION
        found = await self._provider.retrieve_context(checked_session_id(session_id), query, options.limit)
        return found[: options.limit]

    async def summarize(self, session_id: str, options: SummarizeOptions = DEFAULT_SUMMARIZE) -> SessionSummary:
        """Returns a summary; `message_count` is None, since the provider does not report it."""
        content = await self._provider.summarize_context(checked_session_id(session_id), options)
        return SessionSummary(content=content, message_count=None, style=options.style)

    async def clear(self, session_id: str) -> None:
        await self._provider.clear_context(checked_session_id(session_id))

    def capabilities(self) -> tuple[Capability, ...]:
        return ("basic_retrieval", "semantic_search", "summarization", "persistence")
