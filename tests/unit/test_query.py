"""Understanding the query: when it is completed, and when it asks for the present."""

from __future__ import annotations

import pytest

from agentcore.memory.params import Turn
from agentcore.memory.query import PRESENT_FACTOR, complete, weighed
from agentcore.memory.scoring import RetrievalWeights

HISTORY = [
    Turn(role="user", content="I think about the Lisbon flat"),
    Turn(role="assistant", content="Nice!"),
]


@pytest.mark.parametrize(("query", "completed"), [
    ("how much?", True), ("and then?", True), ("how much is the rent of the flat", False),
])
def test_a_query_that_says_too_little_is_completed(query: str, completed: bool) -> None:
    text = complete(query, HISTORY)
    assert ("Lisbon" in text) is completed
    assert "Nice!" not in text
    assert text.endswith(query)


@pytest.mark.parametrize("query", [
    "What is the budget now?", "my CURRENT address", "the latest invoice", "Do I still own a car?",
    "which phone do I use these days",
])
def test_a_query_for_the_present_weighs_recency_more(query: str) -> None:
    weights = RetrievalWeights()
    assert weighed(query, weights).recency == PRESENT_FACTOR * weights.recency


@pytest.mark.parametrize("query", ["What was the budget in May?", "I know nothing", "sea currents", ""])
def test_any_other_query_keeps_the_weights(query: str) -> None:
    assert weighed(query, RetrievalWeights()) == RetrievalWeights()
