"""Times and durations as people type them: yesterday, 3d, 2026-05-01; 90s, 2w, 1y."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

import typer

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DURATION = re.compile(r"(\d{1,12})([smhdwy]?)")


def seconds(text: str) -> int:
    """3600, 90s, 15m, 24h, 30d, 2w or 1y (365 days)."""
    match = _DURATION.fullmatch(text.strip())  # no capitals: 1M may mean a month
    if match is None or int(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is not a duration: write 3600, 90s, 15m, 24h, 30d, 2w or 1y")
    return int(match[1]) * _UNITS[match[2]]


def seconds_or_none(text: str) -> int:
    """Accepts 0 as well."""
    return 0 if text.strip() == "0" else seconds(text)


def moment(text: str) -> datetime:
    """An ISO 8601 date or time, now, today, yesterday, tomorrow, or a duration before now (3d); in UTC."""
    word, now = text.strip().casefold(), datetime.now(UTC)
    try:
        if word == "now":
            return now
        if word in _DAYS:
            return datetime.combine(now + timedelta(days=_DAYS[word]), time(), UTC)
        if _DURATION.fullmatch(text.strip()) and not word.isdecimal():
            return now - timedelta(seconds=seconds(text))
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError) as cause:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-05-01, 2026-05-01T17:30:00Z, yesterday, or 3d for 3 days ago"
        ) from cause
