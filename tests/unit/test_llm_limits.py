"""Timeouts of rerankers and rewriters, and their circuit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import Rewriting, relevances_of
from agentcore.memory.llm_limits import LimitedReranker, LimitedRewriter
from agentcore.memory.params.memories import Turn


class Judge:
    """A reranker with a scripted answer, or none."""

    model = "judge"

    def __init__(self) -> None:
        self.answer: Sequence[float] | None = None
        self.asked = asyncio.Event()

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.set()
        if self.answer is None:
            await asyncio.Event().wait()
        return self.answer or []


class Writer:
    """A rewriter that hangs, fails or repeats the query."""

    model = "writer"

    def __init__(self) -> None:
        self.asked = 0
        self.answer: Rewriting | DependencyUnavailable | None = None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def rewrite(self, query: str, history: Sequence[Turn], *, agent_id: str) -> Rewriting:
        self.asked += 1
        if isinstance(self.answer, DependencyUnavailable):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return self.answer or Rewriting()


# --- rerankers ---------------------------------------------------------------------------------------------


async def test_a_reranker_over_its_timeout_is_not_called_while_its_circuit_is_open() -> None:
    judge = Judge()
    limited = LimitedReranker(judge, candidates=40, timeout_seconds=0.01)
    with pytest.raises(DependencyUnavailable, match=r"judge did not answer within 0.01 seconds"):
        await limited.relevances("q", ["a"] * 40)
    judge.answer = [0.5, 0.25]
    with pytest.raises(DependencyUnavailable, match="left alone"):
        await limited.relevances("q", ["a", "b"])
    assert limited.problem is not None
    limited.circuit.record_success()
    assert await limited.relevances("q", ["a", "b"]) == [0.5, 0.25]
    assert limited.problem is None


async def test_an_answer_of_another_length_is_a_failure() -> None:
    judge = Judge()
    judge.answer = [0.5]
    limited = LimitedReranker(judge, candidates=40, timeout_seconds=5.0)
    with pytest.raises(DependencyUnavailable, match="1 scores"):
        await limited.relevances("q", ["a", "b"])
    assert limited.problem is not None


async def test_who_breaks_the_search_off_is_not_told_of_a_timeout() -> None:
    judge = Judge()
    limited = LimitedReranker(judge, candidates=40, timeout_seconds=60.0)
    asked = asyncio.create_task(limited.relevances("q", ["a"]))
    await judge.asked.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert limited.problem is None


@pytest.mark.parametrize(
    ("scores", "relevances"),
    [
        ([0.0, 1.0, 0.3], [0.0, 1.0, 0.3]),
        ([], []),
        ([0.0, 2.0], [0.5, 0.8807970779778823]),
        ([-1e308, 1e308], [0.0, 1.0]),
        ([1, 0], [1.0, 0.0]),
    ],
)
def test_scores_beyond_a_share_are_taken_for_logits(scores: list[float], relevances: list[float]) -> None:
    assert relevances_of(scores, count=len(scores)) == pytest.approx(relevances)


@pytest.mark.parametrize("scores", [[0.1], [0.1, float("nan")], [float("inf"), 0.1], [0.1, 0.2, 0.3]])
def test_scores_that_are_none_are_refused(scores: list[float]) -> None:
    with pytest.raises(DependencyUnavailable):
        relevances_of(scores, count=2)


# --- rewriters ---------------------------------------------------------------------------------------------


async def test_a_rewriter_that_ran_over_its_time_is_left_alone_for_a_while() -> None:
    writer = Writer()
    limited = LimitedRewriter(writer, timeout_seconds=0.01)
    with pytest.raises(DependencyUnavailable, match=r"did not answer within 0.01 seconds"):
        await limited.rewrite("q", [], agent_id="a")
    writer.answer = Rewriting(["r"])
    with pytest.raises(DependencyUnavailable, match="left alone"):
        await limited.rewrite("q", [], agent_id="a")
    assert writer.asked == 1
    assert limited.problem is not None


async def test_after_its_rest_it_is_asked_again() -> None:
    writer = Writer()
    limited = LimitedRewriter(writer, timeout_seconds=0.01, rest_seconds=0.0)
    with pytest.raises(DependencyUnavailable):
        await limited.rewrite("q", [], agent_id="a")
    writer.answer = Rewriting(["r"])
    assert (await limited.rewrite("q", [], agent_id="a")).queries == ["r"]
    assert limited.problem is None


@pytest.mark.parametrize(
    ("data", "rests", "problem"),
    [
        ({"late": True}, True, "no answer"),
        ({"crowded": True}, False, None),
        ({"budget": {}}, False, None),
        ({}, False, "no answer"),
    ],
)
async def test_a_model_rests_for_its_own_slowness_and_not_for_what_its_requests_waited_for(
    data: dict[str, object], rests: bool, problem: str | None
) -> None:
    writer = Writer()
    limited = LimitedRewriter(writer, timeout_seconds=5.0)
    writer.answer = DependencyUnavailable("no answer", data=data)
    with pytest.raises(DependencyUnavailable, match="no answer"):
        await limited.rewrite("q", [], agent_id="a")
    assert limited.problem == problem
    with pytest.raises(DependencyUnavailable, match="left alone" if rests else "no answer"):
        await limited.rewrite("q", [], agent_id="a")


async def test_one_that_fails_at_once_needs_no_rest() -> None:
    writer = Writer()
    limited = LimitedRewriter(writer, timeout_seconds=5.0)
    writer.answer = DependencyUnavailable("no model")
    with pytest.raises(DependencyUnavailable, match="no model"):
        await limited.rewrite("q", [], agent_id="a")
    assert limited.problem == "no model"
    writer.answer = Rewriting(["r"])
    assert (await limited.rewrite("q", [], agent_id="a")).queries == ["r"]
