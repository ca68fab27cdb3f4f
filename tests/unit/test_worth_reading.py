"""Selection of memories for fact extraction by a model."""

from __future__ import annotations

import pytest

from agentcore.memory.consequences.pending_work import is_worth_reading


@pytest.mark.parametrize(
    "content",
    [
        "I moved to Ghent.",
        "I'm vegan.",
        "My dog is Rex.",
        "Call me Bo.",
        "we leave at 9",
        "\u6211\u642c\u5230\u4e86\u6839\u7279\u3002",
        "Vivo en M\u00e1laga.",
        "the boiler was replaced last week by a neighbour",
    ],
)
@pytest.mark.shows("issue5-3-facts")
def test_what_may_hold_a_fact_is_read_however_short_it_is(content: str) -> None:
    assert is_worth_reading(content)


@pytest.mark.parametrize(
    "content",
    [
        "Hello!",
        "Hello there, good morning!",
        "Got it, thank you!",
        "Thanks a lot!",
        "lol",
        "I see",
        "That makes sense.",
        "Sure, go ahead.",
        "Can you help me?",
        "one moment",
        " " * 40,
    ],
)
def test_small_talk_and_scraps_are_not_read(content: str) -> None:
    assert not is_worth_reading(content)
