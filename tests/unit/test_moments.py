"""Time expressions in texts, and above all their false positives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentcore.memory.language.moments import EARLIEST, LATEST, mentioned, windows

# A Wednesday.
NOW = datetime(2023, 6, 14, 15, 30, tzinfo=UTC)


def span(text: str, now: datetime = NOW) -> tuple[str, str]:
    """Returns the first and last day of the text's only window."""
    [window] = windows(text, now)
    return f"{window.start:%Y-%m-%d}", f"{window.end - timedelta(days=1):%Y-%m-%d}"


@pytest.mark.parametrize(("text", "first", "last"), [
    ("What did I do yesterday?", "2023-06-13", "2023-06-13"),
    ("what's on today", "2023-06-14", "2023-06-14"),
    ("the plan for tonight", "2023-06-14", "2023-06-14"),
    ("who called this morning?", "2023-06-14", "2023-06-14"),
    ("what did I dream last night", "2023-06-13", "2023-06-13"),
    ("the day before yesterday", "2023-06-12", "2023-06-12"),
    ("the meeting tomorrow evening", "2023-06-15", "2023-06-15"),
    ("the day after tomorrow", "2023-06-16", "2023-06-16"),
    ("the other day I saw a fox", "2023-06-07", "2023-06-13"),
    ("three days ago", "2023-06-11", "2023-06-11"),
    ("3 weeks ago", "2023-05-21", "2023-05-27"),
    ("a couple of weeks ago", "2023-05-28", "2023-06-03"),
    ("a few days ago", "2023-06-09", "2023-06-12"),
    ("six months ago", "2022-11-29", "2022-12-29"),
    ("two years ago", "2020-12-13", "2021-12-14"),
    ("a year ago today", "2022-06-14", "2022-06-14"),
    ("two weekends ago", "2023-05-28", "2023-06-03"),
    ("last week", "2023-06-05", "2023-06-11"),
    ("the past week", "2023-06-07", "2023-06-14"),
    ("this week", "2023-06-12", "2023-06-18"),
    ("next week", "2023-06-19", "2023-06-25"),
    ("the week before last", "2023-05-29", "2023-06-04"),
    ("last month", "2023-05-01", "2023-05-31"),
    ("last year's budget", "2022-01-01", "2022-12-31"),
    ("next quarter", "2023-07-01", "2023-09-30"),
    ("last quarter", "2023-01-01", "2023-03-31"),
    ("in the last 3 days", "2023-06-11", "2023-06-14"),
    ("over the past two months", "2023-04-14", "2023-06-14"),
    ("the next two weeks", "2023-06-14", "2023-06-28"),
    ("two weeks from now", "2023-06-25", "2023-07-01"),
    ("on Monday", "2023-06-12", "2023-06-12"),
    ("on Wednesday", "2023-06-07", "2023-06-07"),
    ("last Friday", "2023-06-09", "2023-06-09"),
    ("this past Tuesday", "2023-06-13", "2023-06-13"),
    ("this Friday", "2023-06-16", "2023-06-16"),
    ("next Friday", "2023-06-23", "2023-06-23"),
    ("friday evening", "2023-06-09", "2023-06-09"),
    ("will we meet on Monday?", "2023-06-19", "2023-06-19"),
    ("Monday's meeting", "2023-06-12", "2023-06-12"),
    ("on Fri", "2023-06-09", "2023-06-09"),
    ("Monday, 5 June", "2023-06-05", "2023-06-05"),
    ("Friday the 2nd of June", "2023-06-02", "2023-06-02"),
    ("over the weekend", "2023-06-10", "2023-06-11"),
    ("last weekend", "2023-06-10", "2023-06-11"),
    ("this weekend", "2023-06-17", "2023-06-18"),
    ("next weekend", "2023-06-24", "2023-06-25"),
    ("in May", "2023-05-01", "2023-05-31"),
    ("in may", "2023-05-01", "2023-05-31"),
    ("in May 2021", "2021-05-01", "2021-05-31"),
    ("May of 2021", "2021-05-01", "2021-05-31"),
    ("what happened in December?", "2022-12-01", "2022-12-31"),
    ("We are flying to Rome in May", "2024-05-01", "2024-05-31"),
    ("How many runs did I miss in March due to work?", "2023-03-01", "2023-03-31"),
    ("I missed them in March due to work", "2023-03-01", "2023-03-31"),
    ("what did we say will happen in May?", "2023-05-01", "2023-05-31"),
    ("last March", "2023-03-01", "2023-03-31"),
    ("last June", "2022-06-01", "2022-06-30"),
    ("next May", "2024-05-01", "2024-05-31"),
    ("early June", "2023-06-01", "2023-06-10"),
    ("mid-May", "2023-05-11", "2023-05-20"),
    ("early March", "2023-03-01", "2023-03-10"),
    ("late 2022", "2022-09-01", "2022-12-31"),
    ("the mid-2022 report", "2022-05-02", "2022-08-31"),
    ("mid\u20112022", "2022-05-02", "2022-08-31"),
    ("late-2021, we moved", "2021-09-01", "2021-12-31"),
    ("mid-Q3 2022", "2022-07-31", "2022-08-30"),
    ("end of May", "2023-05-21", "2023-05-31"),
    ("late in May", "2023-05-21", "2023-05-31"),
    ("the end of last year", "2022-09-01", "2022-12-31"),
    ("at the beginning of 2022", "2022-01-01", "2022-05-01"),
    ("the end of the month", "2023-06-21", "2023-06-30"),
    ("7 May 2022", "2022-05-07", "2022-05-07"),
    ("the 7th of May", "2023-05-07", "2023-05-07"),
    ("on 7 may", "2023-05-07", "2023-05-07"),
    ("May 7th, 2022", "2022-05-07", "2022-05-07"),
    ("Sept. 5, 2022", "2022-09-05", "2022-09-05"),
    ("3 Dec. 2022", "2022-12-03", "2022-12-03"),
    ("29 February", "2020-02-29", "2020-02-29"),
    ("the call of 2023-05-07", "2023-05-07", "2023-05-07"),
    ("at 2023-05-07T10:00:00Z.", "2023-05-07", "2023-05-07"),
    ("2023/05/07", "2023-05-07", "2023-05-07"),
    ("25/12/2022", "2022-12-25", "2022-12-25"),
    ("12/25/2022", "2022-12-25", "2022-12-25"),
    ("5/5/2022", "2022-05-05", "2022-05-05"),
    ("in 2022", "2022-01-01", "2022-12-31"),
    ("In 2022 we moved", "2022-01-01", "2022-12-31"),
    ("last summer", "2022-06-01", "2022-08-31"),
    ("in the summer of 2021", "2021-06-01", "2021-08-31"),
    ("fall 2021", "2021-09-01", "2021-11-30"),
    ("in the winter", "2022-12-01", "2023-02-28"),
    ("in the spring", "2023-03-01", "2023-05-31"),
    ("Q1 2024", "2024-01-01", "2024-03-31"),
    ("in Q3", "2022-07-01", "2022-09-30"),
    ("on the 3rd", "2023-06-03", "2023-06-03"),
    ("on the 20th we met", "2023-05-20", "2023-05-20"),
    ("the deadline on the 3rd", "2023-07-03", "2023-07-03"),
    ("at Christmas", "2022-12-24", "2022-12-26"),
    ("on Christmas Eve 2021", "2021-12-24", "2021-12-24"),
    ("on New Year\u2019s Eve", "2022-12-31", "2022-12-31"),
    ("last Halloween", "2022-10-31", "2022-10-31"),
    ("since March", "2023-03-01", "2023-06-14"),
    ("between May and July 2021", "2021-05-01", "2021-07-31"),
    ("between November and February", "2022-11-01", "2023-02-28"),
    ("from May 2022 to July", "2022-05-01", "2022-07-31"),
    ("between 2019 and 2021", "2019-01-01", "2021-12-31"),
    ("from Monday to Friday", "2023-06-05", "2023-06-09"),
    ("between the 3rd and the 9th", "2023-06-03", "2023-06-09"),
    ("in the week before 16 November 2022", "2022-11-09", "2022-11-15"),
    ("the week of May 5", "2023-05-01", "2023-05-07"),
    ("the day after Christmas", "2022-12-27", "2022-12-27"),
    ("the week after 3 May 2023", "2023-05-04", "2023-05-10"),
    ("the day of May 5", "2023-05-05", "2023-05-05"),
    ("We are flying in two weeks", "2023-06-25", "2023-07-01"),
    ("this summer", "2023-06-01", "2023-08-31"),
    ("this quarter", "2023-04-01", "2023-06-30"),
    ("between Monday and noon", "2023-06-12", "2023-06-12"),
    ("the weekend after 3 May 2023", "2023-05-13", "2023-05-14"),
])  # fmt: skip
@pytest.mark.shows("issue3-1-temporal")
def test_words_for_a_time_become_its_days(text: str, first: str, last: str) -> None:
    assert span(text) == (first, last)


