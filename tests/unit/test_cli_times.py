"""Times and durations on the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import typer

from agentcore.cli.options import moment, seconds, seconds_or_none

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3600", 3_600),
        ("90s", 90),
        ("15m", 900),
        ("24h", 86_400),
        ("30d", 2_592_000),
        ("2w", 1_209_600),
        ("1y", 31_536_000),
        (" 2w ", 1_209_600),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "0d", "soon", "-3d", "3 parsecs", "1.5h"])
def test_another_text_is_refused_with_examples_of_durations(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="30d, 2w or 1y"):
        seconds(text)


def test_zero_is_a_duration_only_where_it_means_for_ever() -> None:
    assert seconds_or_none("0") == 0
    assert seconds_or_none("1y") == 31_536_000


@pytest.mark.parametrize(("text", "days"), [("today", 0), ("Yesterday", -1), ("tomorrow", 1)])
def test_a_day_by_its_name_begins_at_midnight_utc(text: str, days: int) -> None:
    before = datetime.now(UTC)
    found = moment(text)
    assert found in {
        datetime(*now.date().timetuple()[:3], tzinfo=UTC) + days * DAY for now in (before, datetime.now(UTC))
    }


@pytest.mark.parametrize(
    ("text", "back"),
    [("now", 0 * DAY), ("3d", 3 * DAY), ("2w", 14 * DAY), ("1y", 365 * DAY), ("90m", timedelta(minutes=90))],
)
@pytest.mark.shows("B8")
def test_a_duration_is_a_time_so_long_ago(text: str, back: timedelta) -> None:
    before = datetime.now(UTC) - back
    assert before <= moment(text) <= datetime.now(UTC) - back


def test_iso_dates_and_times_are_taken_as_they_are() -> None:
    assert moment("2026-05-01") == datetime(2026, 5, 1)  # noqa: DTZ001 - the contract's models add the zone
    assert moment("2026-05-01T17:30:00Z") == datetime(2026, 5, 1, 17, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "someday", "2026-13-01", "3", "0d", "999999999999y"])
def test_another_text_is_refused_with_examples_of_times(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"write 2026-05-01|2w or 1y"):
        moment(text)
