"""A map of memories: their vectors on two axes. The browser draws it and chooses memories."""

from __future__ import annotations

import asyncio
import json

from starlette.responses import Response

from agentcore.console import display
from agentcore.console.visit import Visit, filters, records
from agentcore.memory.params.memories import ProjectResult

MAX_CHOSEN = 200
VALUE_CHARS = 40


async def memory_map(visit: Visit) -> Response:
    """Renders the form; a request of htmx computes the map."""
    if not visit.wants_fragment:
        return visit.render("map.html")
    projected = await visit.memory.project(**filters(visit))
    points = await asyncio.to_thread(_points, projected)
    return visit.render("map_result.html", projected=projected, points=points, most=MAX_CHOSEN)


def _points(projected: ProjectResult) -> str:
    values = {
        name: ["none" if each is None else display.shortened(each, VALUE_CHARS) for each in known]
        for name, known in projected.values.items()
    }
    points = {
        "ids": [str(each) for each in projected.memory_ids],
        "times": [int(each.timestamp()) for each in projected.timestamps],
        "values": values,
        **{name: getattr(projected, name) for name in ("x", "y", "memory_types", "user_ids", "session_ids")},
    }
    return json.dumps(points, ensure_ascii=False, separators=(",", ":"))


async def chosen(visit: Visit) -> Response:
    """Lists chosen memories; ids separated by commas, since a form has a limit of fields."""
    wanted = visit.ids("memory_ids")
    found = await records(visit, wanted[:MAX_CHOSEN])
    return visit.render("map_chosen.html", listed={"memories": found, "receipt": {"degraded": []}}, given=len(wanted))


MAP_PAGES = (("/map", "GET", memory_map), ("/map/chosen", "POST", chosen))
