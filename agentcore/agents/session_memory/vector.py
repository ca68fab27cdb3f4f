"""Session memory kept by the service: searched by meaning and words, durable, one memory a message."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agentcore.agents.failing_open import if_answered
from agentcore.agents.session_memory.memory import BRIEF, NEWEST, SessionParts
from agentcore.agents.session_memory.messages import (
    MAX_LIMIT,
    Capability,
    MemoryUsage,
    RetrieveOptions,
    ScoredMessage,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
    completed,
    session_key,
)
from agentcore.agents.session_memory.selection import said_words
from agentcore.agents.session_memory.summary import summary_of
from agentcore.errors import ConfigurationError, Conflict
from agentcore.memory.api import MemoryApi
from agentcore.memory.lexical import terms
from agentcore.memory.models import MemoryRecord, MemorySummary
from agentcore.memory.params import (
    CountParams,
    DeleteParams,
    ListParams,
    RetrieveParams,
    StoreParams,
)

NAMESPACE = "session_messages"
# The cosine from which on a message fits that has no word of the query.
LEAST_SIMILARITY = 0.15


class VectorSessionMemory:
    """An agent's sessions as memories of its own, over any `MemoryApi`, in a namespace of their own.

    Nothing is passed over, merged or superseded: a conversation stays as it was said. `ttl_seconds` counts
    from storing on; None: as the episodic layer has it, whose capacity is the only bound of their number.
    Over a memory that fails open what cannot be read is empty; storing, clearing and counting raise.
    """

    def __init__(
        self, memory: MemoryApi, *, namespace: str = NAMESPACE, ttl_seconds: int | None = None
    ) -> None:
        self._memory = memory
        self._namespace = namespace
        self._ttl_seconds = ttl_seconds

    @classmethod
    def over(cls, parts: SessionParts) -> VectorSessionMemory:
        """Over the agent's memory."""
        if parts.memory is None:
            raise ConfigurationError(["Session memory searched by meaning needs a memory (any MemoryApi)."])
        return cls(parts.memory)

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        kept = completed(message, metadata, now=datetime.now(UTC))
        key = session_key(session_id)
        given: dict[str, Any] = {} if self._ttl_seconds is None else {"ttl_seconds": self._ttl_seconds}
        params = StoreParams.model_validate({
            "content": kept.content, "session_id": key, "namespace": self._namespace,
            "speaker": kept.name or kept.role, "timestamp": kept.timestamp, "importance": kept.importance,
            "tags": kept.tags, "external_id": kept.message_id, "force": True, "supersede": False,
            "metadata": {"role": kept.role, "name": kept.name, "given": kept.metadata},
            "idempotency_key": _digest(self._namespace, key, kept.message_id or ""), **given})
        # The key is remembered also where the session was cleared since: then the message is stored anew.
        if not await self._stored(params):
            held = await self._held(session_id, kept.message_id)
            if held is not None:
                return held
            await self._memory.store(params.model_copy(update={"idempotency_key": None}))
        return kept

    async def _stored(self, params: StoreParams) -> bool:
        try:
            return (await self._memory.store(params)).status == "stored"
        except Conflict:  # the id is known, with other words or of another time
            return False

    async def _held(self, session_id: str, message_id: str | None) -> SessionMessage | None:
        cursor, filters = None, self._filters(session_id, NEWEST)
        while True:
            page = await self._memory.list(ListParams(limit=MAX_LIMIT, cursor=cursor, **filters))
            for record in page.memories:
                if record.external_id == message_id:
                    return _message(record)
            cursor = page.next_cursor
            if cursor is None:
                return None

    async def retrieve(self, session_id: str, options: RetrieveOptions = NEWEST) -> list[SessionMessage]:
        if options.query is not None:
            found = await self.retrieve_with_scores(session_id, options.query, options)
            return [each.message for each in found]
        return await if_answered(
            self._memory, "a session's messages", [], self._newest(session_id, options))

    async def _newest(self, session_id: str, options: RetrieveOptions) -> list[SessionMessage]:
        page = await self._memory.list(ListParams(limit=options.limit, **self._filters(session_id, options)))
        return [_message(record) for record in page.memories]

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = NEWEST
    ) -> list[ScoredMessage]:
        asked = options.asking(query)
        # Of a session alone, few as its messages are, the service cannot say that nothing fits.
        found = await self._memory.retrieve(RetrieveParams(
            query=query, k=asked.limit, min_fit=0.0, distinct=False, **self._filters(session_id, asked)))
        words = frozenset(terms(query))
        return [
            ScoredMessage(message=message, score=each.score or 0.0)
            for each, message in ((each, _message(each)) for each in found.memories)
            if (each.similarity or 0.0) >= LEAST_SIMILARITY or words & said_words(message)]

    async def summarize(self, session_id: str, options: SummarizeOptions = BRIEF) -> SessionSummary:
        return summary_of(await self.retrieve(session_id, RetrieveOptions(limit=MAX_LIMIT)), options)

    async def clear(self, session_id: str) -> int:
        count, complete = 0, False
        while not complete:
            deleted = await self._memory.delete(DeleteParams(
                session_id=session_key(session_id), namespace=self._namespace, confirm=True))
            count, complete = count + deleted.deleted_count, deleted.complete
        return count

    def capabilities(self) -> tuple[Capability, ...]:
        return (
            "basic_retrieval", "semantic_search", "summarization", "persistence", "ttl",
            "importance_weighting", "time_travel")

    async def session_count(self, session_id: str) -> int:
        counted = await self._memory.count(CountParams(
            session_id=session_key(session_id), namespace=self._namespace))
        return counted.count

    async def usage(self) -> MemoryUsage:
        counted = await self._memory.count(CountParams(namespace=self._namespace))
        return MemoryUsage(
            messages=counted.count, sessions=None, limits={"ttl_seconds": self._ttl_seconds or 0})

    def _filters(self, session_id: str, options: RetrieveOptions) -> dict[str, Any]:
        within = options.time_range
        given = {
            "session_id": session_key(session_id), "namespace": self._namespace, "tags": options.tags or None,
            "min_importance": options.importance_threshold,
            "after": None if within is None else within.start,
            "before": None if within is None else within.end,
        }
        return {name: value for name, value in given.items() if value is not None}


def _message(memory: MemoryRecord | MemorySummary) -> SessionMessage:
    return SessionMessage.model_validate({
        "content": memory.content, "role": memory.metadata.get("role", "user"),
        "name": memory.metadata.get("name"), "timestamp": memory.timestamp, "message_id": memory.external_id,
        # The database keeps single precision; what was given has fewer digits.
        "importance": round(memory.relevance_score, 6), "tags": memory.tags,
        "metadata": memory.metadata.get("given", {})})


def _digest(*parts: str) -> str:
    return f"session:{hashlib.sha256(chr(31).join(parts).encode()).hexdigest()}"
