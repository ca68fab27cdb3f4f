"""Time parsing properties for any text: no error, no empty window, no window outside the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.language.calendar_words import COUNTS, MONTHS, UNITS, WEEKDAYS
from agentcore.memory.language.moments import EARLIEST, LATEST, mentioned, windows

ZONES = st.integers(-12, 14).map(lambda hours: timezone(timedelta(hours=hours)))
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)  # noqa: DTZ001
SPOKEN = """
last this next past the of ago from now in on to between and since before after until by early mid - , late
end Christmas New Year's Eve Q1 Q 2023 0000 9999 2199 31 3rd 0 1 st / today yesterday spring winter May
2023-02-30 2023-05-07 13/12/2023 trip my . during
"""
VOCABULARY = sorted({*COUNTS, *MONTHS, *UNITS, *WEEKDAYS, *SPOKEN.split()})
TEXTS = st.text(max_size=200) | st.lists(st.sampled_from(VOCABULARY), max_size=14).map(" ".join)


@given(TEXTS, MOMENTS)
@pytest.mark.shows("issue3-1-temporal")
def test_any_text_gives_windows_in_order_with_a_length_inside_the_calendar(text: str, now: datetime) -> None:
    found = windows(text, now)
    assert found == windows(text, now)
    for window in found:
        assert EARLIEST <= window.start < window.end <= LATEST
        assert window.start.tzinfo is UTC
        assert window.phrase in text


@given(TEXTS, MOMENTS)
def test_any_memory_speaks_of_one_span_or_none(text: str, said_at: datetime) -> None:
    span = mentioned(text, said_at)
    assert span is None or EARLIEST <= span[0] < span[1] <= LATEST
