"""Facts extracted by a model follow their source: deleted, changed, superseded, reinstated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.changes import HistoryParams, RevertParams, UpdateParams
from agentcore.memory.params.memories import DeleteParams, ListParams, PruneParams
from agentcore.memory.params.sessions import ClearParams
from tests.fixtures.chat_model import Document, Talking, talking
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services

SAID = "I moved from Bristol to Ghent in 2021, and my sister Maren Holt helped me."
FACT = "Maren Holt is the user's sister."
YELLOW, VIOLET = "My favourite colour is yellow.", "My favourite colour is violet."
LIKED = "Rui prefers yellow over all other colours."


def about(found: dict[str, str]) -> Any:
    """Returns an answer with the fact of each memory that contains its key."""
    return lambda document: {
        "memories": [
            {"number": number, "entities": [], "facts": [fact for word, fact in found.items() if word in each["text"]]}
            for number, each in enumerate(document["memories"])
        ]
    }


async def reader(talk: Talking) -> Agent:
    agent = talk.agent()
    await agent.memory.configure(ConfigureParams(extract_facts=True))
    return agent


async def facts(agent: Agent) -> list[MemoryRecord]:
    params = ListParams.model_validate({"tags": ["fact"], "descending": False})
    return (await agent.memory.list(params)).memories


async def holding(agent: Agent) -> list[str]:
    return [each.content for each in await facts(agent) if each.superseded_by is None]


async def update(agent: Agent, memory_id: UUID, **updates: Any) -> None:
    await agent.memory.update(UpdateParams.model_validate({"memory_id": memory_id, "updates": updates}))


@asynccontextmanager
async def judged(services: Services) -> AsyncIterator[Talking]:
    """A service whose model extracts these facts and judges every pair as superseding."""
    async with talking(services) as running:
        running.model.answers |= {
            "fact_extraction": about({"Maren": FACT, "yellow": LIKED}),
            "fact_judge": lambda document: {"verdict": "SUPERSEDE"},
        }
        yield running


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with judged(services) as running:
        yield running


@pytest.mark.parametrize("chosen", [{"session_id": "s"}, {"memory_types": ["episodic"]}, {"all": True}, None])
@pytest.mark.shows("issue5-3-facts-follow")
async def test_a_memory_that_is_deleted_takes_the_facts_read_from_it_along(
    talk: Talking, chosen: dict[str, Any] | None
) -> None:
    agent = await reader(talk)
    said = await agent.stored_id(SAID, session_id="s")
    kept = await agent.stored_id("What I noted of it.", memory_type="semantic", parent_memory_id=said)
    await talk.work()
    assert await holding(agent) == [FACT]
    named = {"memory_ids": [said]} if chosen is None else {**chosen, "confirm": True}
    params = DeleteParams.model_validate(named)
    result = await agent.memory.delete(params)
    assert await facts(agent) == []
    everything = chosen == {"all": True}
    assert result.deleted_count == (3 if everything else 2)
    left = (await agent.memory.list(ListParams())).memories
    assert [each.memory_id for each in left] == ([] if everything else [kept])


async def test_a_session_that_is_cleared_takes_the_facts_read_from_it_along(talk: Talking) -> None:
    agent = await reader(talk)
    await agent.stored_id(SAID, session_id="s")
    await talk.work()
    await agent.memory.clear(ClearParams(session_id="s"))
    assert (await agent.memory.list(ListParams())).memories == []


async def test_pruned_to_the_archive_a_memory_leaves_what_was_learnt_from_it(talk: Talking) -> None:
    agent = await reader(talk)
    await agent.stored_id(SAID, importance=0.1)
    kept = await agent.stored_id("This one stays, whatever else is pruned here.", importance=0.9)
    await talk.work()
    await agent.memory.prune(PruneParams.model_validate({"memory_layer": "episodic", "target": 1}))
    [fact] = await facts(agent)
    left = (await agent.memory.list(ListParams())).memories
    assert {each.memory_id for each in left} == {fact.memory_id, kept}


@pytest.mark.shows("issue5-3-facts-follow")
async def test_a_fact_is_superseded_with_the_memory_it_was_read_from(talk: Talking) -> None:
    agent = await reader(talk)
    old = await agent.stored_id(YELLOW, speaker="Rui")
    await talk.work()
    new = await agent.store(VIOLET, speaker="Rui")
    assert new.superseded == [old]
    [fact] = await facts(agent)
    assert fact.superseded_by == new.memory_id
    assert fact.valid_to == (await agent.get(old)).valid_to
    history = await agent.memory.history(HistoryParams(memory_id=fact.memory_id))
    assert [(each.operation, each.version) for each in history.changes] == [("superseded", 2)]
    assert LIKED not in await agent.found("Which colour does Rui prefer over all other colours?")


@pytest.mark.shows("issue5-3-facts-follow")
async def test_a_fact_holds_again_with_its_memory(talk: Talking) -> None:
    agent = await reader(talk)
    old = await agent.stored_id(YELLOW, speaker="Rui")
    await talk.work()
    await agent.store(VIOLET, speaker="Rui")
    await update(agent, old, current=True)
    assert await holding(agent) == [LIKED]
    assert LIKED in await agent.found("Which colour does Rui prefer over all other colours?")


async def test_a_revert_lets_the_facts_hold_again_too(talk: Talking) -> None:
    agent = await reader(talk)
    old = await agent.stored_id(YELLOW, speaker="Rui")
    await talk.work()
    await agent.store(VIOLET, speaker="Rui")
    await agent.memory.revert(RevertParams(memory_id=old, version=1))
    assert await holding(agent) == [LIKED]


async def test_a_fact_holds_again_where_what_took_its_memorys_place_is_deleted(talk: Talking) -> None:
    agent = await reader(talk)
    await agent.stored_id(YELLOW, speaker="Rui")
    await talk.work()
    new = await agent.stored_id(VIOLET, speaker="Rui")
    result = await agent.memory.delete(DeleteParams(memory_ids=[new]))
    assert result.reinstated_count == 2
    assert await holding(agent) == [LIKED]


@pytest.mark.shows("issue5-3-facts-follow")
async def test_of_a_superseded_memory_nothing_is_read_until_it_holds_again(talk: Talking) -> None:
    agent = await reader(talk)
    old = await agent.stored_id(YELLOW, speaker="Rui")
    await agent.stored_id(VIOLET, speaker="Rui")
    await talk.work()
    read = [each["text"] for document in talk.model.documents("fact_extraction") for each in document["memories"]]
    assert read == [VIOLET]
    assert await facts(agent) == []
    await update(agent, old, current=True)
    await talk.work()
    assert await holding(agent) == [LIKED]


async def test_what_is_filed_as_superseded_at_once_is_not_read(talk: Talking) -> None:
    agent = await reader(talk)
    await agent.stored_id(VIOLET, speaker="Rui", timestamp="2026-06-02T00:00:00Z")
    late = await agent.store(YELLOW, speaker="Rui", timestamp="2026-06-01T00:00:00Z")
    assert late.superseded_by is not None
    await talk.work()
    assert await facts(agent) == []


@pytest.mark.parametrize("way", ["update", "revert"])
@pytest.mark.shows("issue5-3-facts-follow")
async def test_other_words_take_the_old_ones_facts_away_and_are_read_anew(talk: Talking, way: str) -> None:
    talk.model.answers["fact_extraction"] = about(
        {"Ghent": "The user lives in Ghent.", "Namur": "The user lives in Namur."}
    )
    agent = await reader(talk)
    said = await agent.stored_id("I moved from Bristol to Namur in 2021 with my sister.")
    if way == "revert":
        await update(agent, said, content="I moved from Bristol to Ghent in 2021 with my sister.")
    await talk.work()
    before = await facts(agent)
    if way == "revert":
        await agent.memory.revert(RevertParams(memory_id=said, version=1))
    else:
        await update(agent, said, content="I moved from Bristol to Ghent in 2021 with my sister.")
    assert len(before) == 1
    assert await facts(agent) == []
    await talk.work()
    now = "Namur" if way == "revert" else "Ghent"
    assert [each.content for each in await facts(agent)] == [f"The user lives in {now}."]


async def test_what_a_caller_made_of_a_fact_is_the_callers(talk: Talking) -> None:
    """A pinned or edited fact survives a change of its source, but not its deletion."""
    talk.model.answers["fact_extraction"] = lambda document: {
        "memories": [{"number": 0, "entities": [], "facts": [FACT, "Maren helped the user move.", "Maren has a car."]}]
    }
    agent = await reader(talk)
    said = await agent.stored_id(SAID)
    await talk.work()
    pinned, reworded, _ = await facts(agent)
    await update(agent, pinned.memory_id, pinned=True)
    await update(agent, reworded.memory_id, content="Maren carried all the boxes.")
    await update(agent, said, content="I moved to Ghent in 2021, and somebody helped me with the boxes.")
    assert {each.memory_id for each in await facts(agent)} == {pinned.memory_id, reworded.memory_id}
    await agent.memory.delete(DeleteParams(memory_ids=[said]))
    assert await facts(agent) == []


async def test_what_a_fact_had_superseded_holds_again_where_its_memory_is_reworded(talk: Talking) -> None:
    def owner(document: Document) -> dict[str, Any]:
        name = "Priya" if "Priya" in document["memories"][0]["text"] else "Tomas"
        return {"memories": [{"number": 0, "entities": [], "facts": [f"The owner of Atlas is {name} now."]}]}

    talk.model.answers["fact_extraction"] = owner
    agent = await reader(talk)
    await agent.stored_id("We agreed in the meeting that Priya takes care of Atlas from here on.")
    await talk.work()
    said = await agent.stored_id("We agreed in the meeting that Tomas takes care of Atlas from here on.")
    await talk.work()
    assert await holding(agent) == ["The owner of Atlas is Tomas now."]
    await update(agent, said, content="We spoke of nothing of any interest in that meeting.")
    assert await holding(agent) == ["The owner of Atlas is Priya now."]


@pytest.mark.parametrize("verdict", ["SUPERSEDE", "ADD"])
@pytest.mark.shows("issue5-3-facts-follow")
async def test_what_was_said_does_not_give_way_to_what_only_a_model_read(talk: Talking, verdict: str) -> None:
    talk.model.answers |= {
        "fact_judge": lambda document: {"verdict": verdict},
        "fact_extraction": about({"lunch": "The owner of Atlas is Mallory now."}),
    }
    agent = await reader(talk)
    old = await agent.stored_id("The owner of Atlas is Priya.", timestamp="2026-06-01T00:00:00Z")
    await agent.stored_id(
        "We talked with Mallory about Atlas over lunch, a nice day.", timestamp="2026-06-03T00:00:00Z"
    )
    await talk.work()
    assert (await agent.get(old)).superseded_by is None
    assert "The owner of Atlas is Priya." in await agent.found("Who is the owner of Atlas?")
    late = await agent.store("The owner of Atlas is Tomas.", timestamp="2026-06-02T00:00:00Z")
    assert late.superseded_by is None


async def test_what_is_said_takes_the_place_of_what_a_model_read(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = about({"lunch": "The owner of Atlas is Mallory."})
    agent = await reader(talk)
    await agent.stored_id("We talked with Mallory about Atlas over lunch, a nice day.")
    await talk.work()
    [fact] = await facts(agent)
    said = await agent.store("The owner of Atlas is Tomas now.")
    assert said.superseded == [fact.memory_id]


async def test_a_deletion_beside_the_reading_leaves_no_fact(talk: Talking) -> None:
    """In either order: the deletion finds the facts, or the extraction finds its source gone."""
    agent = await reader(talk)
    for number in range(6):
        said = await agent.stored_id(f"{SAID} That was note {number}.")
        await asyncio.gather(talk.work(), agent.memory.delete(DeleteParams(memory_ids=[said])))
        assert (await agent.memory.list(ListParams())).memories == []
