"""Exports of memories as JSONL, in the form that `agentcore import` reads, and erasing of a user."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from starlette.responses import Response, StreamingResponse

from agentcore.client.exporting import encoded_line, export_pages
from agentcore.console import display
from agentcore.console.visit import Page, Visit
from agentcore.errors import AgentCoreError, NotAuthorised, NotFound
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.archived import EraseResult

NAME_CHARS = 60
# As `agentcore export`: a rate limit ends while it waits.
MAX_ATTEMPTS = 8
# Calls of one request, each up to the time limit of a call.
MAX_ERASE_CALLS = 4


async def export_user(visit: Visit) -> Response:
    """Streams all memories of a user page by page."""
    user_id = visit.exact("user_id")
    params = MemoryApi.list.read(user_id=user_id)

    async def lines() -> AsyncIterator[bytes]:
        async with visit.open_memory(max_attempts=MAX_ATTEMPTS) as memory:
            async for page in export_pages(memory, params):
                yield b"".join(page)

    return await _download(lines(), user_id)


async def export_chosen(visit: Visit) -> Response:
    """Streams the chosen memories, as a copy of what is about to be deleted."""
    chosen = visit.ids("memory_id")

    async def lines() -> AsyncIterator[bytes]:
        async with visit.open_memory(max_attempts=MAX_ATTEMPTS) as memory:
            for each in chosen:
                with suppress(NotFound):
                    yield encoded_line((await memory.get(memory_id=each)).memory)

    return await _download(lines(), "chosen")


async def _download(lines: AsyncIterator[bytes], name: str) -> Response:
    """Reads the first lines before the answer starts, to report errors; a later one breaks the download off."""
    first = await anext(lines, b"")

    async def joined() -> AsyncIterator[bytes]:
        yield first
        async for each in lines:
            yield each

    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:NAME_CHARS]
    headers = {"Content-Disposition": f'attachment; filename="memories-{safe}.jsonl"'}
    return StreamingResponse(joined(), media_type="application/x-ndjson", headers=headers)


async def confirm_erase(visit: Visit) -> Response:
    return await _ask(visit)


async def _ask(visit: Visit, problem: str = "") -> Response:
    if not visit.may("memory:admin"):
        raise NotAuthorised(
            "Erasing requires the scope memory:admin: sign in with `agentcore console --agent ID --admin`."
        )
    user_id = visit.exact("user_id")
    count = (await visit.memory.count(user_id=user_id)).count
    return visit.render("erase.html", 422 if problem else 200, user_id=user_id, count=count, problem=problem)


async def erase(visit: Visit) -> Response:
    """Erases in several calls. What remains after MAX_ERASE_CALLS is erased by the form of the next page."""
    user_id = visit.exact("user_id")
    # Control characters cannot be typed: the user id as it is shown is accepted, too.
    if visit.exact("typed") not in (user_id, display.visible(user_id)) or not user_id:
        return await _ask(visit, "The user id that you typed is another: nothing was erased.")
    done = await _erased(visit, user_id, visit.text("continues") or None)
    problem = ""
    try:
        for _ in range(1, MAX_ERASE_CALLS):
            if not done.complete:
                done = await _erased(visit, user_id, done.signed_receipt)
    except AgentCoreError as error:
        problem = error.message
    return visit.render("erased.html", user_id=user_id, done=done, problem=problem)


async def _erased(visit: Visit, user_id: str, continues: str | None) -> EraseResult:
    return await visit.memory.erase(user_id=user_id, confirm=True, continues=continues)


USER_PAGES: Sequence[Page] = (
    ("/users/export", "GET", export_user),
    ("/memories/export", "POST", export_chosen),
    ("/users/erase", "GET", confirm_erase),
    ("/users/erase", "POST", erase),
)
