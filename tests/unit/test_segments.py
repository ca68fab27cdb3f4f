"""Boundaries between stretches of a conversation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.summaries.summarizing import PAUSE, Source, segments

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
