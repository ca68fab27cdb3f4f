"""Properties of words, sentences, terms, encoding and the gate for any text."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentcore.memory.encoding import (
    ANALYSED_CHARS,
    ENTITY_LIMIT,
    FACT_LIMIT,
    KEYWORD_LIMIT,
    SUMMARY_LIMIT_CHARS,
    action_outcomes,
    encode,
    interaction_text,
)
from agentcore.memory.language.entities import find_entities
from agentcore.memory.language.rejection import rejection
from agentcore.memory.language.text import MAX_WORD_CHARS, STOP_WORDS, collapse, sentences, words
from agentcore.memory.lexical import Bm25, LexicalStatistics, select_query_keys, term_keys, terms

ANY_TEXT = st.text(st.characters(), max_size=400)
PROSE = st.lists(
    st.sampled_from(
        [
            "I moved to Berlin on 3 May 2026.", "Anna's budget is $1,200!", "ok?", "- item one\n",
            "```\nx = 1\n```", "Dr. Chen said \"no\".", "Never call before 9:00.", "ERR_42 ", "我住在柏林。",
            "\n\n", "...", "*", "User: ",
            "the quick brown fox jumps over the lazy dog and then it goes on, and on; and on", " ",
            "\u2019s",
        ]
    ),
    max_size=30,
).map("".join)  # fmt: skip
TEXTS = ANY_TEXT | PROSE
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(TEXTS)
@example("\ud800\udfff")
@example("\x00")
@pytest.mark.shows("issue2-8-encoding")
def test_any_text_encodes_to_bounded_fields_and_always_the_same_ones(text: str) -> None:
    encoded = encode(text)
    assert encoded == encode(text)
    assert encoded.content == text.strip()
    assert len(encoded.entities) <= ENTITY_LIMIT
    assert len({name.casefold() for name in encoded.entities}) == len(encoded.entities)
    assert len(encoded.facts) <= FACT_LIMIT
    assert len(set(encoded.keywords)) == len(encoded.keywords) <= KEYWORD_LIMIT
    assert all(encoded.entities) and all(encoded.facts) and all(encoded.keywords)


@given(TEXTS)
def test_a_summary_is_made_of_the_text_and_shorter_where_there_is_something_to_leave_out(text: str) -> None:
    summary, content = encode(text).summary, text.strip()
    plain = collapse(summary)
    ends = {0}  # possible end positions in the summary of a sequence of the text's sentences
    for sentence in map(collapse, sentences(content)):
        ends |= {end + len(sentence) + 1 for end in ends if plain.startswith(sentence, end)}
    assert len(plain) + 1 in ends or plain in collapse(content)
    assert len(summary) <= len(content)
    if len(sentences(content)) > 1 or len(content) > 120:
        assert 0 < len(summary) < len(content)
    if len(content) >= 500:
        assert len(summary) <= min(0.4 * len(content), SUMMARY_LIMIT_CHARS)


@given(TEXTS)
def test_facts_are_sentences_of_the_text(text: str) -> None:
    plain = collapse(text)
    assert all(fact in plain for fact in encode(text).facts)


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=8)))
def test_texts_that_differ_in_case_and_white_space_alone_have_one_hash(parts: list[str]) -> None:
    assert encode(" ".join(parts)).content_hash == encode("\n \t".join(parts).swapcase()).content_hash


@given(TEXTS, TEXTS)
def test_texts_with_another_normal_form_have_another_hash(one: str, other: str) -> None:
    first, second = encode(one), encode(other)
    assume(first.normalised != second.normalised)
    assert first.content_hash != second.content_hash


@given(TEXTS)
def test_words_are_folded_short_and_stay_themselves(text: str) -> None:
    found = words(text)
    assert all(0 < len(word) <= MAX_WORD_CHARS for word in found)
    assert words(text) == found
    assert len(terms(text)) == sum(word not in STOP_WORDS for word in found)


@given(TEXTS)
def test_sentences_lose_no_letter_and_no_digit_of_unlisted_prose(text: str) -> None:
    assume(not any(char.isdigit() for char in text))  # "1." at the start of a line is a list marker
    kept = "".join(sentences(text))
    assert [char for char in kept if char.isalnum()] == [char for char in text if char.isalnum()]


@given(TEXTS, TEXTS)
def test_bm25_is_never_negative_and_positive_only_for_a_common_term(query: str, document: str) -> None:
    asked, said = term_keys("agent", query), term_keys("agent", document)
    statistics = LexicalStatistics(3, 4.0, dict.fromkeys(said, 2))
    score = Bm25(asked, statistics)(said)
    assert score >= 0
    assert (score > 0) == bool(set(asked) & set(said))


@given(st.lists(st.integers(0, 9)), st.dictionaries(st.integers(0, 9), st.integers(0, 50)), st.integers(0, 60))
def test_selected_keys_are_the_rarest_and_keep_the_bound(
    keys: list[int], frequency: dict[int, int], bound: int
) -> None:
    chosen = select_query_keys(keys, frequency, bound)
    known = {key for key in keys if frequency.get(key)}
    assert bool(chosen) == bool(known)
    assert len(chosen) == len(set(chosen)) and set(chosen) <= known
    assert len(chosen) <= 1 or sum(frequency[key] for key in chosen) <= bound
    left = known - set(chosen)
    assert not left or max(frequency[key] for key in chosen) <= min(frequency[key] for key in left)


@given(st.none() | ANY_TEXT, st.none() | ANY_TEXT, st.lists(JSON, max_size=4), JSON)
def test_any_interaction_has_a_text(
    query: str | None, response: str | None, actions: list[object], outcome: object
) -> None:
    text = interaction_text(query, response, actions, outcome)
    assert (query or "").strip() in text and (response or "").strip() in text
    assert all(pair["action"] for pair in action_outcomes(actions, outcome))


@given(TEXTS)
def test_the_gate_keeps_every_text_with_a_digit_in_it_but_never_one_without_words(text: str) -> None:
    reason = rejection(text)
    if any(char in "0123456789" for char in text):
        assert reason is None
    if not any(char.isalnum() for char in text):
        assert reason is not None


HOSTILE = (
    "a", "A", "a-", "a_", "A-", "a.b", "a@", "x+", "aA", "`a", '"', "'", "A'", "1,", "1 ", ". ",
    "...", "- ", "#", "\n", "a\n", "A ", "de A ", "A of the ", "Dr. ", "http://", "**a", "```",
    "$1", "好", "好。", "a: ", ": ", "\u0301", "e.g. ", "1. ", "\u201c", "+1 ", "I can't ", "sorry ",
    "User: ", "aB_", "1.", "(", "\u200b", "v1.", "May 1 ", "İ", "\ud800",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_repetition_costs_no_more_than_its_length(piece: str) -> None:
    """200,000 characters: backtracking patterns take minutes, linear ones less than a second."""
    text = (piece * 200_000)[:200_000]
    started = time.process_time()
    pieces = sentences(text)
    find_entities(pieces, STOP_WORDS)
    terms(text)
    rejection(text)
    rejection(text[:600])
    summary = encode(text).summary
    assert time.process_time() - started < 20
    assert len(summary) <= SUMMARY_LIMIT_CHARS < ANALYSED_CHARS