@pytest.mark.parametrize("text", [
    "I may go there", "You may 7 times try", "only 7 may enter", "this may help", "May I ask?",
    "the month I may visit", "we march on", "can you march 10 miles", "a protest march", "April said hello",
    "I met June and August", "the second one", "one second", "a coil spring", "the spring broke",
    "in the spring of the lock", "in Spring Boot", "the sun shines", "he sat down", "they wed", "at last",
    "the last one", "last but not least", "this one", "next!", "version 1.2.2023", "1.2.2023",
    "24/7 support", "7/5/2023", "3/4 of it", "build-2023-05-07-rc1", "550e8400-e29b-41d4-a716-446655440000",
    "2023-05-07.log", "log_2023-05-07", "in 2022 files", "by 2000 rows", "port 2022", "$2022",
    "in 2022.3 it broke", "room 2022", "it took 3 days", "for two weeks", "in 3 minutes",
    "it was done in two weeks", "three years old", "every Monday", "on Mondays", "Black Friday",
    "Saturday mornings", "the 3rd attempt", "on the 3rd attempt", "the Christmas tree",
    "a fall from the roof", "FAQ1 2", "Q5 2024", "30 February", "31/31/2023", "on the 45th", "in Q3x",
    "last morning", "the week before dinner", "in 0001", "q 1", "half a day", "0 days ago",
    "the week of the trip", "end of line", "", "\u00b2\u00b3 ago", "\uff11\uff12 May", "this afterwards",
    "all Q3", "past weekends", "these next few", "last days", "early in the day", "the end of the day",
    "the end of the world", "the early the mid", "since Monday mornings", "in the end", "mon ami",
    "build-2022", "mid-20225", "mid-2022.4", "mid-2022-03", "mid-1990s", "late 2000 rows", "sub-Q3 2022",
])  # fmt: skip
@pytest.mark.shows("issue3-1-temporal")
def test_what_is_no_time_or_not_surely_one_is_left_alone(text: str) -> None:
    assert windows(text, NOW) == ()


