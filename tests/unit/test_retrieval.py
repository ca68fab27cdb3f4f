"""Ranking: order, explanation, what is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.retrieval import Candidate, MatchScale, Tie, rank
from agentcore.memory.scoring import RetrievalWeights

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SHARED_TERMS = (
    "similarity", "words", "session", "neighbours", "speaker", "recency", "frequency", "importance", "links",
)


def candidate(
    number: int,
    *,
    similarity: float | None = 0.5,
    words: float = 0.0,
    age_days: float = 1.0,
    importance: float = 0.5,
    text: str | None = None,
    accesses: int = 0,
    session_words: float = 0.0,
    speaker: str | None = None,
) -> Candidate:
    return Candidate(
        UUID(int=number),
        NOW - timedelta(days=age_days),
        importance,
        similarity,
        words,
        session_words,
        speaker,
        accesses,
        NOW if accesses else None,
        ((text or str(number)).encode(), None, None, None),
    )


FULL = MatchScale(words=10.0, session_words=10.0)


def ranked_numbers(
    candidates: list[Candidate], ties: list[Tie] | None = None, neighbours: list[Tie] | None = None
) -> list[int]:
    ranking = rank(candidates, ties or [], neighbours or [], RetrievalWeights(), now=NOW, k=10, scale=FULL)
    return [each.memory_id.int for each in ranking.ranked]


def test_each_term_alone_decides_between_otherwise_equal_memories() -> None:
    assert ranked_numbers([candidate(1), candidate(2, similarity=0.9)]) == [2, 1]
    assert ranked_numbers([candidate(1), candidate(2, words=8.0)]) == [2, 1]
    assert ranked_numbers([candidate(1, age_days=90), candidate(2, age_days=1)]) == [2, 1]
    assert ranked_numbers([candidate(1), candidate(2, importance=0.9)]) == [2, 1]
    assert ranked_numbers([candidate(1), candidate(2, accesses=50)]) == [2, 1]


def test_a_memory_tied_to_a_match_rises_above_an_untied_one() -> None:
    match, tied, untied = candidate(1, similarity=0.9, words=10.0), candidate(3), candidate(2)
    assert ranked_numbers([match, untied, tied]) == [1, 2, 3]
    assert ranked_numbers([match, untied, tied], [Tie(tied.memory_id, match.memory_id, 1.0)]) == [1, 3, 2]


def test_what_the_session_says_counts_for_its_memories() -> None:
    assert ranked_numbers([candidate(1), candidate(2, session_words=6.0)]) == [2, 1]


def test_between_people_the_turn_beside_a_match_rises() -> None:
    match = candidate(1, similarity=0.9, words=10.0, speaker="Ada")
    answer, other = candidate(3, speaker="Bo"), candidate(2, speaker="Bo")
    beside = [Tie(UUID(int=3), UUID(int=1), 1.0)]
    assert ranked_numbers([match, other, answer]) == [1, 2, 3]
    assert ranked_numbers([match, other, answer], neighbours=beside) == [1, 3, 2]


def test_beside_an_assistant_nothing_rises() -> None:
    match = candidate(1, similarity=0.9, words=10.0, speaker="user")
    answer, other = candidate(3, speaker="assistant"), candidate(2, speaker="assistant")
    beside = [Tie(UUID(int=3), UUID(int=1), 1.0)]
    assert ranked_numbers([match, other, answer], neighbours=beside) == [1, 2, 3]


def test_an_assistants_words_count_less_than_a_users() -> None:
    assistant, user = (candidate(number, similarity=0.8, words=8.0, speaker=speaker)
                       for number, speaker in ((1, "assistant"), (2, "user")))
    assert ranked_numbers([assistant, user]) == [2, 1]


@pytest.mark.parametrize(("query_words", "first"), [
    ({"what", "did", "ada", "say"}, 2), ({"what", "did", "bo", "say"}, 1), ({"said", "de"}, 1), (set(), 1),
])
def test_who_is_named_in_the_query_comes_first(query_words: set[str], first: int) -> None:
    bo, ada = candidate(1, speaker="Bo Li", similarity=0.6), candidate(2, speaker="Ada de Wit")
    ranking = rank([bo, ada], [], [], RetrievalWeights(), now=NOW, k=2, scale=FULL, query_words=query_words)
    assert ranking.ranked[0].memory_id.int == first


def test_the_terms_add_up_to_the_score() -> None:
    ranking = rank(
        [candidate(1, words=4.0, accesses=3)], [], [], RetrievalWeights(), now=NOW, k=1, scale=FULL
    )
    [best] = ranking.ranked
    assert best.score == pytest.approx(sum(term.contribution for term in best.terms.values()))
    assert sum(term.weight for term in best.terms.values()) == pytest.approx(1.0)
    assert set(best.terms) == set(SHARED_TERMS)


def test_min_score_bounds_the_similarity_and_not_the_fused_score() -> None:
    likely_words = candidate(1, similarity=0.2, words=10.0)
    ranking = rank(
        [likely_words, candidate(2, similarity=0.45)],
        [],
        [],
        RetrievalWeights(),
        now=NOW,
        k=5,
        scale=FULL,
        min_score=0.4,
    )
    assert [each.memory_id.int for each in ranking.ranked] == [2]
    assert [(each.reason, each.count) for each in ranking.dropped] == [("below_min_score", 1)]


def test_of_equal_texts_the_newest_stays_and_the_receipt_says_so() -> None:
    old, new = candidate(1, age_days=9, text="same"), candidate(2, age_days=1, text="same")
    ranking = rank([new, old], [], [], RetrievalWeights(), now=NOW, k=5, scale=FULL)
    assert [each.memory_id.int for each in ranking.ranked] == [2]
    assert [(each.reason, each.count) for each in ranking.dropped] == [("same_text_as_newer", 1)]


def test_without_vectors_the_other_terms_carry_the_weight() -> None:
    ranking = rank(
        [candidate(1, similarity=None, words=10.0, importance=1.0, age_days=0, accesses=100)],
        [],
        [],
        RetrievalWeights(links=0.0, session=0.0, neighbours=0.0, speaker=0.0),
        now=NOW,
        k=1,
        scale=FULL,
        with_vectors=False,
    )
    assert ranking.ranked[0].score == pytest.approx(1.0)


def test_what_is_beyond_k_is_counted() -> None:
    ranking = rank([candidate(n) for n in range(1, 6)], [], [], RetrievalWeights(), now=NOW, k=2, scale=FULL)
    assert len(ranking.ranked) == 2
    assert [(each.reason, each.count) for each in ranking.dropped] == [("beyond_k", 3)]
