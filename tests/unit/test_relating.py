"""The probability of a change, from the classifier's score and the cosine of two messages."""

from __future__ import annotations

import numpy as np
import pytest

from agentcore.memory.deriving.relating import LOCAL_COSINES, calibrated
from agentcore.memory.ranking.calibration import OffTopicPrompts


def of(score: float, cosine: float, off_topic: OffTopicPrompts | None = None) -> float:
    return float(calibrated(np.array([score]), np.array([cosine]), off_topic)[0])


def test_a_score_counts_less_for_messages_that_are_not_near() -> None:
    assert of(0.86, 0.33) < 0.4 < of(0.79, 0.60)


@pytest.mark.parametrize("cosine", [-1.0, 0.2, 0.9])
def test_the_probability_rises_with_the_score_and_the_cosine(cosine: float) -> None:
    rising = [of(score, cosine) for score in (0.0, 0.1, 0.5, 0.9, 1.0)]
    assert rising == sorted(rising)
    assert 0 < rising[0] < of(0.0, cosine + 0.1) < 1


def test_the_cosines_of_another_model_are_compared_with_its_own_prompts() -> None:
    typical, spread = LOCAL_COSINES
    nothing = np.zeros((0, 3), np.float32)
    other = OffTopicPrompts(nothing, 2 * spread, typical + 0.1)
    assert of(0.7, typical + 0.1 + 2 * spread, other) == pytest.approx(of(0.7, typical + spread))
