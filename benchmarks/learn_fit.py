"""Learns when no hit answers a question: logistic regression over the signals of each search.

Learns from the six learning lives: their answerable questions against their off-topic prompts, with equal
total weight. Prints the model and, for each life, the accuracy of a model learned on the other five. The
printed `min_fit` is the probability below which 1.5 % of the answerable questions lie.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.ranking.calibration import FitModel, Signals
from benchmarks.current_answers import LIVES, Life, asked, lives, store
from benchmarks.labelled import Row
from benchmarks.ledger import append
from benchmarks.logistic import logistic_regression
from benchmarks.service import Service, run, running_service

SIGNALS = tuple(each.name for each in fields(Signals))
LOST_PERCENT = 1.5
RIDGE = 1.0


@dataclass(frozen=True)
class Asked:
    """One search: its signals, in the order of SIGNALS. `answers`: None if unanswerable, but on topic."""

    life: str
    text: str
    signals: NDArray[np.float64]
    answers: bool | None


async def search(service: Service, life: Life, question: Row, answers: bool | None) -> Asked:
    found = await service.call(life.name, "memory.retrieve", asked(question, k=5, explain=True, min_fit=0.0))
    signals = found["receipt"]["searched"]["signals"]
    return Asked(life.name, question["text"], np.array([signals[name] for name in SIGNALS]), answers)


async def collect(options: argparse.Namespace) -> list[Asked]:
    """Stores every life and runs its questions and prompts."""
    found: list[Asked] = []
    async with running_service(options.home, maintenance_in_server=False) as service:
        for life in lives(LIVES / "learning", ()):
            await store(service, life)
            questions = [(each, True if each["current"] else None) for each in life.questions]
            for each, answers in [*questions, *((each, False) for each in life.off_topic)]:
                found.append(await search(service, life, each, answers))
    return found


def learned(rows: list[Asked]) -> FitModel:
    """Returns the regression, both classes with the same total weight."""
    used = [each for each in rows if each.answers is not None]
    signals = np.array([each.signals for each in used])
    answers = np.array([float(bool(each.answers)) for each in used])
    counts = np.where(answers == 1, 0.5 / answers.sum(), 0.5 / (1 - answers).sum()) * len(used)
    weights = logistic_regression(signals, answers, counts, RIDGE)
    bias, *rest = (round(float(each), 2) for each in weights)
    return FitModel(bias, **dict(zip(SIGNALS, rest, strict=True)))


def judged(rows: list[Asked], model: FitModel, threshold: float) -> Row:
    """Returns the shares below the threshold, in per cent."""

    def below(answers: bool | None) -> float:
        fits = [model.probability(Signals(*each.signals)) for each in rows if each.answers is answers]
        return round(100 * sum(fit < threshold for fit in fits) / max(1, len(fits)), 1)

    return {"lost": below(True), "off-topic silent": below(False), "unanswerable silent": below(None)}


def threshold_of(rows: list[Asked], model: FitModel) -> float:
    fits = [model.probability(Signals(*each.signals)) for each in rows if each.answers]
    return float(np.percentile(fits, LOST_PERCENT))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, help="keep the stored lives here (default: removed again)")
    rows = run(collect(parser.parse_args()))
    results: Row = {}
    for life in sorted({each.life for each in rows}):
        others = [each for each in rows if each.life != life]
        model = learned(others)
        own = [each for each in rows if each.life == life]
        results[life] = judged(own, model, threshold_of(others, model))
    model = learned(rows)
    threshold = threshold_of(rows, model)
    results |= {"model": vars(model), "min_fit": round(threshold, 3), "all": judged(rows, model, threshold)}
    for name, value in results.items():
        print(f"{name}: {value}", flush=True)
    for each in rows:
        given = model.probability(Signals(*each.signals)) >= threshold
        if each.answers is not None and given != each.answers:
            what = "lost" if each.answers else "answered"
            print(what, each.life, each.text, each.signals.round(2).tolist())
    append("learn_fit", {}, results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
