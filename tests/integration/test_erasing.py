"""Erasure of an agent, or of one user, from every place."""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from agentcore.errors import DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.archival import DirectoryArchive
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.forgetting import erasing, removing
from agentcore.memory.forgetting.inventory import ARCHIVE, JOBS, PROCESS_EMBEDDINGS, SHARED_EMBEDDINGS
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import Link, MemoryType
from agentcore.memory.params.archived import EraseParams, RestoreParams
from agentcore.memory.params.memories import (
    CountParams,
    GetContextParams,
    GetParams,
    PruneParams,
    RetrieveParams,
    StoreParams,
)
from agentcore.memory.params.sessions import EndSessionParams
from agentcore.memory.working import WorkingMemory
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.estates import Estate, clear, settle
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.places import holdings
from tests.fixtures.services import Services

EVERYTHING = EraseParams(all=True, confirm=True)
OF_ADA = EraseParams(user_id="ada", confirm=True)
OF_NOBODY = EraseParams(user_id="nobody", confirm=True)
CACHES = {SHARED_EMBEDDINGS.name, PROCESS_EMBEDDINGS.name}


async def _nothing_of(runtime: Runtime, agent: Agent) -> bool:
    shares = (await holdings(runtime, agent.agent_id)).shares
    return not any(shares.values())


async def _two(runtime: Runtime, new_agent: Callable[..., Agent]) -> tuple[Estate, Estate]:
    await clear(runtime)
    words = (f"zebra{secrets.token_hex(8)}", f"heron{secrets.token_hex(8)}")
    owner, other = await settle(runtime, {new_agent(): word for word in words})
    return owner, other


def _folder(runtime: Runtime, agent: Agent) -> Path:
    return runtime.home.archive / ARCHIVE.folder(agent.agent_id)


async def _prune(agent: Agent, layer: MemoryType) -> None:
    await agent.memory.prune(PruneParams(memory_layer=layer, strategy="oldest_first", target=1.0))


@pytest.mark.shows("issue4-8-erase")
async def test_all_of_an_agent_goes_from_every_place_and_nothing_of_another(
    runtime: Runtime, new_agent: Callable[..., Agent]
) -> None:
    owner, other = await _two(runtime, new_agent)
    before = await holdings(runtime, owner.agent.agent_id)
    assert before.empty_places() == set()
    others = await holdings(runtime, other.agent.agent_id)

    result = await owner.agent.memory.erase(EVERYTHING)

    assert (result.verified, result.complete, result.left) == (True, True, {})
    assert await _nothing_of(runtime, owner.agent)
    told = {name: len(share) for name, share in before.shares.items() if share and name not in CACHES}
    # A deletion subtracts its word counts in separate rows.
    assert {name: count for name, count in result.erased.items() if name != "lexical_deltas"} == {
        name: count for name, count in told.items() if name != "lexical_deltas"
    }
    others.assert_untouched(await holdings(runtime, other.agent.agent_id))


@pytest.mark.shows("issue4-8-erase")
async def test_the_vectors_of_what_is_erased_leave_the_caches(runtime: Runtime, agent: Agent) -> None:
    cache = cast(CachingEmbedder, runtime.parts.embedder)
    before = cache.entry_count
    text = f"Marker {secrets.token_hex(8)} lies in the drawer."
    await agent.stored_id(text, speaker="Ada")
    await agent.stored_id(f"{text} Or did.", memory_type="semantic")
    await _prune(agent, MemoryType.SEMANTIC)
    await agent.memory.retrieve(RetrieveParams(query=text))
    await cache.drain()
    assert cache.entry_count == before + 3
    await agent.memory.erase(EVERYTHING)
    assert cache.entry_count == before


async def test_accesses_that_were_not_written_yet_are_dropped(runtime: Runtime, agent: Agent) -> None:
    await agent.stored_id("The canoe is green.")
    assert await agent.found("canoe") == ["The canoe is green."]
    await agent.memory.erase(EVERYTHING)
    assert agent.agent_id not in runtime.parts.accesses._counts


async def test_twice_is_fine_and_the_second_finds_nothing(agent: Agent) -> None:
    await agent.stored_id("The canoe is green.")
    assert (await agent.memory.erase(EVERYTHING)).erased["memories"] == 1
    again = await agent.memory.erase(EVERYTHING)
    assert (again.verified, sum(again.erased.values())) == (True, 0)


