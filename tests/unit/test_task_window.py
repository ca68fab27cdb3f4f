"""A task's notes in a context: newest first and in full, older ones shortened, important ones kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.compression import Context, build_context
from agentcore.memory.contexts.filling import Filling, Manner, clearly_meant, newest_first
from agentcore.memory.contexts.rendering import PAST, TASK, ContextEntry

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
VAGUE = Manner(clear=False)


def note(number: int, content: str = "", importance: float = 0.5) -> ContextEntry:
    """Returns step `number` of a task, by default with two sentences."""
    told = f"Step {number} begins with the pump of house {number}. " + "It took longer than hoped. " * 4
    said = content or told
    moment = START + timedelta(minutes=number)
    return ContextEntry(UUID(int=number + 1), TASK, moment, None, said.strip(), said, importance=importance)


def words(text: str) -> int:
    return len(text.split())


def steps(*numbers: int) -> list[ContextEntry]:
    """Returns these steps in recall order, newest first."""
    return [note(number) for number in sorted(numbers, reverse=True)]


def in_full(built: Context) -> list[int]:
    return [line.entry.memory_id.int - 1 for line in built.lines if not line.shortened]


def shortened(built: Context) -> list[int]:
    return [line.entry.memory_id.int - 1 for line in built.lines if line.shortened]


def order(notes: list[ContextEntry]) -> list[int]:
    return [each.memory_id.int - 1 for each in notes]


@pytest.mark.shows("issue5-2-window")
def test_for_a_vague_query_the_newest_stand_in_full_and_older_ones_shortened() -> None:
    task = [replace(each, rank=11 - place, score=0.5) for place, each in enumerate(steps(*range(12)))]
    built = build_context(task, 240, words, VAGUE)
    assert in_full(built) == list(range(12 - len(in_full(built)), 12))
    assert len(in_full(built)) >= 3
    assert shortened(built)
    assert max(shortened(built)) < min(in_full(built))
    assert built.token_count <= 240


def test_what_a_clear_query_means_comes_before_the_newest() -> None:
    task = steps(*range(12))
    task[-1] = replace(task[-1], rank=0, score=0.9)
    assert 0 in in_full(build_context(task, 150, words))
    assert 0 not in in_full(build_context(task, 150, words, VAGUE))


def test_many_that_a_clear_query_means_leave_room_for_the_newest() -> None:
    task = steps(*range(40))
    task = [*task[:20], *(replace(each, rank=rank, score=0.9) for rank, each in enumerate(task[20:]))]
    built = build_context(task, 400, words)
    assert 39 in in_full(built)
    assert 19 in in_full(built)


@pytest.mark.shows("issue5-2-window")
def test_an_important_old_note_stands_in_full_where_a_trivial_newer_one_does_not() -> None:
    task = steps(*range(12))
    task[-1] = replace(task[-1], importance=1.0)
    task[2] = replace(task[2], importance=0.1)
    built = build_context(task, 240, words, VAGUE)
    assert 0 in in_full(built)
    assert 11 in in_full(built)
    assert 9 not in in_full(built)


def test_age_is_counted_in_newer_notes_and_weighed_by_importance() -> None:
    assert order(newest_first(steps(1, 2, 3))) == [3, 2, 1]
    assert order(newest_first([note(3, importance=0.0), *steps(1, 2)])) == [3, 2, 1]
    pinned = [*steps(*range(1, 10)), note(0, importance=1.0)]
    assert order(newest_first(pinned))[:3] == [9, 0, 8]
    assert order(newest_first([*steps(5, 9), note(7, importance=0.2)])) == [9, 5, 7]


def test_of_the_same_time_the_more_important_comes_first_and_then_the_one_given_first() -> None:
    together = [replace(note(number), timestamp=START) for number in range(3)]
    together[2] = replace(together[2], importance=0.7)
    assert order(newest_first(together)) == [2, 0, 1]


def test_meant_are_the_best_found_and_what_is_worth_nearly_as_much() -> None:
    task = [replace(note(rank), rank=rank, score=0.9 - rank / 10) for rank in (5, 3, 1, 0)]
    assert order(clearly_meant(task, 0.8)) == [0, 1, 3]
    assert order(clearly_meant([*task, note(9)], 0.0)) == [0, 1]


def test_what_stood_shortened_stands_in_full_where_others_leave_room() -> None:
    task = steps(*range(6))
    found = replace(note(90, content="found it"), section=PAST)
    alone = build_context([*task, found], 220, words, VAGUE)
    assert in_full(alone) == [*range(6), 90]
    assert (shortened(alone), list(alone.left_out)) == ([], [])


def test_what_stands_in_full_at_last_takes_the_place_of_the_facts_read_from_it() -> None:
    long = note(1, content=" ".join(f"Line {number} of the log tells of the pump." for number in range(20)))
    read = replace(note(90, content="The pump " + "ran on and " * 30), parent_id=long.memory_id)
    filling = Filling(500, words, VAGUE, [long, read])
    filling.add([long], 80)
    filling.add([read], 200)
    assert [(line.entry, line.shortened) for line in filling.lines] == [(long, True), (read, False)]
    filling.expand([long], filling.room)
    assert [(line.entry, line.shortened) for line in filling.lines] == [(long, False)]


def test_a_note_longer_than_the_window_is_shortened_and_those_behind_it_stand_in_full() -> None:
    long = note(9, content=" ".join(f"Line {number} of the log says nothing new." for number in range(90)))
    built = build_context([long, *steps(1, 2)], 200, words, VAGUE)
    assert shortened(built) == [9]
    assert in_full(built) == [1, 2]


def test_what_is_of_the_task_and_no_more_in_working_memory_stands_in_its_section_and_waits_its_turn() -> None:
    older = replace(note(0, "An older step of it."), outside_window=True, rank=0, score=0.9)
    built = build_context([*steps(1, 2, 3), older], 500, words)
    assert order([line.entry for line in built.lines]) == [0, 1, 2, 3]
    assert built.text.count("## ") == 1
    twice = replace(older, memory_id=UUID(int=99))
    assert dict(build_context([older, twice], 500, words).left_out) == {UUID(int=99): "same_text"}
