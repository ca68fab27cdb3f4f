"""Boundaries between stretches of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from agentcore.memory.summaries.summarizing import PAUSE, segments

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class _Said:
    said_at: datetime


def talk(*pauses: timedelta) -> list[_Said]:
    """Returns messages with these pauses between them, the first at noon."""
    said = [_Said(NOON)]
    for pause in pauses:
        said.append(_Said(said[-1].said_at + pause))
    return said


def sizes(messages: list[_Said], most: int = 20) -> list[int]:
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
