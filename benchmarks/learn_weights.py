"""Learn the ranking's weights, and when nothing fits, from labelled conversations; prints them to be copied.

A linear model over the terms of the score: what every candidate's terms are is asked of the running service
(`explain`), then the weights are chosen that give what is relevant the most of a softmax over the candidates
of its question (the ListNet top-one loss, Cao et al. 2007), every set counting the same. Terms that the sets
do not speak of keep their weight. Each figure is also given on conversations, or fifths of the questions,
that were left out of the learning. Judge the outcome elsewhere, with retrieval_quality.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from agentcore.limits import MAX_K
from agentcore.memory.ranking.fitness import FitModel, Signals
from agentcore.memory.retrieval import TERMS
from agentcore.memory.scoring import RetrievalWeights
from benchmarks.labelled import Conversation, Row, asked, conversations, files, foreign, remember
from benchmarks.ledger import append
from benchmarks.measures import means, measures
from benchmarks.retrieval_quality import weighed
from benchmarks.service import Service, run, running_service

LEARNT = ("similarity", "words", "session", "neighbours", "speaker", "time")
FOLDS = 5
STEPS = 400
RATE = 0.05
# How strongly weights are held to where they began, and the sharpness of the softmax is let free.
HELD = 0.002
SIGNALS = tuple(each.name for each in fields(Signals))
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """One question: its candidates' terms (a row each), which are relevant, and what the best look like."""

    set_name: str
    fold: int
    ids: Sequence[str]
    values: Array
    applies: Array
    relevant: Sequence[str]
    signals: Array

    @property
    def gold(self) -> Array:
        """Which candidates are relevant."""
        return np.array([each in self.relevant for each in self.ids], dtype=np.float64)


async def collected(service: Service, agents: Sequence[Conversation], progress: Progress) -> list[Asked]:
    """What the service says of every question's candidates."""
    strange = foreign(agents)
    questions = [
        (number, agent, question)
        for number, agent in enumerate(agents)
        for question in [*agent.questions, *strange.get(agent.agent_id, [])]
    ]
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
                np.array([answer["receipt"]["searched"]["signals"][name] for name in SIGNALS]),
            )
        )
    return gathered


def learnt_weights(asked_: Sequence[Asked], start: RetrievalWeights) -> RetrievalWeights:
    """The weights of least loss, found by Adam (Kingma & Ba 2015) over their logarithms."""
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


def learnt_fit(asked_: Sequence[Asked]) -> FitModel:
    """Logistic regression by Newton's method, answerable and unanswerable questions counting the same."""
    signals = np.array([[1.0, *each.signals] for each in asked_])
    fits = np.array([float(bool(each.relevant)) for each in asked_])
    counts = np.where(fits == 1, 0.5 / max(1, fits.sum()), 0.5 / max(1, (1 - fits).sum())) * len(fits)
    place = np.zeros(signals.shape[1])
    held = np.diag([0.0, *[1.0] * len(SIGNALS)])
    for _ in range(30):
        likely = 1 / (1 + np.exp(-signals @ place))
        slope = signals.T @ (counts * (likely - fits)) + held @ place
        bend = (signals * (counts * likely * (1 - likely))[:, None]).T @ signals + held
        place -= np.linalg.solve(bend, slope)
    bias, *rest = (round(float(each), 2) for each in place)
    return FitModel(bias, **dict(zip(SIGNALS, rest, strict=True)))


def ranked_by(each: Asked, weights: RetrievalWeights) -> list[str]:
    """The question's candidates under these weights, best first."""
    used = np.array([getattr(weights, name) for name in TERMS]) * each.applies
    order = np.argsort(-(each.values @ used), kind="stable")
    return [each.ids[place] for place in order]


def judged(asked_: Sequence[Asked], weights: RetrievalWeights) -> dict[str, float]:
    """The measures under these weights, of what is answerable."""
    return means([measures(ranked_by(each, weights), each.relevant) for each in asked_ if each.relevant])


def separated(asked_: Sequence[Asked], model: FitModel) -> float:
    """How often an answerable question gets a higher probability than an unanswerable one, in per cent."""
    given: dict[bool, list[float]] = {True: [], False: []}
    for each in asked_:
        given[bool(each.relevant)].append(model.probability(Signals(*each.signals)))
    pairs = [float(yes > no) + 0.5 * float(yes == no) for yes in given[True] for no in given[False]]
    return round(100 * sum(pairs) / len(pairs), 1) if pairs else 0.0


async def gather(options: argparse.Namespace) -> list[Asked]:
    """Store every set and ask all of its questions."""
    gathered: list[Asked] = []
    async with running_service(options.home, maintenance_in_server=False) as service:
        for path in files(options.data):
            agents = list(conversations(path))
            with Progress(transient=True) as progress:
                for each in agents:
                    await remember(service.call, each, lambda count: None)
                await service.runtime.maintenance.round()
                gathered += await collected(service, agents, progress)
    return gathered


def told(gathered: Sequence[Asked]) -> Row:
    """What is learnt from all, and what the same learning gives where it did not look."""
    start = RetrievalWeights()
    weights, model = learnt_weights(gathered, start), learnt_fit(gathered)
    left_out: list[tuple[Asked, RetrievalWeights, FitModel]] = []
    for fold in range(FOLDS):
        seen = [each for each in gathered if each.fold != fold]
        found = learnt_weights(seen, start), learnt_fit(seen)
        left_out += [(each, *found) for each in gathered if each.fold == fold]
    results: Row = {
        "weights": {name: getattr(weights, name) for name in TERMS},
        "fit": asdict(model),
        "fit separates": separated(gathered, model),
    }
    for name in sorted({each.set_name for each in gathered}):
        of_set = [each for each in gathered if each.set_name == name]
        unseen = [entry for entry in left_out if entry[0].set_name == name and entry[0].relevant]
        results[name] = {
            "as it stands": judged(of_set, start),
            "learnt": judged(of_set, weights),
            "learnt elsewhere": means(
                [measures(ranked_by(each, found), each.relevant) for each, found, _ in unseen]
            ),
            "fit separates": separated(of_set, model),
        }
    return results


def main() -> int:
    """Parse, learn, print, note."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="files of labelled sets")
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    options = parser.parse_args()
    results = told(run(gather(options)))
    for name, value in results.items():
        print(f"{name}: {value}", flush=True)
    append("learn_weights", {"sets": [path.name for path in options.data]}, results)
    return 0
