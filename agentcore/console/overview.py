"""The overview: what is stored, what the service does and how it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from starlette.responses import JSONResponse, Response

from agentcore.console.history import METHODS, TIMED
from agentcore.console.visit import Page, Visit
from agentcore.errors import NotAuthorised
from agentcore.limits import MAX_PAGE
from agentcore.memory.models import MemoryType

Lines = Sequence[tuple[str, str]]
# Heading, unit and lines (name in the data, label) of each plot.
PLOTS: Sequence[tuple[str, str, Lines]] = (
    (
        "Calls",
        "a minute",
        (
            *((f"per_minute:{each}", each.removeprefix("memory.")) for each in METHODS),
            ("per_minute:failures", "failed"),
        ),
    ),
    (
        "Latency",
        "ms",
        tuple((f"{p}:{each}", f"{each.removeprefix('memory.')} {p}") for each in TIMED for p in ("p50", "p95")),
    ),
    ("Searches that return nothing, as no memory fits", "per cent", (("abstained", "share"),)),
    (
        "Queues",
        "entries",
        (("queue:calls", "calls"), ("queue:accesses", "uses to count"), ("queue:embeddings", "to embed")),
    ),
)


async def overview(visit: Visit) -> Response:
    capabilities = await visit.memory.capabilities()
    settings = None
    with suppress(NotAuthorised):  # a token that is bound to users
        settings = await visit.memory.settings()
    layers = [(each.value, each.value) for each in MemoryType]
    return visit.render("overview.html", capabilities=capabilities, settings=settings, plots=PLOTS, layers=layers)


async def layers(visit: Visit) -> Response:
    """Counts by layer, which take a second with a million memories: the overview loads them when it is shown."""
    return visit.render("layers.html", stats=await visit.memory.stats())


async def health(visit: Visit) -> Response:
    """The state of each dependency, and the last sample: storage, index recall, circuits and jobs."""
    parts, sample = await asyncio.gather(visit.service.readiness(), visit.service.history.newest())
    return visit.render("health.html", parts=parts, sample=sample)


async def metrics(visit: Visit) -> Response:
    """The lines of the plots: times in seconds, and a value or null for each time."""
    return JSONResponse(await visit.service.history.series())


async def days(visit: Visit) -> Response:
    """Memories by day and layer, among the newest 20,000 of each layer."""
    counted = await asyncio.gather(
        *(visit.memory.facets(fields=["day"], memory_types=[each], limit=MAX_PAGE) for each in MemoryType)
    )
    by_layer = {
        layer.value: {each.value: each.count for each in found.facets["day"]}
        for layer, found in zip(MemoryType, counted, strict=True)
    }
    dates = sorted({date for days in by_layer.values() for date in days})
    lines = {layer: [days.get(date, 0) for date in dates] for layer, days in by_layer.items()}
    return JSONResponse({"at": [datetime.fromisoformat(f"{date}T00:00Z").timestamp() for date in dates], **lines})


OVERVIEW_PAGES: Sequence[Page] = (
    ("/", "GET", overview),
    ("/layers", "GET", layers),
    ("/health", "GET", health),
    ("/metrics.json", "GET", metrics),
    ("/days.json", "GET", days),
)
