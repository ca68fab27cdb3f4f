"""Update, prune, delete, list, count and stats on real rows with an archive."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentcore.errors import Conflict, InvalidParams, NotFound, Unreachable
from agentcore.maintenance.rounds import fold_deltas
from agentcore.memory.api import Caller
from agentcore.memory.archival import DirectoryArchive, object_key, vector_of
from agentcore.memory.forgetting import removing
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import (
    CapabilitiesParams,
    CompleteTaskParams,
    CountParams,
    DeleteParams,
    GetContextParams,
    GetParams,
    PruneParams,
    RetrieveParams,
    StatsParams,
)
from tests.fixtures.memory import Agent, fill
from tests.fixtures.picky_embedder import picky_memory

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


async def update(agent: Agent, memory_id: UUID, **updates: object) -> int:
    params = UpdateParams.model_validate({"memory_id": memory_id, "updates": updates})
    return (await agent.memory.update(params)).version


async def history(agent: Agent, memory_id: UUID) -> list[dict[str, object]]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT operation, token_id, trace_id, before, after FROM memory_history "
            "WHERE agent_id = %s AND memory_id = %s ORDER BY change_id",
            (agent.agent_id, memory_id),
        )
        return list(await cursor.fetchall())


@pytest.mark.shows("FR-4.1")
async def test_a_corrected_memory_is_found_by_its_new_words_and_no_longer_by_the_old(agent: Agent) -> None:
    memory_id = await agent.stored_id("The budget is 9,000 euros.")
    assert await update(agent, memory_id, content="The kitchen may cost twelve thousand.") == 2
    result = await agent.memory.retrieve(RetrieveParams(query="kitchen twelve thousand", explain=True))
    assert result.memories[0].terms is not None
    assert result.memories[0].terms["words"].value > 0.5
    stale = await agent.memory.retrieve(RetrieveParams(query="budget euros", explain=True))
    assert stale.receipt.candidates.get("lexical", 0) == 0
    [change] = await history(agent, memory_id)
    assert change["before"] == {"content": "The budget is 9,000 euros."}
    assert change["after"] == {"content": "The kitchen may cost twelve thousand."}
    assert (change["token_id"], change["trace_id"]) == ("token-1", "t" * 32)


@pytest.mark.shows("FR-4.1")
async def test_added_context_extends_and_plain_fields_change(agent: Agent) -> None:
    memory_id = await agent.stored_id("Anna moved to Porto.", metadata={"a": 1, "b": 2})
    await update(
        agent,
        memory_id,
        context="She works at the harbour now.",
        importance=0.9,
        tags=["people"],
        metadata={"b": None, "c": 3},
        pinned=True,
        ttl_seconds=60,
    )
    record = await agent.get(memory_id)
    assert record.content == "Anna moved to Porto.\nShe works at the harbour now."
    assert record.relevance_score == pytest.approx(0.9)
    assert (record.tags, record.metadata, record.pinned, record.version) == (["people"], {"a": 1, "c": 3}, True, 2)
    assert record.expires_at is not None


@pytest.mark.shows("FR-4.1")
async def test_links_are_added_and_removed_in_both_directions(agent: Agent) -> None:
    first, second = (
        await agent.stored_id("The first of two notes."),
        await agent.stored_id("The second of two notes."),
    )
    await update(agent, first, links=[{"target_id": str(second), "relation": "follows"}])
    assert (await agent.get(first)).related_memory_ids == [second]
    assert (await agent.get(second)).related_memory_ids == [first]
    await update(agent, second, unlink=[str(first)])
    assert (await agent.get(first)).related_memory_ids == []
    with pytest.raises(InvalidParams, match="itself"):
        await update(agent, first, links=[{"target_id": str(first)}])
    with pytest.raises(NotFound):
        await update(agent, first, links=[{"target_id": str(uuid4())}])


@pytest.mark.parametrize("name", ["memory_id", "version", "session_id", "timestamp"])
@pytest.mark.shows("issue4-1.4")
async def test_what_may_not_be_changed_is_named_and_so_is_what_may(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot be changed; content, context, .*if_version can"):
        UpdateParams.model_validate({"memory_id": str(uuid4()), "updates": {name: "1"}})


async def test_a_change_of_another_version_than_expected_is_a_conflict(agent: Agent) -> None:
    memory_id = await agent.stored_id("The door code is 1234.")
    await update(agent, memory_id, importance=0.7, if_version=1)
    with pytest.raises(Conflict, match="version 2"):
        await update(agent, memory_id, importance=0.1, if_version=1)
    with pytest.raises(NotFound):
        await update(agent, uuid4(), importance=0.1)


@pytest.mark.shows("FR-5.3")
async def test_pruning_archives_the_lowest_fifth_before_it_goes(agent: Agent) -> None:
    await fill(agent, 20)
    dry = await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, dry_run=True))
    assert (dry.pruned_count, len(dry.memory_ids)) == (0, 4)
    assert (await agent.memory.count(CountParams())).count == 20
    done = await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC))
    assert (done.pruned_count, done.memory_ids) == (4, dry.memory_ids)
    assert (await agent.memory.count(CountParams())).count == 16
    stats = await agent.memory.stats(StatsParams())
    assert stats.archived == 4
    kept = agent.runtime.home.archive / object_key(agent.agent_id, done.memory_ids[0])
    copy = json.loads(gzip.decompress(kept.read_bytes()))
    assert copy["memory_id"] == str(done.memory_ids[0])
    assert copy["content"].startswith("Note ")
    vector = vector_of(copy)
    assert vector is not None
    assert vector.dimensions() == 64


@pytest.mark.parametrize(("strategy", "goes"), [("oldest_first", "Step 0"), ("least_relevant", "Step 2")])
@pytest.mark.shows("FR-6.5", "B16")
async def test_pruning_working_memory_takes_it_from_the_tasks_window_into_the_archive(
    agent: Agent, strategy: Any, goes: str
) -> None:
    for number, importance in enumerate((0.9, 0.8, 0.0)):
        await agent.store(
            f"Step {number} of the migration is done.",
            memory_type=MemoryType.WORKING,
            task_id="migration",
            importance=importance,
            force=True,
        )
    await agent.store("The migration is urgent.", task_id="migration")
    asked = GetContextParams(query="the migration", task_id="migration")
    before = (await agent.memory.get_context(asked)).context
    assert all(f"Step {number}" in before for number in range(3))
    params = PruneParams(memory_layer=MemoryType.WORKING, strategy=strategy, target=1)
    dry = await agent.memory.prune(params.model_copy(update={"dry_run": True}))
    done = await agent.memory.prune(params)
    assert (done.pruned_count, done.memory_ids) == (1, dry.memory_ids)
    context = (await agent.memory.get_context(asked)).context
    assert [step for step in ("Step 0", "Step 1", "Step 2") if step not in context] == [goes]
    assert "urgent" in context
    restored = await agent.memory.restore(RestoreParams(memory_ids=done.memory_ids))
    assert restored.restored_count == 1
    assert goes in (await agent.memory.get_context(asked)).context


@pytest.mark.shows("issue2-6-keys")
async def test_a_pruned_memorys_idempotency_key_still_answers_with_its_id(agent: Agent) -> None:
    first = await agent.store("The key is under the mat.", idempotency_key="k", importance=0.0)
    done = await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1))
    assert done.memory_ids == [first.memory_id]
    again = await agent.store("The key is under the mat.", idempotency_key="k", importance=0.0)
    assert (again.status, again.memory_id) == ("existing", first.memory_id)
    assert (await agent.memory.count(CountParams())).count == 0


async def test_all_of_a_layer_can_be_named_as_a_share(agent: Agent) -> None:
    await fill(agent, 5)
    params = PruneParams.model_validate_json('{"memory_layer": "episodic", "target": 1.0, "dry_run": true}')
    assert len((await agent.memory.prune(params)).memory_ids) == 5
    assert isinstance(PruneParams(memory_layer=MemoryType.EPISODIC, target=1).target, int)


class Gated(DirectoryArchive):
    """An archive whose first write blocks until released."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked, self.open = asyncio.Event(), asyncio.Event()

    async def write(self, objects: Mapping[str, bytes]) -> None:
        self.asked.set()
        await self.open.wait()
        await super().write(objects)


