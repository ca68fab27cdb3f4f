"""The cost of the pure ranking on seeded candidates, without service and database.

The budget of issue 3: less than 3 ms for 300 candidates, with a goal of 1 ms.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from agentcore.memory.ranking.candidates import Candidate, CandidateLink, MatchScale, Question, distinct
from agentcore.memory.retrieval import rank
from agentcore.memory.scoring import RetrievalWeights
from benchmarks.ledger import append, percentiles

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SPEAKERS = ("Ada", "Bo", "user", "assistant", None)


def candidates(count: int, chance: random.Random) -> list[Candidate]:
    """Returns `count` candidates, a twentieth of them copies of the previous one."""
    made: list[Candidate] = []
    for number in range(count):
        start = NOW - timedelta(hours=number)
        text = (number - (chance.random() < 0.05)).to_bytes(4, "big", signed=True)
        made.append(
            Candidate(
                UUID(int=number),
                start,
                chance.random(),
                chance.random(),
                10 * chance.random(),
                chance.choice(SPEAKERS),
                chance.randrange(20),
                start,
                (text, None, None, None),
                asks=chance.random() < 0.3,
                event=(start, start + timedelta(days=1)) if chance.random() < 0.2 else None,
            )
        )
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=300)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=500)
    options = parser.parse_args()
    chance = random.Random(7)
    found = candidates(options.candidates, chance)
    beside = [CandidateLink(one.memory_id, other.memory_id, 1.0) for one, other in itertools.pairwise(found[:40])]
    window = (NOW - timedelta(days=7), NOW)
    question = Question(NOW, MatchScale(10, 10), windows=[window])
    every = replace(question, distinct=False)
    steps: dict[str, Callable[[], object]] = {
        "rank_ms": lambda: rank(found, beside, beside, RetrievalWeights(), question, options.k),
        "rank_copies_too_ms": lambda: rank(found, beside, beside, RetrievalWeights(), every, options.k),
        "distinct_ms": lambda: distinct(found, question.windows, Counter()),
    }
    spent: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(options.rounds):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            spent[name].append(1_000 * (time.perf_counter() - began))
    figures = {name: percentiles(each) for name, each in spent.items()}
    print(figures)
    append("ranking_cost", vars(options), figures)
    return 0