def test_a_window_says_its_words_and_how_precise_they_are() -> None:
    found = windows("Compare last summer with 7 May, 2022 and the past two weeks.", NOW)
    assert [(window.phrase, window.grain) for window in found] == [
        ("last summer", "season"),
        ("7 May, 2022", "day"),
        ("the past two weeks", "range"),
    ]


def test_a_range_that_ends_before_it_begins_is_its_two_times() -> None:
    assert [window.phrase for window in windows("between May 2021 and May 2019", NOW)] == ["May 2021", "May 2019"]


def test_before_and_after_open_a_window_to_one_side() -> None:
    june = datetime(2023, 6, 1, tzinfo=UTC)
    [before] = windows("before June 2023", NOW)
    assert (before.start, before.end) == (EARLIEST, june)
    [after] = windows("after May", NOW)
    assert (after.start, after.end) == (june, LATEST)
    [until] = windows("until the end of May", NOW)
    assert (until.start, until.end) == (EARLIEST, june)


def test_days_are_those_of_the_speakers_zone() -> None:
    now = datetime(2023, 6, 14, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    [window] = windows("yesterday", now)
    assert window.start == datetime(2023, 6, 12, 22, 0, tzinfo=UTC)
    assert window.end == datetime(2023, 6, 13, 22, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "text", "first"),
    [
        (10, "this weekend", "2023-06-10"),
        (12, "this weekend was fine", "2023-06-10"),
        (12, "we are camping this weekend", "2023-06-17"),
        (11, "over the weekend", "2023-06-10"),
        (17, "next Friday", "2023-06-23"),
        (16, "this Friday", "2023-06-16"),
    ],
)
def test_the_day_of_the_week_decides_which_is_meant(day: int, text: str, first: str) -> None:
    assert span(text, NOW.replace(day=day))[0] == first


