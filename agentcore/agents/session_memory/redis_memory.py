"""Session memory in Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from agentcore.agents.session_memory.memory import DEFAULT_RETRIEVE, SessionParts, VerbatimSessionMemory
from agentcore.agents.session_memory.messages import (
    DEFAULT_PAGE_SIZE,
    Capability,
    MemoryUsage,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    completed,
    session_key,
)
from agentcore.agents.session_memory.selection import (
    Place,
    checked_limit,
    lies_behind,
    matching,
    place_of,
    scored_by_words,
)
from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.keys import encode_segment
from agentcore.memory.models import Strict

MAX_MESSAGES, TTL_SECONDS = 1_000, 86_400
PREFIX = "agentcore:session"
PAGE = 200
SUBSCRIBE_SECONDS = 10.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# KEYS: the messages, their ids, the sessions by expiry, the sessions by newest message; ARGV: score, encoded
# id, message, TTL in seconds (0: none), maximum of messages, session, channel, event. Returns the member if
# the id exists. A member is "number|id|message": the number makes equal messages distinct and keeps those
# with equal timestamps in storage order. Expiry is one second late: no live session is missing from the
# indexes.
_STORE = """
local held = redis.call('HGET', KEYS[2], ARGV[2])
if held then
    local start = string.format('%016d', held) .. '|'
    for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
        if string.sub(member, 1, #start) == start then return member end
    end
end
local number = redis.call('HINCRBY', KEYS[2], '', 1)
redis.call('HSET', KEYS[2], ARGV[2], number)
redis.call('ZADD', KEYS[1], ARGV[1], string.format('%016d', number) .. '|' .. ARGV[2] .. '|' .. ARGV[3])
local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[5])
if over > 0 then
    for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, over - 1)) do
        redis.call('HDEL', KEYS[2], string.match(member, '^%d+|([^|]*)|'))
    end
    redis.call('ZREMRANGEBYRANK', KEYS[1], 0, over - 1)
end
local now, ttl, ends = tonumber(redis.call('TIME')[1]), tonumber(ARGV[4]), '+inf'
if ttl > 0 then
    redis.call('EXPIRE', KEYS[1], ttl)
    redis.call('EXPIRE', KEYS[2], ttl)
    ends = now + ttl + 1
end
for _, ended in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do
    redis.call('ZREM', KEYS[3], ended)
    redis.call('ZREM', KEYS[4], ended)
