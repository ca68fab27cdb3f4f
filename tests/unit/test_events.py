"""Which memory tells an event, when none surely does, and the times that are left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.ranking.candidates import Mention, Span
from agentcore.memory.ranking.events import narrowed, teller

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return MAY + timedelta(days=number)


def mention(
    number: int,
    *,
    similarity: float | None = 0.6,
    said: int = 0,
    event: Span | None = None,
    speaker: str | None = None,
) -> Mention:
    return Mention(UUID(int=number), day(said), similarity, speaker, event, ())


def told_by(*mentions: Mention, coverage: float = 1.0, names: tuple[str, ...] = ()) -> int | None:
    """The number of the memory that tells the event."""
    found = teller(mentions, lambda each: coverage, names)
    return None if found is None else found.memory.memory_id.int


LAST_WEEK = day(-7), day(0)


def test_the_memory_that_fits_best_tells_the_event_most_of_all_where_it_says_when() -> None:
    assert told_by(mention(1), mention(2, similarity=0.7)) == 2
    assert told_by(mention(1, similarity=0.45, event=LAST_WEEK), mention(2)) == 1


@pytest.mark.parametrize(("memory", "coverage"), [
    (mention(1, similarity=0.29, event=LAST_WEEK), 1.0),
    (mention(1, similarity=0.29), 1.0),
    (mention(1, similarity=0.9, event=LAST_WEEK), 0.74),
    (mention(1, similarity=0.9, speaker="assistant"), 1.0),
    (mention(1, similarity=None), 0.9),
])
def test_what_does_not_surely_speak_of_it_tells_nothing(memory: Mention, coverage: float) -> None:
    assert told_by(memory, coverage=coverage) is None


def test_without_vectors_all_of_its_words_tell_an_event() -> None:
    assert told_by(mention(1, similarity=None)) == 1
    assert told_by(mention(1, similarity=None, event=LAST_WEEK), coverage=0.8) is None


def test_two_events_that_fit_alike_far_apart_are_none() -> None:
    assert told_by(mention(1), mention(2, said=31)) == 2
    assert told_by(mention(1), mention(2, said=32)) is None
    assert told_by(mention(1), mention(2, said=-32)) is None
    assert told_by(mention(1, similarity=0.29), mention(2, said=32)) == 2
    assert told_by(mention(1, similarity=0.31), mention(2, said=32)) is None


def test_beside_a_memory_that_says_when_another_must_fit_better_to_bring_doubt() -> None:
    assert told_by(mention(1, event=LAST_WEEK), mention(2, said=60)) == 1
    assert told_by(mention(1, event=LAST_WEEK), mention(2, similarity=0.66, said=60)) is None


def test_of_two_peoples_events_the_named_ones_is_meant() -> None:
    of_both = mention(1, said=3, speaker="Mara Voss"), mention(2, said=9, speaker="Jon")
    assert told_by(*of_both, names=("did", "mara")) == 1
    assert told_by(*of_both, names=("did", "jon")) == 2


def test_nothing_found_tells_nothing() -> None:
    assert told_by() is None


def test_times_are_narrowed_to_what_all_share() -> None:
    may = day(0), day(31)
    assert narrowed([], []) == []
    assert narrowed([may], []) == [may]
    assert narrowed([], [[(day(3), day(9))]]) == [(day(3), day(9))]
    assert narrowed([may], [[(day(20), day(90))]]) == [(day(20), day(31))]
    assert narrowed([], [[(day(3), day(90))], [(day(-9), day(8))]]) == [(day(3), day(8))]


def test_times_that_share_nothing_all_stand() -> None:
    may, june = (day(0), day(31)), (day(31), day(61))
    assert narrowed([may], [[june]]) == [may, june]
