"""The pages of the console. Each calls the methods of the API with the session's token, and renders a template."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, get_args
from uuid import UUID

from starlette.responses import Response

from agentcore.client import ENDPOINT
from agentcore.console import display
from agentcore.console.api_pages import API_PAGES
from agentcore.console.map import MAP_PAGES
from agentcore.console.overview import SERVICE_PAGES
from agentcore.console.settings_pages import SETTINGS_PAGES
from agentcore.console.timeline import TIMELINE_PAGES
from agentcore.console.users import USER_PAGES
from agentcore.console.visit import PREFIX, Page, Visit, filters
from agentcore.errors import NotFound
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemoryRecord, MemorySummary, Receipt, WeightName
from agentcore.memory.params.changes import HistoryEntry
from agentcore.memory.params.memories import Filters, GetContextParams, MemoryTrace, RetrieveParams

PAGE_ROWS = 50
TOP_HITS = 50
WEIGHTS = get_args(WeightName)
HISTORY_ROWS = 50
SHOWN_BEFORE_DELETE = 20
MAX_VALUES = 200
FACETS, MAX_FACETS = {"session_id": "Sessions", "user_id": "Users"}, 8
DEFAULT_BUDGET_TOKENS, MAX_BUDGET_TOKENS = 1_000, 16_000


VALUES = {
    "/sessions": ("Sessions and tasks", (("session_id", "Session"), ("task_id", "Task"))),
    "/users": ("Users", (("user_id", "User"), ("namespace", "Namespace"), ("speaker", "Speaker"), ("tags", "Tag"))),
}
# Fields by which the list of memories can be filtered.
FILTERED = frozenset(Filters.model_fields)


async def values(visit: Visit) -> Response:
    """Counts users, sessions and other values, with links to their memories."""
    heading, fields = VALUES[visit.path.removeprefix(PREFIX)]
    counted = await visit.memory.facets(fields=[field for field, _ in fields], limit=MAX_VALUES)
    return visit.render("values.html", heading=heading, fields=fields, counted=counted, filtered=FILTERED)


# --- memories ----------------------------------------------------------------------------------------------


class Listed(NamedTuple):
    """Memories on a page, and where the next page begins."""

    memories: Sequence[MemoryRecord | MemorySummary]
    next_cursor: str | None
    receipt: Receipt


async def memories(visit: Visit) -> Response:
    """Lists memories by time; with a query, searches as it is typed."""
    listed = await _found(visit) if visit.text("query") else await _listed(visit)
    template = "memory_rows.html" if visit.wants_fragment else "memories.html"
    return visit.render(template, listed=listed, query=visit.text("query"), filters=filters(visit))


async def _found(visit: Visit) -> Listed:
    found = await visit.memory.retrieve(query=visit.text("query"), k=TOP_HITS, min_fit=0.0, **filters(visit))
    return Listed(found.memories, None, found.receipt)


async def _listed(visit: Visit) -> Listed:
    more = {"cursor": visit.text("cursor")} if visit.text("cursor") else {}
    page = await visit.memory.list(
        order_by=visit.text("order_by", "timestamp"),
        descending=visit.text("direction", "descending") == "descending",
        limit=PAGE_ROWS,
        **more,
        **filters(visit),
    )
    return Listed(page.memories, page.next_cursor, page.receipt)


async def facets(visit: Visit) -> Response:
    """Counts the most frequent sessions and users among the listed memories: the list loads them when it is shown."""
    counted = await visit.memory.facets(fields=[*FACETS], limit=MAX_FACETS, **filters(visit))
    return visit.render("facets.html", fields=FACETS, counted=counted)


def memory_id_of(visit: Visit) -> UUID:
    """Raises NotFound for a path that names no id."""
    given = visit.request.path_params["memory_id"]
    try:
        return UUID(given)
    except ValueError as cause:
        raise NotFound(f"{given!r} is not the id of a memory.") from cause


async def memory(visit: Visit) -> Response:
    memory_id = memory_id_of(visit)
    shown, history = await asyncio.gather(
        visit.memory.get(memory_id=memory_id, consistent=True),
        visit.memory.history(memory_id=memory_id, limit=HISTORY_ROWS),
    )
    return visit.render(
        "memory.html",
        memory=shown.memory,
        history=await asyncio.to_thread(_compared, history.changes),
        done=visit.text("done"),
    )


def _compared(changes: Sequence[HistoryEntry]) -> list[tuple[HistoryEntry, list[tuple[str, list[display.Piece]]]]]:
    return [(entry, [*display.differences(entry)]) for entry in changes]


async def edit(visit: Visit) -> Response:
    memory_id = memory_id_of(visit)
    stored = (await visit.memory.get(memory_id=memory_id, consistent=True)).memory
    changes: dict[str, Any] = {"if_version": visit.number("version")}
    # Only what differs: an unchanged text needs no new vector.
    content = visit.form.get("content", [""])[-1]
    if content != stored.content.replace("\r\n", "\n").replace("\r", "\n"):
        changes["content"] = content
    tags = [line.strip() for line in visit.text("tags").splitlines() if line.strip()]
    if tags != stored.tags:
        changes["tags"] = tags
    if visit.text("relevance_score") != str(stored.relevance_score):
        changes["relevance_score"] = visit.number("relevance_score")
    await visit.memory.update(memory_id=memory_id, updates={k: v for k, v in changes.items() if v is not None})
    return visit.go(f"/memories/{memory_id}?done=saved")


async def pin(visit: Visit) -> Response:
    memory_id = memory_id_of(visit)
    pinned = visit.text("pinned") == "true"
    await visit.memory.update(memory_id=memory_id, updates={"pinned": pinned})
    return visit.go(f"/memories/{memory_id}?done={'pinned' if pinned else 'unpinned'}")


async def feedback(visit: Visit) -> Response:
    memory_id = memory_id_of(visit)
    note = {"note": visit.text("note")} if visit.text("note") else {}
    await visit.memory.feedback(memory_id=memory_id, verdict=visit.text("verdict"), **note)
    return visit.go(f"/memories/{memory_id}?done=rated")


async def revert(visit: Visit) -> Response:
    memory_id = memory_id_of(visit)
    await visit.memory.revert(memory_id=memory_id, version=visit.number("version"))
    return visit.go(f"/memories/{memory_id}?done=reverted")


async def confirm_delete(visit: Visit) -> Response:
    """Shows what would be deleted; the dry run of a bulk selection."""
    chosen = visit.ids("memory_id")
    shown: list[MemoryRecord] = []
    for each in chosen[:SHOWN_BEFORE_DELETE]:
        with suppress(NotFound):
            shown.append((await visit.memory.get(memory_id=each)).memory)
    return visit.render("confirm_delete.html", chosen=chosen, memories=shown)


async def delete(visit: Visit) -> Response:
    deleted = await visit.memory.delete(memory_ids=visit.ids("memory_id"))
    return visit.render("deleted.html", deleted=deleted)


# --- archive -----------------------------------------------------------------------------------------------


async def archive(visit: Visit) -> Response:
    """Lists archived memories page by page."""
    more = {"cursor": visit.text("cursor")} if visit.text("cursor") else {}
    page = await visit.memory.archived(limit=PAGE_ROWS, **more)
    restored = visit.text("restored")[:9]
    return visit.render("archive.html", page=page, restored=restored if restored.isdecimal() else "")


async def restore(visit: Visit) -> Response:
    restored = await visit.memory.restore(memory_ids=visit.ids("memory_id"))
    return visit.go(f"/archive?restored={restored.restored_count}")


# --- playgrounds -------------------------------------------------------------------------------------------


class Searched(NamedTuple):
    """The result of one configuration of the search playground."""

    memories: Sequence[MemorySummary]
    receipt: Receipt
    steps: Sequence[display.Bar]
    trace: MemoryTrace | None


async def search(visit: Visit) -> Response:
    """Searches with one configuration, or with two side by side; traces a memory that is missing."""
    query = visit.text("query")
    prefixes = ["a_", "b_"] if visit.text("compare") else ["a_"]
    columns = [*await asyncio.gather(*(_searched(visit, query, each) for each in prefixes))] if query else []
    moved = display.moved(columns[0].memories, columns[1].memories) if len(columns) == 2 else {}
    return visit.render(
        "search_results.html" if visit.wants_fragment else "search.html",
        query=query,
        columns=columns,
        moved=moved,
        bars=display.score_bars,
        outcomes=display.OUTCOMES,
        weights=WEIGHTS,
    )


async def _searched(visit: Visit, query: str, prefix: str) -> Searched:
    params = {"query": query, "explain": True, **_search_options(visit, prefix)}
    traced = visit.text("trace")
    if traced:
        params["trace"] = [traced]
    found = await visit.memory.retrieve(**params)
    trace = found.traces[0] if found.traces else None
    return Searched(found.memories, found.receipt, display.waterfall(found.receipt), trace)


def _search_options(visit: Visit, prefix: str) -> dict[str, Any]:
    given: dict[str, Any] = {
        "k": visit.number(f"{prefix}k"),
        "min_score": visit.number(f"{prefix}min_score"),
        "min_fit": visit.number(f"{prefix}min_fit"),
        "as_of": visit.moment(f"{prefix}as_of"),
        "asked_at": visit.moment(f"{prefix}asked_at"),
    }
    options = {name: value for name, value in given.items() if value is not None}
    if visit.text(f"{prefix}repeats"):
        options["distinct"] = False
    weights = {each: visit.number(f"{prefix}weight_{each}") for each in WEIGHTS}
    if given_weights := {name: value for name, value in weights.items() if value is not None}:
        options["weights"] = given_weights
    return {**options, **filters(visit, prefix)}


async def context(visit: Visit) -> Response:
    query = visit.text("query")
    options = filters(visit)
    if visit.text("as_of"):
        options["as_of"] = visit.moment("as_of")
    budget = visit.number("max_tokens")
    budget = DEFAULT_BUDGET_TOKENS if budget is None else budget
    params = {"query": query, "max_tokens": budget, **options}
    values: dict[str, Any] = {"query": query, "budget": budget, "most": MAX_BUDGET_TOKENS, "built": None}
    if query:
        built = await visit.memory.get_context(**params)
        values |= {
            "built": built,
            "lines": display.context_lines(built.context, len(built.memory_ids)),
            "sections": display.context_sections(built.context, built.token_count),
            "steps": display.waterfall(built.receipt),
            "calls": calls_of("memory.get_context", MemoryApi.get_context.read(**params)),
        }
    return visit.render("context_result.html" if visit.wants_fragment else "context.html", **values)


def calls_of(method: str, params: RetrieveParams | GetContextParams) -> Mapping[str, str]:
    """Returns the call as JSON-RPC, as a curl command and in Python."""
    sent = params.model_dump(mode="json", exclude_unset=True)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}, ensure_ascii=False)
    arguments = ", ".join(f"{name}={value!r}" for name, value in sent.items())
    return {
        "JSON-RPC": body,
        "curl": f'curl -s "$AGENTCORE_URL{ENDPOINT}" -H "Authorization: Bearer $AGENTCORE_TOKEN" '
        f'-H "Content-Type: application/json" -d {shlex.quote(body)}',
        "Python": "from agentcore import MemoryClient\n\n"
        "async with MemoryClient(url, token) as memory:\n"
        f"    answer = await memory.{method.removeprefix('memory.')}({arguments})",
    }


PAGES: Sequence[Page] = (
    *SERVICE_PAGES,
    ("/memories", "GET", memories),
    *USER_PAGES,
    *API_PAGES,
    *SETTINGS_PAGES,
    ("/memories/facets", "GET", facets),
    ("/memories/confirm-delete", "POST", confirm_delete),
    ("/memories/delete", "POST", delete),
    ("/memories/{memory_id}", "GET", memory),
    ("/memories/{memory_id}/edit", "POST", edit),
    ("/memories/{memory_id}/pin", "POST", pin),
    ("/memories/{memory_id}/feedback", "POST", feedback),
    ("/memories/{memory_id}/revert", "POST", revert),
    *((path, "GET", values) for path in VALUES),
    ("/archive", "GET", archive),
    ("/archive", "POST", restore),
    ("/search", "GET", search),
    ("/context", "GET", context),
    *TIMELINE_PAGES,
    *MAP_PAGES,
)
