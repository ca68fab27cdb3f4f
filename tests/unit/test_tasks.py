"""The task benchmark's agent: parsing a context, asking the user, and failing a task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.task_success import LastTurns, ratio_interval
from benchmarks.tasks import Outcome, Persona, Slot, Step, Task, Turn, attempt

NOON = datetime(2026, 10, 2, 12, 0, tzinfo=UTC)
OLD, NEW = "- [2026-03-01 09:00, Ana] The gate is A1.", "- [2026-03-02 10:00, Ana] The gate is B7 now."


def slot(value: str = "B7", *, user_knows: bool = True, name: str = "gate") -> Slot:
    return Slot(name, value, re.compile(rf"{name} is (\w\d)"), user_knows, ("A1",))


class Given:
    """Returns the same context for every step, and records the rest."""

    def __init__(self, context: str) -> None:
        self._context = context
        self.heard: list[str] = []

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        return "\n".join([self._context, *(turn.line() for turn in own)])

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        self.heard += [f"{turn.speaker}: {turn.text}" for turn in turns]


async def done_with(context: str, *steps: Sequence[Slot]) -> tuple[Outcome, list[str]]:
    arm = Given(context)
    asked = tuple(Step(f"Do it, {place}.", tuple(needs), "Done.") for place, needs in enumerate(steps))
    return await attempt(Task("t", NOON, "Ana", asked), arm), arm.heard


def test_of_several_lines_the_newest_is_believed_wherever_it_stands() -> None:
    assert slot().read(f"{OLD}\n{NEW}") == slot().read(f"{NEW}\n{OLD}") == "B7"
    assert slot().read(OLD) == "A1"
    assert slot().read("- [2026-03-01 09:00, Ana] No word of it.") is None


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    assert slot().read(f"{NEW}\nThe gate is C3.\n{OLD}") == "C3"


def test_times_and_speakers_of_a_line_are_not_read_as_what_was_said() -> None:
    hour = Slot("hour", "10:00", re.compile(r"(\d\d:\d\d|Ana)"), user_knows=True)
    assert hour.read("- [2026-03-01 09:00, Ana] At noon.") is None


async def test_what_stands_in_the_context_is_not_asked_for() -> None:
    outcome, heard = await done_with(NEW, [slot()], [])
    assert (outcome.done, outcome.turns, outcome.missing) == (True, 2, [])
    assert heard == ["Ana: Do it, 0.", "assistant: Done.", "Ana: Do it, 1.", "assistant: Done."]


async def test_what_does_not_costs_a_turn_and_is_read_again_from_the_answer() -> None:
    outcome, heard = await done_with("", [slot()], [slot()])
    assert (outcome.done, outcome.turns, len(outcome.missing)) == (True, 3, 1)
    assert "Ana: gate: B7." in heard


async def test_users_answer_two_questions_and_no_third() -> None:
    two = [slot(name="gate"), slot(name="exit")]
    assert (await done_with("", two, []))[0].done
    outcome, _ = await done_with("", two, [slot(name="door")], [])
    assert (outcome.done, outcome.turns, outcome.reason()) == (False, 5, "not in the context")


async def test_what_the_user_does_not_know_either_fails_the_task_with_all_its_turns() -> None:
    outcome, heard = await done_with("", [slot(user_knows=False)], [], [])
    assert (outcome.done, outcome.turns) == (False, 5)
    assert heard == ["Ana: Do it, 0."]


@pytest.mark.parametrize(("line", "reason"), [(OLD, "stale value"), (OLD.replace("A1", "D9"), "another's value")])
async def test_a_wrong_value_fails_the_task_and_says_whose_it_was(line: str, reason: str) -> None:
    outcome, _ = await done_with(line, [slot()], [])
    assert (outcome.done, outcome.turns, outcome.reason()) == (False, 4, reason)


async def test_the_last_turns_are_the_newest_that_fit() -> None:
    said = tuple(Turn(NOON + timedelta(minutes=each), "Ana", f"word {each}", "s") for each in range(9))
    arm = LastTurns(Persona("p", said, ()), max_tokens=2, count=lambda text: text.count("word"))
    context = await arm.context(Task("t", NOON, "Ana", ()), said[0], [])
    assert context.splitlines() == [said[7].line(), said[8].line()]


def test_the_interval_of_a_ratio_holds_the_ratio_and_narrows_to_it_where_all_tasks_agree() -> None:
    before, after = [4.0, 5.0, 6.0, 5.0] * 10, [3.0, 5.0, 3.0, 4.0] * 10
    low, high = ratio_interval(before, after)
    assert low < sum(after) / sum(before) < high
    assert ratio_interval(before, before) == (1.0, 1.0)
