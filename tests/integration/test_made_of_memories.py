"""Derived texts are deleted with their sources: a deleted message, or one of several erased users."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from agentcore.errors import DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.archival import DirectoryArchive
from agentcore.memory.deriving import consolidating
from agentcore.memory.forgetting.inventory import ARCHIVE
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import SUMMARY_RELATION, Link, MemoryType
from agentcore.memory.params.agent_settings import ConsolidateParams
from agentcore.memory.params.archived import EraseParams
from agentcore.memory.params.memories import CountParams, DeleteParams, PruneParams
from agentcore.memory.params.sessions import ClearParams, EndSessionParams
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent
from tests.fixtures.places import holdings

OF_ADA = EraseParams(user_id="ada", confirm=True)
EVERYTHING = EraseParams(all=True, confirm=True)
SAID = {"ada": "Ada keeps seven hives of bees on the roof.", "ben": "Ben drives the blue van on Monday mornings."}
OLDER_HALF = PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=0.5)
FACTS = PruneParams(memory_layer=MemoryType.SEMANTIC, strategy="oldest_first", target=1.0)


async def talked(agent: Agent, **of_ada: Any) -> tuple[dict[str, UUID], UUID]:
    """Stores a session of two users and returns its ids and the id of their common summary."""
    ids = {}
    for user_id, text in SAID.items():
        more = of_ada if user_id == "ada" else {}
        ids[user_id] = await agent.stored_id(text, session_id="talk", user_id=user_id, **more)
    return ids, await ended(agent)


async def ended(agent: Agent, **values: Any) -> UUID:
    result = await agent.memory.end_session(EndSessionParams(session_id="talk", **values))
    assert result.summary_id is not None
    return result.summary_id


async def is_gone(agent: Agent, memory_id: UUID) -> bool:
    try:
        await agent.get(memory_id)
    except NotFound:
        return True
    return False


async def hives(runtime: Runtime, agent: Agent) -> list[str]:
    """Returns every text in any place that mentions Ada's bees."""
    shares = (await holdings(runtime, agent.agent_id)).shares
    return [str(row) for share in shares.values() for row in share if "hives" in str(row)]


async def test_a_summary_names_what_it_is_of_and_whose_that_was(agent: Agent) -> None:
    ids, summary_id = await talked(agent)
    provenance = (await agent.get(summary_id)).provenance
    assert set(provenance["sources"]) == {str(each) for each in ids.values()}
    assert provenance["users"] == ["ada", "ben"]


async def test_the_summaries_of_many_messages_are_tied_to_all_of_them_and_each_to_its_own(agent: Agent) -> None:
    ids = [
        await agent.stored_id(f"Hive {number} gave {number * 7} jars of dark honey.", session_id="talk", force=True)
        for number in range(80)
    ]
    result = await agent.memory.end_session(EndSessionParams(session_id="talk", max_tokens=2_000))
    assert result.summary_id == result.summary_ids[-1]
    made = [await agent.get(each) for each in result.summary_ids]
    assert [{link.target_id for link in each.links} for each in made] == [
        set(ids[begin : begin + 20]) for begin in range(0, 80, 20)
    ]
    assert [each.provenance["sources"] for each in made] == [
        [str(each) for each in ids[begin : begin + 20]] for begin in range(0, 80, 20)
    ]


@pytest.mark.parametrize(
    "how",
    [lambda ids: DeleteParams(memory_ids=[ids["ada"]]), lambda ids: DeleteParams(user_id="ada", confirm=True)],
    ids=["by id", "by filter"],
)
@pytest.mark.shows("issue4-8-derived")
async def test_a_deleted_message_takes_the_summary_that_quotes_it_and_the_next_is_without(
    runtime: Runtime, agent: Agent, how: Any
) -> None:
    ids, summary_id = await talked(agent)
    await agent.memory.delete(how(ids))
    assert await is_gone(agent, summary_id)
    assert await hives(runtime, agent) == []
    assert (await agent.get(await ended(agent))).content == SAID["ben"]


@pytest.mark.shows("issue4-8-derived")
async def test_a_cleared_user_takes_the_summaries_that_quote_them(runtime: Runtime, agent: Agent) -> None:
    _, summary_id = await talked(agent)
    assert (await agent.memory.clear(ClearParams(user_id="ada"))).cleared_count == 2
    assert await is_gone(agent, summary_id)
    assert await hives(runtime, agent) == []


