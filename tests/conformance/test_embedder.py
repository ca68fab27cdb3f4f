"""Conformance of every embedder, with and without each wrapper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.embeddings import EMBEDDERS, BatchingEmbedder, Embedder, EmbedderOptions, EmbeddingKind
from agentcore.registry import resolve
from tests.fixtures.embedding_providers import cohere_answer, openai_answer
from tests.fixtures.scripted_http import Received, Reply, scripted_http

REMOTE: dict[str, Callable[[Received], Reply]] = {"openai": openai_answer, "cohere": cohere_answer}
SETTINGS = {
    "local": ("multilingual-e5-small-adapted", 384),
    "hashing": ("hashing", 48),
    "openai": ("text-embedding-3-small", 24),
    "cohere": ("embed-v4.0", 256),
}
LAYERS: dict[str, Callable[[Embedder], Embedder]] = {
    "bare": lambda inner: inner,
    "batching": BatchingEmbedder,
    "caching": lambda inner: CachingEmbedder(inner).for_agent("ada"),
    "both": lambda inner: CachingEmbedder(BatchingEmbedder(inner)).for_agent("ada"),
}
TEXTS = [
    "first text",
    "second, longer text about something else",
    "",
    "NUL \0 and \u4e2d\u6587 \U0001f600",
    "w " * 3_000,
]
KINDS: tuple[EmbeddingKind, ...] = ("document", "query")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedders")


@asynccontextmanager
async def made(name: str, cache: Path) -> AsyncIterator[Embedder]:
    """Creates an embedder of the table, not opened yet, and the service it asks."""
    model_name, dimensions = SETTINGS[name]
    async with AsyncExitStack() as stack:
        url = (await stack.enter_async_context(scripted_http(REMOTE[name]))).url if name in REMOTE else None
        options = EmbedderOptions(model_name, dimensions, cache, api_key="key", base_url=url, batch_size=16)
        yield resolve(name, EMBEDDERS, kind="embedder")(options)


@pytest.fixture(params=sorted(EMBEDDERS))
async def closed_embedder(request: pytest.FixtureRequest, cache: Path) -> AsyncIterator[Embedder]:
    async with made(request.param, cache) as embedder:
        yield embedder


@pytest.fixture(scope="module", params=sorted(EMBEDDERS))
async def opened(request: pytest.FixtureRequest, cache: Path) -> AsyncIterator[Embedder]:
    """Each embedder of the table, opened once, since loading a model takes longer than a test."""
    async with made(request.param, cache) as embedder:
        await embedder.open()
        yield embedder
        await embedder.close()


@pytest.fixture(params=sorted(LAYERS))
def embedder(request: pytest.FixtureRequest, opened: Embedder) -> Embedder:
    """The embedder in new layers, so that no test finds the cache of another."""
    return LAYERS[request.param](opened)


@pytest.mark.shows("FR-1.3")
async def test_each_text_gets_a_row_of_unit_length(embedder: Embedder) -> None:
    for kind in KINDS:
        vectors = await embedder.embed(TEXTS, kind)
        assert vectors.shape == (len(TEXTS), embedder.dimensions)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    vectors = await embedder.embed([], "query")
    assert vectors.shape == (0, embedder.dimensions)
    assert vectors.dtype == np.float32


async def test_rows_stand_in_the_order_of_their_texts(embedder: Embedder) -> None:
    texts = [f"text {number} {'and more ' * (number % 5)}" for number in range(40)]
    together = await embedder.embed(texts, "document")
    backwards = await embedder.embed(texts[::-1], "document")
    assert np.sum(together * backwards[::-1], axis=1).min() >= 0.9999
    assert np.max(together @ together.T - np.eye(len(texts))) < 0.9999


async def test_concurrent_calls_do_not_mix_up(embedder: Embedder) -> None:
    texts = [f"text {number}" for number in range(20)]
    answers = await asyncio.gather(*(embedder.embed([text], "query") for text in texts))
    together = await embedder.embed(texts, "query")
    assert np.sum(np.concatenate(answers) * together, axis=1).min() >= 0.9999


async def test_kinds_differ_only_where_it_says_so(embedder: Embedder) -> None:
    document, query = [(await embedder.embed(["some text"], kind))[0] for kind in KINDS]
    assert (document @ query < 0.9999) == embedder.distinguishes_queries


async def test_it_says_what_it_is(embedder: Embedder) -> None:
    assert embedder.model
    assert embedder.batch_size >= 1
    assert embedder.parallel_requests >= 1


async def test_it_may_be_opened_again_after_it_was_closed(embedder: Embedder) -> None:
    before = await embedder.embed(["some text"], "query")
    await embedder.close()
    await embedder.open()
    np.testing.assert_allclose(await embedder.embed(["some text"], "query"), before, atol=1e-6)


async def test_closed_it_is_unavailable_or_needs_no_opening(closed_embedder: Embedder) -> None:
    await closed_embedder.close()
    try:
        vectors = await closed_embedder.embed(["some text"], "query")
    except DependencyUnavailable:
        return
    assert vectors.shape == (1, closed_embedder.dimensions)
