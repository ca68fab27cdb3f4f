"""The Cohere embedder against a scripted server: requests, retries, failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind
from agentcore.providers.cohere_embedder import CohereEmbedder
from tests.fixtures.embedding_providers import cohere_answer, vector
from tests.fixtures.scripted_http import Reply, ScriptedServer, dead_address, scripted_http

KEY = "very-secret"
SOON = {"Retry-After": "0.01"}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_http(lambda request: cohere_answer(request, dimensions=384)) as running:
        yield running


@asynccontextmanager
async def connected(url: str, **changes: object) -> AsyncIterator[CohereEmbedder]:
    settings = {
        "model_name": "embed-english-light-v3.0",
        "dimensions": 384,
        "api_key": KEY,
        "base_url": url,
        "cache_directory": Path("unused"),
        **changes,
    }
    embedder = CohereEmbedder(EmbedderOptions(**settings))  # type: ignore[arg-type]
    await embedder.open()
    try:
        yield embedder
    finally:
        await embedder.close()


async def failure(embedder: CohereEmbedder, text: str = "private words") -> DependencyUnavailable:
    with pytest.raises(DependencyUnavailable) as caught:
        await embedder.embed([text], "document")
    for secret in (KEY, text):
        assert secret not in f"{caught.value.message} {caught.value.data}"
    return caught.value


@pytest.mark.parametrize("kind", ["document", "query"])
@pytest.mark.shows("FR-1.3")
async def test_it_says_what_a_text_is_embedded_for(server: ScriptedServer, kind: EmbeddingKind) -> None:
    async with connected(server.url) as embedder:
        rows = await embedder.embed(["one", "two"], kind)
        assert embedder.model == "cohere/embed-english-light-v3.0"
    (request,) = server.received
    assert (request.method, request.path) == ("POST", "/v2/embed")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {
        "model": "embed-english-light-v3.0",
        "input_type": f"search_{kind}",
        "texts": ["one", "two"],
        "embedding_types": ["float"],
        "truncate": "END",
    }
    expected = np.array([vector(text, 384, f"search_{kind}") for text in ("one", "two")])
    np.testing.assert_allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


async def test_a_model_of_several_lengths_is_asked_for_one(server: ScriptedServer) -> None:
    async with connected(server.url, model_name="embed-v4.0", dimensions=512) as embedder:
        assert (await embedder.embed(["one"], "query")).shape == (1, 512)
        assert embedder.model == "cohere/embed-v4.0@512"
    assert server.received[0].json["output_dimension"] == 512


async def test_a_request_holds_no_more_texts_than_cohere_takes(server: ScriptedServer) -> None:
    async with connected(server.url, batch_size=2_048) as embedder:
        assert (await embedder.embed(["text"] * 200, "document")).shape == (200, 384)
    assert sorted(len(request.json["texts"]) for request in server.received) == [8, 96, 96]


@pytest.mark.parametrize(
    "trouble",
    [
        Reply({"message": "slow down"}, status=429, headers=SOON),
        Reply(b"busy", status=503, headers=SOON),
        Reply({}, status=500, headers=SOON),
        Reply(b"{broken"),
        Reply({"nothing": "here"}),
        Reply(b"[]"),
    ],
)
@pytest.mark.shows("NFR-4.2")
async def test_passing_trouble_is_tried_again(server: ScriptedServer, trouble: Reply) -> None:
    server.script.append(trouble)
    async with connected(server.url) as embedder:
        assert (await embedder.embed(["one"], "document")).shape == (1, 384)
    assert len(server.received) == 2


async def test_trouble_that_stays_is_given_up(server: ScriptedServer) -> None:
    server.script.extend([Reply({}, status=503, headers=SOON)] * 10)
    async with connected(server.url, max_attempts=3) as embedder:
        error = await failure(embedder)
    assert error.data == {"status": 503, "refused": False}
    assert len(server.received) == 3


@pytest.mark.parametrize(
    ("status", "message", "refused"),
    [
        (401, "Cohere refused the key (401): check COHERE_API_KEY.", False),
        (404, "Cohere has no model 'embed-english-light-v3.0' here (404): check EMBEDDING_MODEL_NAME.", False),
        (400, "Cohere refused to embed a text with 'embed-english-light-v3.0' (400).", True),
        (422, "Cohere refused to embed a text with 'embed-english-light-v3.0' (422).", True),
        (498, "Cohere failed to embed (498).", False),
    ],
)
async def test_what_no_retry_mends_is_said_at_once(
    server: ScriptedServer, status: int, message: str, refused: bool
) -> None:
    server.script.append(Reply({"message": f"bad {KEY}: private words"}, status=status))
    async with connected(server.url) as embedder:
        error = await failure(embedder)
    assert error.message == message
    assert error.data == {"status": status, "refused": refused}
    assert len(server.received) == 1


async def test_a_provider_that_does_not_answer_is_left(server: ScriptedServer) -> None:
    server.script.append(Reply(hangs=True))
    async with connected(server.url, timeout_seconds=0.2, max_attempts=1) as embedder:
        assert (await failure(embedder)).message == "Cohere did not answer within 0.2 seconds."


async def test_a_provider_that_is_away_is_said_to_be() -> None:
    async with dead_address() as url, connected(url, max_attempts=1) as embedder:
        assert (await failure(embedder)).message == "Cohere cannot be reached."


@pytest.mark.parametrize(
    ("model_name", "dimensions", "fix"),
    [
        ("embed-english-v3.0", 384, "makes 1024; set EMBEDDING_DIMENSIONS=1024"),
        ("embed-v4.0", 384, "makes 256 or 512 or 1024 or 1536; set EMBEDDING_DIMENSIONS=1536"),
    ],
)
def test_dimensions_a_model_cannot_make_stop_the_start(model_name: str, dimensions: int, fix: str) -> None:
    with pytest.raises(ConfigurationError, match=fix):
        CohereEmbedder(EmbedderOptions(model_name, dimensions, Path("unused"), api_key=KEY))


async def test_dimensions_an_unknown_model_does_not_make_stop_the_start(server: ScriptedServer) -> None:
    options = EmbedderOptions("embed-v9", 1_024, Path("unused"), api_key=KEY, base_url=server.url)
    embedder = CohereEmbedder(options)
    with pytest.raises(ConfigurationError, match="makes 384; set EMBEDDING_DIMENSIONS=384"):
        await embedder.open()
    with pytest.raises(DependencyUnavailable, match="not open"):
        await embedder.embed(["one"], "document")
