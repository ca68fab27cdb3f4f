"""Periods of the calendar in UTC: days, weeks of ISO 8601, months; their labels and bounds. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agentcore.summary_rules import PeriodUnit

_DAY_CHARS = len("2026-11-22")


@dataclass(frozen=True)
class Period:
    """A day ("2026-11-22"), a week ("2026-W47") or a month ("2026-11"), from `starts` until before `ends`."""

    unit: PeriodUnit
    label: str
    starts: datetime
    ends: datetime


def period_of(unit: PeriodUnit, moment: datetime) -> Period:
    """The period that a moment falls into. Raises OverflowError where it ends behind the calendar."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "day":
        return Period(unit, day.date().isoformat(), day, day + timedelta(days=1))
    if unit == "week":
        year, week, weekday = day.isocalendar()
        starts = day - timedelta(days=weekday - 1)
        return Period(unit, f"{year:04}-W{week:02}", starts, starts + timedelta(days=7))
    starts = day.replace(day=1)
    ends = (starts + timedelta(days=31)).replace(day=1)
    return Period(unit, starts.date().isoformat()[:7], starts, ends)


def period_named(label: str) -> Period:
    """The period of a label. Raises ValueError, OverflowError."""
    if "W" in label:
        return period_of("week", datetime.strptime(f"{label}-1", "%G-W%V-%u").replace(tzinfo=UTC))
    whole = len(label) == _DAY_CHARS
    moment = datetime.fromisoformat(label if whole else f"{label}-01").replace(tzinfo=UTC)
    return period_of("day" if whole else "month", moment)
