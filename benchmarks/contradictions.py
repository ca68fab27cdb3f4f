"""Changed facts: the labelled pairs by half, and a stream of them through the running service.

The pairs are judged by the rules alone. The stream is told by a generator that knows entity, attribute and
value of every fact: an answer is contradictory if it holds two values of one attribute of an entity, whatever
the service thinks. It runs with supersession and without; a quarter as long with changes worded freely.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentcore.memory.consolidation import judge
from agentcore.memory.statements import Told
from benchmarks.ledger import append, commit, machine
from benchmarks.service import Service, run, running_service

PAIRS = Path(__file__).parent / "data" / "pairs.jsonl"
TABLE = Path(__file__).parent / "results" / "contradictions.md"
BEGIN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
HALVES = ("development", "sealed")
OPENED = """\
The sealed half was opened on 2026-11-22 at 03:12 UTC, at the commit "Which memory takes another's place,
decided by rules; frozen before the sealed pairs are opened"; it said 62 of 69 contradicting pairs superseded,
nothing else. Afterwards rules were loosened and tightened, for the service's tests and the stream and
not for a sealed pair ("the Atlas project" is one project; "is due" says what "the deadline" does; a
change can itself be changed; a number behind a noun says which one). A first stream, before that, had
two values in 45.2 % of its answers: the stream's plain wordings are therefore no unseen ones."""

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
PEOPLE = (
    "Amira",
    "Bruno",
    "Carla",
    "Dario",
    "Elena",
    "Femi",
    "Greta",
    "Hana",
    "Ivo",
    "Jonas",
    "Kofi",
    "Lucia",
)
PLACES = ("Lisbon", "Porto", "Graz", "Ghent", "Oslo", "Turin", "Leeds", "Basel", "Malmo", "Split")
FIRMS = ("Northwind", "Halden", "Corvid", "Oakline", "Brightwell", "Stellar", "Quarry", "Tidewater")
MONTHS = ("March", "April", "May", "June", "July", "August", "September")


