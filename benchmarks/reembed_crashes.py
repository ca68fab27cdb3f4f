"""Kills at every fault point of a re-embedding, and the process that resumes it.

In each trial a real `agentcore reembed` process dies at the point, on its way from one model to the other.
Then no memory may be missing, changed or without a current vector, and each vector must be its model's
embedding of the text. Memories are stored, corrected and deleted; another process resumes and must end with
current vectors of the new model only, one index, and no leftovers. A negative control marks a vector as the
new model's before it is: the verdict must detect it. Batches are of 20 rows, an index is built from 40 rows
on, and processes get 0.2 s to follow instead of 15. The exit status is 1 after any violation.
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
    """Returns whether no violation was found, and the figures."""
    # This process follows at once; memories stored with the old model would be embedded again a second later.
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
    """Runs the negative control: how many of its kills the verdict detected, and the violations."""
    found = []
    for number in range(CONTROLS):
        # Its damage is permanent, so each uses a separate home.
        async with standing() as (runtime, place):
            chance = random.Random(seed + number)
            trials = Reembedding(runtime, place, forking, chance, telling="named before moved")
            await trials.fill()
            found.append(await trials.trial("reembed.moved", which=1))
    return {
        "kills": CONTROLS,
        "seen": sum(each.altered > 0 for each in found),
        "altered": sum(each.altered for each in found),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=200, help="kills")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of all that is random")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    good, figures = asyncio.run(run(options.each, options.seed))
    print(figures)
    append("reembed_crashes", vars(options), figures)
    return 0 if good else 1
