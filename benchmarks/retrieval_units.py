"""Units of retrieval: turns, question-answer pairs, or overlapping windows; the evidence found by each.

For each unit (a turn; a turn and the next one; windows of three or five turns with a step of one or two) the
conversation is indexed by vectors and by BM25. A turn scores as the best unit that contains it, by reciprocal
rank over the retrievers (k = 60, Cormack et al. 2009): the units alone, with the turns, or with the service's
ranking of the turns (`memory.retrieve`), whose `session` and `neighbours` terms serve a similar purpose. The
same budgets are then filled with turns, best first, and judged by benchmarks/evidence.py: only the unit of
retrieval differs.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from agentcore.memory.embeddings import EmbeddingKind
from benchmarks.context_efficiency import BUDGETS, Past
from benchmarks.evidence import WordIndex, share_contained
from benchmarks.labelled import OWN_SETS, Conversation, Row, asked, conversations, files, remember
from benchmarks.ledger import append
from benchmarks.measures import interval
from benchmarks.service import Service, run, running_service

RANK_OFFSET = 60
LOOKED_AT = 400
EMBEDDED_TOGETHER = 2_000
# By name: the number of turns of a unit, and the step to the next unit in turns.
UNITS: Mapping[str, tuple[int, int]] = {
    "turns": (1, 1),
    "pairs": (2, 1),
    "windows of 3": (3, 1),
    "windows of 5": (5, 2),
}
SERVICE = "service"
WHOLE = ("turns", SERVICE)
ARMS = (*UNITS, SERVICE, *(f"{whole} and {name}" for whole in WHOLE for name in UNITS if name != "turns"))
# The service's ranking counts for both of its retrievers.
SERVICE_WEIGHT = 2.0
MOST_ASKED = 100

Vectors = NDArray[np.float32]


class Index:
    """One conversation indexed by one kind of unit: the units' turns, vectors and words."""

    def __init__(self, units: Sequence[Sequence[int]], texts: Sequence[str], vectors: Vectors) -> None:
        self._units = units
        self._vectors = vectors
        self._words = WordIndex(texts)

    def worths(self, query: str, vector: Vectors) -> dict[int, float]:
        """Returns each turn's score by its best unit, over both retrievers; turns without a hit are
        missing."""
        nearest = np.argsort(-(self._vectors @ vector), kind="stable")[:LOOKED_AT].tolist()
        found: dict[int, float] = defaultdict(float)
        for arm in (nearest, self._words.ranked(query)[:LOOKED_AT]):
            best: dict[int, float] = {}
            for rank, unit in enumerate(arm):
                for turn in self._units[unit]:
                    best.setdefault(turn, 1 / (RANK_OFFSET + rank))
            for turn, worth in best.items():
                found[turn] += worth
        return found


def units_of(conversation: Conversation, length: int, step: int) -> list[list[int]]:
    """Returns the turns of each unit; no unit spans two sessions."""
    places = sorted(
        range(len(conversation.memories)),
        key=lambda place: (_session(conversation, place), conversation.memories[place]["timestamp"], place),
    )
    found: list[list[int]] = []
    for _, session in groupby(places, key=lambda place: _session(conversation, place)):
        turns = list(session)
        last = max(1, len(turns) - length + 1)
        found += [turns[start : start + length] for start in range(0, last, step)]
        if (last - 1) % step:
            found.append(turns[-length:])
    return found


def _session(conversation: Conversation, place: int) -> str:
    return str(conversation.memories[place].get("session_id") or "")


def _said(memory: Row) -> str:
    text = str(memory.get("text") or memory.get("interaction"))
    return f"{memory['speaker']}: {text}" if memory.get("speaker") else text


async def indexes_of(service: Service, conversation: Conversation) -> dict[str, Index]:
    """Indexes the conversation by every kind of unit, embedded with the service's model."""
    found: dict[str, Index] = {}
    for name, (length, step) in UNITS.items():
        units = units_of(conversation, length, step)
        texts = ["\n".join(_said(conversation.memories[place]) for place in unit) for unit in units]
        found[name] = Index(units, texts, await _embedded(service, texts, "document"))
    return found


