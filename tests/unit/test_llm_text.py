"""Text for and from language models: limited length, no reasoning blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.language.llm_text import (
    size_bytes,
    strip_all_reasoning,
    strip_leading_reasoning,
    truncate_bytes,
    truncate_sentences,
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Plain words.", "Plain words."),
        ("<think>Hm.</think>Yes.", "Yes."),
        ("<THINK>a\nb</THINK>\n Yes. <thinking>c</thinking>", "Yes."),
        ("It was open before.</think> Yes.", "Yes."),
        ("<think>and then it was cut", ""),
        ("Then use the <think> tag. Maren knows.", "Then use the <think> tag. Maren knows."),
        ("<reasoning>x</reasoning><think>y</think>", ""),
        ("I think so.", "I think so."),
        ("<b>bold</b>", "<b>bold</b>"),
        ("<think>Hm.</think>Yes.\n<think>secret", "Yes."),
        ("<think>Hm.</think>Yes. <think>secret", "Yes."),
        ("<think>Hm.</think><think>secret", ""),
        ("Answer.\n<think>secret", "Answer."),
        ("Answer.\n\n  <think>secret\nlines", "Answer."),
        ("Hm.\n</think>\nYes.\n<think>secret", "Yes."),
        ("Answer. <think> is the tag.", "Answer. <think> is the tag."),
        ('{"a": "Open. </think> closes", "b": 1}', '{"a": "Open. </think> closes", "b": 1}'),
        ('{"a": "say \\"so\\".</think>"}', '{"a": "say \\"so\\".</think>"}'),
        ('x = "It ends.</think>"\ny = 1', 'x = "It ends.</think>"\ny = 1'),
        ('parts = text.split("</think>")\nlast = 1', 'parts = text.split("</think>")\nlast = 1'),
        ('The user asks.</think>{"a": "b"}', '{"a": "b"}'),
        ('The user said "x" twice.</think>{"a": "b"}', '{"a": "b"}'),
    ],
)
def test_thoughts_are_taken_out(text: str, left: str) -> None:
    assert strip_all_reasoning(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Here is my log: </think> My policy is HX-2210.", "Here is my log: </think> My policy is HX-2210."),
        ("How do I strip <think>…</think>? It is HX-2210.", "How do I strip <think>…</think>? It is HX-2210."),
        ("What is it?\n<think>Hm,\nwell.</think>\nIt is HX-2210.", "What is it?\nIt is HX-2210."),
    ],
)
def test_of_what_people_may_have_said_only_thoughts_that_begin_a_line_are_taken_out(text: str, left: str) -> None:
    assert strip_leading_reasoning(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>Hm.</think>Paris.", "Paris."),
        ("<think>\nHm.\n</think>\n\nParis.", "Paris."),
        ("<thinking>a</thinking> <Reasoning>b</Reasoning><scratchpad>c</scratchpad>Paris.", "Paris."),
        ("Let me see.\n<think>Hm.</think>\nParis.", "Let me see.\nParis."),
        ("Sure. <think>Hm.</think> It is Paris.", "Sure. It is Paris."),
        ("The user asks for a capital.\n</think>\n\nParis.", "Paris."),
        ("The user asks for a capital.</think>Paris.", "Paris."),
        ("<think>It was cut off here", ""),
        ("  <think>It was cut off", ""),
        ("<think>\n```\nx = 1\n</think>\nParis.\n```\ny = 2\n```", "Paris.\n```\ny = 2\n```"),
        ("<think>The tag `</think>` ends it. So Paris.</think>Paris.", "Paris."),
        ('<think effort="low">Hm.</think>Paris.', "Paris."),
        ("[THINK]Hm.[/THINK]Paris.", "Paris."),
        ("[THINK]It was cut off", ""),
        ("\u25c1think\u25b7Hm.\u25c1/think\u25b7Paris.", "Paris."),
        ("<analysis>Hm.</analysis>\n<reflection>Well.</reflection>\nParis.", "Paris."),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Paris.<|return|>",
            "Paris.",
        ),
        ("<|channel|>analysis<|message|>It was cut off", ""),
        ("<think>Hm.</think>Paris.\n<think>It was cut off", "Paris."),
        ("Paris.\n<think>It was cut off", "Paris."),
    ],
)
@pytest.mark.shows("B15")
def test_reasoning_blocks_of_a_model_are_removed(text: str, left: str) -> None:
    assert strip_leading_reasoning(text, cut_off=True) == left


@pytest.mark.parametrize(
    "text",
    [
        "Close the <think> tag before the answer.",
        "The <think> and </think> tags mark reasoning.",
        "To strip <think>…</think> use a regular expression.",
        "Write `<think>like this</think>` for reasoning.",
        "An example:\n```xml\n<think>like this</think>\n```",
        "Here is my log: </think> It was there.",
        "I think so. He thinks </b> too. <b>bold</b>",
        "[Analysis] of the budget: fine. [1] [think] it over.",
        "The token <|channel|>analysis<|message|> begins the reasoning of gpt-oss.",
        "",
    ],
)
@pytest.mark.shows("B15")
def test_a_text_about_reasoning_tags_loses_nothing(text: str) -> None:
    assert strip_leading_reasoning(text, cut_off=True) == text


def test_only_what_a_model_says_is_cut_off_at_a_single_tag() -> None:
    for text in ("<think>is the tag that I mean", "I saw this.\n</think>\nWhat is it?"):
        assert strip_leading_reasoning(text) == text


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_capped_text_is_a_beginning_that_fits(text: str, most: int) -> None:
    cut = truncate_bytes(text, most)
    assert size_bytes(cut) <= most
    assert text.startswith(cut)
    assert cut == text or size_bytes(text) > most


@pytest.mark.parametrize(
    ("max_words", "left"), [(100, "One went home. Two stayed here."), (4, "One went home."), (2, "One went"), (0, "")]
)
def test_what_is_too_long_ends_with_a_sentence_if_one_fits(max_words: int, left: str) -> None:
    text = "One went home. Two stayed here."
    assert truncate_sentences(text, max_words, lambda each: len(each.split())) == left


@given(st.text(max_size=200), st.integers(min_value=0, max_value=60))
def test_what_is_cut_never_exceeds_its_tokens(text: str, most: int) -> None:
    assert size_bytes(truncate_sentences(text, most, size_bytes)) <= most
