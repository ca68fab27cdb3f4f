"""The HTTP reranker against a scripted server: requests, both formats, retries, failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.llm import RerankerOptions
from agentcore.providers.http_reranker import HttpReranker
from tests.fixtures.rerank_providers import cohere_rerank, shared, tei_rerank
from tests.fixtures.scripted_http import Reply, ScriptedServer, dead_address, scripted_http

KEY = "very-secret"
QUERY = "where is the green boat"
TEXTS = ["private words", "The green boat is in Ostend.", "A boat.", ""]
SCORES = [0.0, 0.8, 0.2, 0.0]
SOON = {"Retry-After": "0.01"}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_http(cohere_rerank) as running:
        yield running


@asynccontextmanager
async def connected(url: str, **changes: object) -> AsyncIterator[HttpReranker]:
    options = {"url": f"{url}/v2/rerank", "model_name": "rerank-v3.5", "timeout_seconds": 5.0, **changes}
    reranker = HttpReranker(RerankerOptions(**options))  # type: ignore[arg-type]
    await reranker.open()
    try:
        yield reranker
    finally:
        await reranker.close()


async def failure(reranker: HttpReranker) -> DependencyUnavailable:
    with pytest.raises(DependencyUnavailable) as caught:
        await reranker.score(QUERY, TEXTS)
    for secret in (KEY, "private words", QUERY):
        assert secret not in f"{caught.value.message} {caught.value.data}"
    return caught.value


async def test_it_asks_in_the_common_form_and_gives_scores_in_the_texts_order(server: ScriptedServer) -> None:
    async with connected(server.url, api_key=KEY) as reranker:
        assert await reranker.score(QUERY, TEXTS) == pytest.approx(SCORES)
        assert reranker.model == "http/rerank-v3.5"
    (request,) = server.received
    assert (request.method, request.path) == ("POST", "/v2/rerank")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {"model": "rerank-v3.5", "query": QUERY, "documents": TEXTS}


async def test_a_server_of_the_other_form_is_asked_in_it_from_then_on(server: ScriptedServer) -> None:
    server.otherwise = tei_rerank
    async with connected(server.url, model_name=None) as reranker:
        for _ in range(2):
            assert await reranker.score(QUERY, TEXTS) == pytest.approx(SCORES)
    assert [sorted(request.json) for request in server.received] == [
        ["documents", "query"],
        ["query", "texts", "truncate"],
        ["query", "texts", "truncate"],
    ]
    assert all("authorization" not in request.headers for request in server.received)


async def test_in_the_other_form_a_request_holds_no_more_texts_than_such_a_server_takes(server: ScriptedServer) -> None:
    server.otherwise = tei_rerank
    texts = [f"the green boat {'is in Ostend ' * (number % 3)}" for number in range(70)]
    async with connected(server.url) as reranker:
        scores = await reranker.score(QUERY, texts)
    assert scores == pytest.approx([shared(QUERY, text) for text in texts])
    assert sorted(len(request.json.get("texts", [])) for request in server.received) == [0, 6, 32, 32]


async def test_what_both_forms_are_refused_for_is_told_as_the_first_refusal(server: ScriptedServer) -> None:
    server.otherwise = lambda request: Reply({"message": f"bad {KEY}"}, status=400)
    async with connected(server.url) as reranker:
        error = await failure(reranker)
    assert error.message == "The reranker refused to rerank a text with 'rerank-v3.5' (400)."
    assert len(server.received) == 2


async def test_no_texts_need_no_request(server: ScriptedServer) -> None:
    async with connected(server.url) as reranker:
        assert await reranker.score(QUERY, []) == []
    assert server.received == []


RIGHT = [{"index": index, "relevance_score": score} for index, score in enumerate(SCORES)]


@pytest.mark.parametrize(
    "body",
    [
        {"results": RIGHT},
        {
            "model": "jina",
            "usage": {"total_tokens": 3},
            "results": [{**each, "document": {"text": "private words"}} for each in RIGHT],
        },
        [{"index": each["index"], "score": each["relevance_score"], "text": None} for each in RIGHT[::-1]],
    ],
)
async def test_every_form_of_the_answer_is_understood(server: ScriptedServer, body: object) -> None:
    server.script.append(Reply(body))
    async with connected(server.url) as reranker:
        assert await reranker.score(QUERY, TEXTS) == pytest.approx(SCORES)


@pytest.mark.parametrize(
    "body",
    [
        b"{broken",
        b"",
        b"\xff\xfe",
        {"nothing": "here"},
        [],
        {"results": RIGHT[:3]},
        {"results": [*RIGHT, RIGHT[0]]},
        {"results": [*RIGHT[:3], {"index": 4, "relevance_score": 0.1}]},
        {"results": [*RIGHT[:3], {"index": -1, "relevance_score": 0.1}]},
        {"results": [*RIGHT[:3], {"index": 3, "relevance_score": None}]},
        b'{"results": [{"index": 0, "relevance_score": NaN}]}',
        "private words",
        {"results": {"0": 0.3}},
    ],
    ids=repr,
)
async def test_an_answer_of_another_shape_is_tried_again_and_then_refused(server: ScriptedServer, body: object) -> None:
    server.otherwise = lambda request: Reply(body)
    async with connected(server.url) as reranker:
        assert (await failure(reranker)).message == "The reranker answered with what is no list of scores."
    assert len(server.received) == 2


@pytest.mark.parametrize(
    "trouble",
    [
        Reply({"message": "slow down"}, status=429, headers=SOON),
        Reply(b"busy", status=503, headers=SOON),
        Reply({}, status=500),
        Reply(b"{broken"),
    ],
)
async def test_passing_trouble_is_tried_again(server: ScriptedServer, trouble: Reply) -> None:
    server.script.append(trouble)
    async with connected(server.url) as reranker:
        assert await reranker.score(QUERY, TEXTS) == pytest.approx(SCORES)
    assert len(server.received) == 2


@pytest.mark.parametrize(
    ("reply", "message", "requests"),
    [
        (Reply({}, status=401), "The reranker refused the key (401): check RERANKER_API_KEY.", 1),
        (
            Reply({}, status=404),
            "The reranker has no model 'rerank-v3.5' here (404): check RERANKER_URL and RERANKER_MODEL.",
            1,
        ),
        (Reply(status=302, headers={"Location": "/elsewhere"}), "The reranker failed to rerank (302).", 1),
        (Reply({}, status=500, headers=SOON), "The reranker failed to rerank (500).", 2),
        (Reply({}, status=429, headers={"Retry-After": "60"}), "The reranker takes no more requests for now (429).", 1),
    ],
)
async def test_what_no_retry_mends_in_time_is_said(
    server: ScriptedServer, reply: Reply, message: str, requests: int
) -> None:
    server.otherwise = lambda request: reply
    async with connected(server.url, api_key=KEY) as reranker:
        error = await failure(reranker)
    assert error.message == message
    assert error.data["status"] == reply.status
    assert len(server.received) == requests


async def test_a_server_that_does_not_answer_is_left(server: ScriptedServer) -> None:
    server.otherwise = lambda request: Reply(hangs=True)
    async with connected(server.url, timeout_seconds=0.1) as reranker:
        assert (await failure(reranker)).message == "The reranker did not answer within 0.1 seconds."


async def test_a_server_that_is_away_is_said_to_be() -> None:
    async with dead_address() as url, connected(url) as reranker:
        assert (await failure(reranker)).message == "The reranker cannot be reached."


async def test_closed_it_is_unavailable(server: ScriptedServer) -> None:
    async with connected(server.url) as reranker:
        pass
    with pytest.raises(DependencyUnavailable, match="not open"):
        await reranker.score(QUERY, TEXTS)


@pytest.mark.parametrize(("url", "said"), [(None, "needs RERANKER_URL"), ("http://[::", "is not a URL")])
def test_without_an_address_it_does_not_start(url: str | None, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        HttpReranker(RerankerOptions(url=url))
