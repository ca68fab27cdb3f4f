"""The agent's background jobs, with retry and cancel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from starlette.responses import Response

from agentcore.console.visit import Page, Visit
from agentcore.limits import MAX_PAGE


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


async def change(visit: Visit) -> Response:
    """Retries or cancels one job."""
    action = visit.text("action")
    await visit.memory.change_job(job_id=visit.number("job_id"), action=action)
    return visit.go(f"/jobs?done={action}")


JOBS_PAGES: Sequence[Page] = (("/jobs", "GET", jobs), ("/jobs", "POST", change))
