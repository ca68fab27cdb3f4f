"""Restored memories are unchanged; the archive is listed."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentcore.errors import Conflict, DependencyUnavailable, InvalidParams, NotFound
from agentcore.maintenance.rounds import sweep_expired
from agentcore.memory.api import Caller
from agentcore.memory.archival import object_key
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import Link, MemoryType
from agentcore.memory.params.archived import ArchivedParams, RestoreParams, RestoreResult
from agentcore.memory.params.changes import HistoryParams, UpdateParams
from agentcore.memory.params.memories import CountParams, GetContextParams, PruneParams, RetrieveParams, StatsParams
from benchmarks.crash.records import records
from benchmarks.crash.verdict import MISCOUNTED
from tests.fixtures.gate import gate
from tests.fixtures.memory import Agent, fill


async def pruned(agent: Agent, target: int, layer: MemoryType = MemoryType.EPISODIC) -> list[UUID]:
    done = await agent.memory.prune(PruneParams(memory_layer=layer, strategy="oldest_first", target=target))
    assert done.pruned_count == target
    return done.memory_ids


async def restored(agent: Agent, **values: Any) -> RestoreResult:
    return await agent.memory.restore(RestoreParams.model_validate(values))


async def rows(agent: Agent) -> dict[UUID, list[str]]:
    return await records(agent.runtime.database.url, agent.agent_id)


async def as_owner(agent: Agent, statement: str, *values: Any) -> list[Any]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(statement.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def lived(agent: Agent) -> list[UUID]:
    """Creates memories with every optional field and dependent row."""
    first = await agent.stored_id(
        "We run Kubernetes (k8s) in Frankfurt.",
        importance=0.9,
        tags=["infra", "ünïcode"],
        user_id="u",
        session_id="s",
        namespace="n",
        task_id="t",
        speaker="Ada",
        external_id="x-1",
        metadata={"nested": {"list": [1, 2.5, None, "three", 1e-7, 10**20]}},
        embedding=[0.3, -0.7] * 32,
        timestamp="2024-05-01T10:00:00.123456Z",
        ttl_seconds=10 * 86_400,
    )
    second = await agent.stored_id(
        'The "budget" is 9,000 \\ euros.\nÄnderung 🜁',
        timestamp="2024-05-02T10:00:00Z",
        links=[Link(target_id=first, relation="beside", weight=0.3)],
    )
    third = await agent.stored_id("It all ends well.", timestamp="2024-05-03T10:00:00Z", importance=0.1)
    for content in ("The budget is 12,000 euros.", "The budget is 13,000 euros."):
        changes = {"content": content, "tags": ["money"], "links": [{"target_id": str(third), "relation": "follows"}]}
        await agent.memory.update(UpdateParams.model_validate({"memory_id": second, "updates": changes}))
    parts = agent.runtime.parts
    parts.accesses.note(agent.agent_id, [first, first, second], parts.clock())
    await parts.accesses.flush(parts.storage)
    return [first, second, third]


@pytest.mark.shows("issue4-6-restore")
async def test_a_restored_memory_is_the_one_that_was_archived_byte_for_byte(agent: Agent) -> None:
    ids = await lived(agent)
    before = await rows(agent)
    assert {each.partition(" ")[0] for row in before.values() for each in row} == {
        "memories",
        "memory_usage",
        "memory_history",
        "memory_links",
    }
    assert await pruned(agent, 2) == ids[:2]
    assert set(await rows(agent)) == {ids[2]}
    back = await restored(agent, memory_ids=ids[:2])
    assert (back.restored_count, set(back.memory_ids), back.lost_links, back.renewed_ids, back.complete) == (
        2,
        set(ids[:2]),
        [],
        [],
        True,
    )
    assert await rows(agent) == before
    assert (await agent.memory.stats(StatsParams())).archived == 0
    assert await agent.found("Kubernetes in Frankfurt", k=1) == ["We run Kubernetes (k8s) in Frankfurt."]


async def test_a_memory_survives_the_archive_again_and_again(agent: Agent) -> None:
    ids = await lived(agent)
    before = await rows(agent)
    for _ in range(3):
        await pruned(agent, 3)
        await restored(agent, all=True)
    assert await rows(agent) == before
    told = await as_owner(
        agent,
        "SELECT token_id, trace_id, before ->> 'reason' AS reason FROM memory_history "
        "WHERE agent_id = %s AND memory_id = %s AND operation = 'restore'",
        agent.agent_id,
        ids[0],
    )
    assert told == [{"token_id": "token-1", "trace_id": "t" * 32, "reason": "oldest_first"}] * 3


@pytest.mark.shows("issue4-6-restore")
async def test_words_are_counted_again_when_a_memory_is_back(agent: Agent) -> None:
    await lived(agent)
    await pruned(agent, 3)
    await restored(agent, all=True)
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(MISCOUNTED.encode(), {"agent_id": agent.agent_id})
        assert list((await cursor.fetchone() or {}).values()) == [0]


def budget(euros: str) -> str:
    return f"The budget for the Atlas project is {euros} euros."


@pytest.mark.shows("issue4-2-changed-facts")
async def test_a_fact_that_changed_while_it_was_archived_comes_back_superseded(agent: Agent) -> None:
    first = await agent.stored_id(budget("48,000"), timestamp="2026-03-02T09:00:00Z", task_id="plan")
    await pruned(agent, 1)
    new = await agent.store(budget("52,500"), timestamp="2026-04-02T09:00:00Z")
    assert new.superseded == []
    back = await restored(agent, memory_ids=[first])
    assert (back.restored_count, back.superseded_ids) == (1, [first])
    record = await agent.get(first)
    assert (record.superseded_by, record.valid_to) == (new.memory_id, datetime(2026, 4, 2, 9, tzinfo=UTC))
    assert new.memory_id is not None
    links = (await agent.get(new.memory_id)).links
    assert [(link.target_id, link.relation) for link in links] == [(first, "supersedes")]
    history = await agent.memory.history(HistoryParams(memory_id=first))
    assert [change.operation for change in history.changes] == ["superseded", "restore"]
    assert await agent.found("budget of Atlas") == [budget("52,500")]


async def test_what_stood_beside_a_fact_before_it_was_archived_stands_beside_it_again(agent: Agent) -> None:
    first = await agent.stored_id(budget("48,000"), timestamp="2026-03-02T09:00:00Z")
    second = await agent.stored_id(budget("52,500"), timestamp="2026-04-02T09:00:00Z")
    await agent.memory.update(UpdateParams.model_validate({"memory_id": first, "updates": {"current": True}}))
    before = await rows(agent)
    assert await pruned(agent, 1) == [first]
    back = await restored(agent, memory_ids=[first])
    assert (back.superseded_ids, await rows(agent)) == ([], before)
    await pruned(agent, 2)
    await agent.stored_id("The budget for the Orion project is 9,000 euros.")
    back = await restored(agent, memory_ids=[second, first])
    assert (back.restored_count, back.superseded_ids, back.lost_links) == (2, [], [])


async def test_facts_that_followed_each_other_come_back_in_their_order(agent: Agent) -> None:
    told = [
        (budget(euros), f"2026-0{month}-02T09:00:00Z")
        for month, euros in enumerate(("48,000", "52,500", "55,000"), start=3)
    ]
    ids = []
    for content, at in told:
        ids.append(await agent.stored_id(content, timestamp=at))
        await pruned(agent, 1)
    back = await restored(agent, all=True)
    assert (back.restored_count, set(back.superseded_ids)) == (3, set(ids[:2]))
    assert await agent.found("budget of Atlas") == [told[2][0]]


async def test_ties_come_back_whose_other_end_is_there_and_the_others_are_told(agent: Agent) -> None:
    first, second, _ = await lived(agent)
    await pruned(agent, 2)
    back = await restored(agent, memory_ids=[second])
    assert [(each.memory_id, each.other_id, each.relation) for each in back.lost_links] == [(second, first, "beside")]
    assert len((await agent.get(second)).links) == 1
    # The other copy contains the link as well.
    assert (await restored(agent, memory_ids=[first])).lost_links == []
    assert len((await agent.get(second)).links) == 2


@pytest.mark.shows("issue4-6-restore")
async def test_what_was_archived_one_after_the_other_is_tied_again_in_one_call(agent: Agent) -> None:
    await lived(agent)
    before = await rows(agent)
    for _ in range(3):
        await pruned(agent, 1)
    assert (await restored(agent, all=True)).lost_links == []
    assert await rows(agent) == before


@pytest.mark.shows("issue4-6-listed")
async def test_a_filter_restores_what_matches_and_nothing_else(agent: Agent) -> None:
    await fill(agent, 6, session_id="monday", tags=["a"])
    await fill(agent, 4, session_id="tuesday", user_id="u", namespace="n", task_id="t", force=True)
    await pruned(agent, 5)
    middle = agent.runtime.parts.clock()
    await pruned(agent, 5)
    cases: list[tuple[dict[str, Any], int]] = [
        ({"session_id": "monday"}, 6),
        ({"session_id": "nobody's"}, 0),
        ({"tags": ["a", "b"]}, 6),
        ({"user_id": "u", "namespace": "n", "task_id": "t"}, 4),
        ({"memory_types": ["semantic"]}, 0),
        ({"memory_types": ["episodic"]}, 10),
        ({"archived_before": middle}, 5),
        ({"archived_after": middle}, 5),
        ({"after": "2026-01-01T00:02:00Z"}, 6),
        ({"before": "2026-01-01T00:02:00Z"}, 4),
        ({"after": "2026-01-01T00:01:00Z", "before": "2026-01-01T00:03:00Z", "session_id": "tuesday"}, 2),
    ]
    for filters, count in cases:
        wanted = await restored(agent, **filters, dry_run=True)
        page = await agent.memory.archived(ArchivedParams.model_validate(filters))
        assert (len(wanted.memory_ids), wanted.restored_count) == (count, 0), filters
        assert [each.memory_id for each in page.memories] == wanted.memory_ids
    assert (await agent.memory.count(CountParams())).count == 0
    assert (await restored(agent, session_id="tuesday")).restored_count == 4
    assert (await agent.memory.count(CountParams(session_id="tuesday"))).count == 4
    first = await restored(agent, all=True, limit=4)
    assert (first.restored_count, first.complete) == (4, False)
    rest = await restored(agent, all=True, limit=4)
    assert (rest.restored_count, rest.complete) == (2, True)


@pytest.mark.shows("issue4-6-refused")
async def test_a_memory_that_is_there_is_named_and_nothing_comes_back(agent: Agent) -> None:
    ids = await lived(agent)
    await pruned(agent, 2)
    before = await rows(agent)
    with pytest.raises(Conflict, match=str(ids[2])) as refused:
        await restored(agent, memory_ids=ids)
    assert refused.value.data == {"memory_id": str(ids[2])}
    assert await rows(agent) == before
    await restored(agent, memory_ids=ids[:2])
    with pytest.raises(Conflict, match=str(min(ids[:2]))):
        await restored(agent, memory_ids=ids[:2])


@pytest.mark.shows("issue4-6-refused")
async def test_what_was_never_archived_or_is_erased_or_anothers_is_not_found(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    ids = await lived(agent)
    await pruned(agent, 2)
    with pytest.raises(NotFound):
        await restored(agent, memory_ids=[ids[0], uuid4()])
    with pytest.raises(NotFound):
        await restored(new_agent(), memory_ids=[ids[0]])
    assert (await restored(new_agent(), all=True)).restored_count == 0
    # Erased: no tombstone and no copy.
    await as_owner(agent, "DELETE FROM archived_memories WHERE memory_id = %s", ids[0])
    (agent.runtime.home.archive / object_key(agent.agent_id, ids[0])).unlink()
    with pytest.raises(NotFound):
        await restored(agent, memory_ids=ids[:2])
    assert set(await rows(agent)) == {ids[2]}


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(
            path.with_name(sorted(each.name for each in path.parent.iterdir() if each != path)[0]).read_bytes()
        ),
    ],
    ids=["cut off", "emptied", "another's copy"],
)
@pytest.mark.shows("issue4-6-refused", "A9")
async def test_a_copy_that_is_not_what_was_archived_is_listed_and_the_others_come_back(
    agent: Agent, damage: Callable[[Path], None]
) -> None:
    ids = await lived(agent)
    await pruned(agent, 3)
    path = agent.runtime.home.archive / object_key(agent.agent_id, ids[1])
    whole = path.read_bytes()
    damage(path)
    with pytest.raises(Conflict, match=f"{ids[1]} is not the one that was archived") as refused:
        await restored(agent, memory_ids=[ids[1]])
    assert refused.value.data == {"memory_id": str(ids[1])}
    for given in ({"all": True}, {"memory_ids": ids}, {"memory_types": ["episodic"]}):
        would = await restored(agent, **given, dry_run=True)
        assert (set(would.memory_ids), would.unreadable_ids) == ({ids[0], ids[2]}, [ids[1]])
    back = await restored(agent, memory_ids=ids)
    assert (back.restored_count, back.unreadable_ids, back.complete) == (2, [ids[1]], True)
    assert (await agent.memory.stats(StatsParams())).archived == 1
    path.write_bytes(whole)
    assert (await restored(agent, all=True)).restored_count == 1


@pytest.mark.shows("A9")
async def test_a_copy_that_is_gone_is_named(agent: Agent) -> None:
    ids = await lived(agent)
    await pruned(agent, 1)
    (agent.runtime.home.archive / object_key(agent.agent_id, ids[0])).unlink()
    with pytest.raises(NotFound, match="gone from the archive") as refused:
        await restored(agent, memory_ids=ids[:1])
    assert refused.value.data == {"memory_id": str(ids[0])}
    back = await restored(agent, all=True)
    assert (back.restored_count, back.unreadable_ids, back.complete) == (0, ids[:1], True)


@pytest.mark.shows("A9")
async def test_one_lost_copy_of_thirty_does_not_block_the_others(agent: Agent) -> None:
    ids = await fill(agent, 30)
    await pruned(agent, 30)
    (agent.runtime.home.archive / object_key(agent.agent_id, ids[3])).unlink()
    back = await restored(agent, all=True, limit=10)
    found = {*back.memory_ids}
    while not back.complete:
        back = await restored(agent, all=True, limit=10, cursor=back.next_cursor)
        found |= {*back.memory_ids}
    assert found == {*ids} - {ids[3]}
    assert back.unreadable_ids == [ids[3]]
    assert (await agent.memory.stats(StatsParams())).archived == 1


async def test_without_an_archive_nothing_is_restored(agent: Agent) -> None:
    without = MemoryManager(replace(agent.runtime.parts, archive=None), Caller(agent.agent_id))
    with pytest.raises(DependencyUnavailable, match="MEMORY_ARCHIVAL_ENABLED"):
        await without.restore(RestoreParams(all=True))


@pytest.mark.shows("issue4-6-expired")
async def test_what_ran_out_of_time_in_the_archive_gets_what_it_had_left(agent: Agent) -> None:
    parts = agent.runtime.parts
    short = await agent.stored_id("The parking code is 4711.", ttl_seconds=3_600, timestamp="2024-01-01")
    long = await agent.stored_id("The gym pass is valid.", ttl_seconds=5 * 86_400, timestamp="2024-01-02")
    pinned = await agent.stored_id("Ada was born in May.", timestamp="2024-01-03")
    await pruned(agent, 3)
    later = parts.clock() + timedelta(days=30)
    late = MemoryManager(replace(parts, clock=lambda: later), Caller(agent.agent_id))
    back = await late.restore(RestoreParams(all=True))
    assert set(back.renewed_ids) == {short, long}
    ends = {each: (await agent.get(each)).expires_at for each in (short, long, pinned)}
    assert ends[short] == later + timedelta(days=1)
    assert ends[pinned] is None
    kept = ends[long]
    assert kept is not None
    assert timedelta(0) <= later + timedelta(days=5) - kept < timedelta(minutes=1)
    await sweep_expired(agent.runtime.database, parts.storage, parts.working)
    assert (await agent.memory.count(CountParams())).count == 3


async def test_of_two_restores_of_the_same_memories_one_brings_them_back(agent: Agent) -> None:
    ids = await fill(agent, 12)
    before = await rows(agent)
    await pruned(agent, 12)
    ends = await asyncio.gather(*(restored(agent, memory_ids=ids) for _ in range(4)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in ends) == ["Conflict"] * 3 + ["RestoreResult"]
    assert await rows(agent) == before


async def test_a_copy_of_an_older_version_takes_the_defaults_of_what_came_since(agent: Agent) -> None:
    ids = await lived(agent)
    await pruned(agent, 1)
    await as_owner(agent, "ALTER TABLE memories ADD COLUMN mood text NOT NULL DEFAULT 'calm'")
    try:
        await restored(agent, memory_ids=ids[:1])
        [row] = await as_owner(agent, "SELECT mood FROM memories WHERE memory_id = %s", ids[0])
        assert row == {"mood": "calm"}
    finally:
        await as_owner(agent, "ALTER TABLE memories DROP COLUMN mood")


async def test_members_of_an_older_copy_that_no_longer_exist_are_ignored(agent: Agent) -> None:
    ids = await lived(agent)
    before = await rows(agent)
    await pruned(agent, 1)
    archive, key = agent.runtime.parts.archive, object_key(agent.agent_id, ids[0])
    assert archive is not None
    copy = json.loads(gzip.decompress(await archive.read(key)))
    # Copies of older versions have this field.
    older = gzip.compress(json.dumps({**copy, "aliases": [{"alias": "k8s", "means": "Kubernetes"}]}).encode())
    await archive.write({key: older})
    await as_owner(
        agent,
        "UPDATE archived_memories SET sha256 = %s, size_bytes = %s WHERE memory_id = %s",
        sha256(older).digest(),
        len(older),
        ids[0],
    )
    assert (await restored(agent, memory_ids=ids[:1])).memory_ids == ids[:1]
    assert await rows(agent) == before


async def test_a_restored_memory_is_in_its_tasks_working_memory_again(agent: Agent) -> None:
    [memory_id, *_] = [
        await agent.stored_id(f"Step {n} of the move is done.", task_id="move", timestamp=f"2026-01-0{n}")
        for n in (1, 2)
    ]
    asked = GetContextParams(query="the move", task_id="move")
    await pruned(agent, 1)
    assert "Step 1" not in (await agent.memory.get_context(asked)).context
    await restored(agent, memory_ids=[memory_id])
    assert "Step 1" in (await agent.memory.get_context(asked)).context


@pytest.mark.shows("issue4-6-listed")
async def test_what_is_archived_is_listed_with_size_reason_and_time_page_by_page(agent: Agent) -> None:
    ids = await fill(agent, 7, session_id="s", tags=["meter"])
    started = datetime.now(UTC) - timedelta(minutes=1)
    for _ in range(3):
        await pruned(agent, 2)
    seen: list[UUID] = []
    params = ArchivedParams(limit=4)
    while True:
        page = await agent.memory.archived(params)
        seen += [each.memory_id for each in page.memories]
        if page.next_cursor is None:
            break
        params = ArchivedParams(limit=4, cursor=page.next_cursor)
    assert len(seen) == len(set(seen)) == 6
    assert set(seen) == set(ids[:6])
    assert {*seen[:2]} == {*ids[4:6]}
    [one] = (await agent.memory.archived(ArchivedParams(limit=1))).memories
    copy = (agent.runtime.home.archive / one.object_key).read_bytes()
    assert (one.size_bytes, one.reason, one.session_id, one.tags, one.version) == (
        len(copy),
        "oldest_first",
        "s",
        ["meter"],
        1,
    )
    assert started < one.archived_at < datetime.now(UTC) + timedelta(minutes=1)


@pytest.mark.parametrize("cursor", ["", "x", "bnVsbA==", "WzEsMl0=", "WyIyMDI2LTAxLTAxIiwgIngiXQ=="])
async def test_a_foreign_cursor_is_refused(agent: Agent, cursor: str) -> None:
    with pytest.raises(InvalidParams, match="cursor"):
        await agent.memory.archived(ArchivedParams(cursor=cursor))


async def test_a_restored_memory_is_found_by_its_vector(agent: Agent) -> None:
    ids = await lived(agent)
    await pruned(agent, 1)
    await restored(agent, memory_ids=ids[:1])
    found = await agent.memory.retrieve(RetrieveParams(query="x", query_vector=[0.3, -0.7] * 32, k=1))
    assert [each.memory_id for each in found.memories] == ids[:1]
    assert found.memories[0].similarity == pytest.approx(1.0, abs=1e-3)


async def test_a_restore_whose_page_another_took_goes_on_behind_it(agent: Agent) -> None:
    ids = await fill(agent, 6)
    await pruned(agent, 6)
    async with gate(agent) as opened:
        await opened.hold(
            "SELECT 1 FROM archived_memories WHERE agent_id = %s ORDER BY archived_at DESC, memory_id DESC "
            "LIMIT 2 FOR UPDATE",
            agent.agent_id,
        )
        both = await opened.through(restored(agent, all=True, limit=2), restored(agent, all=True, limit=2))
    assert [(each.restored_count, each.complete) for each in both] == [(2, False), (2, False)]
    behind = [await restored(agent, all=True, cursor=each.next_cursor) for each in both]
    assert sum(each.restored_count for each in behind) == 2
    assert [(each.complete, each.next_cursor) for each in behind] == [(True, None), (True, None)]
    assert {*await rows(agent)} == {*ids}
