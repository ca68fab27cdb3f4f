"""The state of the service: the overview with its plots, and the background jobs of the agent."""

from __future__ import annotations

import asyncio
from collections import Counter
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
    parts, sample = await asyncio.gather(visit.status.readiness(), visit.status.history.newest())
    return visit.render("health.html", parts=parts, sample=sample)


async def metrics(visit: Visit) -> Response:
    """The lines of the plots: times in seconds, and a value or null for each time."""
    return JSONResponse(await visit.status.history.series())


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


# --- background jobs ---------------------------------------------------------------------------------------


async def jobs(visit: Visit) -> Response:
    """Lists jobs; htmx repeats the request while the page is open."""
    newest = (await visit.memory.jobs(limit=MAX_PAGE)).jobs
    state = visit.text("state")
    shown = (await visit.memory.jobs(state=state, limit=MAX_PAGE)).jobs if state else newest
    return visit.render(
        "jobs_rows.html" if visit.wants_fragment else "jobs.html",
        jobs=shown,
        states=Counter(each.state.value for each in newest),
        done=visit.text("done"),
    )


async def change_job(visit: Visit) -> Response:
    """Retries or cancels one job."""
    action = visit.text("action")
    await visit.memory.change_job(job_id=visit.number("job_id"), action=action)
    return visit.go(f"/jobs?done={action}")


SERVICE_PAGES: Sequence[Page] = (
    ("/", "GET", overview),
    ("/layers", "GET", layers),
    ("/health", "GET", health),
    ("/metrics.json", "GET", metrics),
    ("/days.json", "GET", days),
    ("/jobs", "GET", jobs),
    ("/jobs", "POST", change_job),
)
