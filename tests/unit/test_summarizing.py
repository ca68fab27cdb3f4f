"""Extractive summaries, segments of conversations, calendar periods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from agentcore.memory.summaries.summarizing import PAUSE, Source, Summary, period_named, period_of, segments, summarize
from agentcore.summary_rules import PeriodUnit

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


NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def talk(*pauses: timedelta) -> list[Source]:
    """Returns messages with these pauses between them, the first at noon."""
    times = [NOON + sum(pauses[:place], timedelta()) for place in range(len(pauses) + 1)]
    return [Source(UUID(int=place), time, "user", "Hello", 0.5) for place, time in enumerate(times)]


def sizes(messages: list[Source], most: int = 20) -> list[int]:
    cut = [*segments(messages, most)]
    assert [each for piece in cut for each in piece] == messages
    return [len(piece) for piece in cut]


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [1]), (20, [20]), (21, [10, 11]), (200, [20] * 10), (205, [18] * 4 + [19] * 7)]
)
@pytest.mark.shows("issue5-4-segments")
def test_a_long_talk_is_cut_evenly(count: int, expected: list[int]) -> None:
    assert sorted(sizes(talk(*[MINUTE] * (count - 1)))) == sorted(expected)


def test_a_pause_parts_two_talks_of_a_session() -> None:
    assert sizes(talk(*[MINUTE] * 5, PAUSE, *[MINUTE] * 4)) == [6, 5]
    assert sizes(talk(*[MINUTE] * 5, PAUSE - MINUTE, *[MINUTE] * 4)) == [11]


def test_what_comes_now_and_then_is_gathered() -> None:
    assert sizes(talk(*[PAUSE] * 11)) == [4, 4, 4]
    assert sizes(talk(*[PAUSE] * 5)) == [6]
    assert sizes(talk(PAUSE, PAUSE)) == [3]


def test_nothing_is_no_piece() -> None:
    assert sizes([]) == []


SUNDAY = datetime(2026, 11, 22, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("unit", "moment", "label", "starts", "days"),
    [
        ("day", SUNDAY, "2026-11-22", datetime(2026, 11, 22, tzinfo=UTC), 1),
        ("week", SUNDAY, "2026-W47", datetime(2026, 11, 16, tzinfo=UTC), 7),
        ("month", SUNDAY, "2026-11", datetime(2026, 11, 1, tzinfo=UTC), 30),
        ("month", datetime(2028, 2, 29, tzinfo=UTC), "2028-02", datetime(2028, 2, 1, tzinfo=UTC), 29),
        ("month", datetime(2026, 12, 31, tzinfo=UTC), "2026-12", datetime(2026, 12, 1, tzinfo=UTC), 31),
        # Week 1 is the one with the year's first Thursday.
        ("week", datetime(2027, 1, 1, tzinfo=UTC), "2026-W53", datetime(2026, 12, 28, tzinfo=UTC), 7),
        ("week", datetime(2024, 12, 30, tzinfo=UTC), "2025-W01", datetime(2024, 12, 30, tzinfo=UTC), 7),
    ],
)
def test_a_moment_falls_into_one_period_of_each_kind(
    unit: PeriodUnit, moment: datetime, label: str, starts: datetime, days: int
) -> None:
    period = period_of(unit, moment)
    assert (period.label, period.starts, period.ends) == (label, starts, starts + timedelta(days=days))


def test_days_are_those_of_utc() -> None:
    late = datetime(2026, 11, 22, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert period_of("day", late).label == "2026-11-23"


@pytest.mark.parametrize("unit", ["day", "week", "month"])
def test_a_period_is_known_by_its_label(unit: PeriodUnit) -> None:
    for days in range(0, 4_000, 13):
        period = period_of(unit, SUNDAY + timedelta(days=days))
        assert period_named(period.label) == period


@pytest.mark.parametrize("label", ["2026-W60", "soon", "2026-13", "2026-02-30", ""])
def test_no_other_label_is_a_period(label: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        period_named(label)