async def tombstones(agent: Agent) -> list[dict[str, Any]]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute("SELECT * FROM archived_memories WHERE agent_id = %s", (agent.agent_id,))
        return list(await cursor.fetchall())


async def test_an_archive_that_hangs_ends_the_prune_and_its_locks(agent: Agent, tmp_path: Path) -> None:
    ids = await fill(agent, 3)
    draft = tmp_path / f"{object_key(agent.agent_id, ids[0])}"
    draft = draft.with_name(f".{draft.name}.draft")
    draft.parent.mkdir()
    os.mkfifo(draft)  # opening it blocks, as with a file of a dead mount
    hanging = DirectoryArchive(tmp_path, timeout_seconds=0.3)
    params = PruneParams(memory_layer=MemoryType.EPISODIC, target=3)
    pruner = MemoryManager(replace(agent.runtime.parts, archive=hanging), Caller(agent.agent_id))
    async with asyncio.timeout(20):
        with pytest.raises(Unreachable):
            await pruner.prune(params)
        assert await tombstones(agent) == []
        assert (await agent.memory.prune(params)).pruned_count == 3  # its rows are not locked
    os.close(os.open(draft, os.O_RDONLY | os.O_NONBLOCK))


async def test_a_memory_that_was_locked_for_a_moment_is_pruned_by_the_same_call(agent: Agent) -> None:
    ids = await fill(agent, 3)
    gated = Gated(agent.runtime.home.archive)
    pruner = MemoryManager(replace(agent.runtime.parts, archive=gated), Caller(agent.agent_id))
    async with agent.runtime.database.owner_transaction() as connection:
        row = "SELECT FROM memories WHERE agent_id = %s AND memory_id = %s FOR UPDATE"
        await connection.execute(row, (agent.agent_id, ids[0]))
        prune = asyncio.create_task(pruner.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=3)))
        await asyncio.wait_for(gated.asked.wait(), 10)
    gated.open.set()
    result = await prune
    assert (result.pruned_count, result.complete) == (3, True)
    assert {row["memory_id"] for row in await tombstones(agent)} == {*ids}


