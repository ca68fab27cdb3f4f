"""Free-form facts: their detection, and which contradict each other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentcore.memory.contradictions import judge
from agentcore.memory.statements.facts import fact, fact_keys, speaks_against
from agentcore.memory.statements.statements import RuleInput

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WORDINGS = Path(__file__).parents[2] / "benchmarks" / "data" / "free_wordings.json"

CHANGED = [
    ("The owner of Atlas is Carla.", "Bruno took over Atlas."),
    ("Carla leads Atlas.", "Bruno took over Atlas from Carla."),
    ("The deadline for Atlas is May 3.", "Atlas slips to May 24."),
    ("Atlas is due on May 3.", "Atlas was brought forward to April 11."),
    ("The budget for Atlas is 20,000 euros.", "Finance signed off on 35,000 euros for Atlas."),
    ("Amira lives in Graz.", "Amira has settled in Porto for good."),
    ("Amira lives in Graz.", "Amira is no longer in Graz, she lives in Porto now."),
    ("I live in Graz.", "My home is now in Porto."),
    ("Amira works for Halden.", "Amira has joined Northwind."),
    ("Amira works for Halden.", "Northwind hired Amira."),
    ("Jonas's phone number is 555-0121.", "You reach Jonas under 555-0177 now."),
    ("atlas-api listens on port 8137.", "Please reach atlas-api through 9370 from now on."),
    ("The job title of Jonas is analyst.", "Jonas got promoted to team lead."),
    ("The database of Atlas is Oracle.", "Oracle is out, Spanner is in for Atlas."),
    ("The database of Atlas is Oracle.", "We went with Spanner instead of Oracle for Atlas."),
    ("My manager is Ruth.", "My manager is no longer Ruth but Oskar."),
    ("The version of atlas-worker is 2.3.0.", "atlas-worker was bumped to 2.4.0."),
]
STANDING = [
    ("The deadline for Atlas is May 3.", "The demo of Atlas was postponed to June 5."),
    ("The deadline for Atlas is May 3.", "Atlas might slip to May 24."),
    ("The deadline for Atlas is May 3.", "Did Atlas slip to May 24?"),
    ("The budget for Atlas is 20,000 euros.", "The party for Atlas has a budget of 900 euros."),
    ("Amira lives in Graz.", "Amira has a sister in Porto."),
    ("Amira lives in Graz.", "Amira went to Porto."),
    ("Amira lives in Graz.", "Amira used to live in Porto."),
    ("Amira lives in Graz.", "Amira sold the Golf and bought a Zoe."),
    ("Amira works for Halden.", "Amira works as product manager now."),
    ("Amira works for Halden.", "Amira joined the call with Northwind."),
    ("Bruno owns Atlas.", "Bruno took over Borealis."),
    ("Fjord runs on Postgres now.", "Atlas runs on Postgres now."),
    ("Elm is where the Fjord review happens now.", "Elm is where the Atlas review happens now."),
    ("Ivo switched from Halden to Oakline.", "Ivo lives in Porto now."),
    ("Amira has moved up to team lead.", "Amira has a new number, 555-0177."),
    ("Jonas drives a Golf.", "Jonas sold the old piano."),
    ("Jonas drives a Golf.", "Jonas bought a Zoe."),
    ("Mr Ortner changed the phone number.", "Nadia Haddad changed the phone number."),
    ("Yara asks for a day at home.", "Lena asks for a day at home."),
    ("Book a room for Ms. Kaal's talk.", "Book a room for Dr. Weiss's talk."),
]
TIMETABLED = [
    ("The ferry leaves at 9.", "The ferry leaves at 10."),
    ("The shop opens at 8.", "The shop opens at 9."),
    ("The first bus departs at 6 am.", "The first bus departs at 7 am."),
    ("My train leaves at 8:15.", "My train leaves at 9:15."),
    ("The standup starts at 9:15.", "The standup starts at 9:30."),
    ("The pool closes at 8 pm.", "The pool closes at 9 pm."),
]


def relation(old: str, new: str) -> str:
    return judge(RuleInput(old, MARCH), RuleInput(new, MARCH)).relation


@pytest.mark.parametrize(("old", "new"), CHANGED)
@pytest.mark.shows("issue4-2-contradictions")
def test_a_freely_worded_change_takes_the_place_of_the_old_fact(old: str, new: str) -> None:
    assert relation(old, new) == "superseding"
    assert set(fact_keys(fact(old), None)) & set(fact_keys(fact(new), None))


@pytest.mark.parametrize(("old", "new"), STANDING)
@pytest.mark.shows("issue4-2-contradictions")
def test_what_only_sounds_like_a_change_stands_beside_the_fact(old: str, new: str) -> None:
    assert relation(old, new) != "superseding"
    before, after = fact(old), fact(new)
    assert before is None or after is None or not speaks_against(before, after)


@pytest.mark.parametrize(("old", "new"), TIMETABLED)
def test_what_goes_by_a_timetable_goes_at_many_hours_unless_a_word_says_that_it_changed(old: str, new: str) -> None:
    assert relation(old, new) != "superseding"
    assert relation(old, f"{new[:-1]} now.") == "superseding"


def test_what_has_a_number_of_its_own_goes_once() -> None:
    assert relation("Flight AZ 611 departs at 9:40.", "Flight AZ 611 departs at 10:20.") == "superseding"


def test_most_wordings_of_the_halves_are_read_as_facts() -> None:
    wordings = json.loads(WORDINGS.read_text(encoding="utf-8"))["halved"]
    values = {"e": "Atlas", "v": "Borealis", "o": "Cobalt"}
    named = [text.format(**values) for name in ("owner", "home", "employer") for text in wordings[name]]
    assert sum(fact(text) is not None for text in named) >= 0.8 * len(named)
