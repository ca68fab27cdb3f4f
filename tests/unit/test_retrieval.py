"""Ranking: order, explanation, omissions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import Candidate, CandidateLink, MatchScale, Question, Span
from agentcore.memory.retrieval import TERMS, Ranking, rank
from agentcore.memory.scoring import RetrievalWeights

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def candidate(
    number: int,
    *,
    similarity: float | None = 0.5,
    words: float = 0.0,
    age_days: float = 1.0,
    importance: float = 0.5,
    text: str | None = None,
    accesses: int = 0,
    speaker: str | None = None,
    asks: bool = False,
    is_exchange: bool = False,
    event: Span | None = None,
    terms: Sequence[int] = (),
    user_id: str | None = None,
    session_match: float = 0.0,
) -> Candidate:
    return Candidate(
        UUID(int=number),
        NOW - timedelta(days=age_days),
        importance,
        similarity,
        words,
        speaker,
        accesses,
        NOW if accesses else None,
        ((text or str(number)).encode(), None, user_id, None),
        asks,
        is_exchange,
        event,
        terms,
        session_match=session_match,
    )


FULL = MatchScale(words=10.0, query_words=10.0)


def ranking_of(
    candidates: list[Candidate],
    links: list[CandidateLink] | None = None,
    neighbours: list[CandidateLink] | None = None,
    *,
    k: int = 10,
    weights: RetrievalWeights | None = None,
    **asked: Any,
) -> Ranking:
    question = Question(now=NOW, scale=FULL, **asked)
    return rank(candidates, links or [], neighbours or [], weights or RetrievalWeights(), question, k)


def ranked_numbers(
    candidates: list[Candidate],
    links: list[CandidateLink] | None = None,
    neighbours: list[CandidateLink] | None = None,
    **asked: Any,
) -> list[int]:
    return [each.memory_id.int for each in ranking_of(candidates, links, neighbours, **asked).ranked]


@pytest.mark.shows("FR-2.1")
def test_each_term_alone_decides_between_otherwise_equal_memories() -> None:
    assert ranked_numbers([candidate(1), candidate(2, similarity=0.9)]) == [2, 1]
    assert ranked_numbers([candidate(1), candidate(2, words=8.0)]) == [2, 1]
    assert ranked_numbers([candidate(1, age_days=90), candidate(2, age_days=1)]) == [2, 1]
    assert ranked_numbers([candidate(1), candidate(2, importance=0.9)]) == [2, 1]
    assert ranked_numbers([candidate(1), candidate(2, accesses=50)]) == [2, 1]


def test_a_time_far_ahead_is_no_more_recent_than_one_as_long_ago() -> None:
    ahead, tomorrow, lately = candidate(1, age_days=-360_000), candidate(2, age_days=-1), candidate(3)
    ranked = ranking_of([ahead, tomorrow, lately]).ranked
    assert [each.memory_id.int for each in ranked] == [2, 3, 1]
    assert ranked[-1].terms["recency"].value == 0


def test_a_memory_tied_to_a_match_rises_above_an_untied_one() -> None:
    match, tied, untied = candidate(1, similarity=0.9, words=10.0), candidate(3), candidate(2)
    assert ranked_numbers([match, untied, tied]) == [1, 2, 3]
    assert ranked_numbers([match, untied, tied], [CandidateLink(tied.memory_id, match.memory_id, 1.0)]) == [1, 3, 2]


def test_between_people_the_turn_beside_a_match_rises() -> None:
    match = candidate(1, similarity=0.9, words=10.0, speaker="Ada")
    answer, other = candidate(3, speaker="Bo"), candidate(2, speaker="Bo")
    beside = [CandidateLink(UUID(int=3), UUID(int=1), 1.0)]
    assert ranked_numbers([match, other, answer]) == [1, 2, 3]
    assert ranked_numbers([match, other, answer], neighbours=beside) == [1, 3, 2]


def test_beside_an_assistant_nothing_rises() -> None:
    match = candidate(1, similarity=0.9, words=10.0, speaker="user")
    answer, other = candidate(3, speaker="assistant"), candidate(2, speaker="assistant")
    beside = [CandidateLink(UUID(int=3), UUID(int=1), 1.0)]
    assert ranked_numbers([match, other, answer], neighbours=beside) == [1, 2, 3]


@pytest.mark.parametrize(("speaker", "order"), [("Ada", [2, 1]), ("user", [1, 2]), (None, [1, 2])])
def test_where_people_talk_the_session_counts(speaker: str | None, order: list[int]) -> None:
    alone, together = candidate(1, speaker=speaker), candidate(2, speaker=speaker, session_match=0.8)
    assert ranked_numbers([alone, together]) == order


@pytest.mark.parametrize(
    ("query_words", "first"),
    [({"what", "did", "ada", "say"}, 2), ({"what", "did", "bo", "say"}, 1), ({"said", "de"}, 1), (set(), 1)],
)
def test_a_speaker_whom_the_query_names_comes_first(query_words: set[str], first: int) -> None:
    bo, ada = candidate(1, speaker="Bo Li", similarity=0.6), candidate(2, speaker="Ada de Wit")
    assert ranked_numbers([bo, ada], words=query_words)[0] == first


def test_a_message_that_follows_up_on_a_match_is_similar_to_the_query_too() -> None:
    match, alone = candidate(1, similarity=0.8, age_days=1), candidate(3, similarity=0.1, age_days=1)

    def gained(minutes: int, **features: Any) -> float:
        follow_up = candidate(2, similarity=0.1, age_days=1 - minutes / 1_440, **features)
        link = CandidateLink(UUID(int=2), UUID(int=1), 1.0)
        ranking = ranking_of([match, follow_up, alone], neighbours=[link])
        similarity = {each.memory_id.int: each.terms["similarity"].value for each in ranking.ranked}
        assert {each.memory_id.int: each.similarity for each in ranking.ranked}[2] == 0.1
        return similarity[2] - similarity[3]

    assert gained(10) > 0.2
    assert gained(180) == gained(-10) == gained(10, user_id="another") == 0
    assert gained(10, speaker="assistant") < 0


def test_between_people_an_answer_gains_most_by_its_question_and_a_question_least_by_its_answer() -> None:
    def gained(*, match_comes_first: bool, first_asks: bool) -> float:
        match = candidate(
            1,
            similarity=0.9,
            words=10.0,
            speaker="Ada",
            asks=match_comes_first and first_asks,
            age_days=2 if match_comes_first else 1,
        )
        beside = candidate(
            2, speaker="Bo", asks=first_asks and not match_comes_first, age_days=1 if match_comes_first else 2
        )
        ranking = ranking_of([match, beside], neighbours=[CandidateLink(UUID(int=2), UUID(int=1), 1.0)])
        [found] = [each for each in ranking.ranked if each.memory_id.int == 2]
        return found.terms["neighbours"].value

    answer, remark = gained(match_comes_first=True, first_asks=True), gained(match_comes_first=True, first_asks=False)
    lead, asked = gained(match_comes_first=False, first_asks=False), gained(match_comes_first=False, first_asks=True)
    assert answer > lead > asked > 0
    assert answer > remark > asked


MARCH = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
JANUARY = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))


@pytest.mark.shows("issue3-1-temporal")
def test_what_speaks_of_the_time_asked_for_comes_before_what_was_only_said_then() -> None:
    in_march = (NOW - datetime(2026, 3, 10, tzinfo=UTC)) / timedelta(days=1)
    told_of_march, said_in_march = candidate(3, event=MARCH), candidate(2, age_days=in_march)
    said_then_of_january = candidate(1, age_days=in_march, event=JANUARY)
    ranking = ranking_of([candidate(4), said_then_of_january, said_in_march, told_of_march], windows=[MARCH])
    values = {each.memory_id.int: each.terms["time"].value for each in ranking.ranked}
    assert values == {4: 0.0, 1: 0.5, 2: 1.0, 3: 1.0}


def test_a_question_for_a_time_prefers_what_speaks_of_one() -> None:
    assert ranked_numbers([candidate(1), candidate(2, event=MARCH)], seeks_time=True) == [2, 1]
    assert ranked_numbers([candidate(1), candidate(2, event=MARCH)]) == [1, 2]


def test_time_has_no_share_where_nobody_asks_for_it() -> None:
    [found] = ranking_of([candidate(1, event=MARCH)]).ranked
    assert found.terms["time"].weight == 0.0


def test_an_assistants_words_count_less_than_a_users() -> None:
    assistant, user = (
        candidate(number, similarity=0.8, words=8.0, speaker=speaker)
        for number, speaker in ((1, "assistant"), (2, "user"))
    )
    assert ranked_numbers([assistant, user]) == [2, 1]


def test_an_assistants_words_count_in_full_if_the_query_asks_for_them() -> None:
    assistant = candidate(1, similarity=0.8, words=8.0, speaker="assistant")
    user = candidate(2, similarity=0.6, words=6.0, speaker="user")
    assert ranked_numbers([assistant, user]) == [2, 1]
    assert ranked_numbers([assistant, user], about_assistant=1.0) == [1, 2]

    def value(share: float) -> float:
        [found] = [
            each for each in ranking_of([assistant, user], about_assistant=share).ranked if each.memory_id.int == 1
        ]
        return found.terms["words"].value

    assert value(0.0) == pytest.approx(0.6 * value(1.0))
    assert value(0.5) == pytest.approx(0.8 * value(1.0))


def test_the_term_tells_the_cosine_as_it_counts_and_the_result_as_it_is() -> None:
    best, *_ = ranking_of([candidate(n, similarity=0.3 + n / 400) for n in range(1, 41)]).ranked
    assert best.similarity == pytest.approx(0.4)
    assert 0.4 < best.terms["similarity"].value < 0.7


@pytest.mark.shows("issue2-7-explained", "issue3-2-fusion")
def test_the_terms_add_up_to_the_score() -> None:
    [best] = ranking_of([candidate(1, words=4.0, accesses=3)], seeks_time=True).ranked
    assert best.score == pytest.approx(sum(term.contribution for term in best.terms.values()))
    assert sum(term.weight for term in best.terms.values()) == pytest.approx(1.0)
    assert set(best.terms) == set(TERMS)


def test_min_score_bounds_the_similarity_and_not_the_fused_score() -> None:
    likely_words = candidate(1, similarity=0.2, words=10.0)
    ranking = ranking_of([likely_words, candidate(2, similarity=0.45)], min_score=0.4)
    assert [each.memory_id.int for each in ranking.ranked] == [2]
    assert [(each.reason, each.count) for each in ranking.dropped] == [("below_min_score", 1)]


def test_of_equal_texts_the_newest_stays_and_the_receipt_says_so() -> None:
    old, new = candidate(1, age_days=9, text="same"), candidate(2, age_days=1, text="same")
    ranking = ranking_of([new, old])
    assert [each.memory_id.int for each in ranking.ranked] == [2]
    assert [(each.reason, each.count) for each in ranking.dropped] == [("same_text_as_newer", 1)]


def test_without_vectors_the_other_terms_carry_the_weight() -> None:
    ranking = ranking_of(
        [candidate(1, similarity=None, words=10.0, importance=1.0, age_days=0, accesses=100)],
        weights=RetrievalWeights(links=0.0, neighbours=0.0),
        with_vectors=False,
    )
    assert ranking.ranked[0].score == pytest.approx(1.0)


@pytest.mark.shows("FR-2.3")
def test_what_is_beyond_k_is_counted() -> None:
    ranking = ranking_of([candidate(n) for n in range(1, 6)], k=2)
    assert len(ranking.ranked) == 2
    assert [(each.reason, each.count) for each in ranking.dropped] == [("beyond_k", 3)]


def test_what_is_the_query_itself_is_not_found_and_sets_no_bar() -> None:
    asked, answer = candidate(1, similarity=1.0, words=10.0), candidate(2, similarity=0.6, words=2.0)
    cut_offs = CutOffs(least_share=0.6)

    def found(**known: Any) -> Ranking:
        question = Question(now=NOW, scale=FULL, **known)
        return rank([asked, answer], [], [], RetrievalWeights(), question, 10, cut_offs)

    assert [each.memory_id.int for each in found().ranked] == [1]
    apart = found(own={UUID(int=1)})
    assert [each.memory_id.int for each in apart.ranked] == [2]
    assert [(each.reason, each.count) for each in apart.dropped] == [("the_query_itself", 1)]
    assert apart.fit == rank([answer], [], [], RetrievalWeights(), Question(now=NOW, scale=FULL), 10).fit


@pytest.mark.parametrize(("cut_offs", "count"), [(CutOffs(least_share=0.6), 1), (CutOffs(), 2)])
def test_results_far_below_the_best_are_dropped(cut_offs: CutOffs, count: int) -> None:
    found = [candidate(1, similarity=1.0, words=10.0), candidate(2, similarity=0.6, words=2.0)]
    ranking = rank(found, [], [], RetrievalWeights(), Question(now=NOW, scale=FULL), 10, cut_offs)
    assert len(ranking.ranked) == count


@pytest.mark.parametrize(
    ("speaker", "minutes", "text", "stays"),
    [
        ("Ada", 1, "asked", False),
        ("user", -1, "asked", False),
        ("Ada", 10, "asked", True),
        ("assistant", 1, "asked", True),
        (None, 1, "asked", True),
        ("Ada", 1, "other", True),
    ],
)
def test_only_a_turn_said_just_now_in_its_words_is_taken_for_the_query(
    speaker: str | None, minutes: float, text: str, stays: bool
) -> None:
    turn = candidate(1, speaker=speaker, age_days=minutes / 1_440, text=text)
    assert ranked_numbers([turn, candidate(2)], own_text=b"asked").count(1) == stays


def test_an_answer_does_not_repeat_whoever_asked_the_same_before() -> None:
    asked = candidate(1, similarity=0.9, text="query", asks=True, terms=range(8))
    answer = candidate(2, similarity=0.7, terms=range(1, 9))
    other = candidate(3, similarity=0.5)
    assert ranked_numbers([asked, answer, other], text=b"query") == [1, 2, 3]
    assert ranked_numbers([asked, answer, other], text=b"another query") == [1, 3, 2]
