"""Kills at every fault point of a re-embedding, and the next process that goes on.

In each trial a real `agentcore reembed` process dies at the point, on its way from one model to the other.
Then no memory may be missing, changed or without the vector in force, and no vector may be another than its
model makes of its text. Memories are stored, corrected and deleted; another process goes on, and must end
with every vector of the new model in its place, one index, and nothing half made. A negative control says of
a vector that it is the new model's before it is: the verdict must see it. Batches are of 20 rows, an index is
made from 40 on, and processes are given 0.2 s to follow instead of 15. Exit status 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from agentcore import model_watch
from benchmarks.crash.nursery import Nursery, nursery
from benchmarks.crash.reembedded import Reembedding
from benchmarks.crash.standing import standing
from benchmarks.crash.torn import Remains, points
from benchmarks.crash.trials import in_turn
from benchmarks.ledger import append

CONTROLS = 10


async def run(each: int, seed: int, tell: Callable[[str], None] = print) -> tuple[bool, dict[str, Any]]:
    """Whether all was as it must be, and the figures."""
    # This process follows at once: what it stored with the old model would be made anew a second later.
    model_watch.WATCH_SECONDS = 0.02
    with nursery() as forking:
        async with standing() as (runtime, place):
            trials = Reembedding(runtime, place, forking, random.Random(seed))
            await trials.fill()
            figures = await in_turn("reembed", points("reembed"), each, trials.trial, tell)
            figures = {"kills": trials.kills, **figures}
            figures["control"] = await control(forking, seed)
    tell(f"control: {figures['control']}")
    wrong = sum(figures[name] for name in asdict(Remains()))
    return wrong == 0 and figures["control"]["seen"] == CONTROLS, figures


async def control(forking: Nursery, seed: int) -> dict[str, int]:
    """The story told wrongly: how many of its kills the verdict saw, and what was wrong after them."""
    found = []
    for number in range(CONTROLS):
        # What it spoils stays spoilt: a home of its own for each.
        async with standing() as (runtime, place):
            chance = random.Random(seed + number)
            trials = Reembedding(runtime, place, forking, chance, telling="named before moved")
            await trials.fill()
            found.append(await trials.trial("reembed.moved", which=1))
    return {"kills": CONTROLS, "seen": sum(each.altered > 0 for each in found),
            "altered": sum(each.altered for each in found)}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=200, help="kills")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of all that is random")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    good, figures = asyncio.run(run(options.each, options.seed))
    print(figures)
    append("reembed_crashes", vars(options), figures)
    return 0 if good else 1
