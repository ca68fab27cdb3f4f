"""Measures whether a note linked to the best hit reaches a context: `data/linked_notes.jsonl`.

Each set is stored twice: as a separate agent, and with all other sets in one agent. All calls use JSON-RPC
and the defaults. In the 40 sets of kind `linked` the linked note is needed. In the 10 of kind `irrelevant` an
unlinked note is needed, and the linked one only uses up budget.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.labelled import Row
from benchmarks.ledger import append
from benchmarks.measures import interval
from benchmarks.service import Service, run, running_service

NOTES = Path(__file__).parent / "data" / "linked_notes.jsonl"
AMONG = 5
BUDGETS = (600, 150)
FIRST_NOTE = datetime(2026, 3, 1, 9, tzinfo=UTC)
ASKED_AT = datetime(2026, 5, 1, 9, tzinfo=UTC)
TOGETHER = "all-notes"


@dataclass(frozen=True)
class Outcome:
    """The notes returned for one question: the top five of `retrieve`, and those of a context by its budget.

    `tokens` are those of each context.
    """

    labels: Row
    ranked: Sequence[str]
    contexts: Mapping[int, Sequence[str]]
    tokens: Mapping[int, int]


def sets() -> list[Row]:
    """Reads the labeled sets."""
    return [json.loads(line) for line in NOTES.read_text(encoding="utf-8").splitlines()]


async def store(service: Service, agent_id: str, labels: Row, *, linked: bool) -> dict[str, str]:
    """Stores one set, a note each hour, then its link; returns the note of each memory."""
    notes: dict[str, str] = {}
    for number, note in enumerate(labels["notes"]):
        at = (FIRST_NOTE + timedelta(hours=number)).isoformat()
        stored = await service.call(agent_id, "memory.store", {"content": note["text"], "timestamp": at})
        notes[stored["memory_id"]] = note["id"]
    if linked:
        memories = {note: memory for memory, note in notes.items()}
        link = labels["link"]
        added = {"target_id": memories[link["target"]], "relation": link["relation"], "weight": 1.0}
        changed = {"memory_id": memories[link["source"]], "updates": {"links": [added]}}
        await service.call(agent_id, "memory.update", changed)
    return notes


async def answer(service: Service, agent_id: str, notes: Mapping[str, str], labels: Row) -> Outcome:
    """Runs one question through both methods."""
    asked = {"query": labels["query"], "asked_at": ASKED_AT.isoformat()}
    found = await service.call(agent_id, "memory.retrieve", {**asked, "k": AMONG})
    contexts, tokens = {}, {}
    for budget in BUDGETS:
        built = await service.call(agent_id, "memory.get_context", {**asked, "max_tokens": budget})
        contexts[budget] = [notes[each] for each in built["memory_ids"]]
        tokens[budget] = built["token_count"]
    return Outcome(labels, [notes[each["memory_id"]] for each in found["memories"]], contexts, tokens)


def figures(outcomes: Sequence[Outcome]) -> Row:
    """Returns the shares of questions, in per cent, with the answer, linked and needed notes, by kind."""
    values: Row = {}
    for kind in ("linked", "irrelevant"):
        rows = [each for each in outcomes if each.labels["kind"] == kind]
        values[kind] = {
            "questions": len(rows),
            "answer first": share([each.ranked[:1] == [each.labels["answer"]] for each in rows]),
            "mean tokens": {
                f"of {budget}": round(sum(each.tokens[budget] for each in rows) / len(rows), 1) for budget in BUDGETS
            },
            **{label: given(rows, label) for label in ("answer", "linked", "needed")},
        }
    return values


def given(outcomes: Sequence[Outcome], label: str) -> Row:
    """Returns the shares of questions with the note of this label, by method and budget."""
    return {
        f"among {AMONG}": share([each.labels[label] in each.ranked for each in outcomes]),
        **{
            f"in {budget} tokens": share([each.labels[label] in each.contexts[budget] for each in outcomes])
            for budget in BUDGETS
        },
    }


def share(held: Sequence[bool]) -> Row:
    """Returns the share of true values in per cent, and its 95 % interval."""
    values = [float(each) for each in held]
    return {"share": round(100 * sum(values) / len(values), 1), "interval": interval(values)}


async def measure(options: argparse.Namespace) -> Row:
    """Stores and queries every set alone, then all of them in one agent; returns the figures."""
    labelled = sets()
    alone: list[Outcome] = []
    async with running_service(options.home, maintenance_in_server=False) as service:
        notes: dict[str, str] = {}
        for labels in labelled:
            own = await store(service, labels["set"], labels, linked=not options.unlinked)
            notes |= await store(service, TOGETHER, labels, linked=not options.unlinked)
            alone.append(await answer(service, labels["set"], own, labels))
        together = [await answer(service, TOGETHER, notes, labels) for labels in labelled]
        model = service.runtime.parts.embedder.model if service.runtime.parts.embedder else None
    return {"model": model, "alone": figures(alone), "together": figures(together)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unlinked", action="store_true", help="store the notes without their links")
    parser.add_argument("--home", type=Path, help="keep the stored notes here (default: removed again)")
    options = parser.parse_args()
    found = run(measure(options))
    for stores in ("alone", "together"):
        for kind, values in found[stores].items():
            print(f"{stores}, {kind}, mean tokens of a context: {values['mean tokens']}")
            for label in ("answer", "linked", "needed"):
                shares = {name: each["share"] for name, each in values[label].items()}
                print(f"{stores}, {kind}, {label}: {shares}")
    append("linked_notes", {"unlinked": options.unlinked}, found)
    return 0
