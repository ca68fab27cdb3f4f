"""Conformance of every reranker, with and without the limits around it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import RERANKERS, Reranker, RerankerOptions
from agentcore.memory.llm_limits import LimitedReranker
from agentcore.registry import resolve
from tests.fixtures.rerank_providers import cohere_rerank, tei_rerank
from tests.fixtures.scripted_http import Received, Reply, scripted_http

QUERY = "When does the green ferry to Ostend leave?"
# Ordered from worst to best under any way of counting words.
TEXTS = [
    "Nobody knows anything.",
    "A ferry is a boat.",
    "The green ferry is a boat.",
    "The green ferry to Ostend is a boat.",
    "When does the green ferry to Ostend leave? At seven.",
]
SERVERS: dict[str, Callable[[Received], Reply]] = {"http": cohere_rerank, "http texts": tei_rerank}


@pytest.fixture(params=[*SERVERS])
async def closed_reranker(request: pytest.FixtureRequest) -> AsyncIterator[Reranker]:
    """Each reranker of the table, not opened yet."""
    name = request.param
    async with scripted_http(SERVERS[name]) as server:
        options = RerankerOptions(url=server.url, timeout_seconds=10.0)
        yield resolve(name.split()[0], RERANKERS, kind="reranker")(options)


@pytest.fixture
async def reranker(closed_reranker: Reranker) -> AsyncIterator[Reranker]:
    await closed_reranker.open()
    yield closed_reranker
    await closed_reranker.close()


def by_score(texts: Sequence[str], scores: Sequence[float]) -> list[str]:
    return [texts[place] for place in sorted(range(len(texts)), key=lambda place: scores[place])]


def test_every_reranker_of_the_table_is_held_to_this() -> None:
    assert {name.split()[0] for name in SERVERS} == set(RERANKERS)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
async def test_the_better_a_text_answers_the_higher_its_score(reranker: Reranker, order: list[int]) -> None:
    texts = [TEXTS[place] for place in order]
    scores = await reranker.score(QUERY, texts)
    assert by_score(texts, scores) == TEXTS


async def test_scores_are_finite_numbers_one_a_text(reranker: Reranker) -> None:
    texts = [*TEXTS, "", " ", "NUL \0 and \u4e2d\u6587 \U0001f600", "w " * 30_000, TEXTS[0]]
    scores = await reranker.score(QUERY, texts)
    assert len(scores) == len(texts)
    assert all(isinstance(score, float) and math.isfinite(score) for score in scores)
    assert scores[-1] == pytest.approx(scores[0])


async def test_no_texts_give_no_scores(reranker: Reranker) -> None:
    assert list(await reranker.score(QUERY, [])) == []


async def test_a_very_long_query_is_read_too(reranker: Reranker) -> None:
    assert len(await reranker.score("ferry " * 30_000, TEXTS)) == len(TEXTS)


async def test_concurrent_calls_do_not_mix_up(reranker: Reranker) -> None:
    together = await asyncio.gather(*(reranker.score(text, TEXTS) for text in TEXTS))
    for text, scores in zip(TEXTS, together, strict=True):
        assert await reranker.score(text, TEXTS) == pytest.approx(scores)


async def test_it_may_be_opened_again_after_it_was_closed(reranker: Reranker) -> None:
    before = await reranker.score(QUERY, TEXTS)
    await reranker.close()
    await reranker.open()
    assert await reranker.score(QUERY, TEXTS) == pytest.approx(before)


async def test_closed_it_is_unavailable(closed_reranker: Reranker) -> None:
    await closed_reranker.close()
    with pytest.raises(DependencyUnavailable):
        await closed_reranker.score(QUERY, TEXTS)


async def test_it_says_what_it_is(closed_reranker: Reranker) -> None:
    assert closed_reranker.model


async def test_limits_around_it_leave_the_order_and_give_shares(closed_reranker: Any) -> None:
    limited = LimitedReranker(closed_reranker, candidates=40, timeout_seconds=10.0)
    await limited.open()
    relevances = await limited.relevances(QUERY, TEXTS)
    await limited.close()
    assert by_score(TEXTS, relevances) == TEXTS
    assert all(0.0 <= each <= 1.0 for each in relevances)
    assert limited.model == closed_reranker.model
