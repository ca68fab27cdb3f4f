"""hindsight-api-slim as a server over HTTP, without a language model: it stores the texts as they are.

It needs pg_trgm, which the PostgreSQL of the other systems does not have, so it has its own embedded one, with the
same settings.
Without a local cross-encoder (an optional package of several hundred megabytes) its ranking is reciprocal rank
fusion of vectors, words, links and times.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pg0
from driver import Options, Row, Server, System, run

POSTGRES_SETTINGS = {
    "shared_buffers": "256MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "256MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    "jit": "off",
}


async def start_postgres(directory: str, stack: AsyncExitStack) -> str:
    """Starts its embedded PostgreSQL, as `nobody` if this is root; returns the URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = directory + "/pg0"
    shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", program)
    user = {"user": "nobody"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(directory, "nobody")

    async def pg0_command(*arguments: str) -> None:
        environment = {**os.environ, "HOME": directory}
        process = await asyncio.create_subprocess_exec(program, *arguments, env=environment, stdout=sys.stderr, **user)
        if await process.wait():
            raise RuntimeError(f"pg0 {arguments[0]} failed")

    settings = [part for name, value in POSTGRES_SETTINGS.items() for part in ("-c", f"{name}={value}")]
    await pg0_command("start", "--name", "peer", "--port", str(port), *settings)
    stack.push_async_callback(pg0_command, "stop", "--name", "peer")
    return f"postgresql://postgres:postgres@127.0.0.1:{port}/postgres"


class Hindsight(System):
    async def open(self, options: Options, stack: AsyncExitStack) -> None:
        settings = {
            "HINDSIGHT_API_DATABASE_URL": await start_postgres(options.directory, stack),
            "HINDSIGHT_API_LLM_PROVIDER": "none",
            "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL": options.embeddings,
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY": "not checked by the endpoint",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL": "same",
            "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
            "HINDSIGHT_API_LOG_LEVEL": "warning",
        }
        self.server = Server(["-m", "hindsight_api.main", "--host", "127.0.0.1", "--port", "{port}"], settings)
        await self.server.start(stack, "/health")

    async def call(self, method: str, path: str, body: Row) -> Row:
        status, answer = await self.server.http.request(method, path, body)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer[:500]!r}")
        reply: Row = json.loads(answer)
        return reply

    async def store(self, user: str, rows: Sequence[Row]) -> None:
        items = [{"content": row["text"], "timestamp": row["at"], "document_id": row["id"]} for row in rows]
        await self.call("POST", f"/v1/default/banks/{user}/memories", {"items": items, "async": False})

    async def search(self, user: str, query: Row, k: int) -> list[str]:
        asked = {"query": query["text"], "query_timestamp": query.get("at")}
        found = await self.call("POST", f"/v1/default/banks/{user}/memories/recall", asked)
        return [each["document_id"] for each in found["results"]][:k]

    def processes(self) -> list[int]:
        return [self.server.process.pid]


if __name__ == "__main__":
    run(Hindsight())
