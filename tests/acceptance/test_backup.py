"""The operators' guide's backup and restore, by its own commands and PostgreSQL's: all is there again."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from agentcore import migration
from agentcore.client import MemoryClient
from agentcore.embedded import Home
from agentcore.embedded.account import choose_account
from agentcore.embedded.programs import find_postgres
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.archive import ArchivedParams
from agentcore.memory.params.changes import HistoryParams, UpdateParams, Updates
from agentcore.memory.params.memories import ListParams, StoreBatchParams, StoreParams
from tests.acceptance.test_documentation_examples import checkout
from tests.fixtures.databases import own_database
from tests.fixtures.services import Services
from tests.fixtures.serving import ROOT, Serving

GUIDE = (ROOT / "docs" / "operations.md").read_text().split("## Backup", 1)[1].split("\n## ", 1)[0]
BACKUP, NEW_HOME, RESTORE, OWN_SERVER = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
NAMES = BACKUP.partition("mkdir")[0]


def shell(lines: str, directory: Path, serving: Serving, **more: str) -> None:
    """Run the guide's lines as a reader would; none of them may complain."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines], cwd=directory, text=True, capture_output=True, timeout=120,
        env={**serving.environment, "PATH": f"{directory / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
             **more}, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def fill(memory: MemoryClient) -> None:
    stored = await memory.store_batch(StoreBatchParams(items=[
        StoreParams(content=f"Ada saw heron {number}.") for number in range(5)]))
    first = stored.results[4].memory_id
    assert first is not None
    await memory.update(UpdateParams(memory_id=first, updates=Updates(content="Ada saw a kingfisher.")))


async def known(memory: MemoryClient) -> tuple[list[MemoryRecord], list[str], list[str]]:
    """The memories, what is archived, and the history of the newest memory."""
    kept = (await memory.list(ListParams())).memories
    archived = (await memory.archived(ArchivedParams())).memories
    history = await memory.history(HistoryParams(memory_id=kept[0].memory_id))
    changes = [each.model_dump_json() for each in history.changes]
    return kept, [str(each.memory_id) for each in archived], changes


def started(serving: Serving) -> Serving:
    serving.start()
    serving.await_listening()
    return serving


async def test_a_dump_restored_into_a_new_home_has_memories_history_archive_and_tokens_again(
    new_serving: Callable[..., Serving], tmp_path: Path
) -> None:
    checkout(tmp_path)
    old, new = started(new_serving()), new_serving()
    token = old.token("ada")
    async with MemoryClient(old.url, token) as memory:
        await fill(memory)
        assert old.cli("prune", "episodic", "--strategy", "oldest_first", "--target", "2",
                       "--agent", "ada").returncode == 0
        before = await known(memory)
    shell(BACKUP, tmp_path, old)
    assert old.stop() == 0

    shell(NEW_HOME.replace("/path/to/the/new/home", str(new.home)), tmp_path, new)
    first = Serving(new.home, {**new.environment, "MAINTENANCE_IN_SERVER": "false"})
    started(first)
    try:
        shell(NAMES + RESTORE, tmp_path, first)
    finally:
        assert first.stop() == 0

    started(new)
    async with MemoryClient(new.url, token) as memory:
        assert await known(memory) == before
        assert [len(each) for each in before] == [3, 2, 1]
        assert "kingfisher" in (await memory.retrieve_memories("kingfisher"))[0].content
    assert new.cli("archive", "verify").stdout == "whole 2, missing 0, damaged 0\n"
    assert new.cli("archive", "restore", "--all", "--agent", "ada").stdout == "restored: 2\n"
    assert new.cli("store", "Ben saw a swan.", "--agent", "ada").returncode == 0
    assert new.stop() == 0


async def test_a_dump_restored_into_a_prepared_database_of_ones_own_is_served_there(
    new_serving: Callable[..., Serving], serving: Serving, services: Services, memory: MemoryClient,
    agent_id: str, tmp_path: Path
) -> None:
    checkout(tmp_path)
    await fill(memory)
    before = await known(memory)
    dumped = json.loads((serving.home / "run" / "urls.json").read_text())["database_url"]
    programs = find_postgres(Home(serving.home), choose_account(Home(serving.home))).directory
    for name in ("pg_dump", "pg_restore"):
        (tmp_path / ".venv" / "bin" / name).symlink_to(programs / name)
    with own_database(services) as own:
        shell(OWN_SERVER, tmp_path, serving, DATABASE_URL=dumped, NEW_DATABASE_URL=own.url)
        migration.check_revision(own.url)
        there = started(new_serving(DATABASE_URL=own.url, JWT_SECRET_KEY=Home(serving.home).secret("jwt")))
        async with MemoryClient(there.url, serving.token(agent_id)) as restored:
            assert await known(restored) == before
            await fill(restored)
        assert there.stop() == 0
