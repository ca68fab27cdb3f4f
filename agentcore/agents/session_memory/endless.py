"""Sessions of unlimited length (seed 004's `EndlessMemory`), compressed by a provider within a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from agentcore.agents.session_memory.memory import BRIEF, NEWEST
from agentcore.agents.session_memory.messages import (
    QUOTED_ROLE,
    Capability,
    RetrieveOptions,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
    checked_session_id,
    completed,
    session_key,
)
from agentcore.agents.session_memory.vector import NAMESPACE, VectorSessionMemory
from agentcore.errors import InvalidParams
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.memories import GetContextParams

CONTEXT_TOKENS = 2_000
WHOLE_SESSION = "What was said, decided and left open so far?"


class CompressedContextProvider(Protocol):
    """Stores messages and returns a compressed context: any compressing store can implement it."""

    async def store_context(
        self, session_id: str, messages: Sequence[SessionMessage], metadata: Mapping[str, Any]
    ) -> None:
        """Stores the messages."""
        ...

    async def retrieve_context(self, session_id: str, query: str, limit: int) -> list[SessionMessage]:
        """Returns the compressed context for the query, in at most `limit` messages."""
        ...

    async def summarize_context(self, session_id: str, options: SummarizeOptions) -> str:
        """Returns a summary of the session."""
        ...

    async def clear_context(self, session_id: str) -> None:
        """Deletes the session permanently."""
        ...


class MemoryContextProvider:
    """A provider over any `MemoryApi`: messages are memories, contexts come from `memory.get_context`."""

    def __init__(
        self, memory: MemoryApi, *, max_tokens: int = CONTEXT_TOKENS, namespace: str = NAMESPACE,
        across_sessions: bool = False,
    ) -> None:
        """`across_sessions`: a context may include all sessions of the namespace."""
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
        built = await self._memory.get_context(GetContextParams(
            query=query, max_tokens=self._max_tokens, namespace=self._namespace, min_fit=0.0, **within))
        if not built.context.strip():
            return []
        return [SessionMessage(role=QUOTED_ROLE, content=built.context, metadata={
            "token_count": built.token_count, "memory_ids": [str(each) for each in built.memory_ids]})]

    async def summarize_context(self, session_id: str, options: SummarizeOptions) -> str:
        return (await self._messages.summarize(session_id, options)).content

    async def clear_context(self, session_id: str) -> None:
        await self._messages.clear(session_id)


class EndlessSessionMemory:
    """The essential operations over a provider: returns compressed context, not the original messages.

    Compressed messages cannot be counted, scored, listed or filtered.
    """

    def __init__(self, provider: CompressedContextProvider) -> None:
        self._provider = provider

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        """Returns the message as it was passed to the provider."""
        kept = completed(message, metadata, now=datetime.now(UTC))
        await self._provider.store_context(checked_session_id(session_id), [kept], metadata or {})
        return kept

    async def retrieve(self, session_id: str, options: RetrieveOptions = NEWEST) -> list[SessionMessage]:
        """Returns the compressed context, for the query if there is one, in at most `limit` messages.

        Raises InvalidParams for a time range, an importance or tags: a provider does not support these
        filters.
        """
        refused = options.time_range, options.importance_threshold, options.tags
        if any(each not in (None, []) for each in refused):
            raise InvalidParams("A compressed session has no time range, importance or tags to choose by.")
        query = options.query or WHOLE_SESSION
        found = await self._provider.retrieve_context(checked_session_id(session_id), query, options.limit)
        return found[: options.limit]

    async def summarize(self, session_id: str, options: SummarizeOptions = BRIEF) -> SessionSummary:
        """Returns a summary; `message_count` is None, since the provider does not report it."""
        content = await self._provider.summarize_context(checked_session_id(session_id), options)
        return SessionSummary(content=content, message_count=None, style=options.style)

    async def clear(self, session_id: str) -> None:
        """Deletes the session permanently."""
        await self._provider.clear_context(checked_session_id(session_id))

    def capabilities(self) -> tuple[Capability, ...]:
        """Returns the capabilities that the provider's contract promises."""
        return ("basic_retrieval", "semantic_search", "summarization", "persistence")
