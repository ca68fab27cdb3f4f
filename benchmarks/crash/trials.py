"""Sequential trials, each killed at the next fault point, and their figures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from itertools import cycle, islice
from typing import Any

from benchmarks.crash.torn import Remains

TOLD_EVERY = 50


async def in_turn(
    kind: str, names: Sequence[str], count: int, trial: Callable[[str], Awaitable[Remains]], tell: Callable[[str], None]
) -> dict[str, Any]:
    """Runs this many trials with the points in turn, and returns their figures."""
    started, total, hit = time.perf_counter(), Remains(), Counter[str]()
    for number, point in enumerate(islice(cycle(names), count), start=1):
        found = await trial(point)
        total, hit = total + found, hit + Counter({point: 1})
        if found.wrong:
            tell(f"WRONG at {point}, trial {number}: {found}")
        if number % TOLD_EVERY == 0 or number == count:
            tell(f"{kind}: {number} trials, {time.perf_counter() - started:.0f} s, wrong {total.wrong}")
    seconds = round(time.perf_counter() - started, 1)
    return {"trials": count, "points": dict(hit), **asdict(total), "seconds": seconds}
