"""What searches by several wordings found, put together."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from agentcore.memory.retrieval import Candidate, Tie
from agentcore.memory.rewriting import together
from agentcore.memory.vector_store import Found

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def candidate(number: int, similarity: float | None) -> Candidate:
    text = (bytes([number]), None, None, None)
    return Candidate(UUID(int=number), MOMENT, 0.5, similarity, 1.0, 0.0, None, 0, None, text)


def found(*candidates: Candidate, ties: tuple[Tie, ...] = ()) -> Found:
    return Found(candidates, ties, ties, {"vector": len(candidates), "lexical": 0}, "exact")


def test_one_search_is_given_back_as_it_is() -> None:
    only = found(candidate(1, 0.5))
    assert together([only]) is only


def test_a_memory_is_as_near_as_the_wording_it_is_nearest_to() -> None:
    both = together([
        found(candidate(1, 0.5), candidate(2, 0.9), candidate(3, None)),
        found(candidate(1, 0.8), candidate(2, 0.1), candidate(3, 0.2), candidate(4, -0.5)),
    ])
    near = {each.memory_id.int: each.similarity for each in both.candidates}
    assert near == {1: 0.8, 2: 0.9, 3: 0.2, 4: -0.5}
    assert both.counts == {"vector": 3, "lexical": 0, "rewritten": 1}
    assert both.mode == "exact"


def test_a_tie_that_both_saw_counts_once() -> None:
    here, there = [Tie(UUID(int=1), UUID(int=number), 1.0) for number in (2, 3)]
    both = together([found(ties=(here,)), found(ties=(here, there))])
    assert list(both.ties) == list(both.neighbours) == [here, there]