@pytest.mark.parametrize("now", [datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)])
def test_at_the_ends_of_the_calendar_there_is_no_window_but_no_error(now: datetime) -> None:
    for text in ("999 years ago", "the next 999 years", "early last year", "between last May and next June"):
        for window in windows(text, now):
            assert EARLIEST <= window.start < window.end <= LATEST


def test_of_very_many_times_the_first_are_read() -> None:
    assert len(windows("after 2020 " * 3_000, NOW)) == 8
    assert mentioned("May 5 and 7 June 2021. " * 1_000, NOW) is None


@pytest.mark.parametrize(
    ("content", "first", "last"),
    [
        ("I went to the dentist yesterday.", "2023-06-13", "2023-06-13"),
        ("Last Saturday we hiked.", "2023-06-10", "2023-06-10"),
        ("The wedding was on 7 May.", "2023-05-07", "2023-05-07"),
        ("I'm starting the new job next month", "2023-07-01", "2023-07-31"),
        ("The meeting was moved to Thursday.", "2023-06-15", "2023-06-15"),
        ("We met in May. We will talk again.", "2023-05-01", "2023-05-31"),
        ("I have lived here since 2016.", "2016-01-01", "2016-12-31"),
        ("It must be done before Friday the 30th of June.", "2023-06-30", "2023-06-30"),
        ("Today I rest, yesterday I ran.", "2023-06-13", "2023-06-13"),
        ("On Monday we planned it and on Friday we did it.", "2023-06-09", "2023-06-12"),
        ("In 2019 I studied; last week I taught.", "2023-06-05", "2023-06-11"),
        ("The fair runs from 3 May to 5 May 2023.", "2023-05-03", "2023-05-05"),
    ],
)
def test_a_memory_speaks_of_the_time_it_names_relative_to_when_it_was_said(content: str, first: str, last: str) -> None:
    found = mentioned(content, NOW)
    assert found is not None
    assert (f"{found[0]:%Y-%m-%d}", f"{found[1] - timedelta(days=1):%Y-%m-%d}") == (first, last)


@pytest.mark.parametrize(
    "content",
    [
        "I like tea.",
        "Today was fine.",
        "I am busy this week.",
        "This year I want to read more.",
        "",
        "Kings came in 1901, in 1910, in 1936, in 1952 and in 2022.",
    ],
)
def test_a_memory_without_a_time_or_with_too_many_speaks_of_none(content: str) -> None:
    assert mentioned(content, NOW) is None