async def test_what_a_caller_ties_as_a_summary_stays_where_its_source_is_deleted(agent: Agent) -> None:
    said = await agent.stored_id(SAID["ada"])
    own = await agent.stored_id("Somebody has bees.", links=[Link(target_id=said, relation=SUMMARY_RELATION)])
    await agent.memory.delete(DeleteParams(memory_ids=[said]))
    assert not await is_gone(agent, own)


@pytest.mark.shows("issue4-8-derived")
async def test_an_erased_user_takes_a_summary_whose_source_was_archived_before(runtime: Runtime, agent: Agent) -> None:
    ids, summary_id = await talked(agent, timestamp="2020-06-01T12:00:00Z")
    assert (await agent.memory.prune(OLDER_HALF)).memory_ids == [ids["ada"]]
    result = await agent.memory.erase(OF_ADA)
    assert (result.verified, await is_gone(agent, summary_id)) == (True, True)
    assert await hives(runtime, agent) == []
    assert (await agent.memory.count(CountParams(user_id="ben"))).count == 1


@pytest.mark.shows("issue4-8-derived")
async def test_an_erased_user_takes_a_summary_whose_source_is_long_gone(runtime: Runtime, agent: Agent) -> None:
    ids, summary_id = await talked(agent)
    await expire_away(runtime, agent, ids["ada"])
    assert not await is_gone(agent, summary_id)
    assert (await agent.memory.erase(OF_ADA)).verified
    assert await is_gone(agent, summary_id)
    assert await hives(runtime, agent) == []


@pytest.mark.shows("issue4-8-derived")
async def test_an_erased_user_takes_an_archived_summary_whose_source_is_long_gone(
    runtime: Runtime, agent: Agent
) -> None:
    ids, summary_id = await talked(agent)
    assert (await agent.memory.prune(FACTS)).memory_ids == [summary_id]
    await expire_away(runtime, agent, ids["ada"])
    assert (await agent.memory.erase(OF_ADA)).verified
    assert not [*(runtime.home.archive / ARCHIVE.folder(agent.agent_id)).iterdir()]


async def expire_away(runtime: Runtime, agent: Agent, memory_id: UUID) -> None:
    async with runtime.database.owner_transaction() as connection:
        await connection.execute("UPDATE memories SET expires_at = now() WHERE memory_id = %s", (memory_id,))
    async with runtime.parts.storage.transaction(agent.agent_id) as transaction:
        assert len(await transaction.delete_expired([memory_id])) == 1


# --- interrupted and concurrent erasures --------------------------------------------------------------------


class Dying(DirectoryArchive):
    """An archive whose service dies after it deleted copies."""

    async def delete(self, keys: Any) -> None:
        await super().delete(keys)
        raise DependencyUnavailable("killed")


@pytest.mark.shows("issue4-8-derived")
async def test_an_archived_memory_whose_copy_went_before_a_kill_is_still_the_users(
    runtime: Runtime, agent: Agent
) -> None:
    said = await agent.stored_id(SAID["ada"], user_id="ada")
    await agent.stored_id("Of it.", parent_memory_id=said, memory_type="semantic", tags=["hives"])
    await agent.memory.prune(FACTS)
    dying = MemoryManager(replace(runtime.parts, archive=Dying(runtime.home.archive)), Caller(agent.agent_id))
    with pytest.raises(DependencyUnavailable, match="killed"):
        await dying.erase(OF_ADA)
    assert (await agent.memory.erase(OF_ADA)).verified
    assert await hives(runtime, agent) == []


@pytest.mark.shows("issue4-8-derived")
async def test_a_consolidation_that_ends_after_an_erasure_brings_nothing_back(
    runtime: Runtime, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment in ("again", "overnight", "today"):
        text = f"The old boiler lost water pressure {moment}."
        await agent.stored_id(text, timestamp="2026-01-01T00:00:00Z")
    looked, erased = asyncio.Event(), asyncio.Event()
    keep = consolidating.Consolidating._store_summary

    async def keep_later(self: Any, *found: Any) -> None:
        looked.set()
        await erased.wait()
        await keep(self, *found)

    monkeypatch.setattr(consolidating.Consolidating, "_store_summary", keep_later)
    running = asyncio.create_task(agent.memory.consolidate(ConsolidateParams()))
    await looked.wait()
    assert (await agent.memory.erase(EVERYTHING)).verified
    erased.set()
    assert (await running).clusters == []
    shares = (await holdings(runtime, agent.agent_id)).shares
    assert not [name for name, share in shares.items() if share and "cache" not in name]