async def test_of_two_prunes_of_a_layer_one_runs_and_every_tombstone_tells_its_object(agent: Agent) -> None:
    ids = await fill(agent, 30)
    root = agent.runtime.home.archive
    gated = Gated(root)
    slow = MemoryManager(replace(agent.runtime.parts, archive=gated), Caller(agent.agent_id))
    params = PruneParams(memory_layer=MemoryType.EPISODIC, target=20)
    first = asyncio.create_task(slow.prune(params))
    await asyncio.wait_for(gated.asked.wait(), 10)
    agent.runtime.parts.accesses.note(agent.agent_id, ids, agent.runtime.parts.clock())
    await agent.runtime.parts.accesses.flush(agent.runtime.parts.storage)
    with pytest.raises(Conflict, match="another prune of this layer"):
        await agent.memory.prune(params)
    gated.open.set()
    assert (await first).pruned_count == 20
    archived_ids = await tombstones(agent)
    assert len(archived_ids) == 20
    for each in archived_ids:
        assert hashlib.sha256((root / each["object_key"]).read_bytes()).digest() == each["sha256"]
    assert (await agent.memory.prune(params)).pruned_count == 10


async def test_a_cancelled_prune_ends_with_its_chunk(agent: Agent) -> None:
    await fill(agent, 10)
    gated = Gated(agent.runtime.home.archive)
    slow = MemoryManager(replace(agent.runtime.parts, archive=gated), Caller(agent.agent_id))
    running = asyncio.create_task(slow.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=4)))
    await asyncio.wait_for(gated.asked.wait(), 10)
    running.cancel()
    gated.open.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(await tombstones(agent)) == 4
    assert (await agent.memory.count(CountParams())).count == 6


async def test_without_time_left_a_prune_stops_between_chunks_and_says_so(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(agent, 25)
    monkeypatch.setattr(removing, "PRUNE_CHUNK", 10)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    done = await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=25))
    assert (done.pruned_count, len(done.memory_ids), done.complete) == (10, 10, False)
    assert len(await tombstones(agent)) == 10
    monkeypatch.undo()
    again = await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=15))
    assert (again.pruned_count, again.complete) == (15, True)


