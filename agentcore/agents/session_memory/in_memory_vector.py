"""Session memory in this process with vector search; the developer supplies the embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from agentcore.agents.session_memory.in_memory import MAX_MESSAGES, InMemorySessionMemory, utc_now
from agentcore.agents.session_memory.memory import NEWEST, SessionParts
from agentcore.agents.session_memory.messages import (
    Capability,
    RetrieveOptions,
    ScoredMessage,
    SessionMessage,
    completed,
)
from agentcore.agents.session_memory.selection import LEAST_SIMILARITY, matching
from agentcore.errors import ConfigurationError
from agentcore.memory.embeddings import Embedder

# A vector of 384 dimensions takes 1.5 KB: all sessions full is about 150 MB.
MAX_SESSIONS = 100


class InMemoryVectorSessionMemory(InMemorySessionMemory):
    """In-process session memory that compares a query with every message of the session by cosine.

    The score is the cosine; hits need at least `least_similarity`. `store` raises DependencyUnavailable if
    the embedder is unavailable: the message is then not stored.
    """

    def __init__(
        self, embedder: Embedder, *, least_similarity: float = LEAST_SIMILARITY,
        max_messages: int = MAX_MESSAGES, max_sessions: int = MAX_SESSIONS, ttl_seconds: int = 0,
        by_use: bool = True, now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(max_messages=max_messages, max_sessions=max_sessions, ttl_seconds=ttl_seconds,
                         by_use=by_use, now=now)
        self._embedder = embedder
        self._least_similarity = least_similarity

    @classmethod
    def over(cls, parts: SessionParts) -> InMemoryVectorSessionMemory:
        """Creates it with an embedder."""
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
        self, session_id: str, query: str, options: RetrieveOptions = NEWEST
    ) -> list[ScoredMessage]:
        asked = options.asking(query)
        [sought] = await self._embedder.embed([query], "query")
        session = self._session(session_id)
        messages = matching(self._newest(session_id), asked)
        vectors = [session[each.message_id or ""].vector for each in messages]
        cosines = np.array(vectors, np.float32).reshape(len(messages), len(sought)) @ sought
        # Stable sort: of messages with equal cosine the newer ranks first.
        best = np.argsort(-cosines, kind="stable")[: asked.limit]
        found = [
            ScoredMessage(message=messages[place], score=min(1.0, float(cosines[place])))
            for place in best.tolist() if cosines[place] > 0 and cosines[place] >= self._least_similarity]
        self.use(session_id, [each.message for each in found])
        return found

    def capabilities(self) -> tuple[Capability, ...]:
        return (*super().capabilities(), "semantic_search")
