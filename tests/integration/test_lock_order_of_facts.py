"""Superseding stores concurrent with calls on the same memories and facts: no call is aborted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.deriving.extracting import Extracting
from agentcore.memory.params.memories import DeleteParams, StoreBatchParams
from tests.fixtures.chat_model import Talking
from tests.fixtures.gate import gate
from tests.fixtures.services import Services
from tests.integration.test_facts_follow import VIOLET, YELLOW, about, facts, judged, reader, update

# Blocks stores with statements after they locked the memories they may change.
SUBJECTS = "LOCK TABLE memory_subjects IN SHARE MODE"
# Blocks calls that remove queued memories after they locked them.
HISTORIES = "LOCK TABLE memory_history IN SHARE MODE"
# Blocks supersessions after they locked the superseded memories, before the dependent ones.
WAITING = "LOCK TABLE llm_queue IN SHARE MODE"
GREEN = "My favourite colour is green."


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with judged(services) as running:
        yield running


async def test_a_store_is_made_before_the_deletion_of_a_fact_of_what_it_supersedes(talk: Talking) -> None:
    agent = await reader(talk)
    old = await agent.stored_id(YELLOW, speaker="Rui")
    await talk.work()
    beside = await agent.stored_id(GREEN, speaker="Rui", supersede=False)
    [fact] = await facts(agent)
    assert old < fact.memory_id < beside
    async with gate(agent) as opened:
        await opened.hold(SUBJECTS)
        stored, deleted = await opened.through(
            agent.store(VIOLET, speaker="Rui"),
            opened.after_the_first(agent.memory.delete(DeleteParams(memory_ids=[fact.memory_id, beside]))),
        )
    assert set(getattr(stored, "superseded", [stored])) == {old, beside}
    assert getattr(deleted, "deleted_count", deleted) == 2


async def test_a_store_is_made_before_the_rewording_of_what_it_supersedes(talk: Talking) -> None:
    agent = await reader(talk)
    old = await agent.stored_id(YELLOW, speaker="Rui")
    await talk.work()
    async with gate(agent) as opened:
        await opened.hold(SUBJECTS)
        stored, reworded = await opened.through(
            agent.store(VIOLET, speaker="Rui"), opened.after_the_first(update(agent, old, content=GREEN))
        )
    assert getattr(stored, "superseded", stored) == [old]
    assert reworded is None
    assert await facts(agent) == []


async def test_what_is_told_late_is_stored_before_the_deletion_of_what_came_behind_it(talk: Talking) -> None:
    agent = await reader(talk)
    said = {"speaker": "Rui", "memory_type": "semantic"}
    old = await agent.stored_id(YELLOW, timestamp="2026-06-01T00:00:00Z", **said)
    new = await agent.store(VIOLET, timestamp="2026-06-03T00:00:00Z", **said)
    assert new.superseded == [old]
    assert new.memory_id is not None
    async with gate(agent) as opened:
        await opened.hold(SUBJECTS)
        late, deleted = await opened.through(
            agent.store(GREEN, timestamp="2026-06-02T00:00:00Z", **said),
            opened.after_the_first(agent.memory.delete(DeleteParams(memory_ids=[new.memory_id]))),
        )
    assert getattr(late, "superseded_by", late) == new.memory_id
    assert getattr(deleted, "reinstated_count", deleted) == 1
    assert (await agent.get(old)).superseded_by == late.memory_id
    assert (await agent.get(late.memory_id)).superseded_by is None


async def test_what_a_model_read_is_stored_before_the_deletion_of_the_memory_and_an_earlier_one(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = about({"lunch": "The owner of Atlas is Mallory now."})
    agent = await reader(talk)
    earlier = await agent.stored_id("The owner of Atlas is Priya.", memory_type="semantic")
    said = await agent.stored_id("We talked with Mallory about Atlas over lunch, a nice day.")
    async with gate(agent) as opened:
        await opened.hold(HISTORIES)
        more, deleted = await opened.through(
            Extracting(talk.runtime.parts, Caller(agent.agent_id)).run(),
            opened.after_the_first(agent.memory.delete(DeleteParams(memory_ids=[earlier, said]))),
        )
    assert more is False
    assert getattr(deleted, "deleted_count", deleted) == 3
    assert await facts(agent) == []


async def test_two_stores_that_supersede_what_the_other_has_facts_of_are_both_made(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = about(
        {"Mallory": "The favourite town of Mallory is Ghent.", "Priya": "The favourite town of Priya is Lisbon."}
    )
    # A home and a favorite town are different attributes.
    talk.model.answers["fact_judge"] = lambda document: {
        "verdict": "ADD" if str(document).count("lives") == 1 else "SUPERSEDE"
    }
    agent = await reader(talk)
    people = []
    for said in ("Mallory lives in Ghent.", "Priya lives in Lisbon."):
        people.append(await agent.stored_id(said))
        await talk.work()
    read = [each.memory_id for each in await facts(agent)]
    batches = [
        StoreBatchParams.model_validate({"items": [{"content": each} for each in said]})
        for said in (
            ("Mallory lives in Bruges now.", "The favourite town of Priya is Porto now."),
            ("Priya lives in Porto now.", "The favourite town of Mallory is Bruges now."),
        )
    ]
    async with gate(agent) as opened:
        await opened.hold(WAITING)
        done = await opened.through(*map(agent.memory.store_batch, batches))
    first, second = [[each.memory_id for each in result.results] for result in done]
    assert [(await agent.get(each)).superseded_by for each in people] == [first[0], second[0]]
    assert {(await agent.get(each)).superseded_by for each in read} <= {*first, *second}


async def test_what_waits_to_be_read_is_left_in_the_order_in_which_a_failure_is_noted(talk: Talking) -> None:
    agent = await reader(talk)
    ids = [await agent.stored_id(said) for said in ("Mallory lives in Ghent.", "Priya lives in Lisbon.")]
    storage = talk.runtime.parts.storage

    async def noted(*memory_ids: UUID) -> None:
        async with storage.transaction(agent.agent_id) as transaction:
            await transaction.llm.record_failure("facts", memory_ids)

    async def left() -> None:
        async with storage.transaction(agent.agent_id) as transaction:
            await transaction.facts.dequeue_facts(ids)

    await noted(ids[0])  # its row is now stored after the other's
    async with talk.runtime.database.owner_transaction() as owner:
        await owner.execute("ANALYZE llm_queue")  # so few rows get a sequential scan
    async with gate(agent) as opened:
        await opened.hold_row("llm_queue", agent, ids[0])
        assert await opened.through(noted(*ids), opened.after_the_first(left())) == [None, None]
