"""`agentcore purge`: no file of the home contains erased text afterwards."""

from __future__ import annotations

import gzip
import json
import re
import secrets
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from agentcore.client import MemoryClient
from agentcore.maintenance.purging import Purge
from agentcore.memory.models import Interaction
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import StoreBatchParams, StoreParams
from tests.fixtures.databases import migrated_database
from tests.fixtures.services import Services
from tests.fixtures.serving import Serving


def files_with(home: Path, *markers: str) -> dict[str, set[str]]:
    """Files contain a marker as bytes or inside gzip."""
    found: dict[str, set[str]] = {marker: set() for marker in markers}
    for path in home.rglob("*"):
        content = b""
        with suppress(FileNotFoundError, OSError):
            content = path.read_bytes() if path.is_file() else b""
        with suppress(OSError, EOFError, zlib.error):
            content += gzip.decompress(content) if content[:2] == b"\x1f\x8b" else b""
        for marker in markers:
            if marker.encode() in content:
                found[marker].add(str(path.relative_to(home)).split("/")[0])
    return found


async def fill(memory: MemoryClient, marker: str) -> None:
    short = [
        StoreParams(
            content=f"Ada hid key {number} at {marker}.", user_id="ada", tags=[marker], metadata={"where": marker}
        )
        for number in range(30)
    ]
    large = [StoreParams(content=f"{marker} {secrets.token_hex(3_000)}", user_id="ada", force=True)]
    stored = (await memory.store_batch(StoreBatchParams(items=[*short, *large]))).results
    assert stored[0].memory_id is not None
    await memory.update(
        UpdateParams(memory_id=stored[0].memory_id, updates=Updates(content=f"Ada moved the key to {marker}-b."))
    )
    await memory.add_interaction(
        Interaction(query=f"Where is {marker}?", response=f"{marker} is at home.", task_id="search", user_id="ada")
    )
    await memory.get_relevant_context(f"What about {marker}?", task_id="search")


@pytest.mark.shows("A12")
async def test_erased_text_is_in_no_file_of_the_home_after_a_purge(new_serving: Callable[..., Serving]) -> None:
    serving = new_serving()
    serving.start()
    serving.await_listening()
    gone, also_gone, kept = (secrets.token_hex(16) for _ in range(3))
    for agent_id, marker in (("ada", gone), ("ben", also_gone), ("cleo", kept)):
        async with serving.client(agent_id) as memory:
            await fill(memory, marker)
    for agent_id in ("ada", "ben", "cleo"):
        assert (
            serving.cli(
                "prune", "episodic", "--strategy", "oldest_first", "--target", "3", "--agent", agent_id
            ).returncode
            == 0
        )
    url = json.loads((serving.home / "run" / "urls.json").read_text())["database_url"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")

    erased = serving.cli("erase", "--all", "--yes", "--agent", "ada")
    assert erased.returncode == 0, erased.stderr
    claims = json.loads(serving.cli("erase", "--check", erased.stdout.strip()).stdout)
    assert "write-ahead log" in " ".join(claims["not_purged"])
    there = files_with(serving.home, gone, also_gone, kept)
    assert {"postgres", "redis"} <= there[gone]
    assert {"postgres", "redis", "archive"} <= there[kept]

    # The second erasure purges; its receipt reports that, and the first erasure's texts are purged, too.
    purged = serving.cli("erase", "--all", "--yes", "--agent", "ben", "--purge")
    assert purged.returncode == 0, purged.stderr
    assert "postgres" in purged.stderr.casefold()
    claims = json.loads(serving.cli("erase", "--check", purged.stdout.strip()).stdout)
    assert "not_purged" not in claims
    assert claims["purged"]["tables"] > 50
    assert claims["purged"]["wal_files"] > 0
    assert claims["purged"]["redis_files"] == 1
    assert claims["verified"] is True
    there = files_with(serving.home, gone, also_gone, kept)
    assert there[gone] == there[also_gone] == set()
    # Redis compresses its rewritten file.
    assert {"postgres", "archive"} <= there[kept]
    async with serving.client("cleo") as memory:
        assert len(await memory.retrieve_memories(kept)) > 0
    assert serving.stop() == 0
    assert files_with(serving.home, gone, also_gone)[gone] == set()


def test_a_purge_prints_a_summary_and_a_verdict(serving: Serving) -> None:
    lines = serving.cli("purge").stderr.splitlines()
    assert len(lines) <= 12
    assert any(re.fullmatch(r"purged tables: \d+", each) for each in lines)
    assert not any(each.endswith(": 0") for each in lines)
    assert lines[-1] == "purged completely"


@pytest.mark.shows("issue13-purge-remains")
def test_a_purge_says_what_it_could_not_remove_and_who_must(serving: Serving) -> None:
    url = json.loads((serving.home / "run" / "urls.json").read_text())["database_url"]
    with psycopg.connect(url, application_name="a long report") as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM memory_usage")
        blocked = serving.cli("purge", "--json", "--wait", "1")
    assert blocked.returncode == 1, blocked.stderr
    assert blocked.stderr.splitlines()[-1].startswith("purged in part")
    answer = json.loads(blocked.stdout)
    assert any("a long report" in each for each in answer["remaining"])
    assert any("memory_usage" in each for each in answer["remaining"])


@pytest.mark.shows("issue13-interrupted-maintenance")
async def test_a_table_that_another_process_locks_is_named_and_the_others_are_purged(services: Services) -> None:
    """With a lock as strong as autovacuum's."""
    with migrated_database(services) as own:
        with psycopg.connect(own.url) as holder:
            holder.execute("LOCK memory_usage IN SHARE UPDATE EXCLUSIVE MODE")
            done = await Purge(own.url, None, False, 0.0, print).run()
        assert done.purged["tables"] > 50
        assert [each for each in done.failed if "memory_usage" in each] == [
            "column statistics of memory_usage: another process locks it",
            "table memory_usage: not rewritten, another process uses it",
        ]
        assert not any("purge again" in each for each in done.failed)


@pytest.mark.shows("issue13-purge-remains")
def test_without_a_running_service_nothing_is_purged(new_serving: Callable[..., Serving]) -> None:
    refused = new_serving().cli("purge")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "agentcore serve" in refused.stderr
