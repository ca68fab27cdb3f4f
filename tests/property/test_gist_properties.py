"""A gist sees through dress and never through a figure."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.language.gist import MOST_CHARS, gist, gist_hash

WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9)
SAID = st.lists(WORD, min_size=1, max_size=8)
NUMBER = st.integers(0, 10**9)


@given(st.text(max_size=300))
def test_every_text_has_one_gist_and_a_digest(text: str) -> None:
    assert gist(text)
    assert gist_hash(gist(text), None) == gist_hash(gist(f" {text}\n"), None)


@given(SAID)
def test_a_capital_in_front_an_end_and_two_blanks_change_nothing(said: list[str]) -> None:
    plain = gist(" ".join(said))
    assert gist("  ".join(said).capitalize() + ".") == plain
    assert gist('"' + " ".join(said) + '!"') == plain


@given(SAID, SAID, NUMBER, NUMBER)
def test_another_number_is_another_gist(before: list[str], after: list[str], one: int, other: int) -> None:
    texts = [" ".join([*before, str(number), *after]) for number in (one, other)]
    assert (gist(texts[0]) == gist(texts[1])) == (one == other)


@given(SAID, SAID)
def test_a_negation_is_never_seen_through(before: list[str], after: list[str]) -> None:
    assert gist(" ".join([*before, "not", *after])) != gist(" ".join([*before, *after]))


HOSTILE = (
    " ", "\n", " \n", ",", ", ", "- ", " - ", "\u2014", "please ", "hi, ", "likes a, ", "1,", "a ", "on ",
    "'", ".", "? ", "*", "5 - ", "if a", "not ", "\t\n- ", "likes ", "today the ", "\ud800", "[1:1:1] ",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_repetition_costs_no_more_than_its_length(piece: str) -> None:
    """What goes back in a text of this length takes seconds, what does not some milliseconds."""
    text = (piece * MOST_CHARS)[: MOST_CHARS - 1] + "x"
    started = time.process_time()
    gist(text)
    assert time.process_time() - started < 1