@pytest.mark.shows("issue4-8-erase")
async def test_what_was_erased_cannot_be_restored(agent: Agent) -> None:
    memory_id = await agent.stored_id("The canoe is green.", memory_type="semantic")
    await _prune(agent, MemoryType.SEMANTIC)
    await agent.memory.erase(EVERYTHING)
    with pytest.raises(NotFound):
        await agent.memory.restore(RestoreParams(memory_ids=[memory_id]))


async def test_copies_that_nothing_is_known_of_and_drafts_go_too(runtime: Runtime, agent: Agent) -> None:
    folder = _folder(runtime, agent)
    folder.mkdir(parents=True)
    for name in (
        ".0198f3a2-7c1e-7d55-8a53-2f3b6c1d9e10.json.draft",
        "stray.txt",
        "0198f3a2-7c1e-7d55-8a53-2f3b6c1d9e11.json",
    ):
        (folder / name).write_bytes(b"something")
    result = await agent.memory.erase(EVERYTHING)
    assert (result.verified, result.erased[ARCHIVE.name]) == (True, 3)
    assert [*folder.iterdir()] == []


@pytest.mark.shows("A8")
async def test_on_a_file_system_that_ignores_case_an_erasure_leaves_the_other_agents_copies(
    runtime: Runtime, new_agent: Callable[..., Agent]
) -> None:
    name = f"casey-{secrets.token_hex(4)}"
    agents = [new_agent(name), new_agent(name.upper())]
    # A case-insensitive file system takes both names for one directory.
    runtime.home.archive.mkdir(parents=True, exist_ok=True)
    (runtime.home.archive / name.upper()).symlink_to(runtime.home.archive / name)
    for agent in agents:
        await agent.stored_id("The canoe is green.", memory_type="semantic")
        await _prune(agent, MemoryType.SEMANTIC)
    copies = [{path.name for path in _folder(runtime, agent).iterdir()} for agent in agents]
    assert [len(each) for each in copies] == [1, 1]
    assert (await agents[0].memory.erase(EVERYTHING)).erased[ARCHIVE.name] == 1
    assert {path.name for path in _folder(runtime, agents[1]).iterdir()} == copies[1]


class Gated(DirectoryArchive):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.writing, self.listed = asyncio.Event(), asyncio.Event()

    async def write(self, objects: Mapping[str, bytes]) -> None:
        self.writing.set()
        await self.listed.wait()
        await super().write(objects)

    async def keys(self, prefix: str) -> list[str]:
        found = await super().keys(prefix)
        self.listed.set()
        return found


@pytest.mark.shows("issue4-8-check")
async def test_copies_that_a_prune_makes_meanwhile_are_waited_for_and_go(runtime: Runtime, agent: Agent) -> None:
    await agent.stored_id("The canoe is green.", memory_type="semantic")
    archive = Gated(runtime.home.archive)
    memory = MemoryManager(replace(runtime.parts, archive=archive), Caller(agent.agent_id))
    pruning = asyncio.create_task(
        memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, strategy="oldest_first", target=1))
    )
    await archive.writing.wait()
    result = await memory.erase(EVERYTHING)
    assert (await pruning).pruned_count == 1
    assert (result.verified, result.erased["archived_memories"]) == (True, 1)
    assert await _nothing_of(runtime, agent)


