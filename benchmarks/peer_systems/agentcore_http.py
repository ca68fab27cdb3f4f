"""AgentCore Memory as a server over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import psycopg
from driver import Options, Row, Server, System, run

from agentcore.auth import mint_token

SETTLE_SECONDS = 3_600
SECRET = "a benchmark's secret, long enough for HS256"  # noqa: S105
# Lexical statistics, an index under construction, and for at least 2,000 memories the vector index.
FOR_SEARCHES = """
SELECT (SELECT count(*) FROM lexical_deltas)
     + (SELECT count(*) FROM pg_index WHERE NOT indisvalid)
     + (EXISTS (SELECT FROM memories GROUP BY agent_id HAVING count(*) >= 2000) AND NOT EXISTS (
           SELECT FROM pg_class i JOIN pg_am m ON m.oid = i.relam
            WHERE i.relkind = 'i' AND m.amname IN ('hnsw', 'ivfflat')))::int
"""
# Passages, relations between messages, and all jobs that are due.
FOR_RELATIONS = """
SELECT (SELECT count(*) FROM llm_queue)
     + (SELECT count(*) FROM procrastinate_jobs
         WHERE status IN ('todo', 'doing') AND coalesce(scheduled_at, now()) <= now())
"""


class AgentCore(System):
    async def open(self, options: Options, stack: AsyncExitStack) -> None:
        settings = {
            "AGENTCORE_HOME": options.directory,
            "DATABASE_URL": options.database,
            "REDIS_URL": options.redis,
            "JWT_SECRET_KEY": SECRET,
            "RATE_LIMIT_PER_MINUTE": "0",
            "MAINTENANCE_INTERVAL_SECONDS": "1",
            "LOG_LEVEL": "WARNING",
            **options.environment,
        }
        self.database, self.settings, self.stack = options.database, settings, stack
        self.tokens: dict[str, str] = {}
        await self.start({})

    async def start(self, more: dict[str, str]) -> None:
        arguments = ["-m", "agentcore", "serve", "--migrate", "--port", "{port}"]
        self.server = Server(arguments, {**self.settings, **more})
        await self.server.start(self.stack, "/readyz")

    async def call(self, user: str, method: str, params: Row) -> Row:
        if user not in self.tokens:
            self.tokens[user] = mint_token(SECRET, user, ["memory:read", "memory:write"], 86_400, now=time.time())
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        _, answer = await self.server.http.request("POST", "/api/v1/jsonrpc", body, self.tokens[user])
        reply = json.loads(answer)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")
        result: Row = reply["result"]
        return result

    async def store(self, user: str, rows: Sequence[Row]) -> None:
        stored = await self.call(user, "memory.store_batch", {"items": [row["params"] for row in rows]})
        assert stored["success"], stored

    async def search(self, user: str, query: Row, k: int) -> list[str]:
        asked_at = {"asked_at": query["at"]} if query.get("at") else {}
        found = await self.call(user, "memory.retrieve", {"query": query["text"], "k": k, **asked_at})
        return [each["external_id"] for each in found["memories"]]

    async def settle(self, complete: bool) -> None:
        """Returns once two readings, three seconds apart, show no pending work. Raises TimeoutError.

        Without `complete`, relations between messages stay pending, and the server starts again without background
        work.
        """
        quiet, pending = 0, [FOR_SEARCHES, FOR_RELATIONS] if complete else [FOR_SEARCHES]
        async with await psycopg.AsyncConnection.connect(self.database, autocommit=True) as connection:
            async with asyncio.timeout(SETTLE_SECONDS):
                while quiet < 2:
                    await asyncio.sleep(3)
                    rows = [await (await connection.execute(each)).fetchone() for each in pending]
                    quiet = 0 if any(row is None or row[0] for row in rows) else quiet + 1
        if not complete:
            await self.server.stop()
            await self.start({"MAINTENANCE_IN_SERVER": "false"})

    def processes(self) -> list[int]:
        return [self.server.process.pid]


if __name__ == "__main__":
    run(AgentCore())
