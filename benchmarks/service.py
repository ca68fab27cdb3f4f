"""The service for benchmarks: real parts in a separate home, called through the ASGI app."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from agentcore.auth import mint_token
from agentcore.config import Settings
from agentcore.runtime import Runtime, open_runtime
from agentcore.server import ENDPOINT, create_app

SECRET = "a benchmark's secret, long enough for HS256"  # noqa: S105

Figures = TypeVar("Figures")


def run(measuring: Coroutine[Any, Any, Figures]) -> Figures:
    """Runs a benchmark on the same event loop implementation as `agentcore serve`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measuring)


class CallFailed(RuntimeError):
    """`error`: the JSON-RPC error object."""

    def __init__(self, method: str, error: dict[str, Any]) -> None:
        super().__init__(f"{method}: {error}")
        self.error = error


class Service:
    """One running service and its callers."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._app = create_app(runtime)
        self._headers: dict[tuple[str, ...], list[tuple[bytes, bytes]]] = {}

    def _headers_of(self, agent_id: str, users: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
        key = (agent_id, *users)
        if key not in self._headers:
            scopes = ["memory:read", "memory:write", "memory:admin"]
            token = mint_token(SECRET, agent_id, scopes, 86_400, now=time.time(), users=users)
            self._headers[key] = [
                (b"authorization", f"Bearer {token}".encode()),
                (b"content-type", b"application/json"),
            ]
        return self._headers[key]

    def exact_searches(self) -> float:
        """Returns the number of searches without an index so far."""
        figures = self.runtime.metrics.exposition()
        told = re.search(rb'agentcore_searches_total{vectors="exact"} (.+)', figures)
        return float(told[1]) if told else 0.0

    async def settle(self) -> None:
        """Ends the background work: one round, and all jobs (passages, relations between messages)."""
        await self.runtime.maintenance.round()
        await self.runtime.jobs.run_pending()

    async def call(
        self, agent_id: str, method: str, params: dict[str, Any], *, users: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Runs one JSON-RPC call, from bytes to bytes through the whole application. Raises CallFailed.

        `users`: those that the token is bound to, if any.
        """
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": ENDPOINT,
            "raw_path": ENDPOINT.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": self._headers_of(agent_id, users),
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        sent: list[bytes] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                sent.append(message.get("body", b""))

        await self._app(scope, receive, send)
        answer = json.loads(b"".join(sent))
        if "error" in answer:
            raise CallFailed(method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result


def bench_settings(home: Path, **overrides: Any) -> Settings:
    """Returns settings that ignore any `.env`."""
    return Settings(
        _env_file=None,
        agentcore_home=home,
        jwt_secret_key=SECRET,
        rate_limit_per_minute=0,
        log_level="WARNING",
        **overrides,
    )


@asynccontextmanager
async def running_service(home: Path | None, **overrides: Any) -> AsyncIterator[Service]:
    """Runs a service on real embedded parts; without `home`, in a temporary directory."""
    place = home or Path(tempfile.gettempdir()) / f"agentcore-bench-{time.time_ns()}"
    try:
        async with open_runtime(bench_settings(place, **overrides), log=print) as runtime:
            yield Service(runtime)
    finally:
        if home is None:
            shutil.rmtree(place, ignore_errors=True)
