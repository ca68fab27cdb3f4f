"""Entity detection, and its false positives."""

from __future__ import annotations

import pytest

from agentcore.memory.language.entities import find_entities
from agentcore.memory.language.text import STOP_WORDS, sentences


def named(text: str) -> list[str]:
    return [name for names in find_entities(sentences(text), STOP_WORDS) for name in names]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met Anna Kowalska and Ludwig van Beethoven", ["Anna Kowalska", "Ludwig van Beethoven"]),
        ("she studied at the University of Oslo with Dr. Chen", ["University of Oslo", "Dr. Chen"]),
        ("a book by J. K. Rowling", ["J. K. Rowling"]),
        ("Zoë and Łukasz met in São Paulo", ["Zoë", "Łukasz", "São Paulo"]),
        ("we run Python 3.12 on a Pixel 8a", ["Python 3.12", "Pixel 8a"]),
        ("the King of Monday met some Duke of Kent", ["King", "Duke of Kent"]),
        ("on Sunday of Easter Week", ["Easter Week"]),
        ("from Anna's flat to Ben\u2019s Berlin office", ["Anna", "Ben", "Berlin"]),
        ("meet NASA on Monday in May with Ada on Tuesday", ["NASA", "Ada"]),
        ("mail j.doe+x@mail.example.org now", ["j.doe+x@mail.example.org"]),
        ("see https://example.org/a_b?x=1).", ["https://example.org/a_b?x=1"]),
        ("call +49 30 1234567 or 555-0199", ["+49 30 1234567", "555-0199"]),
        ("error ERR_CONN_42, JIRA-42, E1234 and #44812", ["ERR_CONN_42", "JIRA-42", "E1234", "#44812"]),
        ("getUserName of config_loader.py sets max_retries", ["getUserName", "config_loader.py", "max_retries"]),
        ("from v2.4 to 18.4.1 on iPhone 15", ["v2.4", "18.4.1", "iPhone 15"]),
        (
            "pay $1,200.50, 1,100 EUR, €3.5 million or 40k dollars",
            ["$1,200.50", "1,100 EUR", "€3.5 million", "40k dollars"],
        ),
        (
            "on 2026-03-14, 14 March 2026, March 3rd or 1.4.2026",
            ["2026-03-14", "14 March 2026", "March 3rd", "1.4.2026"],
        ),
        ('read "The Alchemist" and \u201cDune\u201d, run `make test`', ["The Alchemist", "Dune", "make test"]),
        ("watch **The Big Sick** (2017)", ["The Big Sick"]),
        ("我读了「三体」", ["三体"]),
    ],
)
def test_named_things_are_found_as_written(text: str, expected: list[str]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Dinner is at eight.",
        "Parking is free. Coffee is bad. The rent is due.",
        "Yesterday I slept. Maybe I will. OK.",
        "THIS WHOLE LINE IS LOUD",
        "Next Steps For The Project",
        "**Note:** keep it short",
        "**Groceries**",
        "a range of 10-20 people",
        'she said "I will come tomorrow" twice',
        "Dr. knows. plan B",
        "`` `x`",
        "",
    ],
)
def test_what_only_looks_like_a_name_is_left_out(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    "text", ["Alice works at home.", "Alice is late.", "Alice, my boss, is late.", "Alice's late.", "so Alice. Alice"]
)
def test_a_name_that_opens_a_sentence_is_known_by_what_follows_or_by_its_other_places(text: str) -> None:
    assert set(named(text)) == {"Alice"}


def test_a_lone_opening_capital_is_a_name_only_if_known() -> None:
    assert find_entities(["Melanie!"], STOP_WORDS) == [[]]
    assert find_entities(["Melanie!"], STOP_WORDS, ("melanie",)) == [["Melanie"]]


def test_adverbs_before_a_comma_are_no_people() -> None:
    assert named("Unfortunately, my car broke. Basil, my dog, ran.") == ["Basil"]


def test_a_label_before_a_colon_opens_a_sentence_again() -> None:
    assert named("User: Tomorrow we fly to Rome") == ["Rome"]


def test_each_sentence_has_its_own_names() -> None:
    assert find_entities(["we saw Ann", "", "in Ulm"], STOP_WORDS) == [["Ann"], [], ["Ulm"]]
