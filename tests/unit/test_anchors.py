"""Times told by an event, and above all what is none; the windows they open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentcore.memory.language.moments import EARLIEST, LATEST, Anchor, anchors, told_times

NOW = datetime(2023, 6, 14, 15, 30, tzinfo=UTC)
SAID_AT = datetime(2023, 6, 5, 9, 0, tzinfo=UTC)
TRIP = datetime(2023, 5, 20, tzinfo=UTC), datetime(2023, 5, 23, tzinfo=UTC)


def phrases(query: str) -> list[str]:
    return [anchor.phrase for anchor in anchors(query)]


@pytest.mark.parametrize(("query", "phrase"), [
    ("What did I pack before the trip?", "before the trip"),
    ("after the wedding, who stayed?", "after the wedding"),
    ("which alerts fired during the outage?", "during the outage"),
    ("what have I bought since we moved to Berlin?", "since we moved to Berlin"),
    ("Who stayed till the end, until the long concert in Ghent?", "until the long concert in Ghent"),
    ("what broke till our release did?", "until our release"),
    ("What did she do after her trip to the coast to relax?", "after her trip to the coast"),
    ("What did he say after Anna's party?", "after Anna's party"),
    ("What did he say after Anna\u2019s party?", "after Anna\u2019s party"),
    ("where was I before Anna moved out?", "before Anna moved out"),
    ("what had I done before I finally got the offer", "before I finally got the offer"),
    ("which bike did I ride after I had the accident?", "after I had the accident"),
    ("Where was John before travelling to Chicago?", "before travelling to Chicago"),
    ("What did we see on their trip, after that storm?", "after that storm"),
    ("what did I eat the day before the race?", "the day before the race"),
    ("when was I ill in the week after our move?", "the week after our move"),
    ("what did I do after my trip in August 2021", "after my trip"),
    ("who was on call during the roll-out in Rome", "during the roll-out in Rome"),
    ("Before the first attack, what had I eaten?", "before the first attack"),
])
def test_a_time_told_by_an_event_is_an_anchor(query: str, phrase: str) -> None:
    assert phrases(query) == [phrase]


@pytest.mark.parametrize("query", [
    "what did I eat before lunch?", "after the lunch", "before 5 pm", "before 5pm", "after all",
    "What colour after all?", "as before", "after that?", "before and after", "since then", "ever since",
    "long after", "before bed", "before the end of the day", "during the day", "day after day",
    "after a while", "after the fact", "since when", "until now", "before May 2023", "since the 3rd",
    "after Christmas", "during the summer", "before I go, what do I need?", "before you answer, look",
    "before we start", "Before I forget: the keys", "since it is late, what now?", "since I am here",
    "since the server is down, what do we do?", "who looks after the cat?", "named after the river",
    "during a walk", "after an accident", "before Toronto", "during training", "after drilling is done",
    "What will we do after the concert?",
    "How many days before the race did I buy the shoes?", "how long did I date her before the wedding?",
    "during his journey", "after my career", "after anything else", "during getting the job", "before",
    "the trip", "", "before the is", "after the same", "before ... the trip",
])
def test_what_every_day_has_what_is_to_come_and_set_phrases_are_none(query: str) -> None:
    assert phrases(query) == []


def test_of_several_anchors_the_first_two_are_read() -> None:
    query = "after the wedding, before the trip and during the move"
    assert phrases(query) == ["after the wedding", "before the trip"]


def test_a_long_prompt_has_no_one_time() -> None:
    assert phrases("before the trip. " + "word " * 56) == ["before the trip"]
    assert phrases("before the trip. " + "word " * 57) == []


@pytest.mark.parametrize(("relation", "first", "last"), [
    ("before", EARLIEST, TRIP[0]), ("until", EARLIEST, TRIP[1]), ("since", TRIP[0], LATEST),
    ("after", TRIP[1], LATEST),
])
def test_an_event_with_a_time_opens_a_window_to_one_side(
    relation: str, first: datetime, last: datetime
) -> None:
    [anchor] = anchors(f"what was {relation} the trip")
    assert told_times(anchor, TRIP, SAID_AT, NOW) == [(first, last)]


def test_what_happened_during_an_event_was_then_or_is_told_on_the_day_it_is_told() -> None:
    told_on = datetime(2023, 6, 5, tzinfo=UTC), datetime(2023, 6, 6, tzinfo=UTC)
    assert told_times(Anchor("during", "the trip"), TRIP, SAID_AT, NOW) == [TRIP, told_on]
    assert told_times(Anchor("during", "the trip"), None, SAID_AT, NOW) == [told_on]


def test_an_event_without_a_time_was_on_the_day_it_was_told_in_the_zone_of_the_caller() -> None:
    now = NOW.astimezone(timezone(timedelta(hours=2)))
    day = datetime(2023, 6, 4, 22, tzinfo=UTC)
    assert told_times(Anchor("since", "the trip"), None, SAID_AT, now) == [(day, LATEST)]
    assert told_times(Anchor("after", "the trip"), None, SAID_AT, now) == [(day, LATEST)]
    assert told_times(Anchor("before", "the trip"), None, SAID_AT, now) == [(EARLIEST, SAID_AT)]


def test_a_unit_beside_an_event_bounds_its_window() -> None:
    week = timedelta(days=7)
    assert told_times(Anchor("before", "the trip", "week"), TRIP, SAID_AT, NOW) == [(TRIP[0] - week, TRIP[0])]
    assert told_times(Anchor("after", "the trip", "month"), TRIP, SAID_AT, NOW) == [
        (TRIP[1], datetime(2023, 6, 23, tzinfo=UTC))
    ]


def test_at_the_ends_of_the_calendar_there_is_no_window_but_no_error() -> None:
    early = datetime(1, 1, 2, tzinfo=UTC)
    assert told_times(Anchor("before", "the trip", "year"), (early, early), early, NOW) == []
    assert told_times(Anchor("before", "the trip"), (EARLIEST, LATEST), SAID_AT, NOW) == []
