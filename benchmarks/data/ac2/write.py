"""Writes ac2.jsonl.gz: hand-written stories with their labeled queries among seeded ordinary conversations.

Usage: write.py. A test compares the file with the output of this script; README.md describes the data.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WRITTEN = HERE.parent / "ac2.jsonl.gz"
AGENTS = ("operations", "shop", "research", "office")
SEED = 2025
MEMORIES_PER_AGENT = 860
FIRST_DAY, LAST_DAY = date(2025, 1, 6), date(2025, 12, 21)
SESSION_SIZES = range(3, 11)
LOOKALIKE_SHARE = 0.25
OPENING_SHARE = 0.15
TAIL_SHARE = 0.25
OPENINGS = ("Quick one. ", "When you have a minute: ", "Thanks. ", "One more thing. ", "Sorry to ask. ")
SLOT = re.compile(r"\{(?:(?P<low>\d+)-(?P<high>\d+)|(?P<bank>[a-z]+)2?)\}")

Table = Mapping[str, Any]


@dataclass(frozen=True)
class RuleInput:
    """One interaction without its time; `key` is its name in the queries of a story."""

    asked: str
    answered: str
    done: tuple[str, ...] = ()
    ended: str | None = None
    key: str | None = None


@dataclass
class Session:
    """One sitting of a person and the agent."""

    day: date
    person: str
    told: list[RuleInput]


def loaded(agent: str, part: str) -> Table:
    """Loads one of an agent's two files."""
    return tomllib.loads((HERE / f"{agent}.{part}.toml").read_text(encoding="utf-8"))


def fields(line: str) -> list[str]:
    return [each.strip() for each in line.split("|")]


class Talk:
    """A generator of one agent's interactions: no repetition, and each question about equally often."""

    def __init__(self, agent: str, chance: random.Random) -> None:
        grammar = loaded(agent, "talk")
        self.people: list[str] = grammar["people"]
        self._chance = chance
        self._tails: list[str] = grammar["tails"]
        self._banks: Mapping[str, list[str]] = grammar["banks"]
        self._scenes: dict[bool, list[Table]] = {True: grammar["lookalike"], False: grammar["ordinary"]}
        self._used: dict[tuple[bool, int], float] = defaultdict(float)
        self._said: set[str] = set()

    def one(self, day: date, person: str) -> RuleInput:
        """Returns an interaction that this person may have on that day."""
        while True:
            told = self._drawn(self._scene(day, person))
            if (said := f"{told.asked}\n{told.answered}") not in self._said:
                self._said.add(said)
                return told

    def _scene(self, day: date, person: str) -> Table:
        lookalike = self._chance.random() < LOOKALIKE_SHARE
        scenes = self._scenes[lookalike]
        fitting = [index for index, scene in enumerate(scenes) if fits(scene, day, person)]
        least = min(self._used[lookalike, index] for index in fitting)
        # Not strictly the least used one, or scenes limited to few months would cluster.
        index = self._chance.choice([each for each in fitting if self._used[lookalike, each] <= least + 1])
        self._used[lookalike, index] += 1 / len(scenes[index]["asks"])
        return scenes[index]

    def _drawn(self, scene: Table) -> RuleInput:
        chosen: dict[str, str] = {}
        index = self._chance.randrange(len(scene["asks"]))
        # As many answers as questions: each question has its own; else any answer fits any question.
        paired = len(scene["asks"]) == len(scene["answers"])
        answer = scene["answers"][index] if paired else self._chance.choice(scene["answers"])
        asked = sentence(self._filled(scene["asks"][index], chosen))
        if self._chance.random() < OPENING_SHARE:
            asked = self._chance.choice(OPENINGS) + asked
        answered = sentence(self._filled(answer, chosen))
        if self._chance.random() < TAIL_SHARE:
            answered += " " + sentence(self._filled(self._chance.choice(self._tails), chosen))
        if "ends" not in scene:
            return RuleInput(asked, answered)
        end = scene["ends"][scene["answers"].index(answer)] if len(scene["ends"]) > 1 else scene["ends"][0]
        done, ended = self._filled(end, chosen).split(" -> ")
        return RuleInput(asked, answered, steps(done), ended)

    def _filled(self, text: str, chosen: dict[str, str]) -> str:
        def slot(found: re.Match[str]) -> str:
            if found["low"]:
                return str(self._chance.randint(int(found["low"]), int(found["high"])))
            name = found[0]
            if name not in chosen:
                free = [word for word in self._banks[found["bank"]] if word not in chosen.values()]
                chosen[name] = self._chance.choice(free)
            return chosen[name]

        return SLOT.sub(slot, text)


