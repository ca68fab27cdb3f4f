"""The generality of a query, measured with a sample of off-topic prompts."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest

from agentcore.memory.query_samples import OFF_TOPIC
from agentcore.memory.ranking.off_topic import NEAREST, OffTopicPrompts, Vectors

RANDOM = np.random.default_rng(7)


def unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture(scope="module")
def sample() -> OffTopicPrompts:
    """Returns prompts around one direction, as texts of one language are."""
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


def test_the_committed_prompts_are_distinct_and_of_many_languages() -> None:
    rows = [json.loads(line) for line in
            files("agentcore.memory").joinpath(OFF_TOPIC).read_text(encoding="utf-8").splitlines()]
    languages = Counter(row["language"] for row in rows)
    assert len({row["text"].casefold() for row in rows}) == len(rows) > 500
    assert len(languages) >= 15
    assert min(languages.values()) >= 20


def test_the_length_of_a_callers_vector_does_not_matter(sample: OffTopicPrompts) -> None:
    memories = np.eye(64, dtype=np.float32)[:2]
    similarities = np.array([0.6, 0.6])
    assert sample.excess(similarities, 20 * memories) == pytest.approx(sample.excess(similarities, memories))
    assert sample.generality(20 * memories) == pytest.approx(sample.generality(memories))
