"""Wrappers of an embedder: validation of its answers, the in-process cache, and batches."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.embeddings import BatchingEmbedder, EmbedderOptions, EmbeddingKind, Vectors, unit_rows
from agentcore.providers.hashing import HashingEmbedder

DIMENSIONS = 16


class GatedEmbedder(HashingEmbedder):
    """The hashing embedder, which records its requests and answers only while its gate is open."""

    def __init__(self, *, batch_size: int = 4, distinguishes_queries: bool = False) -> None:
        super().__init__(EmbedderOptions("gated", DIMENSIONS, Path("unused"), batch_size=batch_size))
        self.distinguishes_queries = distinguishes_queries
        self.asked: list[list[str]] = []
        self.refuses: set[str] = set()
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.closed = False
        self.answer: weakref.ref[Vectors] | None = None

    async def close(self) -> None:
        self.closed = True

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        self.asked.append(list(texts))
        self.entered.set()
        if kind == "document":
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        if self.refuses.intersection(texts):
            raise DependencyUnavailable("refused", data={"refused": True})
        answer = await super().embed(texts, kind)
        self.answer = weakref.ref(answer)
        return answer


# --- answers -----------------------------------------------------------------------------------------------


def test_rows_are_given_unit_length() -> None:
    rows = unit_rows([[3.0, 4.0], [0.0, -2.0]], count=2, dimensions=2)
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, -1.0]])
    assert rows.dtype == np.float32


@pytest.mark.parametrize(
    "answer",
    [
        [[1.0, 0.0]],
        [[1.0], [1.0]],
        [1.0, 2.0],
        [],
        [[1.0, 0.0], [1.0]],
        [["a", "b"], ["c", "d"]],
        [[0.0, 0.0], [1.0, 0.0]],
        [[float("nan"), 1.0], [1.0, 0.0]],
        [[float("inf"), 1.0], [1.0, 0.0]],
        [None, None],
    ],
)
def test_what_is_no_list_of_vectors_is_refused(answer: list[object]) -> None:
    with pytest.raises(DependencyUnavailable):
        unit_rows(answer, count=2, dimensions=2)  # type: ignore[arg-type]


def test_options_do_not_show_the_key() -> None:
    assert "secret" not in repr(EmbedderOptions("model", 2, Path(), api_key="secret"))


# --- cache -------------------------------------------------------------------------------------------------


async def test_a_text_is_embedded_once() -> None:
    inner = GatedEmbedder()
    cache = CachingEmbedder(inner)
    first = await cache.for_agent("ada").embed(["one", "two", "one"], "query")
    second = await cache.for_agent("ada").embed(["two", "three", "one"], "query")
    assert inner.asked == [["one", "two"], ["three"]]
    np.testing.assert_array_equal(second[[2, 0]], first[:2])
    np.testing.assert_array_equal(second, await inner.embed(["two", "three", "one"], "query"))


async def test_no_texts_ask_nothing() -> None:
    inner = GatedEmbedder()
    for layer in (CachingEmbedder(inner).for_agent("ada"), BatchingEmbedder(inner)):
        assert (await layer.embed([], "query")).shape == (0, DIMENSIONS)
    assert inner.asked == []


async def test_changing_an_answer_does_not_change_the_cache() -> None:
    cache = CachingEmbedder(GatedEmbedder())
    first = await cache.for_agent("ada").embed(["one"], "query")
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(await cache.for_agent("ada").embed(["one"], "query"), kept)


async def test_a_remembered_row_does_not_keep_its_whole_batch() -> None:
    inner = GatedEmbedder()
    cache = CachingEmbedder(inner, max_entries=1)
    await cache.for_agent("ada").embed(["one", "two", "three"], "query")
    gc.collect()
    assert inner.answer is not None
    assert inner.answer() is None


@pytest.mark.parametrize(("distinguishes_queries", "times"), [(False, 1), (True, 2)])
async def test_kinds_share_a_vector_unless_the_provider_parts_them(distinguishes_queries: bool, times: int) -> None:
    inner = GatedEmbedder(distinguishes_queries=distinguishes_queries)
    cache = CachingEmbedder(inner)
    await cache.for_agent("ada").embed(["one"], "document")
    await cache.for_agent("ada").embed(["one"], "query")
    assert len(inner.asked) == times


async def test_what_was_used_longest_ago_goes_first() -> None:
    inner = GatedEmbedder()
    cache = CachingEmbedder(inner, max_entries=2)
    await cache.for_agent("ada").embed(["one"], "query")
    await cache.for_agent("ada").embed(["two"], "query")
    await cache.for_agent("ada").embed(["one"], "query")
    await cache.for_agent("ada").embed(["three"], "query")
    assert cache.entry_count == 2
    inner.asked.clear()
    await cache.for_agent("ada").embed(["one", "two", "three"], "query")
    assert inner.asked == [["two"]]


async def test_a_batch_larger_than_the_cache_is_answered_whole() -> None:
    cache = CachingEmbedder(GatedEmbedder(), max_entries=0)
    vectors = await cache.for_agent("ada").embed([f"text {number}" for number in range(10)], "document")
    assert vectors.shape == (10, DIMENSIONS)
    assert cache.entry_count == 0


async def test_a_failure_is_not_remembered() -> None:
    inner = GatedEmbedder()
    cache = CachingEmbedder(inner)
    inner.failure = DependencyUnavailable("away")
    with pytest.raises(DependencyUnavailable, match="away"):
        await cache.for_agent("ada").embed(["one"], "query")
    inner.failure = None
    assert (await cache.for_agent("ada").embed(["one"], "query")).shape == (1, DIMENSIONS)


@pytest.mark.shows("A4")
async def test_a_forgotten_agents_texts_are_embedded_again_and_no_others() -> None:
    inner = GatedEmbedder(distinguishes_queries=True)
    cache = CachingEmbedder(inner)
    for agent_id in ("ada", "bob"):
        await cache.for_agent(agent_id).embed(["one"], "document")
        await cache.for_agent(agent_id).embed(["one"], "query")
    await cache.forget("ada")
    inner.asked.clear()
    await cache.for_agent("bob").embed(["one"], "query")
    assert inner.asked == []
    await cache.for_agent("ada").embed(["one"], "document")
    await cache.for_agent("ada").embed(["one"], "query")
    assert inner.asked == [["one"], ["one"]]


@pytest.mark.shows("A4")
async def test_an_agent_never_gets_the_cached_vector_of_another() -> None:
    inner = GatedEmbedder()
    cache = CachingEmbedder(inner)
    await cache.for_agent("ada").embed(["the PIN is 4711"], "query")
    await cache.for_agent("bob").embed(["the PIN is 4711"], "query")
    assert inner.asked == [["the PIN is 4711"]] * 2


@pytest.mark.shows("A4")
async def test_without_an_agent_nothing_is_cached() -> None:
    inner = GatedEmbedder()
    cache = CachingEmbedder(inner)
    await cache.embed(["one"], "query")
    await cache.embed(["one"], "query")
    assert (inner.asked, cache.entry_count) == ([["one"], ["one"]], 0)


async def test_closing_empties_the_cache_and_closes_what_is_inside() -> None:
    inner = GatedEmbedder()
    cache = CachingEmbedder(BatchingEmbedder(inner))
    await cache.open()
    await cache.for_agent("ada").embed(["one"], "query")
    await cache.close()
    assert inner.closed
    assert cache.entry_count == 0


# --- batches -----------------------------------------------------------------------------------------------


async def held(inner: GatedEmbedder, batching: BatchingEmbedder) -> asyncio.Task[Vectors]:
    """Starts a request that is blocked until the gate opens; a single request starts at once."""
    inner.gate.clear()
    task = asyncio.create_task(batching.embed(["held"], "document"))
    await inner.entered.wait()
    assert inner.asked == [["held"]]
    return task


async def queued(batching: BatchingEmbedder, *requests: Sequence[str]) -> list[asyncio.Task[Vectors]]:
    """Enqueues requests behind the running one."""
    tasks = [asyncio.create_task(batching.embed(texts, "document")) for texts in requests]
    await asyncio.wait(tasks, timeout=0)
    return tasks


@pytest.mark.shows("issue2-9-batching")
async def test_requests_that_wait_are_merged_and_answered_each_with_its_own() -> None:
    inner = GatedEmbedder(batch_size=4)
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    waiting = await queued(batching, ["a"], ["b", "c"], ["d"], ["e"])
    inner.gate.set()
    answers = await asyncio.gather(first, *waiting)
    assert inner.asked == [["held"], ["a", "b", "c", "d"], ["e"]]
    np.testing.assert_array_equal(
        np.concatenate(answers), await inner.embed(["held", "a", "b", "c", "d", "e"], "query")
    )


async def test_a_request_larger_than_a_batch_goes_alone_and_whole() -> None:
    inner = GatedEmbedder(batch_size=2)
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    waiting = await queued(batching, ["a"], ["b", "c", "d"], ["e"])
    inner.gate.set()
    await asyncio.gather(first, *waiting)
    assert inner.asked == [["held"], ["a"], ["b", "c", "d"], ["e"]]


async def test_a_query_does_not_wait_for_documents() -> None:
    inner = GatedEmbedder()
    batching = BatchingEmbedder(inner)
    document = await held(inner, batching)
    assert (await batching.embed(["question"], "query")).shape == (1, DIMENSIONS)
    assert not document.done()
    inner.gate.set()
    await document


async def test_a_request_nobody_waits_for_any_more_is_not_embedded() -> None:
    inner = GatedEmbedder()
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    gone, stays = await queued(batching, ["gone"], ["stays"])
    gone.cancel()
    await asyncio.wait([gone])
    inner.gate.set()
    await asyncio.gather(first, stays)
    assert inner.asked == [["held"], ["stays"]]


async def test_where_nobody_waits_any_more_nothing_is_embedded() -> None:
    inner = GatedEmbedder()
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    (gone,) = await queued(batching, ["gone"])
    gone.cancel()
    await asyncio.wait([gone])
    inner.gate.set()
    await first
    await batching.close()
    assert inner.asked == [["held"]]


async def test_a_request_given_up_under_way_harms_no_other() -> None:
    inner = GatedEmbedder()
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    first.cancel()
    await asyncio.wait([first])
    (other,) = await queued(batching, ["other"])
    inner.gate.set()
    assert (await other).shape == (1, DIMENSIONS)


async def test_a_failure_reaches_every_request_of_its_batch_and_no_later_one() -> None:
    inner = GatedEmbedder()
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    inner.failure = DependencyUnavailable("away")
    waiting = await queued(batching, ["a"], ["b"])
    inner.gate.set()
    results = await asyncio.gather(first, *waiting, return_exceptions=True)
    assert [str(result) for result in results] == ["away"] * 3
    inner.failure = None
    assert (await batching.embed(["later"], "document")).shape == (1, DIMENSIONS)


async def test_an_unforeseen_failure_leaves_nobody_waiting() -> None:
    inner = GatedEmbedder()
    inner.failure = ZeroDivisionError("a defect")
    with pytest.raises(ZeroDivisionError):
        await BatchingEmbedder(inner).embed(["a"], "document")


async def test_a_refused_text_fails_its_own_request_alone() -> None:
    inner = GatedEmbedder()
    inner.refuses = {"too long"}
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    waiting = await queued(batching, ["a"], ["too long"], ["b"])
    inner.gate.set()
    results = await asyncio.gather(first, *waiting, return_exceptions=True)
    assert [isinstance(result, DependencyUnavailable) for result in results] == [False, False, True, False]
    assert inner.asked == [["held"], ["a", "too long", "b"], ["a"], ["too long"], ["b"]]


async def test_closing_answers_what_was_taken() -> None:
    inner = GatedEmbedder()
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    waiting = await queued(batching, ["a"], ["b"])
    closing = asyncio.create_task(batching.close())
    inner.gate.set()
    await closing
    assert inner.closed
    assert inner.asked == [["held"], ["a", "b"]]
    assert [len(vectors) for vectors in await asyncio.gather(first, *waiting)] == [1, 1, 1]


async def test_cancelled_work_leaves_nobody_waiting() -> None:
    inner = GatedEmbedder()
    batching = BatchingEmbedder(inner)
    first = await held(inner, batching)
    (work,) = [task for task in asyncio.all_tasks() if task.get_name() == "embed document"]
    work.cancel()
    with pytest.raises(DependencyUnavailable, match="closed"):
        await first
