"""Echo detection: repetitions of a statement against additions and differing statements."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agentcore.memory.statements.echoes import echoes
from agentcore.memory.statements.statements import Told

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
BOSS = Told("My boss is Henrik Dahl.", NOON, "user", "anna", "one")
ECHO = Told("Noted, your boss is Henrik Dahl.", NOON + timedelta(seconds=3), "assistant", "anna", "one")


@pytest.mark.parametrize(
    ("stated", "repeated"),
    [
        ("My boss is Henrik Dahl.", "Noted, your boss is Henrik Dahl."),
        ("My boss is Henrik Dahl.", "Your boss is Henrik Dahl."),
        ("My boss is Henrik Dahl.", "Got it! Your boss is Henrik Dahl."),
        ("My boss is Henrik Dahl.", "Okay, your boss is Henrik Dahl. I'll remember that."),
        ("I live in Lisbon.", "Got it, you live in Lisbon."),
        ("The deadline for Atlas is 3 June.", "Understood: the deadline for Atlas is 3 June."),
    ],
)
def test_the_same_statement_turned_to_whoever_made_it_is_an_echo(stated: str, repeated: str) -> None:
    assert echoes(replace(BOSS, content=stated), replace(ECHO, content=repeated))


@pytest.mark.parametrize(
    "said",
    [
        "Noted, your boss is Marit Solberg.",
        "Noted, your boss is not Henrik Dahl.",
        "Noted, my boss is Henrik Dahl.",
        "Noted, your sister is Henrik Dahl.",
        "Is your boss Henrik Dahl?",
        "Your boss is Henrik Dahl?",
        "Noted, your boss is Henrik Dahl, who leads Atlas.",
        "Your boss is Henrik Dahl. The Atlas deadline is 3 June.",
        "I think your boss is Henrik Dahl.",
        "Your boss was Henrik Dahl.",
        "If your boss is Henrik Dahl, write to him.",
        "Henrik Dahl is well known.",
        "Noted.",
    ],
)
def test_what_says_more_or_something_else_is_none(said: str) -> None:
    assert not echoes(BOSS, replace(ECHO, content=said))


@pytest.mark.parametrize(
    "other",
    [
        replace(ECHO, speaker="user"),
        replace(ECHO, speaker=None),
        replace(ECHO, user_id="ben"),
        replace(ECHO, session_id="two"),
        replace(ECHO, task_id="plan"),
        replace(ECHO, timestamp=NOON - timedelta(seconds=3)),
        replace(ECHO, timestamp=NOON + timedelta(hours=1)),
    ],
    ids=["of the same", "of nobody", "of another user", "elsewhere", "of a task", "before", "long behind"],
)
def test_only_another_speaker_soon_behind_it_in_the_session_repeats_it(other: Told) -> None:
    assert echoes(BOSS, ECHO)
    assert not echoes(BOSS, other)


def test_of_a_text_that_says_more_nothing_is_an_echo() -> None:
    assert not echoes(replace(BOSS, content="My boss is Henrik Dahl. I live in Lisbon."), ECHO)
