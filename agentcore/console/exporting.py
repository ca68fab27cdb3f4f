"""Downloads of memories as JSONL, in the form that `agentcore import` reads."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import Response, StreamingResponse

from agentcore.client.exporting import encoded_line, export_pages
from agentcore.console.visit import Visit
from agentcore.errors import NotFound
from agentcore.memory.api import MemoryApi

NAME_CHARS = 60
# As `agentcore export`: a rate limit ends while it waits.
MAX_ATTEMPTS = 8


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


EXPORT_PAGES = (("/users/export", "GET", export_user), ("/memories/export", "POST", export_chosen))