async def _embedded(service: Service, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
    embedder = service.runtime.parts.embedder
    if embedder is None:
        raise SystemExit("this benchmark needs an embedding model")
    rows = [
        await embedder.embed(texts[start : start + EMBEDDED_TOGETHER], kind)
        for start in range(0, len(texts), EMBEDDED_TOGETHER)
    ]
    return np.vstack(rows)


async def own_order(service: Service, conversation: Conversation, question: Row) -> dict[int, float]:
    """Returns each turn's score by its rank in the service's answer."""
    places = {each["id"]: place for place, each in enumerate(conversation.memories)}
    params = asked(question, MOST_ASKED, distinct=False)
    answer = await service.call(conversation.agent_id, "memory.retrieve", params)
    return {
        places[each["external_id"]]: SERVICE_WEIGHT / (RANK_OFFSET + rank)
        for rank, each in enumerate(answer["memories"])
    }


def orders(worths: Mapping[str, Mapping[int, float]]) -> Iterator[tuple[str, list[int]]]:
    """Yields the turns that each retriever finds, best first."""
    for name, found in worths.items():
        yield name, _best_first(found)
        for whole in WHOLE if name not in WHOLE else ():
            beside = worths[whole]
            both = {turn: found.get(turn, 0.0) + beside.get(turn, 0.0) for turn in {*found, *beside}}
            yield f"{whole} and {name}", _best_first(both)


def _best_first(worths: Mapping[int, float]) -> list[int]:
    return sorted(worths, key=lambda turn: (-worths[turn], turn))


async def _measured(service: Service, path: Path, options: argparse.Namespace) -> dict[str, Row]:
    shares: dict[tuple[int, str], list[float]] = defaultdict(list)
    agents = list(conversations(path))
    with Progress(transient=True) as progress:
        for conversation in progress.track(agents, description=path.name):
            count = service.runtime.parts.count_tokens
            past = Past(conversation, np.zeros((len(conversation.memories), 1), np.float32), count)
            indexes = await indexes_of(service, conversation)
            await remember(service.call, conversation, lambda stored: None)
            chosen = conversation.answerable()[:: options.every]
            if not chosen:
                continue
            vectors = await _embedded(service, [each["text"] for each in chosen], "query")
            for question, vector in zip(chosen, vectors, strict=True):
                labelled = past.labelled(question)
                worths = {name: index.worths(question["text"], vector) for name, index in indexes.items()}
                worths[SERVICE] = await own_order(service, conversation, question)
                for name, order in orders(worths):
                    for budget in options.budgets:
                        contained = share_contained(labelled, past.filled(order, budget))
                        shares[budget, name].append(float(contained == 1.0))
    return {
        f"{agents[0].set_name}, {budget:,}: {name}": {
            "questions": len(whole),
            "all evidence": round(100 * sum(whole) / len(whole), 1),
            "all evidence interval": interval(whole),
        }
        for (budget, name), whole in sorted(shares.items(), key=lambda each: (each[0][0], ARMS.index(each[0][1])))
    }


async def measure(options: argparse.Namespace) -> dict[str, Row]:
    """Measures every set with every kind of unit."""
    results: dict[str, Row] = {}
    async with running_service(options.home, maintenance_in_server=False) as service:
        for path in files(options.data or [OWN_SETS]):
            found = await _measured(service, path, options)
            for name, row in found.items():
                print(name, json.dumps(row), flush=True)
            results |= found
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", help="files or directories of labelled sets")
    parser.add_argument("--budgets", type=int, nargs="*", default=list(BUDGETS), help="in tokens")
    parser.add_argument("--every", type=int, default=1, help="ask every nth question")
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    options = parser.parse_args()
    results = run(measure(options))
    kept = {"budgets", "every"}
    append("retrieval_units", {name: value for name, value in vars(options).items() if name in kept}, results)
    return 0
