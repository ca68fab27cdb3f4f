"""Stores beside deletions that name facts a model read: the second waits, none is broken off."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.extracting import Extracting
from agentcore.memory.params import DeleteParams
from tests.fixtures.chat_model import Talking, talking
from tests.fixtures.gate import gate
from tests.fixtures.services import Services
from tests.integration.test_facts_follow import LIKED, VIOLET, YELLOW, about, facts, reader

# What stores what states something has asked for what it touches by then, and waits here.
SUBJECTS = "LOCK TABLE memory_subjects IN SHARE MODE"
# What takes memories out of what waits to be read holds them by then, and waits here.
HISTORIES = "LOCK TABLE memory_history IN SHARE MODE"
GREEN = "My favourite colour is green."


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services) as running:
        running.model.answers |= {
            "fact_extraction": about({"yellow": LIKED}),
            "fact_judge": lambda document: {"verdict": "SUPERSEDE"}}
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
            opened.after_the_first(
                agent.memory.delete(DeleteParams(memory_ids=[fact.memory_id, beside]))))
    assert set(getattr(stored, "superseded", [stored])) == {old, beside}
    assert getattr(deleted, "deleted_count", deleted) == 2


async def test_what_a_model_read_is_stored_before_the_deletion_of_the_memory_and_an_earlier_one(
    talk: Talking
) -> None:
    talk.model.answers["fact_extraction"] = about({"lunch": "The owner of Atlas is Mallory now."})
    agent = await reader(talk)
    earlier = await agent.stored_id("The owner of Atlas is Priya.", memory_type="semantic")
    said = await agent.stored_id("We talked with Mallory about Atlas over lunch, a nice day.")
    async with gate(agent) as opened:
        await opened.hold(HISTORIES)
        more, deleted = await opened.through(
            Extracting(talk.runtime.parts, Caller(agent.agent_id)).run(),
            opened.after_the_first(agent.memory.delete(DeleteParams(memory_ids=[earlier, said]))))
    assert more is False
    assert getattr(deleted, "deleted_count", deleted) == 3
    assert await facts(agent) == []
