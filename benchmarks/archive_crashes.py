"""Archive crashes: kill -9 at every fault point of a prune, of the archive, of a restore and of an erasure.

In each trial an agent gets a few memories with ties, uses and names; a real `agentcore serve` process is
told to prune them (or to restore what was pruned) and dies at the point. Then no memory may be in neither
place, none in both, none changed; the same call again must complete; and what is restored must be what was
stored, byte for byte. An erasure that is called again must leave nothing, and that of a user what the others
have. A negative control archives after it deletes: the verdict must see it. The archive is a directory, for
`archive.put` an S3 endpoint in a process of its own. Besides, random states whose dry
run must name what a real prune then takes, never a pinned one. The exit status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from agentcore import migration
from agentcore.embedded import EmbeddedParts, Home
from agentcore.providers.s3_archive import S3Archive
from agentcore.runtime import open_runtime
from benchmarks.crash.erased import Erasing
from benchmarks.crash.nursery import nursery
from benchmarks.crash.object_store import BUCKET, CREDENTIALS, ObjectStore
from benchmarks.crash.states import prunes_as_said
from benchmarks.crash.torn import Place, Remains, Tearing, points
from benchmarks.ledger import append
from benchmarks.service import SECRET, bench_settings

KINDS = ("prune", "archive", "restore", "erase")
CONTROLS = 10
TOLD_EVERY = 50


@asynccontextmanager
async def standing() -> AsyncIterator[Place]:
    """Parts on a new home that goes away at the end, and a service on them in this process."""
    root = Path(tempfile.mkdtemp(prefix="agentcore-torn-"))
    # Open to the system user who runs the parts where we are root.
    await asyncio.to_thread(root.chmod, 0o755)
    parts = EmbeddedParts(Home(root / "home"), postgres=True, redis=True, log=lambda line: None)
    try:
        urls = await parts.start()
        database_url, redis_url = urls.database_url or "", urls.redis_url or ""
        await asyncio.to_thread(migration.upgrade, database_url)
        settings = bench_settings(
            root / "home", database_url=database_url, redis_url=redis_url, embedding_model="hashing",
            embedding_dimensions=64, maintenance_in_server=False)
        environment = {
            "DATABASE_URL": database_url, "REDIS_URL": redis_url,
            "AGENTCORE_HOME": str(root / "home"), "EMBEDDING_MODEL": "hashing", "EMBEDDING_DIMENSIONS": "64",
            "JWT_SECRET_KEY": SECRET, "MAINTENANCE_IN_SERVER": "false", "LOG_LEVEL": "ERROR"}
        async with open_runtime(settings, log=lambda line: None) as runtime:
            assert runtime.parts.archive is not None
            yield Place(runtime.parts, runtime.parts.archive, database_url, environment)
    finally:
        await parts.stop()
        shutil.rmtree(root, ignore_errors=True)


def in_s3(place: Place, store: ObjectStore) -> Place:
    """The same place with its archive in S3."""
    archive = S3Archive(BUCKET, store.url, client=store.client())
    s3 = {"MEMORY_ARCHIVAL_S3_BUCKET": BUCKET, "AWS_ENDPOINT_URL_S3": store.url, **CREDENTIALS}
    parts = replace(place.parts, archive=archive)
    return replace(place, parts=parts, archive=archive, environment={**place.environment, **s3})


async def kills(
    kind: str, place: Place, store: ObjectStore, each: int, seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """So many kills of a kind, its points in turn; their figures."""
    started, total, hit = time.perf_counter(), Remains(), Counter[str]()
    with nursery() as forking:
        tearing = Erasing if kind == "erase" else Tearing
        directory = tearing(place, forking, random.Random(f"{kind} {seed}"))
        bucket = Tearing(in_s3(place, store), forking, random.Random(f"{kind} in s3 {seed}"))
        for number, point in enumerate(islice(cycle(points(kind)), each), start=1):
            found = await (bucket if point == "archive.put" else directory).trial(point)
            total, hit = total + found, hit + Counter({point: 1})
            if found.wrong:
                tell(f"WRONG at {point}, kill {number}: {found}")
            if number % TOLD_EVERY == 0 or number == each:
                tell(f"{kind}: {number} kills, {time.perf_counter() - started:.0f} s, wrong {total.wrong}")
    return {"kills": each, "points": dict(hit), **asdict(total),
            "seconds": round(time.perf_counter() - started, 1)}


async def control(place: Place, seed: int) -> dict[str, int]:
    """The story told wrongly: how many of its kills the verdict saw, and what was lost in them."""
    with nursery() as forking:
        tearing = Tearing(place, forking, random.Random(seed), control=True)
        found = [await tearing.trial("prune.committed") for _ in range(CONTROLS)]
    return {"kills": CONTROLS, "seen": sum(each.lost > 0 for each in found),
            "lost": sum(each.lost for each in found)}


async def run(
    each: int, states: int, seed: int, tell: Callable[[str], None] = print
) -> tuple[bool, dict[str, Any]]:
    """Whether all was as it must be, and the figures."""
    store = ObjectStore()
    try:
        await asyncio.to_thread(store.start)
        async with standing() as place:
            done = await asyncio.gather(*(kills(kind, place, store, each, seed, tell) for kind in KINDS))
            figures: dict[str, Any] = dict(zip(KINDS, done, strict=True))
            figures["control"] = await control(place, seed)
            tell(f"control: {figures['control']}")
            figures["states"] = asdict(await prunes_as_said(place.parts, states, random.Random(seed)))
            tell(f"states: {figures['states']}")
    finally:
        store.kill()
    wrong = sum(figures[kind][name] for kind in KINDS for name in asdict(Remains()))
    wrong += sum(value for name, value in figures["states"].items() if name != "states")
    return wrong == 0 and figures["control"]["seen"] == CONTROLS, figures


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=200, help="kills of each kind")
    parser.add_argument("--states", type=int, default=1_000, help="random states that are pruned")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of all that is random")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    good, figures = asyncio.run(run(options.each, options.states, options.seed))
    append("archive_crashes", vars(options), figures)
    return 0 if good else 1
