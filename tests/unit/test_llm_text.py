"""Text for and from language models: capped, without thoughts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.language.llm_text import (
    capped,
    size_bytes,
    within,
    without_thought_lines,
    without_thoughts,
)


@pytest.mark.parametrize(("text", "left"), [
    ("Plain words.", "Plain words."),
    ("<think>Hm.</think>Yes.", "Yes."),
    ("<THINK>a\nb</THINK>\n Yes. <thinking>c</thinking>", "Yes."),
    ("It was open before.</think> Yes.", "Yes."),
    ("<think>and then it was cut", ""),
    ("Then use the <think> tag. Maren knows.", "Then use the <think> tag. Maren knows."),
    ("<reasoning>x</reasoning><think>y</think>", ""),
    ("I think so.", "I think so."),
    ("<b>bold</b>", "<b>bold</b>"),
])
def test_thoughts_are_taken_out(text: str, left: str) -> None:
    assert without_thoughts(text) == left


@pytest.mark.parametrize(("text", "left"), [
    ("Here is my log: </think> My policy is HX-2210.", "Here is my log: </think> My policy is HX-2210."),
    ("How do I strip <think>…</think>? It is HX-2210.", "How do I strip <think>…</think>? It is HX-2210."),
    ("What is it?\n<think>Hm,\nwell.</think>\nIt is HX-2210.", "What is it?\nIt is HX-2210."),
])
def test_of_what_people_may_have_said_only_thoughts_that_begin_a_line_are_taken_out(
    text: str, left: str
) -> None:
    assert without_thought_lines(text) == left


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_capped_text_is_a_beginning_that_fits(text: str, most: int) -> None:
    cut = capped(text, most)
    assert size_bytes(cut) <= most
    assert text.startswith(cut)
    assert cut == text or size_bytes(text) > most


@pytest.mark.parametrize(("max_words", "left"), [
    (100, "One went home. Two stayed here."), (4, "One went home."), (2, "One went"), (0, ""),
])
def test_what_is_too_long_ends_with_a_sentence_if_one_fits(max_words: int, left: str) -> None:
    text = "One went home. Two stayed here."
    assert within(text, max_words, lambda each: len(each.split())) == left


@given(st.text(max_size=200), st.integers(min_value=0, max_value=60))
def test_what_is_cut_never_exceeds_its_tokens(text: str, most: int) -> None:
    assert size_bytes(within(text, most, size_bytes)) <= most
