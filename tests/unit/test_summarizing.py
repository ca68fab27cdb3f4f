"""Extractive summaries."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from agentcore.memory.summaries.summarizing import Source, Summary, summarize

BARGE = "The barge from Rotterdam arrives on Friday morning."


def count(text: str) -> int:
    """One token a word."""
    return len(text.split())


def summary_of(*texts: str, max_tokens: int = 100, speaker: str | None = None) -> Summary:
    sources = [
        Source(UUID(int=place), datetime(2026, 6, 1, 12, place, tzinfo=UTC), speaker, text, 0.5)
        for place, text in enumerate(texts, 1)
    ]
    return summarize(sources, max_tokens, count)


def test_all_that_is_stated_stands_where_it_fits() -> None:
    found = summary_of("We sold 3 cars.", "Paco is ill.", BARGE)
    assert found.text.splitlines() == ["We sold 3 cars.", "Paco is ill.", BARGE]
    assert [each.int for each in found.memory_ids] == [1, 2, 3]


def test_a_session_of_one_short_sentence_has_a_summary() -> None:
    assert summary_of("The llama is at the vet.").text == "The llama is at the vet."


@pytest.mark.parametrize("nothing", ["Thanks!", "Hello there.", "Noted.", "What is the status of it?", ""])
def test_greetings_thanks_and_questions_say_nothing(nothing: str) -> None:
    assert summary_of(BARGE, nothing).text == BARGE
    assert summary_of(nothing) == Summary("", 0, [])


def test_of_what_does_not_fit_longer_sentences_go_before_those_that_say_little() -> None:
    assert summary_of("Paco is ill.", BARGE, max_tokens=8).text == BARGE


def test_where_no_sentence_fits_the_beginning_of_the_best_one_stands() -> None:
    found = summary_of("The barge from Rotterdam arrives on Friday morning with pallets.", max_tokens=4)
    assert found.text == "The barge from Rotterdam"
    assert found.token_count == 4
    assert [each.int for each in found.memory_ids] == [1]


def test_the_same_sentence_stands_once_and_says_who_said_it() -> None:
    again = "The claim has to be filed before the end of June."
    found = summary_of(again, "A surveyor visits the warehouse on Monday.", again, speaker="Ada")
    assert found.text.splitlines() == ["Ada: A surveyor visits the warehouse on Monday.", f"Ada: {again}"]
