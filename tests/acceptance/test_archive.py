"""The archive from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import UUID

import pytest

from agentcore.client import MemoryClient
from agentcore.limits import MAX_RESTORED
from agentcore.memory.archival import object_key
from agentcore.memory.params.archived import ArchivedParams, RestoreParams
from agentcore.memory.params.memories import ListParams, StoreBatchParams, StoreParams
from tests.fixtures.forked_commands import Done
from tests.fixtures.serving import Serving


@pytest.mark.shows("issue4-6-restore")
async def test_what_was_pruned_is_listed_checked_and_brought_back(
    run: Callable[..., Done], serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    await memory.store_batch(
        StoreBatchParams(
            items=[
                StoreParams(content=f"Ada saw heron {number}.", session_id=f"day-{number % 2}") for number in range(6)
            ]
        )
    )
    before = (await memory.list(ListParams())).memories
    assert run("prune", "episodic", "--strategy", "retention_curve", "--target", "100%").returncode == 0
    listed = run("archive", "list", "--session", "day-1")
    assert (listed.returncode, len(listed.stdout.splitlines())) == (0, 4)
    assert "retention_curve" in listed.stdout
    page = json.loads(run("archive", "list", "--json", "--limit", "4").stdout)
    assert len(page["memories"]) == 4
    assert "more with --cursor" in run("archive", "list", "--limit", "4").stderr

    checked = serving.cli("archive", "verify", "--of", agent_id)
    assert (checked.returncode, checked.stdout) == (0, "whole 6, missing 0, damaged 0\n")
    first, second = (UUID(each["memory_id"]) for each in page["memories"][:2])
    paths = [serving.home / "archive" / object_key(agent_id, each) for each in (first, second)]
    whole = [path.read_bytes() for path in paths]
    paths[0].unlink()
    paths[1].write_bytes(whole[1][:-1])
    checked = serving.cli("archive", "verify", "--of", agent_id)
    assert (checked.returncode, checked.stdout) == (1, "whole 4, missing 1, damaged 1\n")
    told = json.loads(serving.cli("archive", "verify", "--of", agent_id, "--json").stdout)
    assert {(each["memory_id"], each["kind"]) for each in told["findings"]} == {
        (str(first), "missing"),
        (str(second), "damaged"),
    }
    some = run("archive", "restore", "--all", "--dry-run")
    assert (some.returncode, some.stdout.splitlines()[0]) == (1, "would come back: 4")
    assert "2 stay archived: the copy is missing, damaged" in some.stderr
    for path, data in zip(paths, whole, strict=True):
        path.write_bytes(data)

    dry = run("archive", "restore", "--session", "day-1", "--dry-run")
    assert dry.stdout.splitlines()[0] == "would come back: 3"
    assert run("archive", "restore", str(first)).stdout == "restored: 1\n"
    again = run("archive", "restore", str(first))
    assert (again.returncode, again.stderr.strip()) == (1, f"agentcore: memory {first} is there already")
    assert run("archive", "restore", "--all").stdout == "restored: 5\n"
    assert (await memory.list(ListParams())).memories == before
    assert run("archive", "list").stderr == "nothing archived\n"


async def test_the_command_goes_on_until_everything_is_back(run: Callable[..., Done], memory: MemoryClient) -> None:
    items = [StoreParams(content=f"Ada saw heron {number}.") for number in range(MAX_RESTORED + 1)]
    for batch in (items[:1_000], items[1_000:]):
        await memory.store_batch(StoreBatchParams(items=batch))
    assert run("prune", "episodic", "--target", "100%").returncode == 0
    dry = run("archive", "restore", "--all", "--dry-run")
    assert dry.stdout.splitlines()[0] == f"would come back: {len(items)}"
    assert dry.stderr == f"{MAX_RESTORED} would come back, going on\n"
    back = run("archive", "restore", "--all")
    assert (back.stdout, back.stderr) == (f"restored: {len(items)}\n", f"{MAX_RESTORED} are back, going on\n")
    assert run("archive", "list").stderr == "nothing archived\n"


async def test_the_client_lists_and_restores(memory: MemoryClient, run: Callable[..., Done]) -> None:
    stored = await memory.store(StoreParams(content="Ada saw a kingfisher.", ttl_seconds=86_400))
    assert run("prune", "episodic", "--target", "1").returncode == 0
    [one] = (await memory.archived(ArchivedParams())).memories
    assert one.memory_id == stored.memory_id
    back = await memory.restore(RestoreParams(memory_ids=[one.memory_id]))
    assert (back.restored_count, back.memory_ids, back.complete) == (1, [one.memory_id], True)
