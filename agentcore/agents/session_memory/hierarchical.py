"""Session memory in tiers: working, short-term, and long-term for important messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from agentcore.agents.session_memory.in_memory import InMemorySessionMemory, utc_now
from agentcore.agents.session_memory.memory import DEFAULT_RETRIEVE, SessionMemory, SessionParts, VerbatimSessionMemory
from agentcore.agents.session_memory.messages import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    Capability,
    MemoryUsage,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    completed,
)
from agentcore.agents.session_memory.selection import (
    checked_limit,
    lies_behind,
    matching,
    merged_places,
    newest_first,
    place_of,
    said_at,
    scored_by_words,
)
from agentcore.agents.session_memory.vector import VectorSessionMemory
from agentcore.memory.models import Flag, Share, Strict

# Separate from the messages of a session memory without tiers.
LONG_TERM_NAMESPACE = "session_long_term"

Size = Annotated[int, Field(strict=True, ge=1, le=100_000)]


class HierarchyConfig(Strict):
    working_capacity: Size = Field(10, description="Messages in working memory: the last stored.")
    short_term_capacity: Size = Field(100, description="Messages in short-term memory: the last used.")
    short_term_ttl_seconds: Size = Field(3_600, description="Seconds a message stays in short-term memory.")
    long_term_min_importance: Share = Field(0.7, description="So important is kept in long-term memory.")
    enable_long_term: Flag = True


class HierarchicalSessionMemory(VerbatimSessionMemory):
    """Two tiers in this process; important messages also in `long_term`, any session memory.

    A message that both tiers evicted and that was not important enough is lost.
    """

    def __init__(
        self,
        long_term: SessionMemory | None = None,
        config: HierarchyConfig | None = None,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._config = config or HierarchyConfig()
        self._now = now
        self._working = InMemorySessionMemory(max_messages=self._config.working_capacity, by_use=False, now=now)
        self._short_term = InMemorySessionMemory(
            max_messages=self._config.short_term_capacity, now=now, ttl_seconds=self._config.short_term_ttl_seconds
        )
        self._long_term: SessionMemory | None = None
        if self._config.enable_long_term:
            self._long_term = long_term or InMemorySessionMemory(now=now)

    @classmethod
    def over(cls, parts: SessionParts) -> HierarchicalSessionMemory:
        if parts.memory is None:
            return cls()
        return cls(VectorSessionMemory(parts.memory, namespace=LONG_TERM_NAMESPACE))

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        kept = completed(message, metadata, now=self._now())
        for near in self._near(session_id):
            if near.message_id == kept.message_id:
                return near
        if self._lasts(kept) and self._long_term is not None:
            kept = await self._long_term.store(session_id, kept)
        await self._short_term.store(session_id, kept)
        await self._working.store(session_id, kept)
        return kept

    async def newest(self, session_id: str, options: RetrieveOptions) -> list[SessionMessage]:
        return _merged([await tier.retrieve(session_id, options) for tier in self._tiers.values()])[: options.limit]

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]:
        """Scores a message 1 / its rank: near by words or in long-term memory, the better of both."""
        asked = options.asking(query)
        near = scored_by_words(matching(self._near(session_id), asked), query)[: asked.limit]
        for tier in (self._working, self._short_term):
            tier.use(session_id, [each.message for each in near])
        lasting = (
            [] if self._long_term is None else (await self._long_term.retrieve_with_scores(session_id, query, options))
        )
        best: dict[str | None, ScoredMessage] = {}
        for place, each in sorted([*enumerate(near, 1), *enumerate(lasting, 1)], key=lambda found: found[0]):
            best.setdefault(each.message.message_id, ScoredMessage(message=each.message, score=1 / place))
        return list(best.values())[: options.limit]

    async def clear(self, session_id: str) -> int:
        count = await self.session_count(session_id)
        for tier in self._tiers.values():
            await tier.clear(session_id)
        return count

    def capabilities(self) -> tuple[Capability, ...]:
        lasting: tuple[Capability, ...] = (
            ()
            if self._long_term is None
            else tuple(each for each in self._long_term.capabilities() if each in ("semantic_search", "persistence"))
        )
        return ("basic_retrieval", "summarization", "ttl", "importance_weighting", "time_travel", *lasting)

    async def session_count(self, session_id: str) -> int:
        near = self._near(session_id)
        if self._long_term is None:
            return len(near)
        in_both = sum(self._lasts(each) for each in near)
        return len(near) - in_both + await self._long_term.session_count(session_id)

    async def sessions(
        self, limit: int = DEFAULT_PAGE_SIZE, after: SessionListing | None = None
    ) -> list[SessionListing]:
        """Lists sessions; a page may be shorter than `limit` although more follow."""
        checked_limit(limit)
        near = {session_id: max(map(said_at, held)) for session_id, held in self._all_near().items()}
        lasting = [] if self._long_term is None else await self._long_term.sessions(limit, after)
        told = {each.session_id for each in lasting}
        found: list[SessionListing] = []
        for moment, session_id in merged_places(near, lasting, place_of(after)):
            if session_id in told or not await self._lasts_before(session_id, after):
                found.append(
                    SessionListing(
                        session_id=session_id, newest=moment, message_count=await self.session_count(session_id)
                    )
                )
            if len(found) == limit:
                break
        return found if found or not lasting else await self.sessions(limit, lasting[-1])

    async def _lasts_before(self, session_id: str, after: SessionListing | None) -> bool:
        if after is None or self._long_term is None:
            return False
        newest = await self._long_term.retrieve(session_id, RetrieveOptions(limit=1))
        return bool(newest) and not lies_behind((said_at(newest[0]), session_id), place_of(after))

    async def usage(self) -> MemoryUsage:
        """Counts each message once; `sessions` is None if long-term memory does not count its sessions."""
        tiers = {name: await tier.usage() for name, tier in self._tiers.items()}
        near = [message for held in self._all_near().values() for message in held]
        lasting = tiers.get("long_term")
        in_both = 0 if lasting is None else sum(map(self._lasts, near))
        return MemoryUsage(
            messages=len(near) - in_both + (0 if lasting is None else lasting.messages),
            sessions=None if lasting is not None and lasting.sessions is None else await self._count(),
            limits=self._config.model_dump(
                include={"working_capacity", "short_term_capacity", "short_term_ttl_seconds"}
            ),
            tiers=tiers,
        )

    async def _count(self) -> int:
        found, after = set(self._all_near()), None
        while self._long_term is not None:
            page = await self._long_term.sessions(MAX_PAGE_SIZE, after)
            if not page:
                break
            found.update(each.session_id for each in page)
            after = page[-1]
        return len(found)

    @property
    def _tiers(self) -> dict[str, SessionMemory]:
        near: dict[str, SessionMemory] = {"working": self._working, "short_term": self._short_term}
        return near if self._long_term is None else {"long_term": self._long_term, **near}

    def _all_near(self) -> dict[str, list[SessionMessage]]:
        found: dict[str, dict[str | None, SessionMessage]] = {}
        for tier in (self._working, self._short_term):
            for session_id, held in tier.everything().items():
                found.setdefault(session_id, {}).update({each.message_id: each for each in held})
        return {session_id: list(held.values()) for session_id, held in found.items()}

    def _near(self, session_id: str) -> list[SessionMessage]:
        return _merged([tier.held(session_id) for tier in (self._working, self._short_term)])

    def _lasts(self, message: SessionMessage) -> bool:
        return (message.importance or 0.0) >= self._config.long_term_min_importance


def _merged(tiers: Iterable[Sequence[SessionMessage]]) -> list[SessionMessage]:
    """Merges tiers, newest first; the last one has the exact storage order of equal timestamps."""
    found: dict[str | None, SessionMessage] = {}
    for messages in tiers:
        for message in reversed(messages):
            found.pop(message.message_id, None)
            found[message.message_id] = message
    return newest_first(found.values())
