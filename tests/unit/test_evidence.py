"""Evidence in a context: all numbers and names, and most content words."""

from __future__ import annotations

from typing import Any

from benchmarks.context_efficiency import reached, table
from benchmarks.evidence import Given, WordIndex, evidence, share_contained, share_in_full, words_of

TEXT = "We moved to Porto on the 14th. My sister Ines helped carry eight heavy wooden boxes upstairs."


def test_a_text_contains_itself_in_any_order_and_case() -> None:
    backwards = " ".join(reversed(TEXT.upper().replace(".", " ").split()))
    assert evidence("a", TEXT).stands_in(words_of(backwards))


def test_a_missing_number_or_name_is_not_made_up_for_by_words() -> None:
    for missing in ("14th", "Porto", "Ines"):
        assert not evidence("a", TEXT).stands_in(words_of(TEXT.replace(missing, "")))


def test_one_content_word_in_ten_may_be_missing_and_no_more() -> None:
    assert evidence("a", TEXT).stands_in(words_of(TEXT.replace("wooden", "")))
    assert not evidence("a", TEXT).stands_in(words_of(TEXT.replace("wooden", "").replace("heavy", "")))


def test_what_stands_in_full_is_counted_by_itself() -> None:
    labelled = [evidence("a", "The ferry leaves at nine."), evidence("b", "Rui paints boats.")]
    given = Given(words_of("ferry leaves nine"), 5, frozenset({"b"}))
    assert share_contained(labelled, given) == 0.5
    assert share_in_full(labelled, given) == 0.5


def test_rare_words_rank_before_common_ones() -> None:
    index = WordIndex(["the boat sails", "the boat rests", "a boat and a lantern", "nothing of it"])
    assert index.ranked("boats with lanterns")[0] == 2
    assert index.ranked("zeppelin") == []


def test_what_was_reached_is_told_of_those_that_ran_alone() -> None:
    results: dict[str, dict[str, Any]] = {
        "own, 500: get_context": {"questions": 9, "all evidence": 70.0},
        "own, 1,000: get_context": {"questions": 9, "all evidence": 85.0, "all evidence interval": (80.1, 90.2)},
    }
    told = reached(results, {"500": 500, "1,000": 1_000}, "own")
    assert told == {"get_context: 80 %": "1,000", "get_context: 90 %": "not reached"}
    assert "| 85.0 | 80.1 to 90.2 |" in table(results)
