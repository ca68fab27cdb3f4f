"""Calendar periods: the period of a moment, and its name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentcore.memory.summaries.summarizing import period_named, period_of
from agentcore.summary_rules import PeriodUnit

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