def test_a_time_that_the_calendar_cannot_hold_in_utc_is_none() -> None:
    early = datetime(2, 7, 1, tzinfo=timezone(timedelta(hours=14)))
    assert windows("last year", early) == ()
    assert mentioned("last year", early) is None


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert mentioned("word " * 10_000 + "yesterday", NOW) is None


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        # A day without a year is the nearest one, or the last one in a sentence about the past.
        ("the dentist is booked for 20 June", "2023-06-20", "2023-06-20"),
        ("we moved the party to the 20th", "2023-06-20", "2023-06-20"),
        ("she had it upside down, her week off is 14 to 16 July", "2023-07-14", "2023-07-16"),
        ("Prolonged the offer, it ends on 14 July", "2023-07-14", "2023-07-14"),
        ("Booked a hire car, 14 to 16 July", "2023-07-14", "2023-07-16"),
        ("a reminder for the 30th", "2023-06-30", "2023-06-30"),
        ("we were away 14 to 16 July", "2022-07-14", "2022-07-16"),
        ("I can't do Friday", "2023-06-16", "2023-06-16"),
        ("I can\u2019t do Friday", "2023-06-16", "2023-06-16"),
        ("I can't remember Friday", "2023-06-09", "2023-06-09"),
        ("dentist on 2 September", "2023-09-02", "2023-09-02"),
        ("an old note of 2 October", "2022-10-02", "2022-10-02"),
        ("I broke my arm on 20 June", "2022-06-20", "2022-06-20"),
        ("I signed up for the 10 km run on 20 June", "2023-06-20", "2023-06-20"),
        ("We bought tickets for the concert on 20 June", "2023-06-20", "2023-06-20"),
        ("We bought the car on 20 June", "2022-06-20", "2022-06-20"),
        ("I got an invitation to a party on 20 June", "2023-06-20", "2023-06-20"),
        ("we were there on the 20th", "2023-05-20", "2023-05-20"),
        ("the party on the 12th", "2023-06-12", "2023-06-12"),
        # A weekday with its day of the month.
        ("The offsite is Friday the 7th.", "2023-07-07", "2023-07-07"),
        ("The offsite was Friday the 7th.", "2023-04-07", "2023-04-07"),
        ("the launch is Friday", "2023-06-16", "2023-06-16"),
        ("reminder: Friday 7th", "2023-07-07", "2023-07-07"),
        # Ranges within one month.
        ("the trip is 14 to 16 July", "2023-07-14", "2023-07-16"),
        ("the trip is 14-16 July 2024", "2024-07-14", "2024-07-16"),
        ("from 14 to 16 July", "2023-07-14", "2023-07-16"),
        ("between 14 and 16 July", "2023-07-14", "2023-07-16"),
        ("on the 14th to 16th of July", "2023-07-14", "2023-07-16"),
        ("July 14 to 16", "2023-07-14", "2023-07-16"),
        ("July 14\u201316, 2024", "2024-07-14", "2024-07-16"),
        ("on July 7 to 9 people came", "2022-07-07", "2022-07-07"),
    ],
)
def test_days_without_a_year_and_ranges_within_a_month(text: str, first: str, last: str) -> None:
    assert span(text) == (first, last)


@pytest.mark.parametrize("text", ["14 to 16 guests", "16 to 14 July guests", "July 30 to 31 June"])
def test_what_is_no_range_of_days_is_read_as_its_parts(text: str) -> None:
    assert all(window.grain == "day" for window in windows(text, NOW))


@pytest.mark.parametrize(
    ("content", "day"),
    [
        ("dentist on Friday, ten to four", "2023-06-16"),
        ("bin night's Monday", "2023-06-19"),
        ("I was at the dentist on Friday", "2023-06-09"),
        ("the contract ran out on Friday", "2023-06-09"),
        ("On Friday we went to the lake", "2023-06-09"),
    ],
)
def test_a_weekday_in_a_statement_is_the_next_one_unless_it_is_about_the_past(content: str, day: str) -> None:
    found = mentioned(content, NOW)
    assert found is not None
    assert f"{found[0]:%Y-%m-%d}" == day
