"""A process that has loaded everything and forks `agentcore serve` processes, one by one, to be killed.

Loading takes longer than serving: without it a kill would cost five seconds. Each line it reads is a process:
a JSON object of its environment and, for the negative control, whether it is to tell the story wrongly; it
says when that process has ended, and how.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from agentcore import assembly, cli
from agentcore.cli import serve as serve_command
from agentcore.config import Settings
from agentcore.failpoints import failpoint
from agentcore.memory import archival, removing
from agentcore.memory.archive_rows import Tombstone
from agentcore.memory.tokens import TokenCounter
from agentcore.providers import hashing, s3_archive
from agentcore.registry import resolve

ROOT = Path(__file__).resolve().parents[2]
LISTENS = re.compile(r"listens on (http://\S+)")
ENDED = re.compile(r"^ended (-?\d+)$")
READY = re.compile("^ready$")
LONGEST_SECONDS = 60.0
# What a forked process would load first.
LOADED = (serve_command, hashing, s3_archive, resolve)


class Nowhere:
    """An archive that keeps nothing but what it was given last."""

    name = "nowhere"

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def write(self, objects: Mapping[str, bytes]) -> None:
        self._objects.update(objects)

    async def read(self, key: str) -> bytes:
        return self._objects[key]

    async def delete(self, keys: Collection[str]) -> None:
        for key in keys:
            self._objects.pop(key, None)

    async def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self._objects if key.startswith(prefix))

    async def check(self) -> None:
        return None


class ArchiveAfterDelete(removing.Pruning):
    """The story told wrongly, so that the verdict has something to find: the row goes before its copy."""

    async def _chunk(self, versions: Mapping[UUID, int]) -> list[UUID] | None:
        agent_id, archive = self._caller.agent_id, self._parts.archive
        assert archive is not None
        async with self._parts.storage.transaction(agent_id) as transaction:
            rows = await transaction.whole_rows(await transaction.hold_prunable(versions))
            copies = await archival.archive_memories(Nowhere(), agent_id, rows)
            await transaction.delete_versions({row["memory_id"]: row["version"] for row in rows})
            await transaction.archived.bury(
                Tombstone(**{name: row[name] for name in removing._CHOSEN_BY}, reason=self._strategy,
                          object_key=copy.object_key, sha256=copy.sha256, size_bytes=copy.size_bytes)
                for row, copy in zip(rows, copies, strict=True))
        failpoint("prune.committed")
        await archival.archive_memories(archive, agent_id, rows)
        return [row["memory_id"] for row in rows]


def main() -> None:
    """Fork a process for each line, until there are no more."""
    TokenCounter(assembly.cache_of(Settings(_env_file=None)), "o200k_base").count("load the tables")
    print("ready", flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _live(wanted)
        _, status = os.waitpid(pid, 0)
        print(f"\nended {os.waitstatus_to_exitcode(status)}", flush=True)


def _live(wanted: Mapping[str, Any]) -> None:
    os.environ.update(wanted["environment"])
    if wanted["archives_after_delete"]:
        removing.Pruning = ArchiveAfterDelete  # type: ignore[misc]
    try:
        cli.main(["serve", "--port", "0"])
    finally:
        sys.stdout.flush()
        os._exit(1)


class Nursery:
    """The nursery as its user sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._said: list[str] = []

    async def start(self, environment: Mapping[str, str], *, archives_after_delete: bool = False) -> str:
        """Start a server; its URL, once it listens."""
        assert self._process.stdin is not None
        wanted = {"environment": dict(environment), "archives_after_delete": archives_after_delete}
        self._process.stdin.write(f"{json.dumps(wanted)}\n")
        self._process.stdin.flush()
        return (await self._heard(LISTENS))[1]

    async def ended(self) -> int:
        """Wait for the server's end; its exit status, -9 where it was killed."""
        return int((await self._heard(ENDED))[1])

    async def _heard(self, pattern: re.Pattern[str]) -> re.Match[str]:
        return await asyncio.wait_for(asyncio.to_thread(self.until, pattern), LONGEST_SECONDS)

    def until(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """The first line from here on that matches; raises RuntimeError if a process ends before."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line)
            if found := pattern.search(line.rstrip("\n")):
                return found
            if ENDED.search(line.rstrip("\n")):
                break
        raise RuntimeError("".join(self._said[-40:]))


@contextmanager
def nursery() -> Iterator[Nursery]:
    """A nursery that ends with the block, and whatever it still has to look after."""
    settings = {name.upper() for name in Settings.model_fields}
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.crash.nursery"], cwd=ROOT, start_new_session=True, text=True,
        env=environment | {"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    with process:
        try:
            made = Nursery(process)
            made.until(READY)
            yield made
        finally:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