end
redis.call('ZADD', KEYS[3], ends, ARGV[6])
redis.call('ZADD', KEYS[4], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2], ARGV[6])
redis.call('PUBLISH', ARGV[7], ARGV[8])
return false
"""
# KEYS as above; ARGV: session, channel, event. Returns the number of messages deleted.
_CLEAR = """
local count = redis.call('ZCARD', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
if count > 0 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return count
"""


class SessionEvent(Strict):
    """A change of a session; `message` is the stored one."""

    event: Literal["stored", "cleared"]
    message: SessionMessage | None = None


class RedisSessionMemory(VerbatimSessionMemory):
    """Sessions of one agent in a Redis shared by its processes; the caller closes its client.

    A session expires `ttl_seconds` after its last message (0: never).
    """

    def __init__(
        self,
        redis: Redis,
        agent_id: str,
        *,
        ttl_seconds: int = TTL_SECONDS,
        max_messages: int = MAX_MESSAGES,
        prefix: str = PREFIX,
    ) -> None:
        self._redis = redis
        self._place = f"{prefix}:{encode_segment(agent_id)}"
        self._ending, self._spoken = f"{self._place}::sessions", f"{self._place}::newest"
        self._limits = {"max_messages": max_messages, "ttl_seconds": ttl_seconds}
        self._store = redis.register_script(_STORE)
        self._clear = redis.register_script(_CLEAR)

    @classmethod
    def over(cls, parts: SessionParts) -> RedisSessionMemory:
        if parts.redis is None or parts.agent_id is None:
            raise ConfigurationError(["Session memory in Redis needs a Redis client and an agent_id."])
        return cls(parts.redis, parts.agent_id)

    @classmethod
    @asynccontextmanager
    async def from_url(
        cls,
        url: str,
        agent_id: str,
        *,
        ttl_seconds: int = TTL_SECONDS,
        max_messages: int = MAX_MESSAGES,
        prefix: str = PREFIX,
    ) -> AsyncIterator[RedisSessionMemory]:
        """Opens a client for the block. Raises ConfigurationError for an invalid URL."""
        try:
            redis = Redis.from_url(url)
        except ValueError as cause:
            raise ConfigurationError([f"Session memory in Redis: {cause}"]) from cause
        async with redis:
            yield cls(redis, agent_id, ttl_seconds=ttl_seconds, max_messages=max_messages, prefix=prefix)

    async def store(
        self, session_id: str, message: SessionMessage, metadata: Mapping[str, Any] | None = None
    ) -> SessionMessage:
        kept = completed(message, metadata, now=datetime.now(UTC))
        keys = self._keys(session_id)
        event = SessionEvent(event="stored", message=kept).model_dump_json()
        with _translated():
            held = await cast(
                Awaitable[Any],
                self._store(
                    keys=keys,
                    args=[
                        _microseconds(kept.timestamp),
                        encode_segment(kept.message_id or ""),
                        kept.model_dump_json(),
                        self._limits["ttl_seconds"],
                        self._limits["max_messages"],
                        session_id,
                        self._channel(session_id),
                        event,
                    ],
                ),
            )
        return kept if held is None else _message(held)

    async def newest(self, session_id: str, options: RetrieveOptions) -> list[SessionMessage]:
        found: list[SessionMessage] = []
        async for page in self._pages(session_id, options):
            found += matching(page, options)
            if len(found) >= options.limit:
                break
        return found[: options.limit]

    async def retrieve_with_scores(
        self, session_id: str, query: str, options: RetrieveOptions = DEFAULT_RETRIEVE
    ) -> list[ScoredMessage]:
        asked = options.asking(query)
        messages = [message async for page in self._pages(session_id, asked) for message in page]
        return scored_by_words(matching(messages, asked), query)[: asked.limit]

    async def clear(self, session_id: str) -> int:
        event = SessionEvent(event="cleared").model_dump_json()
        with _translated():
            return int(
                await cast(
                    Awaitable[Any],
                    self._clear(keys=self._keys(session_id), args=[session_id, self._channel(session_id), event]),
                )
            )

    def capabilities(self) -> tuple[Capability, ...]:
        return ("basic_retrieval", "summarization", "persistence", "ttl", "importance_weighting", "time_travel")

    async def session_count(self, session_id: str) -> int:
        with _translated():
            return int(await self._redis.zcard(self._keys(session_id)[0]))

    async def sessions(
        self, limit: int = DEFAULT_PAGE_SIZE, after: SessionListing | None = None
    ) -> list[SessionListing]:
        found: list[SessionListing] = []
        limit = checked_limit(limit)
        with _translated():
            async for page in self._places(place_of(after)):
                counts = await self._counts([session_id for _, session_id in page])
                found += [
                    SessionListing(session_id=session_id, message_count=count, newest=moment)
                    for (moment, session_id), count in zip(page, counts, strict=True)
                    if count
                ]
                if len(found) >= limit:
                    break
        return found[:limit]

    async def usage(self) -> MemoryUsage:
        messages = sessions = 0
        with _translated():
            async for page in self._living():
                counts = await self._counts(page)
                messages += sum(counts)
                sessions += sum(map(bool, counts))
        return MemoryUsage(messages=messages, sessions=sessions, limits=dict(self._limits))

    @asynccontextmanager
    async def listening(self, session_id: str) -> AsyncIterator[AsyncIterator[SessionEvent]]:
        """Subscribes to the session's later events of all processes."""
        async with self._redis.pubsub() as channel:
            with _translated():
                await channel.subscribe(self._channel(session_id))
                await channel.get_message(timeout=SUBSCRIBE_SECONDS)  # confirms the subscription
            yield self._events(channel)

    async def _events(self, channel: Any) -> AsyncIterator[SessionEvent]:
        with _translated():
            async for heard in channel.listen():
                if heard["type"] == "message":
                    yield SessionEvent.model_validate_json(heard["data"])

    def _keys(self, session_id: str) -> list[str]:
        session = f"{self._place}:{session_key(session_id)}"
        return [f"{session}:messages", f"{session}:ids", self._ending, self._spoken]

    def _channel(self, session_id: str) -> str:
        return f"{self._place}:{session_key(session_id)}:events"

    async def _pages(self, session_id: str, options: RetrieveOptions) -> AsyncIterator[list[SessionMessage]]:
        """Yields pages, newest first, without duplicates despite new stores."""
        within, seen = options.time_range, set[str | None]()
        # Scores beyond 2^53 are rounded: the bounds are widened, `matching` filters exactly.
        high = "+inf" if within is None or within.end is None else str(_microseconds(within.end) + 64)
        low = "-inf" if within is None or within.start is None else str(_microseconds(within.start) - 64)
        start = 0
        while True:
            with _translated():
                members = await self._redis.zrevrangebyscore(
                    self._keys(session_id)[0], high, low, start=start, num=PAGE
                )
            page = [message for member in members if (message := _message(member)).message_id not in seen]
            seen.update(message.message_id for message in page)
            yield page
            if len(members) < PAGE:
                return
            start += PAGE

    async def _places(self, after: Place | None) -> AsyncIterator[list[Place]]:
        """Yields pages of the sessions after `after`, in listing order, without duplicates."""
        start = 0
        while True:
            high = "+inf" if after is None else _microseconds(after[0])
            members = await self._redis.zrevrangebyscore(
                self._spoken, high, "-inf", start=start, num=PAGE, withscores=True
            )
            places = [(_moment(score), _text(member)) for member, score in cast(Sequence[Any], members)]
            page = [place for place in places if lies_behind(place, after)]
            if page:
                yield page
                after = page[-1]
            if len(members) < PAGE:
                return
            # A whole page may have one timestamp and contain no new session: then advance by offset.
            start = 0 if page else start + PAGE

    async def _living(self) -> AsyncIterator[list[str]]:
        start = 0
        while page := await self._redis.zrange(self._ending, start, start + PAGE - 1):
            yield [_text(each) for each in page]
            start += PAGE

    async def _counts(self, session_ids: Sequence[str]) -> list[int]:
        async with self._redis.pipeline(transaction=False) as pipeline:
            for session_id in session_ids:
                pipeline.zcard(self._keys(session_id)[0])
            return await pipeline.execute()


def _microseconds(moment: datetime | None) -> int:
    since = (moment or _EPOCH) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _moment(score: float) -> datetime:
    return _EPOCH + timedelta(microseconds=int(score))


def _message(member: Any) -> SessionMessage:
    return SessionMessage.model_validate_json(_text(member).split("|", 2)[2])


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError, TimeoutError) as cause:
        raise DependencyUnavailable("Redis did not answer: the session cannot be reached.") from cause