async def test_without_time_left_a_delete_stops_between_chunks_and_says_so(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await fill(agent, 30)
    monkeypatch.setattr(removing, "DELETE_CHUNK", 10)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    by_id = await agent.memory.delete(DeleteParams(memory_ids=ids))
    by_filter = await agent.memory.delete(DeleteParams(after=FIRST_DAY, confirm=True))
    assert [(each.deleted_count, each.complete) for each in (by_id, by_filter)] == [(10, False)] * 2
    monkeypatch.undo()
    rest = await agent.memory.delete(DeleteParams(memory_ids=ids))
    assert (rest.deleted_count, rest.complete) == (10, True)


async def test_a_chunk_leaves_one_delta(agent: Agent) -> None:
    await fill(agent, 30)
    await fold_deltas(agent.runtime.database)
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=30))
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT memory_count FROM lexical_deltas WHERE agent_id = %s", (agent.agent_id,)
        )
        assert [row["memory_count"] for row in await cursor.fetchall()] == [-30]


async def test_a_time_to_live_is_taken_away_by_null_alone(agent: Agent) -> None:
    memory_id = await agent.stored_id("The parking code is 4711.", ttl_seconds=3_600)
    await update(agent, memory_id, importance=0.9)
    before = (await agent.get(memory_id)).expires_at
    assert before is not None
    await update(agent, memory_id, ttl_seconds=None)
    assert (await agent.get(memory_id)).expires_at is None
    change = (await history(agent, memory_id))[-1]
    assert change["before"] == {"ttl_seconds": 3_600, "expires_at": before.isoformat()}
    assert change["after"] == {"ttl_seconds": None, "expires_at": None}


async def test_what_has_expired_is_not_there_for_links_and_deletes(agent: Agent) -> None:
    gone = await agent.stored_id("The parking code is 4711.", ttl_seconds=3_600)
    held = await agent.stored_id("The parking is in Porto.")
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET expires_at = now() - interval '1 minute' WHERE memory_id = %s", (gone,)
        )
    with pytest.raises(NotFound):
        await update(agent, held, links=[{"target_id": str(gone)}])
    assert (await agent.memory.delete(DeleteParams(memory_ids=[gone, held]))).deleted_count == 1


async def test_every_write_carries_a_receipt_with_its_time(agent: Agent) -> None:
    [memory_id, *_] = await fill(agent, 3)
    updating = UpdateParams.model_validate({"memory_id": memory_id, "updates": {"tags": ["x"]}})
    receipts = [
        (await agent.memory.update(updating)).receipt,
        (await agent.memory.get(GetParams(memory_id=memory_id))).receipt,
        (await agent.memory.complete_task(CompleteTaskParams(task_id="t"))).receipt,
        (await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1))).receipt,
        (await agent.memory.delete(DeleteParams(memory_ids=[memory_id]))).receipt,
    ]
    assert all(next(iter(each.timings_ms.values())) > 0 for each in receipts)
    assert (await agent.memory.capabilities(CapabilitiesParams())).receipt.degraded == []


async def test_a_correction_the_embedder_refuses_is_kept_and_said(agent: Agent) -> None:
    memory_id = await agent.stored_id("Anna lives in Porto.")
    picky, memory = picky_memory(agent)
    params = UpdateParams.model_validate(
        {"memory_id": memory_id, "updates": {"content": "Anna lives in a forbidden city."}}
    )
    result = await memory.update(params)
    assert "refuses" in result.receipt.degraded[0]
    assert (await agent.get(memory_id)).embedding_model == f"refused:{picky.model}"


async def test_pinned_memories_are_not_pruned(agent: Agent) -> None:
    await fill(agent, 5, pinned=True)
    done = await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=99))
    assert done.pruned_count == 0


@pytest.mark.shows("issue2-6-delete")
async def test_deleting_by_id_and_by_filter_says_how_many_and_has_no_limit(agent: Agent) -> None:
    ids = await fill(agent, 300, session_id="gone")
    await fill(agent, 7, session_id="kept", force=True)
    deleted = await agent.memory.delete(DeleteParams(memory_ids=[*ids[:3], uuid4()]))
    assert deleted.deleted_count == 3
    assert (await agent.memory.delete(DeleteParams(session_id="gone", confirm=True))).deleted_count == 297
    assert (await agent.memory.count(CountParams())).count == 7
    assert (await agent.memory.delete(DeleteParams(all=True, confirm=True))).deleted_count == 7
    assert await agent.found("meter reading") == []
