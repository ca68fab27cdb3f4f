"""Among duplicates the newest is kept and lists the others."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.ranking.candidates import SAME_TEXT, Candidate, Span, distinct

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def memory(number: int, text: str, *, days_ago: int = 0, speaker: str = "") -> Candidate:
    said = (text.encode(), speaker, None, None)
    at = NOW - timedelta(days=days_ago)
    return Candidate(UUID(int=number), at, 0.5, 0.5, 0.0, speaker, 0, None, said)


Left = tuple[dict[int, list[int]], dict[str, int]]
SAID = st.tuples(st.sampled_from("abc"), st.integers(0, 3))


def left(memories: list[Candidate], windows: list[Span] | None = None) -> Left:
    """Returns the kept memories, the duplicates of each, and the receipt's entry."""
    dropped: Counter[str] = Counter()
    found = distinct(memories, windows or [], dropped)
    stands_for = {each.int: [other.int for other in others] for each, others in found.stands_for.items()}
    return {each.memory_id.int: stands_for.get(each.memory_id.int, []) for each in found.kept}, dict(dropped)


def test_the_newest_stays_and_names_the_others_newest_first() -> None:
    memories = [memory(1, "a", days_ago=3), memory(2, "a"), memory(3, "a", days_ago=1), memory(4, "b")]
    assert left(memories) == ({2: [3, 1], 4: []}, {SAME_TEXT: 2})


def test_the_same_text_of_another_speaker_is_another_memory() -> None:
    assert left([memory(1, "a", speaker="Ada"), memory(2, "a", speaker="Bo")])[0] == {1: [], 2: []}


def test_the_newest_of_the_time_in_the_query_stays_rather_than_the_newest() -> None:
    week = (NOW - timedelta(days=9), NOW - timedelta(days=2))
    memories = [memory(1, "a", days_ago=8), memory(2, "a", days_ago=5), memory(3, "a")]
    assert list(left(memories, [week])[0].items()) == [(2, [3, 1])]


@given(st.lists(SAID, max_size=20))
def test_nothing_is_lost_and_the_order_given_changes_nothing(said: list[tuple[str, int]]) -> None:
    memories = [memory(at, text, days_ago=age) for at, (text, age) in enumerate(said)]
    kept, dropped = left(memories)
    assert sorted([*kept, *(each for others in kept.values() for each in others)]) == list(range(len(said)))
    assert sum(dropped.values()) == len(said) - len(kept)
    assert all(said[other][1] >= said[each][1] for each, others in kept.items() for other in others)
    reversed_, _ = left(memories[::-1])
    assert reversed_ == kept