@dataclass(frozen=True)
class Attribute:
    """What is told of an entity: at first, changed, asked for; `{e}` and `{v}` are filled in."""

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
# How a change is told too, in the stream of free wording: only who knows the world knows what ended.
FREELY = {
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


def pairs() -> list[dict[str, Any]]:
    """The labelled pairs."""
    return [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def verdict_of(pair: Mapping[str, Any]) -> str:
    """What the rules say of a pair."""
    sessions = ("s", "s" if pair["same_session"] else "t")
    old, new = (
        Told(pair[side], datetime.fromisoformat(pair[f"{side}_at"]), pair[f"{side}_speaker"], None, session)
        for side, session in zip(("old", "new"), sessions, strict=True)
    )
    return judge(old, new).relation


def judged(half: str) -> dict[str, Any]:
    """The verdicts by label over one half, with precision and recall of superseding."""
    verdicts: Counter[tuple[str, str]] = Counter()
    for pair in pairs():
        if int(pair["id"].rpartition("-")[2]) % 2 == HALVES.index(half):
            verdicts[pair["label"], verdict_of(pair)] += 1
    superseded = sum(count for (_, verdict), count in verdicts.items() if verdict == "superseding")
    right = verdicts["contradicting", "superseding"]
    all_contradicting = sum(count for (label, _), count in verdicts.items() if label == "contradicting")
    return {
        "pairs": sum(verdicts.values()),
        "precision": round(right / max(1, superseded), 4),
        "recall": round(right / all_contradicting, 4),
        "false_supersessions": superseded - right,
        "false_merges": sum(
            count for (label, verdict), count in verdicts.items() if verdict == "same" and label != "same"
        ),
        "verdicts": {f"{label}: {verdict}": count for (label, verdict), count in sorted(verdicts.items())},
    }


class Facts:
    """A seeded stream of facts that change, told among asides; it knows what holds."""

    def __init__(self, seed: int, free_share: float) -> None:
        self._free_share = free_share
        self._chance = random.Random(seed)
        self._now = BEGIN
        self.current: dict[tuple[str, str], str] = {}

    def tell(self) -> dict[str, Any]:
        """The params of the next store; `external_id` is entity, attribute and value."""
        self._now += timedelta(minutes=self._chance.randrange(5, 600))
        if self._chance.random() < 0.25:
            first, second = self._chance.sample(PEOPLE, 2)
            text = self._chance.choice(ASIDES).format(e=self._chance.choice(NAMES), a=first, b=second)
            return {"content": text, "timestamp": self._now.isoformat(), "force": True}
        attribute = self._chance.choice(ATTRIBUTES)
        entity = self._chance.choice(attribute.entities)
        key = entity, attribute.name
        value = self._chance.choice([each for each in attribute.values if each != self.current.get(key)])
        text = self._chance.choice(attribute.changed if key in self.current else attribute.told)
        if key in self.current and self._chance.random() < self._free_share:
            text = FREELY[attribute.name]
        self.current[key] = value
        return {
            "content": text.format(e=entity, v=value),
            "timestamp": self._now.isoformat(),
            "external_id": f"{entity}|{attribute.name}|{value}",
            "force": True,
        }

    def ask(self) -> tuple[str, tuple[str, str]]:
        """A question about something that was told, and about what."""
        entity, name = self._chance.choice(sorted(self.current))
        attribute = next(each for each in ATTRIBUTES if each.name == name)
        return attribute.asked.format(e=entity), (entity, name)


def contradictory(memories: list[dict[str, Any]]) -> bool:
    """Whether two of the memories give one attribute of one entity two values."""
    values: dict[tuple[str, str], str] = {}
    for memory in memories:
        if memory["external_id"] is not None:
            entity, attribute, value = memory["external_id"].split("|")
            if values.setdefault((entity, attribute), value) != value:
                return True
    return False


async def streamed(
    service: Service, agent_id: str, retrievals: int, *, supersede: bool, free_share: float = 0.0
) -> dict[str, Any]:
    """Three stores to a retrieval; what the answers held."""
    facts = Facts(4, free_share)
    holding = current = superseded = 0
    for _ in range(retrievals):
        for _ in range(3):
            told = {**facts.tell(), "supersede": supersede}
            superseded += len((await service.call(agent_id, "memory.store", told))["superseded"])
        query, about = facts.ask()
        asked = {"query": query, "k": 5, "min_fit": 0.0}
        memories = (await service.call(agent_id, "memory.retrieve", asked))["memories"]
        holding += contradictory(memories)
        wanted = "|".join((*about, facts.current[about]))
        current += any(memory["external_id"] == wanted for memory in memories)
    return {
        "retrievals": retrievals,
        "stores": 3 * retrievals,
        "superseded": superseded,
        "contradictory": holding,
        "contradictory_share": round(holding / retrievals, 4),
        "current_value_found_share": round(current / retrievals, 4),
    }


async def streams(home: Path | None, retrievals: int, embedding_model: str) -> dict[str, Any]:
    """The stream with supersession and without, in one service."""
    settings: dict[str, Any] = {"embedding_model": embedding_model, "maintenance_in_server": False}
    async with running_service(home, **settings) as service:
        found: dict[str, Any] = {}
        for wording, free_share in (("plain wording", 0.0), ("one change in four worded freely", 0.25)):
            for supersede in (True, False):
                name = f"{wording}, supersession {'on' if supersede else 'off'}"
                count = retrievals // 4 if free_share else retrievals
                found[name] = await streamed(
                    service, name, count, supersede=supersede, free_share=free_share
                )
        return found


def rows(found: Mapping[str, Any]) -> Iterator[str]:
    """The results as a page."""
    yield "# Changed facts\n"
    yield "`make bench ARGS=contradictions`, on the pairs of `benchmarks/data/pairs.jsonl` and on a stream.\n"
    yield f"Commit {commit()}, {machine()['cpu']}, {machine()['cores']} cores.\n"
    yield "| Half | Pairs | Superseding: precision | recall | False supersessions | False merges |"
    yield "|---|---|---|---|---|---|"
    for half in HALVES:
        each = found[half]
        yield (
            f"| {half} | {each['pairs']} | {each['precision']:.3f} | {each['recall']:.3f} | "
            f"{each['false_supersessions']} | {each['false_merges']} |"
        )
    yield f"\n{OPENED}\n"
    yield "| Label: verdict | development | sealed |"
    yield "|---|---|---|"
    for name in sorted({*found["development"]["verdicts"], *found["sealed"]["verdicts"]}):
        yield f"| {name} | {' | '.join(str(found[half]['verdicts'].get(name, 0)) for half in HALVES)} |"
    if "stream" not in found:
        return
    yield "\n| Stream | Retrievals | Stores | Superseded | Contradictory answers | The value that holds |"
    yield "|---|---|---|---|---|---|"
    for name, each in found["stream"].items():
        yield (
            f"| {name} | {each['retrievals']} | {each['stores']} | {each['superseded']} | "
            f"{each['contradictory']} ({each['contradictory_share']:.1%}) | "
            f"{each['current_value_found_share']:.1%} |"
        )


def main() -> int:
    """Parse, judge, stream, print, note."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--retrievals", type=int, default=1_000, help="0: the pairs alone")
    parser.add_argument("--embedding-model", default="local")
    parser.add_argument("--home", type=Path, default=None, help="keep the service's data here")
    options = parser.parse_args()
    found: dict[str, Any] = {half: judged(half) for half in HALVES}
    if options.retrievals:
        found["stream"] = run(streams(options.home, options.retrievals, options.embedding_model))
    page = "\n".join(rows(found)) + "\n"
    print(page)
    if options.retrievals:
        TABLE.write_text(page, encoding="utf-8")
        given = {"retrievals": options.retrievals, "embedding_model": options.embedding_model}
        append("contradictions", given, found)
    return 0
