"""The interface of session memory, its dependencies, and the context built from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import Field
from redis.asyncio import Redis

from agentcore.agents.session_memory.messages import (
    DEFAULT_PAGE_SIZE,
    Capability,
    MemoryUsage,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
)
from agentcore.agents.session_memory.selection import SelectionStrategy, SlidingWindow, TokenBudget
from agentcore.errors import InvalidParams
from agentcore.memory.api import MemoryApi
from agentcore.memory.embeddings import Embedder
from agentcore.memory.models import Strict

DEFAULT_RETRIEVE = RetrieveOptions()
DEFAULT_SUMMARIZE = SummarizeOptions()


@runtime_checkable
class BasicSessionMemory(Protocol):
    """The five operations of every session memory, also of one that compresses its messages.

    Sessions are isolated from each other. A session id is any text of up to 1,024 characters. Raises
    InvalidParams, pydantic's ValidationError, and DependencyUnavailable if a part is unavailable.
    """

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        """Stores a message; returns it as stored. `metadata` may contain its `importance` and `tags`."""
        ...

    async def retrieve(self, session_id: str, options: RetrieveOptions = DEFAULT_RETRIEVE) -> list[SessionMessage]:
        """Returns at most `limit` messages of the session; with a query those that match it."""
        ...

    async def summarize(self, session_id: str, options: SummarizeOptions = DEFAULT_SUMMARIZE) -> SessionSummary:
        """Returns an extractive summary of the session."""
        ...

    async def clear(self, session_id: str) -> int | None:
        """Deletes the session permanently; returns the number of messages deleted, None if unknown."""
        ...

    def capabilities(self) -> tuple[Capability, ...]:
        """Returns the capabilities of this memory."""
        ...


@runtime_checkable
class SessionMemory(BasicSessionMemory, Protocol):
    """A memory that keeps messages verbatim: they can be scored, counted and listed."""

    async def retrieve(self, session_id: str, options: RetrieveOptions = DEFAULT_RETRIEVE) -> list[SessionMessage]:
        """Returns messages, newest first; with a query the best matches, best first."""
        ...

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]:
        """Returns the best matches, best first, each with its score."""
        ...

    async def clear(self, session_id: str) -> int:
        """Deletes the session permanently; returns the number of messages deleted."""
        ...

    async def session_count(self, session_id: str) -> int:
        """Returns the number of messages in the session."""
        ...

    async def sessions(
        self, limit: int = DEFAULT_PAGE_SIZE, after: SessionListing | None = None
    ) -> list[SessionListing]:
        """Lists at most 200 sessions, newest message first; `after` is the last listing of a page.

        An empty list means that no more follow. A session with a new message moves to the front.
        """
        ...

    async def usage(self) -> MemoryUsage:
        """Returns the size of all sessions, and the limits."""
        ...


@dataclass(frozen=True)
class SessionParts:
    """Dependencies of a session memory; `agent_id` is the owner of the keys in Redis.

    The embedder is open; the caller closes it.
    """

    memory: MemoryApi | None = None
    redis: Redis | None = None
    agent_id: str | None = None
    embedder: Embedder | None = None


DEFAULT_STRATEGY = SlidingWindow()


class SessionContext(Strict):
    """Selected messages in chronological order, after a summary of earlier messages if there is one."""

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
    """Selects messages from the newest `strategy.looks_at` of the session (10 by default).

    Together they have at most `max_tokens` tokens.
    `count` counts tokens as the model does, such as `TokenCounter.count`. `message_tokens` is the overhead of
    each message in the model's format (3 or 4 for OpenAI). Raises InvalidParams for numbers out of range.
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
