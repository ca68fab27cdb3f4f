"""Caches vectors per agent: in this process, and query vectors also in Redis for all processes, if it has one."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import cast

import numpy as np
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import Embedder, EmbedderLayer, EmbeddingKind, Vectors
from agentcore.memory.keys import encode_segment
from agentcore.telemetry import Metrics

CACHE_KEY_PREFIX = "memory:embedding:"
MAX_CACHE_BYTES = 64 * 1024 * 1024
CACHE_ENTRY_OVERHEAD_BYTES = 320
# Agent id and text digest: no entry is shared between agents.
CacheKey = tuple[str, bytes]


class CachingEmbedder(EmbedderLayer):
    """Caches vectors per agent and text digest; `embed` bypasses the cache.

    Document vectors are not cached in Redis: each is embedded once, and a million of them would fill it. A failure
    of Redis counts as a miss.
    """

    def __init__(
        self,
        inner: Embedder,
        redis: Redis | None = None,
        *,
        max_entries: int = 20_000,
        ttl_seconds: int = 86_400,
        metrics: Metrics | None = None,
    ) -> None:
        super().__init__(inner)
        self._redis = redis
        self._ttl_seconds = ttl_seconds
        self._metrics = metrics
        self._entries: OrderedDict[CacheKey, Vectors] = OrderedDict()
        entry_bytes = 4 * self.dimensions + CACHE_ENTRY_OVERHEAD_BYTES
        self._max_entries = min(max_entries, MAX_CACHE_BYTES // entry_bytes)
        self._sharing: set[asyncio.Task[None]] = set()

    @property
    def entry_count(self) -> int:
        """Not `__len__`: an embedder must never be falsy."""
        return len(self._entries)

    async def close(self) -> None:
        await self.drain()
        self._entries.clear()
        await self._inner.close()

    async def drain(self) -> None:
        await asyncio.gather(*self._sharing)

    def for_agent(self, agent_id: str, users: Iterable[str | None] | None = None) -> AgentEmbedder:
        """`users`: users of a bound token, cached separately."""
        return AgentEmbedder(self, agent_id, "" if users is None else repr(sorted(map(repr, users))))

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        return await self._inner.embed(texts, kind)

    async def embed_cached(self, agent_id: str, texts: Sequence[str], kind: EmbeddingKind, scope: str = "") -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        keys = [self._key(agent_id, text, kind, scope) for text in texts]
        found = self._recall(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing and kind == "query":
            found |= await self._fetch(list(missing))
            missing = {key: text for key, text in missing.items() if key not in found}
        if missing:
            made = dict(zip(missing, await self._inner.embed(list(missing.values()), kind), strict=True))
            self._remember(made)
            found |= made
            if kind == "query":
                self._share_soon(made)
        return np.stack([found[key] for key in keys])

    async def forget(self, agent_id: str) -> None:
        """Deletes the agent's vectors here and in Redis, not in other processes. Raises DependencyUnavailable."""
        await self.drain()
        for key in [key for key in self._entries if key[0] == agent_id]:
            del self._entries[key]
        if self._redis is not None:
            pattern = f"{CACHE_KEY_PREFIX}{encode_segment(agent_id)}:*"
            try:
                found = [key async for key in self._redis.scan_iter(match=pattern, count=1_000)]
                if found:
                    await self._redis.delete(*found)
            except (RedisError, OSError) as cause:
                raise DependencyUnavailable("Redis did not answer: cached embeddings may remain.") from cause

    def _key(self, agent_id: str, text: str, kind: str, scope: str) -> CacheKey:
        asked_as = kind if self.distinguishes_queries else ""
        head = f"{self.model}\0{self.dimensions}\0{asked_as}\0{scope}\0"
        return agent_id, hashlib.sha256((head + text).encode("utf-8", "surrogatepass")).digest()

    def _recall(self, keys: Sequence[CacheKey]) -> dict[CacheKey, Vectors]:
        found = {key: self._entries[key] for key in keys if key in self._entries}
        for key in found:
            self._entries.move_to_end(key)
        if self._metrics is not None:
            hits = sum(key in found for key in keys)
            self._metrics.embeddings_cached("process", hits=hits, misses=len(keys) - hits)
        return found

    def _remember(self, made: Mapping[CacheKey, Vectors]) -> None:
        for key, vector in made.items():
            # A row is a view that would keep its whole batch in memory.
            self._entries[key] = vector.copy()
            self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    async def _fetch(self, keys: Sequence[CacheKey]) -> dict[CacheKey, Vectors]:
        if self._redis is None:
            return {}
        try:
            values = await self._redis.mget([_redis_key(key) for key in keys])
        except (RedisError, OSError):
            return {}
        found = {
            key: np.frombuffer(value, "<f4").astype(np.float32)
            for key, value in zip(keys, values, strict=True)
            if isinstance(value, bytes) and len(value) == 4 * self.dimensions
        }
        self._remember(found)
        if self._metrics is not None:
            self._metrics.embeddings_cached("redis", hits=len(found), misses=len(keys) - len(found))
        return found

    def _share_soon(self, made: Mapping[CacheKey, Vectors]) -> None:
        if self._redis is not None:
            task = asyncio.create_task(self._share(made))
            self._sharing.add(task)
            task.add_done_callback(self._sharing.discard)

    async def _share(self, made: Mapping[CacheKey, Vectors]) -> None:
        redis = cast(Redis, self._redis)
        with suppress(RedisError, OSError):
            for key, vector in made.items():
                await redis.set(_redis_key(key), vector.astype("<f4").tobytes(), ex=self._ttl_seconds)


class AgentEmbedder(EmbedderLayer):
    def __init__(self, cache: CachingEmbedder, agent_id: str, scope: str = "") -> None:
        super().__init__(cache)
        self._cache = cache
        self._agent_id = agent_id
        self._scope = scope

    async def close(self) -> None:
        await self._cache.close()

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        return await self._cache.embed_cached(self._agent_id, texts, kind, self._scope)

    async def forget(self) -> None:
        """Deletes the agent's cached vectors. Raises DependencyUnavailable."""
        await self._cache.forget(self._agent_id)


def _redis_key(key: CacheKey) -> str:
    agent_id, text_digest = key
    return f"{CACHE_KEY_PREFIX}{encode_segment(agent_id)}:{text_digest.hex()}"
