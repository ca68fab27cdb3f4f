"""The interface of session memory, and the context built from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import Field
from redis.asyncio import Redis

from agentcore.agents.session_memory.messages import (
    DEFAULT_PAGE_SIZE,
    MAX_LIMIT,
    Capability,
    MemoryUsage,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
)
from agentcore.agents.session_memory.selection import SelectionStrategy, SlidingWindow, TokenBudget, summary_of
from agentcore.errors import InvalidParams
from agentcore.memory.api import MemoryApi
from agentcore.memory.embeddings import Embedder
from agentcore.memory.models import Strict

DEFAULT_RETRIEVE = RetrieveOptions()
DEFAULT_SUMMARIZE = SummarizeOptions()


@runtime_checkable
class BasicSessionMemory(Protocol):
    """The five operations of every session memory, also of one that compresses its messages."""

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        """Stores a message; `metadata` may contain its `importance` and `tags`."""
        ...

    async def retrieve(self, session_id: str, options: RetrieveOptions = DEFAULT_RETRIEVE) -> list[SessionMessage]: ...

    async def summarize(self, session_id: str, options: SummarizeOptions = DEFAULT_SUMMARIZE) -> SessionSummary: ...

    async def clear(self, session_id: str) -> int | None:
        """Returns the number of messages deleted, None if unknown."""
        ...

    def capabilities(self) -> tuple[Capability, ...]: ...


@runtime_checkable
class SessionMemory(BasicSessionMemory, Protocol):
    """A memory that keeps messages verbatim: newest first, or the best matches of a query."""

    async def retrieve(self, session_id: str, options: RetrieveOptions = DEFAULT_RETRIEVE) -> list[SessionMessage]: ...

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]: ...

    async def clear(self, session_id: str) -> int: ...

    async def session_count(self, session_id: str) -> int: ...

    async def sessions(
        self, limit: int = DEFAULT_PAGE_SIZE, after: SessionListing | None = None
    ) -> list[SessionListing]:
        """Lists sessions, newest message first, after the last listing of a page."""
        ...

    async def usage(self) -> MemoryUsage: ...


class VerbatimSessionMemory(ABC):
    @abstractmethod
    async def newest(self, session_id: str, options: RetrieveOptions) -> list[SessionMessage]:
        """Returns the newest messages that match all options but the query."""

    @abstractmethod
    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]: ...

    async def retrieve(self, session_id: str, options: RetrieveOptions = DEFAULT_RETRIEVE) -> list[SessionMessage]:
        if options.query is None:
            return await self.newest(session_id, options)
        found = await self.retrieve_with_scores(session_id, options.query, options)
        return [each.message for each in found]

    async def summarize(self, session_id: str, options: SummarizeOptions = DEFAULT_SUMMARIZE) -> SessionSummary:
        return summary_of(await self.newest(session_id, RetrieveOptions(limit=MAX_LIMIT)), options)


@dataclass(frozen=True)
class SessionParts:
    """Dependencies of a session memory; `agent_id` owns the keys in Redis. The caller closes them."""

    memory: MemoryApi | None = None
    redis: Redis | None = None
    agent_id: str | None = None
    embedder: Embedder | None = None


DEFAULT_STRATEGY = SlidingWindow()


class SessionContext(Strict):
    messages: list[SessionMessage]
    token_count: int = Field(
        description="Total tokens of the messages: content, name and per-message overhead, by `count`."
    )
    left_out_count: int = Field(description="Number of considered messages that are not included verbatim.")


async def session_context(
    memory: SessionMemory,
    session_id: str,
    *,
    max_tokens: int,
    count: Callable[[str], int],
    strategy: SelectionStrategy = DEFAULT_STRATEGY,
    message_tokens: int = 0,
) -> SessionContext:
    """Selects messages by a strategy, at most `max_tokens` tokens by `count`.

    `message_tokens`: overhead of each message in the model's format. Raises InvalidParams.
    """
    if max_tokens < 1 or message_tokens < 0:
        raise InvalidParams("max_tokens needs 1 or more, message_tokens 0 or more")
    budget = TokenBudget(max_tokens, count, message_tokens)
    messages = await memory.retrieve(session_id, RetrieveOptions(limit=strategy.looks_at))
    chosen = strategy.select(messages, budget)
    held = {message.message_id for message in chosen}
    return SessionContext(
        messages=chosen,
        token_count=sum(map(budget.cost, chosen)),
        left_out_count=sum(message.message_id not in held for message in messages),
    )
