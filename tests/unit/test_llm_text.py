"""Text for and from language models: capped, without thoughts, checked against what was said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.llm_text import (
    capped,
    grounded,
    grounded_sentences,
    size_bytes,
    within,
    without_thoughts,
)


@pytest.mark.parametrize(("text", "left"), [
    ("Plain words.", "Plain words."),
    ("<think>Hm.</think>Yes.", "Yes."),
    ("<THINK>a\nb</THINK>\n Yes. <thinking>c</thinking>", "Yes."),
    ("It was open before.</think> Yes.", "Yes."),
    ("Yes. <think>and then it was cut", "Yes."),
    ("<reasoning>x</reasoning><think>y</think>", ""),
    ("I think so.", "I think so."),
    ("<b>bold</b>", "<b>bold</b>"),
])
def test_thoughts_are_taken_out(text: str, left: str) -> None:
    assert without_thoughts(text) == left


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_capped_text_is_a_beginning_that_fits(text: str, most: int) -> None:
    cut = capped(text, most)
    assert size_bytes(cut) <= most
    assert text.startswith(cut)
    assert cut == text or size_bytes(text) > most


@pytest.mark.parametrize(("claim", "said", "holds"), [
    ("It cost 40,000 euros.", "about 40000 euros", True),
    ("It cost 40,000 euros.", "about 40 euros", False),
    ("Policy HX-2210.", "the policy is HX-2210", True),
    ("On 2026-06-01.", "2026-06-01T12:00:00+00:00", True),
    ("In 1999.", "on 2026-06-01", False),
    ("No numbers at all.", "", True),
    ("Call 007.", "agent 7", True),
])
def test_numbers_must_have_been_said(claim: str, said: str, holds: bool) -> None:
    assert grounded(claim, said) is holds


def test_only_sentences_with_numbers_that_nobody_said_are_left_out() -> None:
    text = "They met in Ghent. It cost 900 euros. It cost 901 euros."
    assert grounded_sentences(text, "900 euros") == ("They met in Ghent. It cost 900 euros.", 1)
    assert grounded_sentences("It cost 5 euros.", "") == ("", 1)


@pytest.mark.parametrize(("max_words", "left"), [
    (100, "One went home. Two stayed here."), (4, "One went home."), (2, "One "), (0, ""),
])
def test_what_is_too_long_ends_with_a_sentence_if_one_fits(max_words: int, left: str) -> None:
    text = "One went home. Two stayed here."
    assert within(text, max_words, lambda each: len(each.split())) == left
