"""Backups with the commands of the operators' guide and the README."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import stat
import subprocess
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agentcore import migration
from agentcore.client import MemoryClient
from agentcore.embedded import Home
from agentcore.embedded.home import choose_account
from agentcore.embedded.process import find_postgres
from agentcore.errors import AgentCoreError
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.archived import ArchivedParams
from agentcore.memory.params.changes import HistoryParams, UpdateParams, Updates
from agentcore.memory.params.memories import CountParams, ListParams, StoreBatchParams, StoreParams
from tests.acceptance.test_documentation_examples import checkout
from tests.fixtures.databases import own_database
from tests.fixtures.services import Services
from tests.fixtures.serving import ROOT, Serving

GUIDE = (ROOT / "docs" / "operations.md").read_text().split("## Backup", 1)[1].split("\n## ", 1)[0]
BACKUP, OWN_SERVER = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
README = (ROOT / "README.md").read_text()


def shell(lines: str, directory: Path, serving: Serving, **more: str) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=directory,
        text=True,
        capture_output=True,
        timeout=300,
        env={**serving.environment, "PATH": f"{directory / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}", **more},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def names(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


async def fill(memory: MemoryClient) -> None:
    stored = await memory.store_batch(
        StoreBatchParams(items=[StoreParams(content=f"Ada saw heron {number}.") for number in range(5)])
    )
    first = stored.results[4].memory_id
    assert first is not None
    await memory.update(UpdateParams(memory_id=first, updates=Updates(content="Ada saw a kingfisher.")))


async def known(memory: MemoryClient) -> tuple[list[MemoryRecord], list[str], list[str]]:
    kept = (await memory.list(ListParams())).memories
    archived = (await memory.archived(ArchivedParams())).memories
    history = await memory.history(HistoryParams(memory_id=kept[0].memory_id))
    changes = [each.model_dump_json() for each in history.changes]
    return kept, [str(each.memory_id) for each in archived], changes


async def contents(memory: MemoryClient) -> set[str]:
    page = await memory.list(ListParams(limit=200))
    found = {each.content for each in page.memories}
    while page.next_cursor is not None:
        page = await memory.list(ListParams(limit=200, cursor=page.next_cursor))
        found |= {each.content for each in page.memories}
    return found


def started(serving: Serving) -> Serving:
    serving.start()
    serving.await_listening()
    return serving


async def store_until(stop: asyncio.Event, memory: MemoryClient, stored: list[str]) -> None:
    while not stop.is_set():
        with suppress(AgentCoreError):
            content = f"Ben ringed swan {secrets.token_hex(6)}."
            await memory.store(StoreParams(content=content, force=True))
            stored.append(content)


@pytest.mark.shows("NFR-4.1", "B10")
async def test_a_backup_made_under_load_restores_all_that_was_acknowledged_before_it(
    new_serving: Callable[..., Serving], tmp_path: Path
) -> None:
    checkout(tmp_path)
    old, new = started(new_serving()), new_serving()
    token, writer = old.token("ada"), old.token("ben")
    stop, stored = asyncio.Event(), list[str]()
    async with MemoryClient(old.url, token) as memory, MemoryClient(old.url, writer) as busy:
        await fill(memory)
        pruned = old.cli("prune", "episodic", "--strategy", "oldest_first", "--target", "2", "--agent", "ada")
        assert pruned.returncode == 0
        before = await known(memory)
        writing = asyncio.create_task(store_until(stop, busy, stored))
        try:
            while len(stored) < 20:
                await asyncio.wait([writing], timeout=0.05)
            acknowledged = list(stored)
            lines = BACKUP.replace("/path/to/new/home", str(new.home))
            await asyncio.to_thread(shell, lines, tmp_path, old)
        finally:
            stop.set()  # otherwise a failure leaves a task that loops on a closed client
            await writing
    assert len(stored) > len(acknowledged)
    assert old.stop() == 0
    assert stat.S_IMODE((tmp_path / "memory.backup").stat().st_mode) == 0o600
    assert names(tmp_path) == {".venv", "examples", "memory.backup"}

    refused = new.cli("restore-backup", str(tmp_path / "memory.backup"))
    assert refused.returncode == 1
    assert "contains data" in refused.stderr
    started(new)
    async with MemoryClient(new.url, token) as memory, MemoryClient(new.url, writer) as busy:
        assert await known(memory) == before
        assert [len(each) for each in before] == [3, 2, 1]
        assert "kingfisher" in (await memory.retrieve_memories("kingfisher"))[0].content
        assert await contents(busy) >= set(acknowledged)
        for content in acknowledged[::7]:
            assert (await busy.retrieve_memories(content))[0].content == content
    assert new.cli("archive", "verify").stdout == "whole 2, missing 0, damaged 0\n"
    assert new.cli("archive", "restore", "--all", "--agent", "ada").stdout == "restored: 2\n"
    assert new.cli("store", "Ben saw a swan.", "--agent", "ada").returncode == 0
    doctor = new.cli("doctor")
    assert doctor.returncode == 0, doctor.stdout

    refused = new.cli("restore-backup", str(tmp_path / "memory.backup"), "--force")
    assert refused.returncode == 1
    assert "already serves" in refused.stderr
    assert new.stop() == 0
    assert not {name for name in names(new.home) if name.startswith("restore")}


@pytest.mark.shows("B10")
async def test_a_stopped_home_that_never_archived_is_backed_up_and_put_back_in_place_of_a_later_state(
    new_serving: Callable[..., Serving], tmp_path: Path
) -> None:
    service = started(new_serving())
    token = service.token("ada")
    async with MemoryClient(service.url, token) as memory:
        await fill(memory)
    assert service.stop() == 0
    file = tmp_path / "memory.backup"
    done = service.cli("backup", str(file), "--json")
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    assert (manifest["memories"], manifest["archived"], manifest["unreadable_copies"]) == (5, 0, [])
    assert manifest["schema_revision"] == migration.head_revision()
    assert any("Redis" in each for each in manifest["left_out"])
    again = service.cli("backup", str(file))
    assert (again.returncode, "--overwrite" in again.stderr) == (1, True)
    assert service.cli("backup", str(file), "--overwrite").returncode == 0

    # A changed byte, a truncated file, no backup at all: the home must stay unchanged.
    content, damaged = file.read_bytes(), tmp_path / "damaged"
    middle = len(content) // 2
    changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for wrong in (changed, content[:middle], b"no backup"):
        damaged.write_bytes(wrong)
        refused = service.cli("restore-backup", str(damaged), "--force")
        assert refused.returncode == 1
        assert "backup" in refused.stderr
    assert (service.home / "postgres").is_dir()

    done = service.cli("restore-backup", str(file), "--force", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["memories"] == 5
    [aside] = service.home.glob("replaced-*")
    assert {"postgres", "secrets"} <= {each.name for each in aside.iterdir()}
    started(service)
    async with MemoryClient(service.url, token) as memory:
        assert (await memory.count(CountParams())).count == 5
    assert service.stop() == 0


@pytest.mark.shows("issue13-backup-whole")
async def test_a_damaged_copy_is_named_in_the_backup_and_the_rest_is_backed_up(
    serving: Serving, memory: MemoryClient, agent_id: str, tmp_path: Path
) -> None:
    await fill(memory)
    assert (
        serving.cli("prune", "episodic", "--strategy", "oldest_first", "--target", "2", "--agent", agent_id).returncode
        == 0
    )
    first, second = sorted((Home(serving.home).archive).rglob(f"{agent_id}/*.json"))
    first.write_bytes(b"no copy")
    done = serving.cli("backup", str(tmp_path / "memory.backup"), "--json")
    assert done.returncode == 1
    assert "archive verify" in done.stderr
    named = json.loads(done.stdout)["unreadable_copies"]
    assert [each for each in named if agent_id in each] == [f"{agent_id}/{first.name}"]
    with tarfile.open(tmp_path / "memory.backup") as tar:
        assert f"archive/{agent_id}/{second.name}" in tar.getnames()


@pytest.mark.shows("NFR-4.1", "issue13-backup-external")
async def test_with_a_database_of_ones_own_the_local_rest_is_backed_up_and_a_dump_is_served(
    new_serving: Callable[..., Serving],
    serving: Serving,
    services: Services,
    memory: MemoryClient,
    agent_id: str,
    tmp_path: Path,
) -> None:
    checkout(tmp_path)
    await fill(memory)
    before = await known(memory)
    dumped = json.loads((serving.home / "run" / "urls.json").read_text())["database_url"]
    programs = find_postgres(Home(serving.home), choose_account(Home(serving.home)))
    for name in ("pg_dump", "pg_restore"):
        (tmp_path / ".venv" / "bin" / name).symlink_to(programs / name)
    with own_database(services) as own:
        shell(OWN_SERVER, tmp_path, serving, DATABASE_URL=dumped, NEW_DATABASE_URL=own.url)
        with tarfile.open(tmp_path / "memory.backup") as tar:
            assert "database.dump" not in tar.getnames()
            assert "secrets/jwt" in tar.getnames()
        migration.check_revision(own.url)
        there = started(new_serving(DATABASE_URL=own.url, JWT_SECRET_KEY=Home(serving.home).secret("jwt")))
        async with MemoryClient(there.url, serving.token(agent_id)) as restored:
            assert await known(restored) == before
            await fill(restored)
        assert there.stop() == 0


@pytest.mark.shows("issue13-backup-readme")
def test_the_readme_says_how_to_back_up_and_restore() -> None:
    for command in ("agentcore backup memory.backup", "agentcore restore-backup memory.backup"):
        assert command in README


@pytest.mark.parametrize("command", ["backup", "restore-backup"])
@pytest.mark.shows("issue13-backup-whole")
def test_without_anything_to_read_nothing_is_made(
    command: str, new_serving: Callable[..., Serving], tmp_path: Path
) -> None:
    nowhere = new_serving()
    refused = nowhere.cli(command, str(tmp_path / "memory.backup"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert list(tmp_path.iterdir()) == []
    assert not (nowhere.home / "postgres").exists()
