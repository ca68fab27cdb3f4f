"""Downloads of memories as JSONL, in the form that `agentcore import` reads."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import Response, StreamingResponse

from agentcore.client import MemoryClient
from agentcore.client.exporting import encoded_line, export_pages
from agentcore.console.visit import Visit
from agentcore.errors import NotFound
from agentcore.memory.api import MemoryApi

NAME_CHARS = 60


async def export_user(visit: Visit) -> Response:
    """Streams all memories of a user page by page. The first is read before the answer starts, to report errors."""
    user_id = visit.exact("user_id")
    memory = visit.open_memory()
    pages = export_pages(memory, MemoryApi.list.read(user_id=user_id))
    return _download(_joined(memory, await anext(pages), pages), user_id)


async def _joined(memory: MemoryClient, first: list[bytes], rest: AsyncIterator[list[bytes]]) -> AsyncIterator[bytes]:
    async with memory:
        yield b"".join(first)
        async for lines in rest:
            yield b"".join(lines)


async def export_chosen(visit: Visit) -> Response:
    """Streams the chosen memories, as a copy of what is about to be deleted."""
    chosen = visit.ids("memory_id")

    async def lines() -> AsyncIterator[bytes]:
        async with visit.open_memory() as memory:
            for each in chosen:
                with suppress(NotFound):
                    yield encoded_line((await memory.get(memory_id=each)).memory)

    return _download(lines(), "chosen")


def _download(lines: AsyncIterator[bytes], name: str) -> Response:
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:NAME_CHARS]
    headers = {"Content-Disposition": f'attachment; filename="memories-{safe}.jsonl"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


EXPORT_PAGES = (("/users/export", "GET", export_user), ("/memories/export", "POST", export_chosen))
