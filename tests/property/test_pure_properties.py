"""Ranking and pruning properties for any input."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.keys import encode_segment
from agentcore.memory.pruning import STRATEGIES, Prunable, PruningPolicy, decide
from agentcore.memory.ranking.candidates import Candidate, CandidateLink, MatchScale, Question
from agentcore.memory.retrieval import rank
from agentcore.memory.scoring import RetrievalWeights

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ASKED = Question(NOW, MatchScale(words=20.0, query_words=20.0))
SHARES = st.floats(0, 1)
MOMENTS = st.integers(0, 10**8).map(lambda seconds: NOW - timedelta(seconds=seconds))
USES = st.tuples(st.integers(0, 10**6), st.none() | MOMENTS)


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    count = draw(st.integers(0, 12))
    found = []
    for number in range(count):
        accesses, last = draw(USES)
        found.append(
            Candidate(
                UUID(int=number),
                draw(MOMENTS),
                draw(SHARES),
                draw(st.none() | st.floats(-1, 1)),
                draw(st.floats(0, 50)),
                draw(st.sampled_from([None, "Ada", "user", "assistant"])),
                accesses,
                last,
                (bytes([draw(st.integers(0, 6))]), None, None, None),
                draw(st.booleans()),
                draw(st.booleans()),
                draw(st.none() | MOMENTS.map(lambda start: (start, start + timedelta(days=1)))),
                draw(st.lists(st.integers(0, 5), max_size=6)),
            )
        )
    return found


@st.composite
def links(draw: st.DrawFn) -> list[CandidateLink]:
    ids = st.integers(0, 12).map(lambda number: UUID(int=number))
    return draw(st.lists(st.builds(CandidateLink, ids, ids, SHARES), max_size=6))


@given(candidates(), links(), links(), st.integers(1, 12), st.randoms(use_true_random=False))
@pytest.mark.shows("FR-2.3", "issue3-2-fusion")
def test_a_ranking_is_bounded_ordered_and_independent_of_the_order_of_arrival(
    found: list[Candidate], tied: list[CandidateLink], beside: list[CandidateLink], k: int, chance: random.Random
) -> None:
    ranking = rank(found, tied, beside, RetrievalWeights(), ASKED, k)
    scores = [each.score for each in ranking.ranked]
    assert len(scores) <= k
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert len(ranking.ranked) + sum(each.count for each in ranking.dropped) == len(found)
    shuffled = list(found)
    chance.shuffle(shuffled)
    again = rank(shuffled, tied, beside, RetrievalWeights(), ASKED, k)
    assert [each.memory_id for each in again.ranked] == [each.memory_id for each in ranking.ranked]


@given(candidates().filter(bool), st.floats(0, 0.5), st.floats(0, 10))
def test_a_score_never_falls_when_a_term_rises(found: list[Candidate], similar: float, worded: float) -> None:
    first = found[0]
    risen = Candidate(
        first.memory_id,
        NOW,
        min(1.0, first.relevance_score + 0.1),
        min(1.0, (first.similarity or 0.0) + similar),
        first.words + worded,
        first.speaker,
        first.access_count + 1,
        NOW,
        first.text,
        first.asks,
        first.is_exchange,
        first.event,
        first.term_keys,
    )
    scores = [rank([each], [], [], RetrievalWeights(), ASKED, 1).ranked[0].score for each in (first, risen)]
    assert scores[1] >= scores[0] - 1e-12


@st.composite
def memories(draw: st.DrawFn) -> list[Prunable]:
    made = []
    for number in range(draw(st.integers(0, 20))):
        accesses, last = draw(USES)
        made.append(Prunable(UUID(int=number), 1, draw(MOMENTS), draw(SHARES), draw(st.booleans()), accesses, last))
    return made


@given(
    memories(),
    st.sampled_from(sorted(STRATEGIES)),
    st.none() | st.floats(0.01, 0.99) | st.integers(1, 30),
    st.integers(0, 10),
)
def test_pruning_never_takes_a_pinned_memory_and_has_nothing_to_do_the_second_time(
    made: list[Prunable], strategy: str, target: float | None, capacity: int
) -> None:
    going = decide(made, PruningPolicy(strategy, capacity, target), NOW)
    assert not any(each.pinned for each in going)
    assert len({each.memory_id for each in going}) == len(going)
    if target is None and capacity and len(made) > capacity:
        left = [each for each in made if each not in going]
        assert len(left) <= max(capacity, sum(each.pinned for each in made))


@given(st.text(min_size=1, max_size=255), st.text(min_size=1, max_size=255))
def test_two_ids_never_give_one_segment(first: str, second: str) -> None:
    assert (encode_segment(first) == encode_segment(second)) == (first == second)
