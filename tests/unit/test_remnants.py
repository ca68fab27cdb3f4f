"""What remains of a summary after some of its sources are deleted."""

from __future__ import annotations

from agentcore.memory.summaries.grounding import Spoken, remnants, without_stale

SUMMARY = "Ada: The ship left at dawn.\nBen: It carries salt.\nAda: The crew is nine."


def test_lines_of_none_of_those_who_are_there_are_kept() -> None:
    there = [Spoken("Ben", "It carries salt. It is heavy.", []), Spoken("Ada", "The crew is nine.", [])]
    assert remnants(SUMMARY, there) == "Ada: The ship left at dawn."


def test_what_was_said_before_is_no_remnant() -> None:
    there = [Spoken("Ben", "It is heavy.", ["It carries salt."]), Spoken("Ada", "", ["The crew is nine."])]
    assert remnants(SUMMARY, there) == "Ada: The ship left at dawn."


def test_the_same_words_of_another_speaker_are_another_line() -> None:
    assert remnants(SUMMARY, [Spoken("Cid", "It carries salt.", [])]) == SUMMARY


def test_without_a_speaker_a_sentence_stands_by_itself() -> None:
    told = "The ship left at dawn.\n- The crew is nine."
    assert remnants(told, [Spoken(None, "The crew is nine.", [])]) == "The ship left at dawn."


def test_stale_is_what_was_said_and_is_no_more() -> None:
    there = [Spoken("Ben", "It is heavy.", ["It carries salt."]), Spoken("Ada", "The crew is nine.", [])]
    assert without_stale(SUMMARY, there) == "Ada: The ship left at dawn.\nAda: The crew is nine."


def test_what_another_still_says_is_not_stale() -> None:
    there = [Spoken("Ben", "", ["It carries salt."]), Spoken("Ben", "It carries salt.", [])]
    assert without_stale(SUMMARY, there) == SUMMARY
