"""Answerability: abstention, and the cutoff below the best hit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentcore.memory.ranking.fitness import CutOffs, FitModel, Signals, logistic, typical

MIDDLING = Signals(excess=1.0, generality=-1.0, words=0.3)


@pytest.mark.parametrize("better", [{"excess": 2.0}, {"generality": -2.0}, {"words": 0.9}])
def test_better_signals_never_make_an_answer_less_likely(better: dict[str, float]) -> None:
    assert FitModel().probability(replace(MIDDLING, **better)) > FitModel().probability(MIDDLING)


def test_a_good_match_is_likely_to_answer_and_a_poor_one_is_not() -> None:
    assert FitModel().probability(Signals(3.0, -2.0, 0.8)) > 0.8
    assert FitModel().probability(Signals(-1.0, 1.0, 0.0)) < 0.1


@pytest.mark.parametrize(("value", "probability"), [(0, 0.5), (1_000, 1.0), (-1_000, 0.0)])
def test_the_logistic_holds_at_any_value(value: float, probability: float) -> None:
    assert logistic(value) == probability


@pytest.mark.parametrize(("cut_offs", "kept"), [
    (CutOffs(), 4), (CutOffs(least_share=0.5), 3), (CutOffs(least_share=0.95), 1),
    (CutOffs(widest_gap=0.25), 2), (CutOffs(widest_gap=0.05), 1),
    (CutOffs(least_share=0.5, widest_gap=0.25), 2),
])
def test_what_is_too_far_below_the_best_goes(cut_offs: CutOffs, kept: int) -> None:
    assert cut_offs.kept([0.8, 0.7, 0.4, 0.3]) == kept


FLAT = [0.30, 0.20, 0.16, *[0.12] * 20, *[0.08] * 7]


def test_in_a_small_store_what_hardly_stands_above_its_typical_memory_goes() -> None:
    assert CutOffs(least_share=0.3).kept(FLAT, 30) == 23
    assert CutOffs(least_rise=0.2).kept(FLAT, 30) == 3
    assert CutOffs(least_rise=0.3).kept(FLAT, 30) == 2
    assert CutOffs(least_rise=0.2, least_share=0.6).kept(FLAT, 30) == 2


@pytest.mark.parametrize("memory_count", [0, 60, 100_000])
def test_where_half_of_the_store_was_not_found_nothing_is_typical(memory_count: int) -> None:
    assert typical(FLAT, memory_count) == 0.0
    assert CutOffs(least_rise=0.2).kept(FLAT, memory_count) == len(FLAT)


def test_of_a_dozen_memories_all_may_answer() -> None:
    assert typical(FLAT[:12], 12) == 0.0
    assert CutOffs(least_rise=0.2).kept(FLAT[:12], 12) == 12


def test_no_rise_asked_for_leaves_out_nothing() -> None:
    assert CutOffs().kept(FLAT, 30) == len(FLAT)


def test_the_best_itself_always_stays() -> None:
    assert CutOffs(least_share=1.0, widest_gap=0.0).kept([0.1]) == 1
    assert CutOffs(least_rise=1.0).kept([0.1] * 30, 30) == 30
    assert CutOffs(least_rise=1.0).kept(FLAT, 30) == 1
    assert CutOffs().kept([]) == 0
