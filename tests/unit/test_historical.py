"""Historical queries, from a labeled sample: the discriminant, and when it abstains."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.query_samples import HISTORICAL, fitted_to
from agentcore.memory.ranking.historical import HistoricalQueries, Vectors


def sample(dimensions: int, shift: float, seed: int = 0) -> tuple[Vectors, np.ndarray]:
    """Returns unit vectors, every third historical and shifted along the first dimension."""
    rows = np.random.default_rng(seed).normal(size=(300, dimensions))
    are_historical = np.arange(300) % 3 == 0
    rows[are_historical, 0] += shift
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32), are_historical


@given(st.sampled_from([8, 64, 384, 1_024]), st.integers(0, 20))
def test_it_tells_historical_queries_that_it_did_not_see(dimensions: int, seed: int) -> None:
    shift = 2 * np.sqrt(dimensions)
    fitted = HistoricalQueries.of(*sample(dimensions, shift, seed))
    assert fitted is not None
    unseen, are_historical = sample(dimensions, shift, seed + 100)
    found = np.array([fitted.probability(each) for each in unseen])
    assert (found[are_historical] > 0.5).mean() > 0.8
    assert (found[~are_historical] > 0.5).mean() < 0.2


@given(st.sampled_from([8, 64, 384]), st.integers(0, 20))
def test_vectors_that_do_not_differ_tell_nothing(dimensions: int, seed: int) -> None:
    assert HistoricalQueries.of(*sample(dimensions, 0.0, seed)) is None


@given(st.floats(-1e6, 1e6))
def test_a_probability_lies_between_0_and_1(scale: float) -> None:
    fitted = HistoricalQueries.of(*sample(8, 5.0))
    assert fitted is not None
    assert 0 <= fitted.probability(np.full(8, scale, np.float32)) <= 1


def test_the_sample_has_many_different_queries_of_both_kinds() -> None:
    lines = files("agentcore.memory").joinpath(HISTORICAL).read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len({row["text"] for row in rows}) == len(rows)
    assert 200 <= sum(row["historical"] for row in rows) <= len(rows) / 2


def test_the_local_model_has_a_discriminant_of_its_own() -> None:
    """Fitted to other vectors, it would be noise."""
    fitted = fitted_to("local/multilingual-e5-small-adapted")
    assert fitted is not None
    assert fitted.weights.shape == (384,)
    assert np.isfinite(fitted.weights).all()
    assert fitted_to("local/all-MiniLM-L6-v2") is None
