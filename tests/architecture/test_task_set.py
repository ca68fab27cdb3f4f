"""Tests the rules of the task set: several steps, values stated earlier and never leaked, checked by
patterns."""

from __future__ import annotations

import asyncio
import re
from itertools import groupby
from operator import attrgetter

import pytest

from agentcore.memory.lexical import terms
from benchmarks.task_success import by_asking
from benchmarks.tasks import (
    ASSISTANT,
    PATIENCE,
    NoMemory,
    Outcome,
    Persona,
    Slot,
    Task,
    Turn,
    WholeHistory,
    attempt,
    personas,
)

PERSONAS = personas()
TASKS = [(agent, task) for agent in PERSONAS for task in agent.tasks]
# A request shares no sequence of this many words with the line that states its value.
COPIED_WORDS = 4
MOST_SHARED = 0.2

every_agent = pytest.mark.parametrize("agent", PERSONAS, ids=[each.name for each in PERSONAS])
every_task = pytest.mark.parametrize(("agent", "task"), TASKS, ids=[task.name for _, task in TASKS])


def holds(text: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def tellings(agent: Persona, task: Task, slot: Slot) -> list[Turn]:
    """Returns the turns that state a value of the slot, oldest first, then the agent's own turns of this
    task."""
    own = [Turn(task.at, ASSISTANT, step.done(), task.name) for step in task.steps]
    return [turn for turn in (*agent.said, *own) if slot.found(turn.text) is not None]


def needed(agent: Persona, task: Task) -> list[tuple[str, str]]:
    """Returns pairs of a request and the earlier line that states a value it needs."""
    said = set(agent.said)
    return [
        (step.says, told[-1].text)
        for step in task.steps
        for slot in step.needs
        if (told := [turn for turn in tellings(agent, task, slot) if turn in said])
    ]


def runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[start : start + COPIED_WORDS]) for start in range(len(words) - COPIED_WORDS + 1)}


@pytest.mark.shows("AC-3")
def test_there_are_more_tasks_than_the_requirement_asks_for_and_each_has_a_name_of_its_own() -> None:
    names = [task.name for _, task in TASKS]
    assert len(names) == len(set(names)) >= 60
    assert len(PERSONAS) >= 6


def test_some_tasks_can_be_done_by_asking_and_many_facts_change() -> None:
    askable = sum(by_asking(task) for _, task in TASKS)
    assert 0.25 <= askable / len(TASKS) <= 0.4
    changed = [slot for _, task in TASKS for slot in task.slots() if slot.was]
    assert len(changed) >= 50


def test_requests_have_few_words_in_common_with_the_lines_that_tell_what_they_need() -> None:
    shares = [
        len(set(terms(asked)) & set(terms(told))) / len(set(terms(asked)))
        for agent, task in TASKS
        for asked, told in needed(agent, task)
        if terms(asked)
    ]
    assert sum(shares) / len(shares) <= MOST_SHARED


@every_task
def test_a_task_has_three_to_six_steps_and_needs_something_said_before(agent: Persona, task: Task) -> None:
    assert 3 <= len(task.steps) <= 6
    assert needed(agent, task)
    assert all(turn.at < task.at for turn in agent.said)


@every_task
def test_no_value_stands_in_a_request_or_in_the_pattern_that_reads_it(agent: Persona, task: Task) -> None:
    for slot in task.slots():
        assert not holds(slot.reads.pattern, slot.value)
        assert not any(holds(step.says, slot.value) for step in task.steps)
        assert not holds(slot.name, slot.value)


@every_task
def test_no_request_is_worded_as_the_line_that_tells_what_it_needs(agent: Persona, task: Task) -> None:
    assert [asked for asked, told in needed(agent, task) if runs(asked) & runs(told)] == []


@every_task
def test_a_pattern_reads_the_value_from_the_newest_line_and_nothing_but_its_old_values_from_others(
    agent: Persona, task: Task
) -> None:
    for slot in task.slots():
        values = [slot.found(turn.text) for turn in tellings(agent, task, slot)]
        assert slot.right(values[-1] or "")
        assert {value for value in values if not slot.right(value or "")} == set(slot.was)


@every_task
def test_what_was_not_said_before_is_told_in_an_earlier_step_of_the_task(agent: Persona, task: Task) -> None:
    for place, step in enumerate(task.steps):
        for slot in step.needs:
            if not any(slot.found(turn.text) for turn in agent.said):
                assert any(slot.found(each.done()) for each in task.steps[:place])


@every_agent
def test_turns_stand_in_order_of_time_and_none_is_told_twice_in_a_session(agent: Persona) -> None:
    assert [turn.at for turn in agent.said] == sorted(turn.at for turn in agent.said)
    by_session = sorted(agent.said, key=attrgetter("session_id"))
    for _, session in groupby(by_session, attrgetter("session_id")):
        texts = [turn.text for turn in session]
        assert len(texts) == len(set(texts)) >= 2


async def outcomes() -> tuple[list[Outcome], list[Outcome]]:
    whole = []
    for agent in PERSONAS:
        arm = WholeHistory(agent)
        whole += [await attempt(task, arm) for task in agent.tasks]
    return whole, [await attempt(task, NoMemory()) for _, task in TASKS]


@pytest.mark.shows("AC-3")
def test_whoever_reads_everything_does_every_task_and_asks_nothing() -> None:
    whole, _ = asyncio.run(outcomes())
    assert [each.task.name for each in whole if not each.done or each.missing] == []
    assert all(each.turns == len(each.task.steps) for each in whole)


def test_whoever_remembers_nothing_does_just_the_tasks_that_can_be_done_by_asking() -> None:
    _, none = asyncio.run(outcomes())
    assert {each.task.name for each in none if each.done} == {task.name for _, task in TASKS if by_asking(task)}
    assert all(each.turns == len(each.task.steps) + PATIENCE for each in none if not each.done)
