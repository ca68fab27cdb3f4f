"""The OpenAI embedder against a scripted server: requests, retries, failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import tiktoken

from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.embeddings import BatchingEmbedder, EmbedderLayer, EmbedderOptions, EmbeddingKind, Vectors
from agentcore.providers import remote_request
from agentcore.providers.openai_models import OpenAiEmbedder
from agentcore.providers.remote_request import PARALLEL_REQUESTS
from tests.fixtures.embedding_providers import openai_answer, vector
from tests.fixtures.scripted_http import Reply, ScriptedServer, dead_address, scripted_http

KEY = "sk-very-secret"
SOON = {"Retry-After": "0.01"}


class _OneAtATime(EmbedderLayer):
    @property
    def parallel_requests(self) -> int:
        return 1

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        return await self._inner.embed(texts, kind)

    async def close(self) -> None:
        await self._inner.close()


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_http(openai_answer) as running:
        yield running


@asynccontextmanager
async def connected(url: str, **changes: object) -> AsyncIterator[OpenAiEmbedder]:
    settings = {
        "model_name": "text-embedding-3-small",
        "dimensions": 8,
        "cache_directory": Path("unused"),
        "api_key": KEY,
        "base_url": url,
        **changes,
    }
    embedder = OpenAiEmbedder(EmbedderOptions(**settings))  # type: ignore[arg-type]
    await embedder.open()
    try:
        yield embedder
    finally:
        await embedder.close()


async def failure(embedder: OpenAiEmbedder, text: str = "private words") -> DependencyUnavailable:
    with pytest.raises(DependencyUnavailable) as caught:
        await embedder.embed([text], "document")
    for secret in (KEY, text):
        assert secret not in f"{caught.value.message} {caught.value.data}"
    return caught.value


# --- requests -----------------------------------------------------------------------------------------------


@pytest.mark.shows("FR-1.3")
async def test_it_asks_as_the_interface_wants_it(server: ScriptedServer) -> None:
    async with connected(server.url) as embedder:
        rows = await embedder.embed(["one", "two"], "document")
    (request,) = server.received
    assert (request.method, request.path) == ("POST", "/embeddings")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json["model"] == "text-embedding-3-small"
    assert request.json["input"] == ["one", "two"]
    assert request.json["dimensions"] == 8
    expected = np.array([vector("one", 8), vector("two", 8)])
    np.testing.assert_allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


async def test_the_name_tells_vectors_of_other_lengths_apart(server: ScriptedServer) -> None:
    async with connected(server.url) as eight, connected(server.url, dimensions=16) as sixteen:
        assert eight.model == "openai/text-embedding-3-small@8"
        assert sixteen.model != eight.model


async def test_a_model_of_one_length_is_not_asked_for_a_length(server: ScriptedServer) -> None:
    async with connected(server.url, model_name="somebody/else", api_key=None) as embedder:
        await embedder.embed(["one"], "document")
        assert embedder.model == "openai/somebody/else"
    assert all("dimensions" not in request.json for request in server.received)


async def test_many_texts_go_in_several_requests_side_by_side(server: ScriptedServer) -> None:
    texts = [f"text {number}" for number in range(50)]
    async with connected(server.url, batch_size=5) as embedder:
        rows = await embedder.embed(texts, "document")
    assert [len(request.json["input"]) for request in server.received] == [5] * 10
    assert server.most_at_once <= PARALLEL_REQUESTS
    expected = np.array([vector(text, 8) for text in texts])
    assert np.sum(rows * expected, axis=1) == pytest.approx(np.linalg.norm(expected, axis=1), rel=1e-5)


async def test_a_request_stays_below_the_token_limit(server: ScriptedServer, tmp_path: Path) -> None:
    async with connected(server.url, cache_directory=tmp_path) as embedder:
        await embedder.embed(["word " * 10_000] * 10, "document")
    sizes = [sum(len(text.encode()) for text in request.json["input"]) for request in server.received]
    assert len(sizes) == 2
    assert max(sizes) <= 300_000


async def test_a_text_too_long_for_the_model_is_cut_to_what_it_reads(server: ScriptedServer, tmp_path: Path) -> None:
    async with connected(server.url, cache_directory=tmp_path) as embedder:
        await embedder.embed(["word " * 10_000, "short"], "document")
    cut, short = server.received[0].json["input"]
    assert 8_000 < len(tiktoken.get_encoding("cl100k_base").encode(cut)) <= 8_191
    assert short == "short"


async def test_an_empty_text_is_sent_as_a_blank(server: ScriptedServer) -> None:
    async with connected(server.url) as embedder:
        await embedder.embed([""], "document")
    assert server.received[0].json["input"] == [" "]


@pytest.mark.parametrize(("fast_seconds", "requests"), [(60.0, 2), (0.0, PARALLEL_REQUESTS + 1)])
async def test_texts_gather_while_a_fast_endpoint_answers(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, fast_seconds: float, requests: int
) -> None:
    monkeypatch.setattr(remote_request, "FAST_SECONDS", fast_seconds)
    texts = [f"text {number}" for number in range(12)]
    async with connected(server.url) as embedder:
        batching = BatchingEmbedder(embedder)
        await batching.embed(["first"], "query")
        server.received.clear()
        rows = await asyncio.gather(*(batching.embed([text], "query") for text in texts))
    assert len(server.received) == requests
    for row, text in zip(rows, texts, strict=True):
        assert row[0] @ vector(text, 8) == pytest.approx(np.linalg.norm(vector(text, 8)), rel=1e-5)


# --- failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        Reply({"error": {"message": "wait"}}, status=429, headers=SOON),
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
        assert (await embedder.embed(["one"], "document")).shape == (1, 8)
    assert len(server.received) == 2


async def test_trouble_that_stays_is_given_up(server: ScriptedServer) -> None:
    server.script.extend([Reply({}, status=503, headers=SOON)] * 10)
    async with connected(server.url, max_attempts=3) as embedder:
        error = await failure(embedder)
    assert error.data == {"status": 503, "refused": False}
    assert len(server.received) == 3


async def test_a_provider_that_wants_too_long_a_pause_is_given_up_at_once(server: ScriptedServer) -> None:
    server.script.append(Reply({}, status=429, headers={"Retry-After": "3600"}))
    async with connected(server.url) as embedder:
        error = await failure(embedder)
    assert error.message == "OpenAI takes no more requests for now (429)."
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("status", "message", "refused"),
    [
        (401, "OpenAI refused the key (401): check OPENAI_API_KEY.", False),
        (403, "OpenAI refused the key (403): check OPENAI_API_KEY.", False),
        (404, "OpenAI has no model 'text-embedding-3-small' here (404): check EMBEDDING_MODEL_NAME.", False),
        (400, "OpenAI refused to embed a text with 'text-embedding-3-small' (400).", True),
        (413, "OpenAI refused to embed a text with 'text-embedding-3-small' (413).", True),
    ],
)
async def test_what_no_retry_mends_is_said_at_once(
    server: ScriptedServer, status: int, message: str, refused: bool
) -> None:
    server.script.append(Reply({"error": {"message": f"bad {KEY}: private words"}}, status=status))
    async with connected(server.url) as embedder:
        error = await failure(embedder)
    assert error.message == message
    assert error.data == {"status": status, "refused": refused}
    assert len(server.received) == 1


async def test_an_empty_account_is_not_asked_again(server: ScriptedServer) -> None:
    server.script.append(Reply({"error": {"code": "insufficient_quota", "message": "pay"}}, status=429))
    async with connected(server.url) as embedder:
        await failure(embedder)
    assert len(server.received) == 1


async def test_a_provider_that_does_not_answer_is_left(server: ScriptedServer) -> None:
    server.script.append(Reply(hangs=True))
    async with connected(server.url, timeout_seconds=0.2, max_attempts=1) as embedder:
        error = await failure(embedder)
    assert error.message == "OpenAI did not answer within 0.2 seconds."


async def test_a_provider_that_is_away_is_said_to_be() -> None:
    async with dead_address() as url, connected(url, max_attempts=1) as embedder:
        assert (await failure(embedder)).message == "OpenAI cannot be reached."


@pytest.mark.parametrize("rows", [[[0.0] * 8], [[1.0] * 7], [[1.0] * 8] * 2, []])
async def test_an_answer_of_another_shape_is_refused(server: ScriptedServer, rows: list[list[float]]) -> None:
    server.script.extend(
        [
            Reply(
                {
                    "object": "list",
                    "model": "m",
                    "data": [
                        {"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)
                    ],
                }
            )
        ]
        * 3
    )
    async with connected(server.url, max_attempts=1) as embedder:
        error = await failure(embedder)
    assert "answered with" in error.message


async def test_one_failed_request_of_many_fails_the_call(server: ScriptedServer) -> None:
    server.script.append(Reply({}, status=400))
    async with connected(server.url, batch_size=1) as embedder:
        with pytest.raises(DependencyUnavailable, match="refused to embed"):
            await embedder.embed([f"text {number}" for number in range(20)], "document")


async def test_a_refused_text_does_not_fail_the_requests_merged_with_it(server: ScriptedServer) -> None:
    server.otherwise = lambda request: (
        Reply({}, status=400) if "bad" in request.json["input"] else openai_answer(request)
    )
    async with connected(server.url) as embedder:
        batching = BatchingEmbedder(_OneAtATime(embedder))
        calls = (batching.embed([text], "document") for text in ("first", "good", "bad", "fine"))
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(result, DependencyUnavailable) for result in results] == [False, False, True, False]
    assert server.received[1].json["input"] == ["good", "bad", "fine"]


# --- dimensions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_name", "dimensions", "fix"),
    [
        ("text-embedding-3-small", 3_072, "makes 1 to 1536; set EMBEDDING_DIMENSIONS=1536"),
        ("text-embedding-ada-002", 384, "makes 1536; set EMBEDDING_DIMENSIONS=1536"),
    ],
)
@pytest.mark.shows("issue2-9-dimensions")
def test_dimensions_a_model_cannot_make_stop_the_start(model_name: str, dimensions: int, fix: str) -> None:
    with pytest.raises(ConfigurationError, match=fix):
        OpenAiEmbedder(EmbedderOptions(model_name, dimensions, Path("unused")))


async def test_dimensions_an_unknown_model_does_not_make_stop_the_start(server: ScriptedServer) -> None:
    embedder = OpenAiEmbedder(EmbedderOptions("somebody/else", 384, Path("unused"), base_url=server.url))
    with pytest.raises(ConfigurationError, match="makes 8; set EMBEDDING_DIMENSIONS=8"):
        await embedder.open()
    with pytest.raises(DependencyUnavailable, match="not open"):
        await embedder.embed(["one"], "document")


@pytest.mark.parametrize("reply", [Reply({}, status=503), Reply({}, status=401), Reply(b"{broken")])
async def test_an_unknown_model_that_is_away_stops_nothing(server: ScriptedServer, reply: Reply) -> None:
    server.script.append(reply)
    async with connected(server.url, model_name="somebody/else") as embedder:
        assert (await embedder.embed(["one"], "document")).shape == (1, 8)
