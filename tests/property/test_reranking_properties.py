"""Reranking properties: only the top hits are reordered, none is lost, scores stay monotonic."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.models import Dropped, ScoreTerm
from agentcore.memory.ranking.calibration import Signals
from agentcore.memory.recall.reranking import RERANKER, reordered, shortened
from agentcore.memory.retrieval import Ranked, Ranking

SHARES = st.floats(0.0, 1.0)


@st.composite
def rankings(draw: st.DrawFn) -> Ranking:
    scores = sorted(draw(st.lists(SHARES, max_size=30)), reverse=True)
    terms = [{"words": ScoreTerm(value=score, weight=1.0, contribution=score)} for score in scores]
    ranked = [Ranked(UUID(int=n), scores[n], scores[n], terms[n]) for n in range(len(scores))]
    dropped = draw(st.lists(st.sampled_from(["beyond_k", "below_min_score"]), unique=True))
    signals = Signals(0.0, 0.0, 0.0)
    return Ranking(ranked, signals, 0.5, [Dropped(reason=reason, count=3) for reason in sorted(dropped)])


@st.composite
def judged(draw: st.DrawFn) -> tuple[Ranking, list[float]]:
    ranking = draw(rankings())
    return ranking, draw(st.lists(SHARES, max_size=len(ranking.ranked)))


@given(judged())
def test_the_foremost_stand_by_their_relevance_and_the_rest_as_they_stood(case: tuple[Ranking, list[float]]) -> None:
    ranking, relevances = case
    after, judged_count = reordered(ranking, relevances).ranked, len(relevances)
    places = [each.memory_id.int for each in after]
    assert places[:judged_count] == sorted(range(judged_count), key=lambda place: (-relevances[place], place))
    assert list(after[judged_count:]) == list(ranking.ranked[judged_count:])


@given(judged())
def test_scores_stay_where_they_were_and_every_term_adds_up(case: tuple[Ranking, list[float]]) -> None:
    ranking, relevances = case
    after = reordered(ranking, relevances).ranked
    assert [each.score for each in after] == [each.score for each in ranking.ranked]
    for each in after:
        assert sum(term.contribution for term in each.terms.values()) == pytest.approx(each.score, abs=1e-9)
    for each in after[: len(relevances)]:
        assert each.terms[RERANKER].value == relevances[each.memory_id.int]
        fused = each.score - each.terms[RERANKER].contribution
        assert fused == pytest.approx(ranking.ranked[each.memory_id.int].score, abs=1e-9)


@given(rankings(), st.integers(1, 40))
def test_what_lies_beyond_k_is_counted_with_what_did_before(ranking: Ranking, k: int) -> None:
    short = shortened(ranking, k)
    assert list(short.ranked) == list(ranking.ranked[:k])
    before, after = [{each.reason: each.count for each in one.dropped} for one in (ranking, short)]
    assert sum(after.values()) - sum(before.values()) == len(ranking.ranked) - len(short.ranked)
    assert {name: count for name, count in after.items() if name != "beyond_k"} == {
        name: count for name, count in before.items() if name != "beyond_k"
    }
    assert [each.reason for each in short.dropped] == sorted(after)