def fits(scene: Table, day: date, person: str) -> bool:
    """Checks the scene against the month and the person: some scenes would answer a query or be
    implausible."""
    return (
        day.month in scene.get("months", range(1, 13))
        and day.month not in scene.get("except_months", ())
        and person in scene.get("people", (person,))
    )


def sentence(text: str) -> str:
    """Capitalizes the first letter."""
    return text[:1].upper() + text[1:]


def steps(text: str) -> tuple[str, ...]:
    """Returns the actions in order."""
    return tuple(each.strip() for each in text.split(";") if each.strip())


def story_sessions(stories: Sequence[Table]) -> list[Session]:
    """Groups the hand-written interactions by day and person."""
    sittings: dict[tuple[date, str], list[RuleInput]] = defaultdict(list)
    for story in stories:
        for line in story["memories"]:
            key, day, person, asked, answered, *rest = fields(line)
            done, ended = rest if rest else ("", "")
            told = RuleInput(asked, answered, steps(done), ended or None, key)
            sittings[date.fromisoformat(day), person].append(told)
    return [Session(day, person, told) for (day, person), told in sittings.items()]


def sessions(agent: str, stories: Sequence[Table], chance: random.Random) -> list[Session]:
    """Returns all sessions of one agent in time order: stories among ordinary conversations, and ordinary
    ones."""
    talk = Talk(agent, chance)
    sittings = story_sessions(stories)
    for sitting in sittings:
        for _ in range(chance.choice(SESSION_SIZES[:5]) - 1):
            sitting.told.insert(chance.randint(0, len(sitting.told)), talk.one(sitting.day, sitting.person))
    told = sum(len(sitting.told) for sitting in sittings)
    while told < MEMORIES_PER_AGENT:
        day = FIRST_DAY + timedelta(days=chance.randint(0, (LAST_DAY - FIRST_DAY).days))
        person = chance.choice(talk.people)
        size = chance.choice(SESSION_SIZES)
        sittings.append(Session(day, person, [talk.one(day, person) for _ in range(size)]))
        told += size
    return sorted(sittings, key=lambda sitting: sitting.day)


def timed(agent: str, sittings: Sequence[Session], chance: random.Random) -> Iterator[tuple[str | None, Table]]:
    """Yields each memory in time order, with its key in the queries of its story."""
    number = 0
    by_day: dict[date, list[Session]] = defaultdict(list)
    for sitting in sittings:
        by_day[sitting.day].append(sitting)
    for day, of_day in by_day.items():
        moment = datetime(day.year, day.month, day.day, 7, chance.randint(0, 59), tzinfo=UTC)
        for place, sitting in enumerate(of_day):
            moment += timedelta(minutes=chance.randint(10, 500 // len(of_day)))
            for told in sitting.told:
                moment += timedelta(minutes=chance.randint(1, 6), seconds=chance.randint(0, 59))
                number += 1
                yield (
                    told.key,
                    {
                        "id": f"{agent}-{number:04}",
                        "timestamp": moment.isoformat(),
                        "speaker": sitting.person,
                        "user_id": sitting.person.lower(),
                        "session_id": f"{agent}-{day:%m%d}-{place}",
                        "text": f"{told.asked}\n{told.answered}",
                        "interaction": {
                            "query": told.asked,
                            "response": told.answered,
                            "actions": list(told.done),
                            "outcome": told.ended,
                        },
                    },
                )


def queries(agent: str, written: Table, id_of_key: Mapping[str, str]) -> Iterator[Table]:
    """Yields the queries of the stories, then the unanswerable ones."""
    lines = [fields(line) for story in written["story"] for line in story["queries"]]
    lines += [["unanswerable", *fields(line), ""] for line in written["unanswerable"][0]["queries"]]
    for number, (category, day, text, keys) in enumerate(lines, 1):
        yield {
            "id": f"{agent}-q{number:02}",
            "text": text,
            "asked_at": f"{day}T09:00:00+00:00",
            "category": category,
            "relevant_ids": sorted(id_of_key[key] for key in keys.split()),
            "answerable": bool(keys),
            "label_complete": True,
        }


def conversation(agent: str) -> Table:
    chance = random.Random(f"{SEED} {agent}")
    written = loaded(agent, "stories")
    memories = list(timed(agent, sessions(agent, written["story"], chance), chance))
    id_of_key = {key: memory["id"] for key, memory in memories if key}
    return {
        "dataset": "ac2",
        "conversation_id": agent,
        "memories": [memory for _, memory in memories],
        "queries": list(queries(agent, written, id_of_key)),
    }


def lines() -> str:
    """Returns the file's text: one agent a line."""
    return "".join(json.dumps(conversation(agent), ensure_ascii=False) + "\n" for agent in AGENTS)


if __name__ == "__main__":
    WRITTEN.write_bytes(gzip.compress(lines().encode(), mtime=0))
