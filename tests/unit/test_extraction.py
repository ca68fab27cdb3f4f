"""Extractive shortening: selected sentences, their order, and the limit."""

from __future__ import annotations

from agentcore.memory.contexts.extraction import LEFT_OUT, extract
from agentcore.memory.lexical import terms

TEXT = (
    "We met at the harbour. The weather was dull and everybody was late. Ines ordered 14 crates of lemons. "
    "She paid 220 euros for them. Later we walked home along the wall. Nobody said much."
)


def words(text: str) -> int:
    return len(text.split())


def extracted(query: str, max_tokens: int) -> str:
    return extract(TEXT, frozenset(terms(query)), max_tokens, words)


def test_the_sentence_that_holds_the_querys_words_stays_with_its_numbers() -> None:
    assert extracted("how many lemons did Ines order", 9) == "Ines ordered 14 crates of lemons."


def test_what_stands_beside_it_comes_next_in_the_texts_order() -> None:
    assert extracted("lemons", 17) == "Ines ordered 14 crates of lemons. She paid 220 euros for them."


def test_where_something_is_left_out_an_ellipsis_stands() -> None:
    said = extracted("lemons harbour", 18)
    assert said == f"We met at the harbour.{LEFT_OUT}Ines ordered 14 crates of lemons."


def test_without_a_word_in_common_the_beginning_and_what_is_named_stay() -> None:
    assert extracted("zeppelin", 8) == "We met at the harbour."


def test_no_more_is_given_than_there_is_room_for() -> None:
    for room in range(40):
        assert words(extracted("lemons", room)) <= room


def test_nothing_is_left_of_a_sentence_that_does_not_fit() -> None:
    assert extract("word " * 400, frozenset(), 50, words) == ""
    assert extract("", frozenset(), 50, words) == ""
