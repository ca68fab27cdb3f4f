"""A synthetic world with changing facts in template and free-form wording; it knows the current facts.

The free-form wordings in `data/free_wordings.json` are split at random: rules may use one half only.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FREE_WORDINGS = Path(__file__).parent / "data" / "free_wordings.json"
# A store refuses a time in the future: the longest stream, of 3,000 stores, ends in September 2026.
BEGIN = datetime(2025, 1, 6, 8, 0, tzinfo=UTC)
HALVES = ("development", "sealed")

NAMES = (
    "Atlas",
    "Borealis",
    "Cobalt",
    "Dune",
    "Ember",
    "Fjord",
    "Garnet",
    "Harbor",
    "Indigo",
    "Juniper",
    "Kestrel",
    "Larch",
    "Meridian",
    "Nimbus",
    "Onyx",
    "Pallas",
)
PEOPLE = ("Amira", "Bruno", "Carla", "Dario", "Elena", "Femi", "Greta", "Hana", "Ivo", "Jonas", "Kofi", "Lucia")
PLACES = ("Lisbon", "Porto", "Graz", "Ghent", "Oslo", "Turin", "Leeds", "Basel", "Malmo", "Split")
FIRMS = ("Northwind", "Halden", "Corvid", "Oakline", "Brightwell", "Stellar", "Quarry", "Tidewater")
MONTHS = ("March", "April", "May", "June", "July", "August", "September")


@dataclass(frozen=True)
class Attribute:
    """Templates for an entity's attribute: first value, change, question; `{e}` and `{v}` are filled in."""

    name: str
    entities: tuple[str, ...]
    values: tuple[str, ...]
    told: tuple[str, ...]
    changed: tuple[str, ...]
    asked: str


