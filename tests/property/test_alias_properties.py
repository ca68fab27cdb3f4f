"""Learning aliases takes any text, finds few and short ones, and takes no longer than the text is long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.aliases import MAX_FORM_CHARS, MAX_FORM_TERMS, MAX_LEARNT, checked, forms, learn
from agentcore.memory.lexical import phrase

PIECES = st.sampled_from([
    "Kubernetes", "k8s", "KPI", "key", "performance", "indicator", "the", "our", " (", ")", "'", '"', ", ",
    ". ", " also known as ", " aka ", " short for ", " stands for ", "we call ", "\n", "```", "東京", "**",
])
TEXTS = st.text(max_size=300) | st.lists(PIECES, max_size=40).map("".join) | st.lists(PIECES).map(" ".join)
ENDLESS = [
    "X (Y) ", "a (b c ", ", also known as ", '"', "A ", "AB CD (", "KPI (k p i) ", "(", "we call x '",
]


@given(TEXTS)
def test_whatever_is_learnt_is_short_few_and_can_be_looked_up(text: str) -> None:
    found = learn(text)
    assert len(found) <= MAX_LEARNT
    assert len({phrase(pair.alias) for pair in found}) == len(found)
    for pair in found:
        assert pair == checked(pair.alias, pair.means)
        for form in (pair.alias, pair.means):
            assert 0 < len(form) <= MAX_FORM_CHARS
            assert 0 < len(phrase(form)) <= MAX_FORM_TERMS


@given(TEXTS)
def test_every_form_of_a_query_has_the_keys_of_its_terms(text: str) -> None:
    assert all(forms("ada", text).values())


@pytest.mark.parametrize("piece", ENDLESS)
def test_a_text_without_end_takes_no_longer_than_its_length(piece: str) -> None:
    text = (piece * 262_144)[:262_144]
    started = time.process_time()
    learn(text)
    forms("ada", text)
    # Quadratic work would take minutes.
    assert time.process_time() - started < 5
