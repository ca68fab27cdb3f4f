"""Learns the ranking's weights from labeled conversations; prints them to be copied.

A linear model over the terms of the score: the running service returns every candidate's terms (`explain`).
The weights maximize the softmax share of relevant candidates per question (the ListNet top-one loss, Cao et
al. 2007), with equal weight per set. Terms that the sets do not exercise keep their weight. Each figure is
also printed on conversations, or fifths of the questions, that were excluded from learning. Validate the
result elsewhere, with retrieval_quality.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from agentcore.limits import MAX_K
from agentcore.memory.retrieval import TERMS
from agentcore.memory.scoring import RetrievalWeights
from benchmarks.labelled import Conversation, Row, asked, conversations, files, remember
from benchmarks.ledger import append
from benchmarks.measures import means, measures
from benchmarks.retrieval_quality import weighed
from benchmarks.service import Service, run, running_service

LEARNT = ("similarity", "words", "neighbours", "time")
FOLDS = 5
STEPS = 400
RATE = 0.05
# The strength of the pull of weights to their start; the sharpness of the softmax has none.
HELD = 0.002
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """One question: its candidates' terms (a row each), and which are relevant."""

    set_name: str
    fold: int
    ids: Sequence[str]
    values: Array
    applies: Array
    relevant: Sequence[str]

    @property
    def gold(self) -> Array:
        """Returns the mask of relevant candidates."""
        return np.array([each in self.relevant for each in self.ids], dtype=np.float64)


async def collected(service: Service, agents: Sequence[Conversation], progress: Progress) -> list[Asked]:
    """Returns the service's candidates and terms for every question."""
    questions = [(number, agent, question) for number, agent in enumerate(agents) for question in agent.questions]
    gathered = []
    whole = weighed(service, RetrievalWeights()).call
    for number, (place, agent, question) in enumerate(progress.track(questions, description="asking")):
        params = asked(question, MAX_K, explain=True, min_fit=0.0)
        answer = await whole(agent.agent_id, "memory.retrieve", params)
        found = answer["memories"]
        if not found:
            continue
        terms = [each["terms"] for each in found]
        gathered.append(
            Asked(
                agent.set_name,
                place % FOLDS if len(agents) >= FOLDS else number % FOLDS,
                [str(each["external_id"]) for each in found],
                np.array([[term[name]["value"] for name in TERMS] for term in terms]),
                np.array([float(terms[0][name]["weight"] > 0) for name in TERMS]),
                question["relevant_ids"] if question.get("answerable", True) else [],
            )
        )
    return gathered


def learnt_weights(asked_: Sequence[Asked], start: RetrievalWeights) -> RetrievalWeights:
    """Returns the weights of least loss, found by Adam (Kingma & Ba 2015) over their logarithms."""
    sets = {each.set_name for each in asked_}
    usable = [each for each in asked_ if each.gold.any()]
    shares = {name: 1 / sum(each.set_name == name for each in usable) for name in sets}
    free = np.array([name in LEARNT for name in TERMS])
    begin = np.log(np.array([getattr(start, name) for name in TERMS]))
    place = np.append(begin, np.log(20.0))
    mean, spread = np.zeros_like(place), np.zeros_like(place)
    for step in range(1, STEPS + 1):
        slope = np.zeros_like(place)
        weights, sharpness = np.exp(place[:-1]), np.exp(place[-1])
        for each in usable:
            used = weights * each.applies
            total = used.sum()
            scores = each.values @ used / total
            gap = _softmax(sharpness * scores) - each.gold / each.gold.sum()
            by_share = sharpness * (gap @ each.values)
            by_weight = each.applies * (by_share - by_share @ (used / total)) / total
            slope[:-1] += shares[each.set_name] * by_weight * weights
            slope[-1] += shares[each.set_name] * sharpness * (gap @ scores)
        slope[:-1] += HELD * (place[:-1] - begin)
        slope[:-1] *= free
        mean = 0.9 * mean + 0.1 * slope
        spread = 0.999 * spread + 0.001 * slope**2
        place -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
    learnt = np.exp(place[:-1])
    learnt /= learnt.sum()
    chosen: Row = {name: round(float(weight), 3) for name, weight in zip(TERMS, learnt, strict=True)}
    return replace(start, **chosen)


def _softmax(scores: Array) -> Array:
    raised = np.exp(scores - scores.max())
    return np.asarray(raised / raised.sum())


def ranked_by(each: Asked, weights: RetrievalWeights) -> list[str]:
    """Returns the question's candidates under these weights, best first."""
    used = np.array([getattr(weights, name) for name in TERMS]) * each.applies
    order = np.argsort(-(each.values @ used), kind="stable")
    return [each.ids[place] for place in order]


def judged(asked_: Sequence[Asked], weights: RetrievalWeights) -> dict[str, float]:
    """Returns the measures under these weights over answerable questions."""
    return means([measures(ranked_by(each, weights), each.relevant) for each in asked_ if each.relevant])


async def gather(options: argparse.Namespace) -> list[Asked]:
    """Stores every set and runs all of its questions."""
    gathered: list[Asked] = []
    async with running_service(options.home, maintenance_in_server=False) as service:
        for path in files(options.data):
            agents = list(conversations(path))
            with Progress(transient=True) as progress:
                for each in agents:
                    await remember(service.call, each, lambda count: None)
                await service.settle()
                gathered += await collected(service, agents, progress)
    return gathered


def told(gathered: Sequence[Asked]) -> Row:
    """Returns the weights learned from all questions, and the figures on held-out ones."""
    start = RetrievalWeights()
    weights = learnt_weights(gathered, start)
    left_out: list[tuple[Asked, RetrievalWeights]] = []
    for fold in range(FOLDS):
        seen = [each for each in gathered if each.fold != fold]
        found = learnt_weights(seen, start)
        left_out += [(each, found) for each in gathered if each.fold == fold]
    results: Row = {"weights": {name: getattr(weights, name) for name in TERMS}}
    for name in sorted({each.set_name for each in gathered}):
        of_set = [each for each in gathered if each.set_name == name]
        unseen = [entry for entry in left_out if entry[0].set_name == name and entry[0].relevant]
        results[name] = {
            "as it stands": judged(of_set, start),
            "learnt": judged(of_set, weights),
            "learnt elsewhere": means([measures(ranked_by(each, found), each.relevant) for each, found in unseen]),
        }
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="files of labelled sets")
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    options = parser.parse_args()
    results = told(run(gather(options)))
    for name, value in results.items():
        print(f"{name}: {value}", flush=True)
    append("learn_weights", {"sets": [path.name for path in options.data]}, results)
    return 0
