"""Synthetic memories: seeded sentences with a long tail of names, things, places, numbers and codes."""

from __future__ import annotations

import random

PEOPLE = [
    "Anna",
    "Ben",
    "Chloe",
    "David",
    "Emre",
    "Fatima",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kaito",
    "Lena",
    "Milan",
    "Nora",
    "Omar",
    "Petra",
    "Quentin",
    "Rosa",
    "Samir",
    "Tove",
    "Uma",
    "Viktor",
    "Wanda",
    "Yusuf",
]
PLACES = ["Porto", "Ghent", "Graz", "Lyon", "Oslo", "Riga", "Turin", "Bergen", "Cork", "Delft", "Essen", "Gdansk"]
THINGS = [
    "invoice",
    "deployment",
    "contract",
    "garden",
    "report",
    "meeting",
    "bicycle",
    "recipe",
    "server",
    "budget",
    "holiday",
    "apartment",
    "database",
    "interview",
    "prototype",
    "printer",
    "library",
    "concert",
    "delivery",
    "insurance",
    "telescope",
    "keyboard",
    "vaccine",
    "painting",
    "translation",
    "marathon",
]
VERBS = [
    "prefers",
    "cancelled",
    "moved",
    "approved",
    "forgot",
    "measured",
    "repaired",
    "ordered",
    "rejected",
    "renamed",
    "postponed",
    "reviewed",
    "sold",
    "borrowed",
    "finished",
    "started",
    "documented",
    "tested",
]
DETAILS = [
    "because the weather turned cold",
    "after a long discussion with the team",
    "before the quarterly review",
    "although nobody had asked for it",
    "since the old one broke last winter",
    "to save money this year",
    "while the lift was out of order",
    "as agreed on the phone",
    "without telling the landlord",
    "during the night shift",
    "in spite of the warning",
    "with help from the neighbours",
]


def _rare_word(chance: random.Random) -> str:
    return "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(chance.randint(2, 4)))


def sentence(chance: random.Random) -> str:
    """Returns one memory of about twenty words."""
    person, other = chance.sample(PEOPLE, 2)
    return (
        f"{person} {chance.choice(VERBS)} the {chance.choice(THINGS)} {_rare_word(chance)} in "
        f"{chance.choice(PLACES)} {chance.choice(DETAILS)}; {other} noted {chance.randint(2, 9_999)} "
        f"under {_rare_word(chance).upper()}-{chance.randint(100, 999)}."
    )


def question(chance: random.Random) -> str:
    """Returns one query of about eight words, most of them common in the corpus."""
    return (
        f"What did {chance.choice(PEOPLE)} say about the {chance.choice(THINGS)} in {chance.choice(PLACES)} "
        f"{chance.choice(DETAILS)} ({chance.randint(2, 9_999)})?"
    )