async def test_what_one_call_has_no_time_for_the_next_ones_erase(
    runtime: Runtime, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await agent.stored_id(f"Ada saw heron {number}.", user_id="ada")
    monkeypatch.setattr(erasing, "ERASE_CHUNK", 2)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    first = await agent.memory.erase(OF_ADA)
    assert (first.complete, first.verified) == (False, False)
    assert first.erased["memories"] == 2
    second = await agent.memory.erase(OF_ADA)
    assert (second.complete, second.verified, second.erased["memories"]) == (True, True, 1)


async def test_broken_off_between_a_memory_and_what_was_made_of_it_the_next_call_still_finds_both(
    runtime: Runtime, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, ids = None, []
    for number in range(5):  # every second one in the archive
        layer = MemoryType.SEMANTIC if number % 2 else MemoryType.EPISODIC
        parent = await agent.stored_id(
            f"Generation {number} of herons.",
            memory_type=layer,
            parent_memory_id=parent,
            user_id=None if number else "ada",
        )
        ids.append(parent)
    await _prune(agent, MemoryType.SEMANTIC)
    monkeypatch.setattr(erasing, "ERASE_CHUNK", 1)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    results = [await agent.memory.erase(OF_ADA) for _ in ids]
    assert [result.complete for result in results] == [False] * 4 + [True]
    assert results[-1].verified
    assert (await agent.memory.count(CountParams())).count == 0
    assert [*_folder(runtime, agent).iterdir()] == []


class Visited(DirectoryArchive):
    """An archive that stores a memory at each listing."""

    def __init__(self, root: Path, visitor: Agent) -> None:
        super().__init__(root)
        self._visitor, self._numbers = visitor, count()

    async def keys(self, prefix: str) -> list[str]:
        await self._visitor.stored_id(f"Heron {next(self._numbers)} came by.")
        return await super().keys(prefix)


async def test_what_somebody_stores_all_the_while_is_told(runtime: Runtime, agent: Agent) -> None:
    parts = replace(runtime.parts, archive=Visited(runtime.home.archive, agent))
    result = await MemoryManager(parts, Caller(agent.agent_id)).erase(EVERYTHING)
    # Four listings: memories of the first two are erased, those of the last two are not.
    assert (result.complete, result.verified, result.erased["memories"]) == (True, False, 2)
    assert result.left["memories"] == 2
    assert set(await agent.found("heron")) == {"Heron 2 came by.", "Heron 3 came by."}


async def test_archived_memories_are_not_erased_by_a_service_without_an_archive(runtime: Runtime, agent: Agent) -> None:
    await agent.stored_id("The canoe is green.", memory_type="semantic")
    await _prune(agent, MemoryType.SEMANTIC)
    kept = await agent.stored_id("The paddle is red.")
    without = MemoryManager(replace(runtime.parts, archive=None), Caller(agent.agent_id))
    with pytest.raises(DependencyUnavailable, match="MEMORY_ARCHIVAL_ENABLED"):
        await without.erase(EVERYTHING)
    assert (await agent.get(kept)).content == "The paddle is red."


async def test_without_redis_nothing_is_said_to_be_erased(runtime: Runtime, agent: Agent) -> None:
    memory_id = await agent.stored_id("The canoe is green.")
    nowhere = Redis.from_url("redis://127.0.0.1:9")
    working = WorkingMemory(nowhere, ttl_seconds=60, budget_tokens=100)
    with pytest.raises(DependencyUnavailable, match="Redis"):
        await MemoryManager(replace(runtime.parts, working=working), Caller(agent.agent_id)).erase(EVERYTHING)
    await nowhere.aclose()
    assert (await agent.memory.erase(EVERYTHING)).verified
    with pytest.raises(NotFound):
        await agent.memory.get(GetParams(memory_id=memory_id))


class Late(WorkingMemory):
    """Blocks writes of copies until `released`."""

    def __init__(self, agent: Agent) -> None:
        parts = agent.runtime.parts
        super().__init__(agent.runtime.redis, ttl_seconds=3_600, budget_tokens=4_000, record=parts.storage.record_redis)
        self.reached, self.released = asyncio.Event(), asyncio.Event()
        self.memory = MemoryManager(replace(parts, working=self), Caller(agent.agent_id))

    async def _script(self, *values: Any, **options: Any) -> bool:
        self.reached.set()
        await self.released.wait()
        return await super()._script(*values, **options)


@pytest.mark.parametrize("params", [EVERYTHING, OF_ADA], ids=["all", "user"])
async def test_a_recall_that_read_rows_before_an_erasure_writes_no_copy_after_it(
    agent: Agent, params: EraseParams
) -> None:
    await agent.stored_id("Ada keeps bees on the roof.", user_id="ada", task_id="trip")
    late = Late(agent)
    recall = asyncio.create_task(late.memory.get_context(GetContextParams(query="notes", task_id="trip")))
    await late.reached.wait()
    assert (await agent.memory.erase(params)).verified
    late.released.set()
    await recall
    assert await agent.runtime.parts.working.held(agent.agent_id) == {}


async def test_a_store_that_committed_before_an_erasure_adds_to_no_copy_after_it(agent: Agent) -> None:
    kept = await agent.stored_id("Ben drives the van.", user_id="ben", task_id="trip")
    late = Late(agent)
    store = asyncio.create_task(
        late.memory.store(StoreParams(content="Ada keeps bees on the roof.", user_id="ada", task_id="trip"))
    )
    await late.reached.wait()
    assert (await agent.memory.erase(OF_ADA)).verified
    await _recall(agent)
    late.released.set()
    await store
    assert [*(await agent.runtime.parts.working.held(agent.agent_id)).values()] == [{kept}]


async def test_a_copy_with_a_malformed_entry_is_erased_with_any_user(agent: Agent) -> None:
    await agent.stored_id("Ben drives the van.", user_id="ben", task_id="trip")
    await _recall(agent)
    working, redis = agent.runtime.parts.working, cast(Redis, agent.runtime.redis)
    [key] = await working.held(agent.agent_id)
    await cast(Any, redis.lpush(key, b'4|{"content": "Ada keeps bees"}'))
    assert (await agent.memory.erase(OF_ADA)).verified
    assert await working.held(agent.agent_id) == {}


@pytest.fixture
async def elsewhere(runtime: Runtime, services: Services) -> AsyncIterator[Runtime]:
    """A second server with another database of the same Redis."""
    url = f"{services.redis_url.partition('?')[0]}?db=2"
    async with open_runtime(settings_for(services, redis_url=url)) as other:
        yield other
        await cast(Redis, other.redis).flushdb()
        async with other.database.owner_transaction() as connection:
            await connection.execute("DELETE FROM redis_instances")
    # Forces its id to be recorded again.
    runtime.parts.working._recorded = None


async def _recall(agent: Agent) -> None:
    await agent.memory.get_context(GetContextParams(query="notes", task_id="trip"))


@pytest.mark.parametrize("params", [EVERYTHING, OF_ADA], ids=["all", "user"])
@pytest.mark.shows("A13-Redis")
async def test_an_erasure_never_says_verified_about_working_memory_in_another_redis(
    elsewhere: Runtime, agent: Agent, params: EraseParams
) -> None:
    there = Agent(elsewhere, agent.agent_id)
    assert (await agent.memory.erase(OF_NOBODY)).verified
    await there.stored_id("Ada keeps bees on the roof.", user_id="ada", task_id="trip")
    await _recall(there)
    redis_id = await elsewhere.parts.working.instance_id()
    result = await agent.memory.erase(params)
    assert (result.verified, result.unreachable) == (False, {f"redis {redis_id}": 1})
    assert await elsewhere.parts.working.held(agent.agent_id)
    # Its copies have expired.
    async with elsewhere.database.owner_transaction() as connection:
        await connection.execute("UPDATE redis_instances SET copies_until = now()")
    assert (await agent.memory.erase(params)).verified


@pytest.mark.shows("A13-Redis")
async def test_a_server_without_redis_does_not_say_verified_about_working_memory(agent: Agent) -> None:
    await agent.stored_id("Ada keeps bees on the roof.", task_id="trip")
    await _recall(agent)
    working = WorkingMemory(None, ttl_seconds=60, budget_tokens=100)
    without = MemoryManager(replace(agent.runtime.parts, working=working), Caller(agent.agent_id))
    result = await without.erase(EVERYTHING)
    assert (result.verified, len(result.unreachable)) == (False, 1)
    assert (await agent.memory.erase(EVERYTHING)).verified


@pytest.mark.shows("A13-Redis")
async def test_a_redis_that_is_replaced_is_recorded_before_it_contains_a_text(elsewhere: Runtime, agent: Agent) -> None:
    there = Agent(elsewhere, agent.agent_id)
    await there.stored_id("Ada keeps bees on the roof.", task_id="trip")
    await _recall(there)
    before = await elsewhere.parts.working.instance_id()
    await cast(Redis, elsewhere.redis).flushdb()
    await _recall(there)
    after = await elsewhere.parts.working.instance_id()
    assert after != before
    assert await elsewhere.parts.working.held(agent.agent_id)
    unreachable = (await agent.memory.erase(EVERYTHING)).unreachable
    assert unreachable == {f"redis {before}": 1, f"redis {after}": 1}


async def _ada_and_others(agent: Agent) -> dict[str, Any]:
    ids: dict[str, Any] = {}
    ids["said"] = await agent.stored_id(
        "Ada keeps bees on the roof.",
        user_id="ada",
        session_id="s-1",
        task_id="trip",
        idempotency_key="ada-1",
        pinned=True,
    )
    ids["pruned"] = await agent.stored_id(
        "Ada sold her old hive to Tom.", user_id="ada", memory_type="semantic", idempotency_key="ada-2"
    )
    await _prune(agent, MemoryType.SEMANTIC)
    ids["fact"] = await agent.stored_id("Bees live on the roof.", parent_memory_id=ids["said"])
    ids["answer"] = await agent.stored_id(
        "Ben is allergic to bees.",
        user_id="ben",
        parent_memory_id=ids["said"],
        task_id="trip",
        links=[Link(target_id=ids["said"], relation="answers")],
    )
    ids["ben"] = await agent.stored_id("Ben drives the van on Monday.", user_id="ben", session_id="s-1")
    ids["nobody"] = await agent.stored_id("The roof is 40 square metres large.")
    ended = await agent.memory.end_session(EndSessionParams(session_id="s-1"))
    ids["summary"] = ended.summary_id
    assert ids["summary"] is not None
    return ids


@pytest.mark.shows("issue4-8-erase")
async def test_a_users_memories_go_with_what_was_made_of_them_and_nobody_elses(runtime: Runtime, agent: Agent) -> None:
    ids = await _ada_and_others(agent)
    result = await agent.memory.erase(OF_ADA)
    assert (result.verified, result.left) == (True, {})
    assert (result.erased["memories"], result.erased["archived_memories"]) == (3, 1)
    assert result.erased["idempotency_keys"] == 2
    for name in ("said", "pruned", "fact", "summary"):
        with pytest.raises(NotFound):
            await agent.memory.get(GetParams(memory_id=ids[name]))
    for name in ("answer", "ben", "nobody"):
        assert (await agent.get(ids[name])).memory_id == ids[name]
    shares = (await holdings(runtime, agent.agent_id)).shares
    assert not [row for share in shares.values() for row in share if "Ada" in row or "hive" in row]
    assert shares[ARCHIVE.name] == {}
    assert (await agent.memory.count(CountParams())).count == 3


async def test_a_users_copy_that_stayed_after_a_restore_goes_too(runtime: Runtime, agent: Agent) -> None:
    ids = await _ada_and_others(agent)
    await agent.memory.restore(RestoreParams(memory_ids=[ids["pruned"]]))
    assert (_folder(runtime, agent) / f"{ids['pruned']}.json").exists()
    assert (await agent.memory.erase(OF_ADA)).verified
    assert [*_folder(runtime, agent).iterdir()] == []


@pytest.mark.shows("issue4-8-erase")
async def test_a_copy_without_row_or_tombstone_is_read_to_learn_whose_it_is(runtime: Runtime, agent: Agent) -> None:
    kept = {}
    for user_id in ("ada", "ben", None):
        kept[user_id] = await agent.stored_id(
            f"The spare key of {user_id} is red.", user_id=user_id, memory_type="semantic"
        )
    await _prune(agent, MemoryType.SEMANTIC)
    async with runtime.database.owner_transaction() as connection:
        await connection.execute("DELETE FROM archived_memories WHERE agent_id = %s", (agent.agent_id,))
    result = await agent.memory.erase(OF_ADA)
    assert (result.verified, result.erased[ARCHIVE.name]) == (True, 1)
    assert {path.name for path in _folder(runtime, agent).iterdir()} == {f"{kept['ben']}.json", f"{kept[None]}.json"}


async def test_what_was_made_of_a_users_memories_is_found_in_the_archive(runtime: Runtime, agent: Agent) -> None:
    said = await agent.stored_id("Ada keeps bees on the roof.", user_id="ada")
    child = await agent.stored_id("Bees live on the roof.", memory_type="semantic", parent_memory_id=said)
    grandchild = await agent.stored_id("Roofs can be lived on.", parent_memory_id=child)
    await agent.stored_id("The van is blue.", memory_type="semantic")
    await _prune(agent, MemoryType.SEMANTIC)
    assert (await agent.memory.erase(OF_ADA)).verified
    with pytest.raises(NotFound):
        await agent.memory.get(GetParams(memory_id=grandchild))
    assert len([*_folder(runtime, agent).iterdir()]) == 1


async def test_an_archived_summary_of_several_users_is_erased_though_its_copy_cannot_be_read(
    runtime: Runtime, agent: Agent
) -> None:
    for user in ("ada", "ben"):
        await agent.stored_id(f"{user.title()} keeps bees on the roof.", user_id=user, session_id="s-1")
    summary_id = (await agent.memory.end_session(EndSessionParams(session_id="s-1"))).summary_id
    await _prune(agent, MemoryType.SEMANTIC)
    [copy] = _folder(runtime, agent).iterdir()
    assert copy.name == f"{summary_id}.json"
    copy.write_bytes(b"{")
    result = await agent.memory.erase(OF_ADA)
    assert (result.verified, result.erased["archived_memories"], result.left) == (True, 1, {})
    assert not copy.exists()


@pytest.mark.shows("issue4-8-check")
async def test_a_copy_that_cannot_be_read_is_told_and_left(runtime: Runtime, agent: Agent) -> None:
    folder = _folder(runtime, agent)
    folder.mkdir(parents=True)
    strange = folder / "0198f3a2-7c1e-7d55-8a53-2f3b6c1d9e11.json"
    strange.write_bytes(gzip.compress(json.dumps({}).encode())[:-3])
    result = await agent.memory.erase(OF_ADA)
    assert (result.verified, result.left) == (False, {ARCHIVE.name: 1})
    assert strange.exists()


def _add_strays(agent: Agent, count: int, content: str) -> None:
    folder = _folder(agent.runtime, agent)
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(count):
        memory_id = str(uuid4())
        owner = {"agent_id": agent.agent_id, "memory_id": memory_id, "user_id": None}
        copy: dict[str, object] = {**owner, "links": [], "parent_memory_id": None, "provenance": {}, "content": content}
        (folder / f"{memory_id}.json").write_bytes(gzip.compress(json.dumps(copy).encode()))


async def test_copies_that_are_read_to_learn_whose_they_are_do_not_fill_the_memory(agent: Agent) -> None:
    _add_strays(agent, 400, "x" * 500_000)
    tracemalloc.start()
    try:
        assert (await agent.memory.erase(OF_ADA)).verified
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100_000_000


class Stalled(DirectoryArchive):
    def __init__(self, root: Path, at_listing: int) -> None:
        super().__init__(root)
        self._numbers, self._at_listing = count(1), at_listing

    async def keys(self, prefix: str) -> list[str]:
        if next(self._numbers) == self._at_listing:
            await asyncio.Event().wait()
        return await super().keys(prefix)


def _stalled(agent: Agent, at_listing: int) -> MemoryManager:
    parts = replace(agent.runtime.parts, archive=Stalled(agent.runtime.home.archive, at_listing))
    return MemoryManager(parts, Caller(agent.agent_id))


@pytest.mark.parametrize("params", [EVERYTHING, OF_ADA], ids=["all", "user"])
async def test_nothing_is_erased_when_finding_what_to_erase_takes_too_long(
    agent: Agent, params: EraseParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await agent.stored_id("Ada keeps bees on the roof.", user_id="ada")
    monkeypatch.setattr(erasing, "PLANNING_SECONDS", 0.5)
    with pytest.raises(DependencyUnavailable, match="Nothing was erased"):
        async with asyncio.timeout(10):
            await _stalled(agent, 1).erase(params)
    assert (await agent.get(kept)).memory_id == kept


async def test_an_erasure_whose_verification_takes_too_long_is_incomplete_and_can_be_continued(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.stored_id("Ada keeps bees on the roof.", user_id="ada")
    monkeypatch.setattr(erasing, "PLANNING_SECONDS", 0.5)
    async with asyncio.timeout(10):
        first = await _stalled(agent, 2).erase(OF_ADA)
    assert (first.complete, first.verified, first.erased["memories"]) == (False, False, 1)
    monkeypatch.undo()
    last = await agent.memory.erase(OF_ADA.model_copy(update={"continues": first.signed_receipt}))
    assert (last.complete, last.verified, last.erased["memories"]) == (True, True, 1)


class Enqueued(DirectoryArchive):
    def __init__(self, root: Path, agent: Agent) -> None:
        super().__init__(root)
        self._agent = agent

    async def keys(self, prefix: str) -> list[str]:
        async with self._agent.runtime.parts.storage.transaction(self._agent.agent_id) as transaction:
            await transaction.jobs.enqueue("probe", not_before=datetime.now(UTC) + timedelta(hours=1))
        return await super().keys(prefix)


async def test_jobs_that_are_deleted_while_verifying_are_erased_and_not_left(runtime: Runtime, agent: Agent) -> None:
    parts = replace(runtime.parts, archive=Enqueued(runtime.home.archive, agent))
    result = await MemoryManager(parts, Caller(agent.agent_id)).erase(EVERYTHING)
    assert (result.verified, result.left, result.erased[JOBS.name]) == (True, {}, 2)
    assert (await holdings(runtime, agent.agent_id)).shares[JOBS.name] == {}
