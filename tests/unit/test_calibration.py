"""Calibration: whether anything found answers, how general a query is, whether it is historical."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.embeddings import Embedder
from agentcore.memory.query_samples import CURRENT, HISTORICAL, LABELS, OFF_TOPIC, fitted_to, query_samples
from agentcore.memory.ranking.calibration import (
    NEAREST,
    CutOffs,
    FitModel,
    OffTopicPrompts,
    QueryDetector,
    Signals,
    Vectors,
    logistic,
    typical,
)

MIDDLING = Signals(excess=1.0, generality=-1.0, words=0.3)


@pytest.mark.parametrize("better", [{"excess": 2.0}, {"generality": -2.0}, {"words": 0.9}])
def test_better_signals_never_make_an_answer_less_likely(better: dict[str, float]) -> None:
    assert FitModel().probability(replace(MIDDLING, **better)) > FitModel().probability(MIDDLING)


@pytest.mark.shows("issue3-3-abstention")
def test_a_good_match_is_likely_to_answer_and_a_poor_one_is_not() -> None:
    assert FitModel().probability(Signals(3.0, -2.0, 0.8)) > 0.8
    assert FitModel().probability(Signals(-1.0, 1.0, 0.0)) < 0.1


@pytest.mark.parametrize(("value", "probability"), [(0, 0.5), (1_000, 1.0), (-1_000, 0.0)])
def test_the_logistic_holds_at_any_value(value: float, probability: float) -> None:
    assert logistic(value) == probability


@pytest.mark.parametrize(
    ("cut_offs", "kept"),
    [
        (CutOffs(), 4),
        (CutOffs(least_share=0.5), 3),
        (CutOffs(least_share=0.95), 1),
        (CutOffs(widest_gap=0.25), 2),
        (CutOffs(widest_gap=0.05), 1),
        (CutOffs(least_share=0.5, widest_gap=0.25), 2),
    ],
)
def test_what_is_too_far_below_the_best_goes(cut_offs: CutOffs, kept: int) -> None:
    assert cut_offs.kept([0.8, 0.7, 0.4, 0.3]) == kept


FLAT = [0.30, 0.20, 0.16, *[0.12] * 20, *[0.08] * 7]


def test_in_a_small_store_what_hardly_stands_above_its_typical_memory_goes() -> None:
    assert CutOffs().kept(FLAT, 30) == len(FLAT)
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


def test_the_best_itself_always_stays() -> None:
    assert CutOffs(least_share=1.0, widest_gap=0.0).kept([0.1]) == 1
    assert CutOffs(least_rise=1.0).kept([0.1] * 30, 30) == 30
    assert CutOffs(least_rise=1.0).kept(FLAT, 30) == 1
    assert CutOffs().kept([]) == 0


RANDOM = np.random.default_rng(7)


def unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture(scope="module")
def sample() -> OffTopicPrompts:
    """Prompts around one direction, as the texts of one language are."""
    return OffTopicPrompts.of(unit(RANDOM.normal(size=(200, 64)) + 2 * np.eye(64)[0]))


def test_a_prompt_is_as_general_as_can_be_and_another_direction_is_not(sample: OffTopicPrompts) -> None:
    apart = -np.eye(64, dtype=np.float32)[:1]
    expected = pytest.approx((1 - sample.typical) / sample.spread, rel=1e-4)
    assert sample.generality(sample.vectors[:1]) == expected
    assert sample.generality(apart) < 0 < sample.generality(sample.vectors[:1])


def test_of_several_wordings_the_least_general_counts(sample: OffTopicPrompts) -> None:
    apart = -np.eye(64, dtype=np.float32)[:1]
    assert sample.generality(np.vstack([sample.vectors[:1], apart])) == sample.generality(apart)


def test_the_excess_is_measured_from_each_memorys_own_baseline(sample: OffTopicPrompts) -> None:
    memories = np.eye(64, dtype=np.float32)[:2]
    nearest = np.sort(memories @ sample.vectors.T, axis=1)[:, -NEAREST:].mean(axis=1)
    expected = (np.array([0.6, 0.6]) - nearest) / sample.spread
    assert sample.excess(np.array([0.6, 0.6]), memories) == pytest.approx(expected, rel=1e-5)
    assert expected[0] < expected[1]


def samples(name: str) -> list[dict[str, Any]]:
    lines = files("agentcore.memory").joinpath(name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_committed_prompts_are_distinct_and_of_many_languages() -> None:
    rows = samples(OFF_TOPIC)
    languages = Counter(row["language"] for row in rows)
    assert len({row["text"].casefold() for row in rows}) == len(rows) > 500
    assert len(languages) >= 15
    assert min(languages.values()) >= 20


def test_the_length_of_a_callers_vector_does_not_matter(sample: OffTopicPrompts) -> None:
    memories = np.eye(64, dtype=np.float32)[:2]
    similarities = np.array([0.6, 0.6])
    assert sample.excess(similarities, 20 * memories) == pytest.approx(sample.excess(similarities, memories))
    assert sample.generality(20 * memories) == pytest.approx(sample.generality(memories))


def labelled_vectors(dimensions: int, shift: float, seed: int = 0) -> tuple[Vectors, np.ndarray]:
    """Returns unit vectors, every third historical and shifted along the first dimension."""
    rows = np.random.default_rng(seed).normal(size=(300, dimensions))
    are_historical = np.arange(300) % 3 == 0
    rows[are_historical, 0] += shift
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32), are_historical


@given(st.sampled_from([8, 64, 384, 1_024]), st.integers(0, 20))
def test_it_tells_historical_queries_that_it_did_not_see(dimensions: int, seed: int) -> None:
    shift = 2 * np.sqrt(dimensions)
    fitted = QueryDetector.of(*labelled_vectors(dimensions, shift, seed))
    assert fitted is not None
    unseen, are_historical = labelled_vectors(dimensions, shift, seed + 100)
    found = np.array([fitted.probability(each) for each in unseen])
    assert (found[are_historical] > 0.5).mean() > 0.8
    assert (found[~are_historical] > 0.5).mean() < 0.2


@given(st.sampled_from([8, 64, 384]), st.integers(0, 20))
def test_vectors_that_do_not_differ_tell_nothing(dimensions: int, seed: int) -> None:
    assert QueryDetector.of(*labelled_vectors(dimensions, 0.0, seed)) is None


@given(st.floats(-1e6, 1e6))
def test_a_probability_lies_between_0_and_1(scale: float) -> None:
    fitted = QueryDetector.of(*labelled_vectors(8, 5.0))
    assert fitted is not None
    assert 0 <= fitted.probability(np.full(8, scale, np.float32)) <= 1


@pytest.mark.parametrize(("name", "label"), [(HISTORICAL, "historical"), (CURRENT, "current")])
def test_the_samples_have_many_different_queries_of_both_kinds(name: str, label: str) -> None:
    rows = samples(name)
    assert len({row["text"] for row in rows}) == len(rows)
    assert 200 <= sum(row[label] for row in rows) <= len(rows) / 2


def test_the_local_model_has_detectors_of_its_own() -> None:
    """Fitted to other vectors, they would be noise."""
    fitted = fitted_to("local/multilingual-e5-small-adapted")
    assert fitted is not None
    for label in LABELS:
        detector = fitted[label]
        assert detector is not None
        assert detector.weights.shape == (384,)
        assert np.isfinite(detector.weights).all()
    assert fitted_to("openai/text-embedding-3-small") is None


class Separable:
    """An embedder whose vectors tell the queries of a sample apart by their first dimensions."""

    model, dimensions, kinds = "separable", 64, ("historical", "current")

    def __init__(self) -> None:
        rows = [*samples(HISTORICAL), *samples(CURRENT)]
        self.labels = {row["text"]: [row.get(kind, False) for kind in self.kinds] for row in rows}

    async def embed(self, texts: Sequence[str], kind: str) -> Vectors:
        vectors = np.random.default_rng(0).normal(size=(len(texts), self.dimensions))
        for row, text in zip(vectors, texts, strict=True):
            row[:2] += 30 * np.array(self.labels.get(text, [False, False]), float)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


async def test_each_detector_is_fitted_to_its_own_sample(tmp_path: Path) -> None:
    embedder = Separable()
    found = await query_samples(cast(Embedder, embedder), tmp_path)
    assert found is not None
    assert found.about_assistant is None
    texts = [*embedder.labels]
    vectors = await embedder.embed(texts, "query")
    for place, detector in enumerate((found.historical, found.current)):
        assert detector is not None
        labels = np.array([embedder.labels[text][place] for text in texts])
        scores = detector.scores(vectors)
        assert scores[labels].mean() > scores[~labels].mean()