ATTRIBUTES = (
    Attribute(
        "budget",
        NAMES,
        tuple(f"{n},000 euros" for n in range(20, 90, 3)),
        ("The budget for {e} is {v}.", "{e} has a budget of {v}."),
        (
            "The budget for {e} is now {v}.",
            "The budget for {e} was raised to {v}.",
            "We changed the budget for {e} to {v}.",
        ),
        "What is the budget for {e}?",
    ),
    Attribute(
        "owner",
        NAMES,
        PEOPLE,
        ("The owner of {e} is {v}.",),
        ("The owner of {e} is {v} now.", "The owner of {e} is {v}."),
        "Who is the owner of {e}?",
    ),
    Attribute(
        "deadline",
        NAMES,
        tuple(f"{month} {day}" for month in MONTHS for day in (3, 11, 24)),
        ("The deadline for {e} is {v}.", "{e} is due on {v}."),
        (
            "The deadline for {e} has been moved to {v}.",
            "The deadline for {e} is {v}.",
            "The deadline for {e} is now {v}.",
            "{e} is due on {v} now.",
        ),
        "When is the deadline for {e}?",
    ),
    Attribute(
        "port",
        tuple(f"{name.lower()}-api" for name in NAMES),
        tuple(str(n) for n in range(8000, 9900, 137)),
        ("{e} listens on port {v}.",),
        ("{e} listens on port {v} now.", "{e} listens on port {v}."),
        "On which port does {e} listen?",
    ),
    Attribute(
        "home",
        PEOPLE,
        PLACES,
        ("{e} lives in {v}.",),
        ("{e} lives in {v} now.", "{e} moved to {v}."),
        "Where does {e} live?",
    ),
    Attribute(
        "employer",
        PEOPLE,
        FIRMS,
        ("{e} works for {v}.",),
        ("{e} works for {v} now.", "{e} works for {v}."),
        "For whom does {e} work?",
    ),
    Attribute(
        "phone",
        PEOPLE,
        tuple(f"555-0{n}" for n in range(100, 190, 7)),
        ("{e}'s phone number is {v}.",),
        ("{e}'s phone number is {v}.", "{e}'s new phone number is {v}."),
        "What is {e}'s phone number?",
    ),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
# Used in the streams of free-form wording only.
MORE_ATTRIBUTES = (
    Attribute(
        "price",
        tuple(f"the {name} plan" for name in NAMES),
        tuple(f"{n} dollars" for n in range(19, 120, 7)),
        ("The price of {e} is {v}.",),
        ("The price of {e} is {v} now.", "The price of {e} is {v}."),
        "What is the price of {e}?",
    ),
    Attribute(
        "title",
        PEOPLE,
        ("team lead", "head of sales", "senior analyst", "data engineer", "product manager", "architect"),
        ("The job title of {e} is {v}.",),
        ("The job title of {e} is {v} now.",),
        "What is the job title of {e}?",
    ),
    Attribute(
        "database",
        NAMES,
        ("Postgres", "MySQL", "Cassandra", "DynamoDB", "Oracle", "Firebird", "Spanner"),
        ("The database of {e} is {v}.",),
        ("The database of {e} is {v} now.", "The database of {e} is {v}."),
        "Which database does {e} have?",
    ),
    Attribute(
        "room",
        NAMES,
        ("Aspen", "Birch", "Cedar", "Dogwood", "Elm", "Hazel"),
        ("The {e} review is in {v}.",),
        ("The {e} review is in {v} now.",),
        "Where is the {e} review?",
    ),
    Attribute(
        "day",
        NAMES,
        tuple(f"{day}s" for day in _DAYS),
        ("The {e} sync is on {v}.",),
        ("The {e} sync is on {v} now.", "The {e} sync is on {v}."),
        "On which day is the {e} sync?",
    ),
    Attribute(
        "version",
        tuple(f"{name.lower()}-worker" for name in NAMES),
        tuple(f"{major}.{minor}.0" for major in range(1, 5) for minor in range(5)),
        ("The version of {e} is {v}.",),
        ("The version of {e} is {v} now.", "The version of {e} is {v}."),
        "Which version does {e} have?",
    ),
    Attribute(
        "car",
        PEOPLE,
        ("Clio", "Golf", "Octavia", "Panda", "Corolla", "Zoe", "Duster"),
        ("{e} drives a {v}.",),
        ("{e} drives a {v} now.",),
        "Which car does {e} drive?",
    ),
)
ALL_ATTRIBUTES = (*ATTRIBUTES, *MORE_ATTRIBUTES)
FREE_SHARE = 0.25
# Published in the issue before any rule was written for them: part of the development half.
KNOWN_WORDINGS = {
    "budget": "Finance signed off on {v} for {e}.",
    "owner": "{v} took over {e}.",
    "deadline": "{e} slips to {v}.",
    "port": "Please reach {e} through {v} from now on.",
    "home": "{e} has settled in {v} for good.",
    "employer": "{e} has joined {v}.",
    "phone": "You reach {e} under {v} now.",
}
ASIDES = (
    "{e} asked whether the budget could grow.",
    "{a} and {b} had lunch together.",
    "{a} likes long walks.",
    "{e} came up in the review again.",
    "If {e} slips, {a} will have to wait.",
    "{a} used to live in Bergen.",
    "Is {a} still in charge of {e}?",
    "{b} said {e} may be late.",
    "{a} also plays the piano.",
)


# Sentences that resemble a change but change no queried fact.
HARD_ASIDES = (
    "{a} has joined the call.",
    "{a} went to Lisbon for the weekend.",
    "{a} flew from Oslo to Turin.",
    "The demo of {e} was postponed to June 5.",
    "{a} took over the cooking.",
    "{a} sold the old piano and bought a guitar.",
    "The {e} party moved to the garden.",
    "{a} started at noon.",
    "{e} hired a designer.",
    "They raised a glass to {a}.",
    "{a} called {b} on the way.",
    "{a} replaced a lamp with a candle.",
    "The trial of {e} costs 10 dollars.",
    "{a} got a ticket for 60 euros.",
    "The party for {e} has a budget of 900 euros.",
    "{a} was made an offer by Northwind.",
    "{a} has a sister in Graz.",
    "{e} went from strength to strength.",
    "{a} borrowed the Clio of {b}.",
    "{a} met {b} in the Aspen room.",
)


def free_wordings(part: str) -> dict[str, list[str]]:
    """Returns each attribute's free-form wordings: the last ones, or a random half; the published ones are in
    the first."""
    wordings = json.loads(FREE_WORDINGS.read_text(encoding="utf-8"))
    if part == "last":
        found: dict[str, list[str]] = wordings["last"]
        return found
    halves: dict[str, list[str]] = {}
    for attribute, texts in wordings["halved"].items():
        unknown = [text for text in texts if text != KNOWN_WORDINGS.get(attribute)]
        random.Random(f"changes of {attribute}").shuffle(unknown)
        sealed = unknown[: len(texts) // 2]
        halves[attribute] = sealed if part == "sealed" else [text for text in texts if text not in sealed]
    return halves


def said(wording: str, entity: str, value: str, old: str | None = None) -> str:
    """Fills in a wording, with a capital if it begins with an article."""
    text = wording.format(e=entity, v=value, o=old)
    return f"T{text[1:]}" if text.startswith("the ") else text


class Facts:
    """A seeded stream of changing facts among asides; it knows the current facts.

    With free-form `wordings`, by attribute, one change in four uses them, among harder asides.
    """

    def __init__(self, seed: int, wordings: Mapping[str, Sequence[str]] | None = None) -> None:
        self._wordings = wordings or {}
        self._attributes = tuple(each for each in ALL_ATTRIBUTES if not wordings or each.name in wordings)
        self._asides: tuple[str, ...] = (*ASIDES, *HARD_ASIDES)
        if not wordings:
            self._attributes, self._asides = ATTRIBUTES, ASIDES
        self._chance = random.Random(seed)
        self._now = BEGIN
        self.current: dict[tuple[str, str], str] = {}

    def tell(self) -> dict[str, Any]:
        """Returns the params of the next store; `external_id` is entity, attribute and value."""
        self._now += timedelta(minutes=self._chance.randrange(5, 600))
        if self._chance.random() < 0.25:
            first, second = self._chance.sample(PEOPLE, 2)
            text = self._chance.choice(self._asides).format(e=self._chance.choice(NAMES), a=first, b=second)
            return {"content": text, "timestamp": self._now.isoformat(), "force": True}
        attribute = self._chance.choice(self._attributes)
        entity = self._chance.choice(attribute.entities)
        key = entity, attribute.name
        old = self.current.get(key)
        value = self._chance.choice([each for each in attribute.values if each != old])
        wording = self._chance.choice(attribute.told if old is None else attribute.changed)
        if old is not None and self._wordings and self._chance.random() < FREE_SHARE:
            wording = self._chance.choice(self._wordings[attribute.name])
        self.current[key] = value
        return {
            "content": said(wording, entity, value, old),
            "timestamp": self._now.isoformat(),
            "external_id": f"{entity}|{attribute.name}|{value}",
            "force": True,
        }

    def ask(self) -> tuple[str, tuple[str, str]]:
        """Returns a question about a stated fact, and the entity and attribute."""
        entity, name = self._chance.choice(sorted(self.current))
        attribute = next(each for each in self._attributes if each.name == name)
        return attribute.asked.format(e=entity), (entity, name)
