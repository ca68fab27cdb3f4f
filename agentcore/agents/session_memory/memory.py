"""The interface of a session memory (seed 004's `Memory`), its parts, and the context made from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import Field
from redis.asyncio import Redis

from agentcore.agents.session_memory.messages import (
    LISTED,
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

NEWEST = RetrieveOptions()
BRIEF = SummarizeOptions()


@runtime_checkable
class EssentialSessionMemory(Protocol):
    """The seed's five operations, which also a memory has that keeps no message as it was said.

    No session sees another's. A session's id is any text up to 1,024 characters. Raises InvalidParams,
    pydantic's ValidationError, and DependencyUnavailable where a part does not answer.
    """

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        """Keep a message; how it is kept. `metadata` may hold its `importance` and `tags`."""
        ...

    async def retrieve(self, session_id: str, options: RetrieveOptions = NEWEST) -> list[SessionMessage]:
        """What the session holds, in at most `limit` messages; with a query what fits it."""
        ...

    async def summarize(self, session_id: str, options: SummarizeOptions = BRIEF) -> SessionSummary:
        """What was said, in the messages' own sentences."""
        ...

    async def clear(self, session_id: str) -> int | None:
        """Forget the session for good; how many messages went, None where that is not known."""
        ...

    def capabilities(self) -> tuple[Capability, ...]:
        """What it can do, in the seed's words."""
        ...


@runtime_checkable
class SessionMemory(EssentialSessionMemory, Protocol):
    """A memory that keeps the messages as they were said: they can be scored, counted and listed."""

    async def retrieve(self, session_id: str, options: RetrieveOptions = NEWEST) -> list[SessionMessage]:
        """The newest messages first; with a query those that fit best, best first."""
        ...

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = NEWEST
    ) -> list[ScoredMessage]:
        """Those that fit best, best first, each with its score."""
        ...

    async def clear(self, session_id: str) -> int:
        """Forget the session for good; how many messages went."""
        ...

    async def session_count(self, session_id: str) -> int:
        """How many messages the session holds."""
        ...

    async def sessions(
        self, limit: int = LISTED, after: SessionListing | None = None
    ) -> list[SessionListing]:
        """At most 200 sessions, that with the newest message first; those behind `after`, a listing given.

        An empty list says that there are no more. A session that is spoken in meanwhile moves to the front.
        """
        ...

    async def usage(self) -> MemoryUsage:
        """How much all sessions hold, and the bounds."""
        ...


@dataclass(frozen=True)
class SessionParts:
    """What a session memory may be made over; `agent_id` says whose keys those in Redis are.

    The embedder is open, and whoever gives it closes it.
    """

    memory: MemoryApi | None = None
    redis: Redis | None = None
    agent_id: str | None = None
    embedder: Embedder | None = None


DEFAULT_STRATEGY = SlidingWindow()


class SessionContext(Strict):
    """The messages in the order they were said, a summary of others first."""

    messages: list[SessionMessage]
    token_count: int = Field(description="Of all contents, names and forms, by the count that was given.")
    left_out_count: int = Field(description="Messages it chose from that do not stand in it as they are.")


async def session_context(
    memory: SessionMemory, session_id: str, *, max_tokens: int, count: Callable[[str], int],
    strategy: SelectionStrategy = DEFAULT_STRATEGY, message_tokens: int = 0,
) -> SessionContext:
    """What a model is given of the session, of its 1,000 newest messages, in at most `max_tokens` tokens.

    `count` counts a text as the model does, as `TokenCounter.count`; `message_tokens` is what the model's
    form adds to each message (3 or 4 of OpenAI's). Raises InvalidParams for a number that cannot be.
    """
    if max_tokens < 1 or message_tokens < 0:
        raise InvalidParams("max_tokens needs 1 or more, message_tokens 0 or more")
    budget = TokenBudget(max_tokens, count, message_tokens)
    messages = await memory.retrieve(session_id, RetrieveOptions(limit=strategy.looks_at))
    chosen = strategy.select(messages, budget)
    held = {message.message_id for message in chosen}
    return SessionContext(
        messages=chosen, token_count=sum(map(budget.cost, chosen)),
        left_out_count=sum(message.message_id not in held for message in messages))
