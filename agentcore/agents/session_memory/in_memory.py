"""Session memory in this process: fast, bounded, lost when the process ends."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from agentcore.agents.session_memory.memory import (
    DEFAULT_RETRIEVE,
    DEFAULT_SUMMARIZE,
    SessionParts,
    VerbatimSessionMemory,
)
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
    checked_session_id,
    completed,
)
from agentcore.agents.session_memory.selection import (
    LEAST_SIMILARITY,
    checked_limit,
    first_places,
    matching,
    newest_first,
    place_of,
    said_at,
    scored_by_words,
    summary_of,
)
from agentcore.errors import ConfigurationError
from agentcore.memory.embeddings import Embedder, Vectors

MAX_MESSAGES, MAX_SESSIONS = 1_000, 1_000


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Held:
    """A stored message with its position in storage order."""

    message: SessionMessage
    place: int
    expires_at: datetime | None
    vector: Vectors | None = None


class InMemorySessionMemory(VerbatimSessionMemory):
    """Evicts the least recently used messages and sessions; listing and counting are no use.

    `by_use=False`: evicts the message that was stored first. `ttl_seconds` starts when a message is stored.
    """

    def __init__(
        self,
        *,
        max_messages: int = MAX_MESSAGES,
        max_sessions: int = MAX_SESSIONS,
        ttl_seconds: int = 0,
        by_use: bool = True,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._limits = {"max_messages": max_messages, "max_sessions": max_sessions, "ttl_seconds": ttl_seconds}
        self._by_use = by_use
        self._now = now
        self._places = 0
        self._sessions: OrderedDict[str, OrderedDict[str, Held]] = OrderedDict()

    @classmethod
    def over(cls, parts: SessionParts) -> InMemorySessionMemory:
        """Creates it; needs no part."""
        return cls()

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        return self.keep(session_id, completed(message, metadata, now=self._now()))

    async def newest(self, session_id: str, options: RetrieveOptions) -> list[SessionMessage]:
        newest = matching(self.held(session_id), options)[: options.limit]
        self.use(session_id, newest)
        return newest

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]:
        asked = options.asking(query)
        found = scored_by_words(matching(self.held(session_id), asked), query)[: asked.limit]
        self.use(session_id, [each.message for each in found])
        return found

    async def summarize(self, session_id: str, options: SummarizeOptions = DEFAULT_SUMMARIZE) -> SessionSummary:
        self.use(session_id, ())
        return summary_of(self.held(session_id)[:MAX_LIMIT], options)

    async def clear(self, session_id: str) -> int:
        count = len(self._session(session_id))
        self._sessions.pop(session_id, None)
        return count

    def capabilities(self) -> tuple[Capability, ...]:
        return ("basic_retrieval", "summarization", "ttl", "importance_weighting", "time_travel")

    async def session_count(self, session_id: str) -> int:
        return len(self._session(session_id))

    async def sessions(
        self, limit: int = DEFAULT_PAGE_SIZE, after: SessionListing | None = None
    ) -> list[SessionListing]:
        held = self.everything()
        newest = {session_id: max(map(said_at, messages)) for session_id, messages in held.items()}
        return [
            SessionListing(session_id=session_id, message_count=len(held[session_id]), newest=moment)
            for moment, session_id in first_places(newest, checked_limit(limit), place_of(after))
        ]

    async def usage(self) -> MemoryUsage:
        held = self.everything()
        return MemoryUsage(messages=sum(map(len, held.values())), sessions=len(held), limits=dict(self._limits))

    def everything(self) -> dict[str, list[SessionMessage]]:
        """Returns the messages of each session that has any; does not count as use."""
        living = {session_id: self._living(session) for session_id, session in self._sessions.items()}
        return {
            session_id: [held.message for held in session.values()] for session_id, session in living.items() if session
        }

    def keep(self, session_id: str, message: SessionMessage, vector: Vectors | None = None) -> SessionMessage:
        """Stores a completed message; returns the stored one if its id exists."""
        session = self._session(session_id, make=True)
        self._sessions.move_to_end(session_id)
        message_id = message.message_id or ""
        if message_id in session:
            return session[message_id].message
        self._places += 1
        ttl_seconds = self._limits["ttl_seconds"]
        expires_at = self._now() + timedelta(seconds=ttl_seconds) if ttl_seconds else None
        session[message_id] = Held(message, self._places, expires_at, vector)
        if len(session) > self._limits["max_messages"]:
            session.popitem(last=False)
        if len(self._sessions) > self._limits["max_sessions"]:
            self._sessions.popitem(last=False)
        return message

    def held(self, session_id: str) -> list[SessionMessage]:
        """Returns all messages of the session, newest first; does not count as use."""
        in_order = sorted(self._session(session_id).values(), key=lambda held: held.place)
        return newest_first(held.message for held in in_order)

    def use(self, session_id: str, messages: Sequence[SessionMessage]) -> None:
        """Marks the session and these messages, best first, as used now."""
        session = self._session(session_id)
        if session_id in self._sessions:
            self._sessions.move_to_end(session_id)
        if self._by_use:
            for message in reversed(messages):
                if (message_id := message.message_id or "") in session:
                    session.move_to_end(message_id)

    def _session(self, session_id: str, *, make: bool = False) -> OrderedDict[str, Held]:
        checked_session_id(session_id)
        if session_id not in self._sessions:
            if not make:
                return OrderedDict()
            self._sessions[session_id] = OrderedDict()
        return self._living(self._sessions[session_id])

    def _living(self, session: OrderedDict[str, Held]) -> OrderedDict[str, Held]:
        if self._limits["ttl_seconds"]:
            now = self._now()
            gone = [name for name, held in session.items() if held.expires_at and held.expires_at <= now]
            for name in gone:
                del session[name]
        return session


# A vector of 384 dimensions takes 1.5 KB: all sessions full is about 150 MB.
MAX_VECTOR_SESSIONS = 100


class InMemoryVectorSessionMemory(InMemorySessionMemory):
    """Searches by the cosine, the score, with every message of the session."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        least_similarity: float = LEAST_SIMILARITY,
        max_messages: int = MAX_MESSAGES,
        max_sessions: int = MAX_VECTOR_SESSIONS,
        ttl_seconds: int = 0,
        by_use: bool = True,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(
            max_messages=max_messages, max_sessions=max_sessions, ttl_seconds=ttl_seconds, by_use=by_use, now=now
        )
        self._embedder = embedder
        self._least_similarity = least_similarity

    @classmethod
    def over(cls, parts: SessionParts) -> InMemoryVectorSessionMemory:
        if parts.embedder is None:
            raise ConfigurationError(["Session memory with vectors in this process needs an embedder."])
        return cls(parts.embedder)

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        kept = completed(message, metadata, now=self._now())
        known = self._session(session_id).get(kept.message_id or "")
        if known is not None:
            return known.message
        [vector] = await self._embedder.embed([kept.content], "document")
        # Copied: a row view would keep the whole array alive.
        return self.keep(session_id, kept, vector.copy())

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]:
        asked = options.asking(query)
        [sought] = await self._embedder.embed([query], "query")
        session = self._session(session_id)
        messages = matching(self.held(session_id), asked)
        vectors = [session[each.message_id or ""].vector for each in messages]
        cosines = np.array(vectors, np.float32).reshape(len(messages), len(sought)) @ sought
        # Stable sort: of messages with equal cosine the newer ranks first.
        best = np.argsort(-cosines, kind="stable")[: asked.limit]
        found = [
            ScoredMessage(message=messages[place], score=min(1.0, float(cosines[place])))
            for place in best.tolist()
            if cosines[place] > 0 and cosines[place] >= self._least_similarity
        ]
        self.use(session_id, [each.message for each in found])
        return found

    def capabilities(self) -> tuple[Capability, ...]:
        return (*super().capabilities(), "semantic_search")
