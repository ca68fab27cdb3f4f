"""The cache of query vectors in Redis: shared between processes, and never a cause of errors."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from redis.asyncio import Redis

from agentcore.assembly import make_redis
from agentcore.config import Settings
from agentcore.errors import DependencyUnavailable
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors
from agentcore.memory.keys import encode_segment
from agentcore.providers.hashing import HashingEmbedder
from agentcore.telemetry import Metrics
from tests.fixtures.scripted_http import dead_address
from tests.fixtures.services import Services


class CountingEmbedder(HashingEmbedder):
    """The hashing embedder under a separate model name, which counts its requests."""

    def __init__(self, model: str, dimensions: int = 8) -> None:
        super().__init__(EmbedderOptions("counting", dimensions, Path("unused")))
        self.model = model
        self.asked = 0

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        self.asked += len(texts)
        return await super().embed(texts, kind)


@pytest.fixture
async def redis(services: Services) -> AsyncIterator[Redis]:
    async with Redis.from_url(services.redis_url) as client:
        yield client


@pytest.fixture
def model() -> str:
    """Returns a unique model name, since tests share one Redis."""
    return f"model-{uuid.uuid4()}"


async def told(cache: CachingEmbedder, texts: Sequence[str], kind: EmbeddingKind = "query") -> Vectors:
    """Returns the vectors once Redis has stored them, too."""
    vectors = await cache.for_agent("ada").embed(texts, kind)
    await cache.drain()
    return vectors


async def keys(redis: Redis) -> set[bytes]:
    return {key async for key in redis.scan_iter("memory:embedding:*")}


@pytest.mark.shows("issue2-9-caches")
async def test_another_process_finds_a_querys_vector(redis: Redis, model: str) -> None:
    first, second = CountingEmbedder(model), CountingEmbedder(model)
    made = await told(CachingEmbedder(first, redis), ["one", "two"])
    metrics = Metrics()
    other = CachingEmbedder(second, redis, metrics=metrics)
    found = await other.for_agent("ada").embed(["two", "three", "one"], "query")
    np.testing.assert_array_equal(found[[2, 0]], made)
    assert second.asked == 1
    counted = [line for line in metrics.exposition().decode().splitlines() if "embedding_cache_total{" in line]
    assert sorted(counted) == [
        'agentcore_embedding_cache_total{outcome="hit",place="process"} 0.0',
        'agentcore_embedding_cache_total{outcome="hit",place="redis"} 2.0',
        'agentcore_embedding_cache_total{outcome="miss",place="process"} 3.0',
        'agentcore_embedding_cache_total{outcome="miss",place="redis"} 1.0',
    ]
    await other.for_agent("ada").embed(["two"], "query")
    assert 'outcome="hit",place="process"} 1.0' in metrics.exposition().decode()


async def test_documents_stay_out_of_redis(redis: Redis, model: str) -> None:
    before = await keys(redis)
    await told(CachingEmbedder(CountingEmbedder(model), redis), ["one"], "document")
    assert await keys(redis) == before


async def test_a_key_tells_no_text_and_runs_out(redis: Redis, model: str) -> None:
    before = await keys(redis)
    await told(CachingEmbedder(CountingEmbedder(model), redis, ttl_seconds=100), ["private words"])
    (key,) = await keys(redis) - before
    assert b"private" not in key
    assert 0 < await redis.ttl(key) <= 100


@pytest.mark.parametrize("other", ["model", "dimensions"])
@pytest.mark.shows("issue2-9-caches")
async def test_another_model_or_length_has_its_own_vectors(redis: Redis, model: str, other: str) -> None:
    await told(CachingEmbedder(CountingEmbedder(model), redis), ["one"])
    changed = CountingEmbedder(f"{model}x") if other == "model" else CountingEmbedder(model, dimensions=9)
    await CachingEmbedder(changed, redis).for_agent("ada").embed(["one"], "query")
    assert changed.asked == 1


async def test_a_value_that_is_no_vector_is_a_miss(redis: Redis, model: str) -> None:
    before = await keys(redis)
    expected = await told(CachingEmbedder(CountingEmbedder(model), redis), ["one"])
    (key,) = await keys(redis) - before
    await redis.set(key, b"damaged")
    again = CountingEmbedder(model)
    embedder = CachingEmbedder(again, redis).for_agent("ada")
    np.testing.assert_array_equal(await embedder.embed(["one"], "query"), expected)
    assert again.asked == 1


@pytest.mark.shows("A4")
async def test_forgetting_an_agent_removes_its_keys_and_no_others(redis: Redis, model: str) -> None:
    cache, ada, other = (
        CachingEmbedder(CountingEmbedder(model), redis),
        *(f"{name}:{uuid.uuid4()}" for name in ("ada", "ada*")),
    )
    for agent_id in (ada, other):
        await cache.for_agent(agent_id).embed(["one", "two"], "query")
    await cache.drain()
    before = await keys(redis)
    await cache.for_agent(ada).forget()
    gone = before - await keys(redis)
    assert len(gone) == 2 and cache.entry_count == 2
    assert all(key.startswith(f"memory:embedding:{encode_segment(ada)}:".encode()) for key in gone)


@pytest.mark.shows("A4")
async def test_another_agent_is_never_answered_from_redis(redis: Redis, model: str) -> None:
    first, second = CountingEmbedder(model), CountingEmbedder(model)
    await told(CachingEmbedder(first, redis), ["the PIN is 4711"])
    await CachingEmbedder(second, redis).for_agent("bob").embed(["the PIN is 4711"], "query")
    assert second.asked == 1


@pytest.mark.shows("A10")
async def test_an_unreachable_redis_is_a_miss_and_its_circuit_opens(model: str) -> None:
    inner = CountingEmbedder(model)
    async with dead_address() as url:
        away = make_redis(url.replace("http", "redis"), Settings(_env_file=None))
        assert away is not None
        cache = CachingEmbedder(inner, away)
        assert (await cache.for_agent("ada").embed(["one"], "query")).shape == (1, 8)
        assert (await cache.for_agent("ada").embed(["two"], "query")).shape == (1, 8)
        assert (await cache.for_agent("ada").embed(["one"], "query")).shape == (1, 8)
        assert (away.circuit.openings, away.circuit.is_open) == (1, True)
        assert inner.asked == 2
        with pytest.raises(DependencyUnavailable, match="may remain"):
            await cache.forget("ada")
        assert cache.entry_count == 0


async def test_redis_that_refuses_to_write_is_no_error(redis: Redis, model: str) -> None:
    inner = CountingEmbedder(model)
    # Redis rejects this lifetime: reads succeed, writes fail.
    cache = CachingEmbedder(inner, redis, ttl_seconds=-1)
    assert (await told(cache, ["one"])).shape == (1, 8)
    await told(CachingEmbedder(inner, redis), ["one"])
    assert inner.asked == 2
