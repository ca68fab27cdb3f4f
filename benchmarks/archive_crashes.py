"""Archive crashes: kill -9 at every fault point of prune, archive, restore and erase.

In each trial an agent gets a few memories with links, accesses and names. A real `agentcore serve` process
prunes them (or restores pruned ones) and dies at the point. Afterwards every memory must be in exactly one
place, unchanged; the repeated call must complete; and restored memories must equal the stored ones, byte for
byte. A repeated erasure must leave no data in any place of the text inventory, a user's erasure must keep
the other users' data, and neither may change a second agent. Negative controls archive after the deletion,
and erase sources before derived memories: the verdict must detect it. The archive is a directory, for
`archive.put` an S3 endpoint in a separate process. Also tests random states: a dry run must name the memories
that the real prune removes, and never a pinned one. The exit status is 1 after any violation.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from agentcore.providers.s3_archive import S3Archive
from benchmarks.crash.erased import Erasing
from benchmarks.crash.nursery import nursery
from benchmarks.crash.object_store import BUCKET, CREDENTIALS, ObjectStore
from benchmarks.crash.standing import standing
from benchmarks.crash.states import prunes_as_said
from benchmarks.crash.torn import Place, Remains, Tearing, points
from benchmarks.crash.trials import in_turn
from benchmarks.ledger import append

KINDS = ("prune", "archive", "restore", "erase")
CONTROLS = 10


def in_s3(place: Place, store: ObjectStore) -> Place:
    """Returns the same place with its archive in S3."""
    archive = S3Archive(BUCKET, store.url, client=store.client())
    s3 = {"MEMORY_ARCHIVAL_S3_BUCKET": BUCKET, "AWS_ENDPOINT_URL_S3": store.url, **CREDENTIALS}
    parts = replace(place.parts, archive=archive)
    return replace(place, parts=parts, archive=archive, environment={**place.environment, **s3})


async def kills(
    kind: str, place: Place, store: ObjectStore, each: int, seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Runs trials of a kind, with its fault points in turn, and returns their figures."""
    with nursery() as forking:
        tearing = Erasing if kind == "erase" else Tearing
        directory = tearing(place, forking, random.Random(f"{kind} {seed}"))
        bucket = Tearing(in_s3(place, store), forking, random.Random(f"{kind} in s3 {seed}"))

        def trial(point: str) -> Awaitable[Remains]:
            return (bucket if point == "archive.put" else directory).trial(point)

        figures = await in_turn(kind, points(kind), each, trial, tell)
    return {"kills": directory.kills + bucket.kills, **figures}


async def control(place: Place, seed: int) -> dict[str, Any]:
    """Runs the negative controls: how many kills the verdict detected, and the losses and remains in them."""
    with nursery() as forking:
        tearing = Tearing(place, forking, random.Random(seed), telling="archive after delete")
        pruned = [await tearing.trial("prune.committed") for _ in range(CONTROLS)]
        erasing = Erasing(place, forking, random.Random(seed), telling="sources first")
        # Killed before the last of a user's memories, which is derived from the others.
        erased = [await erasing.trial("erase.committed", which=1 + number) for number in range(CONTROLS)]
    return {
        "kills": CONTROLS,
        "seen": sum(each.lost > 0 for each in pruned),
        "lost": sum(each.lost for each in pruned),
        "erasures_seen": sum(each.unfinished > 0 for each in erased),
        "left": sum(each.unfinished for each in erased),
    }


async def run(
    kinds: Sequence[str], each: int, states: int, seed: int, tell: Callable[[str], None] = print
) -> tuple[bool, dict[str, Any]]:
    """Returns whether no violation was found, and the figures."""
    store = ObjectStore()
    try:
        await asyncio.to_thread(store.start)
        async with standing() as (_, place):
            done = await asyncio.gather(*(kills(kind, place, store, each, seed, tell) for kind in kinds))
            figures: dict[str, Any] = dict(zip(kinds, done, strict=True))
            figures["control"] = await control(place, seed)
            tell(f"control: {figures['control']}")
            figures["states"] = asdict(await prunes_as_said(place.parts, states, random.Random(seed)))
            tell(f"states: {figures['states']}")
    finally:
        store.kill()
    wrong = sum(figures[kind][name] for kind in kinds for name in asdict(Remains()))
    wrong += sum(value for name, value in figures["states"].items() if name != "states")
    seen = {figures["control"][name] for name in ("seen", "erasures_seen")}
    return wrong == 0 and seen == {CONTROLS}, figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=200, help="trials of each kind; an erasure's kills twice")
    parser.add_argument("--only", choices=KINDS, action="append", help="this kind (default: all)")
    parser.add_argument("--states", type=int, default=1_000, help="random states that are pruned")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of all that is random")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    good, figures = asyncio.run(run(options.only or KINDS, options.each, options.states, options.seed))
    append("archive_crashes", vars(options), figures)
    return 0 if good else 1
