"""Facts extracted by a model: in the background, validated, once per memory."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.deriving.extracting import Extracting
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.changes import HistoryParams
from agentcore.memory.params.memories import DeleteParams, ListParams, StoreBatchParams, StoreParams
from agentcore.runtime import open_runtime
from tests.fixtures.chat_model import ChatModel, Document, Talking, talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.scripted_http import Reply
from tests.fixtures.services import Services
from tests.fixtures.stretches import change

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SAID = "I moved from Bristol to Ghent in 2021, and my sister Maren Holt helped me."
FACTS = ["The user moved from Bristol to Ghent in 2021.", "Maren Holt is the user's sister."]


def says(*facts: str, entities: tuple[str, ...] = ()) -> Any:
    """Returns an answer that finds these facts in the first memory."""
    return lambda document: {"memories": [{"number": 0, "facts": list(facts), "entities": list(entities)}]}


async def reader(talk: Talking) -> Agent:
    agent = talk.agent()
    await agent.memory.configure(ConfigureParams(extract_facts=True))
    return agent


async def facts(agent: Agent) -> list[MemoryRecord]:
    params = ListParams.model_validate({"tags": ["fact"], "descending": False})
    return (await agent.memory.list(params)).memories


@pytest.mark.shows("issue5-3-facts")
async def test_facts_become_memories_beside_the_one_they_were_read_from(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = says(*FACTS, entities=("Maren Holt", "Ghent", "Paris"))
    agent = await reader(talk)
    parent = await agent.stored_id(
        SAID, timestamp=NOON, session_id="s", user_id="u", namespace="n", importance=0.75, speaker="Ada"
    )
    assert talk.model.asked == []
    await talk.work()
    found = await facts(agent)
    assert sorted(each.content for each in found) == sorted(FACTS)
    for each in found:
        assert (each.parent_memory_id, each.memory_type, each.timestamp) == (parent, "semantic", NOON)
        assert (each.session_id, each.user_id, each.namespace) == ("s", "u", "n")
        assert each.relevance_score == pytest.approx(0.75)
        assert each.metadata["extracted"] == {"by": "openai/small", "prompt": "fact_extraction@1"}
        assert "Paris" not in each.entities
    assert any("Maren Holt" in each.entities for each in found)
    [told] = talk.model.documents("fact_extraction")
    assert told == {"memories": [{"number": 0, "speaker": "Ada", "said_at": "2026-06-01T12:00:00+00:00", "text": SAID}]}
    history = await agent.memory.history(HistoryParams(memory_id=parent))
    [change] = history.changes
    assert change.after is not None
    assert (change.operation, change.after["by"]) == ("extract_facts", "openai/small")


async def test_each_memory_is_read_once_and_facts_are_not_read_again(talk: Talking) -> None:
    agent = await reader(talk)
    await agent.stored_id(SAID)
    for _ in range(3):
        await talk.later()
        await talk.runtime.maintenance.round()
    assert len(talk.model.asked) == 1
    assert len(await facts(agent)) == 1


async def test_a_memory_whose_job_was_lost_is_read_all_the_same(talk: Talking) -> None:
    agent = await reader(talk)
    await agent.stored_id(SAID)
    await talk.run("DELETE FROM procrastinate_jobs")
    await talk.work()
    assert await facts(agent) == []
    done = await talk.runtime.maintenance.round()
    assert done["ask models"] >= 1
    await talk.work()
    assert len(await facts(agent)) == 1


@pytest.mark.shows("issue5-3-facts")
async def test_memories_are_read_together(talk: Talking) -> None:
    agent = await reader(talk)
    items = [
        StoreParams(content=f"My neighbour number {number} keeps {number + 2} brown goats.") for number in range(11)
    ]
    await agent.memory.store_batch(StoreBatchParams(items=items))
    await talk.work()
    assert [len(each["memories"]) for each in talk.model.documents("fact_extraction")] == [8, 3]
    assert len(await facts(agent)) == 11


@pytest.mark.shows("issue5-3-facts")
async def test_a_request_holds_sixteen_kilobytes_at_most_and_no_thoughts(talk: Talking) -> None:
    agent = await reader(talk)
    long = "The long report on goats goes on and on. " * 500
    await agent.stored_id(f"<think>I will not tell.</think>My number is 7. {long}")
    await agent.stored_id(f"Another one with the number 8. {long}")
    await agent.stored_id(f"A third one with the number 9. {long}")
    await talk.work()
    requests = [each["memories"] for each in talk.model.documents("fact_extraction")]
    assert [len(each) for each in requests] == [2, 1]
    for request in requests:
        assert sum(len(each["text"].encode()) for each in request) <= 16_384
    assert requests[0][0]["text"].startswith("My number is 7.")


@pytest.mark.parametrize(
    "content",
    ["Thanks a lot!", "Nice to hear.", "Hello there, how are you today?", "I'm sorry, but I can't help with that."],
)
@pytest.mark.shows("issue5-3-facts")
async def test_what_is_of_little_worth_is_not_sent(talk: Talking, content: str) -> None:
    agent = await reader(talk)
    await agent.stored_id(content, force=True)
    await talk.work()
    assert talk.model.asked == []


async def test_other_layers_and_other_agents_are_not_read(talk: Talking) -> None:
    agent, other = await reader(talk), talk.agent()
    for layer in ("working", "semantic", "procedural"):
        await agent.stored_id(SAID, memory_type=layer)
    await other.stored_id(SAID)
    await talk.work()
    assert talk.model.asked == []


@pytest.mark.parametrize(
    "bad",
    [
        "The user's account number is 99887766.",
        "What does the user want?",
        "Hello!",
        "Ghent.",
        SAID,
        "x" * 401,
        "<think>Nothing to see.</think>",
    ],
)
async def test_a_fact_that_is_none_is_left_out(talk: Talking, bad: str) -> None:
    talk.model.answers["fact_extraction"] = says(bad, FACTS[0], FACTS[0].upper())
    agent = await reader(talk)
    await agent.stored_id(SAID)
    await talk.work()
    assert [each.content for each in await facts(agent)] == [FACTS[0]]


async def test_a_fact_is_forgotten_with_the_memory_it_was_read_from(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = says(FACTS[0])
    agent = await reader(talk)
    parent = await agent.get(await agent.stored_id(SAID, ttl_seconds=1_000))
    await talk.work()
    [fact] = await facts(agent)
    assert fact.expires_at is not None
    assert parent.expires_at is not None
    assert abs((fact.expires_at - parent.expires_at).total_seconds()) < 5


async def test_a_newer_fact_takes_the_place_of_an_older_one(talk: Talking) -> None:
    talk.model.answers["fact_judge"] = lambda document: {"verdict": "SUPERSEDE"}
    agent = await reader(talk)
    for owner in ("Priya", "Tomas"):
        fact = f"The owner of Atlas is {owner} now."
        talk.model.answers["fact_extraction"] = says(fact)
        await agent.stored_id(f"We agreed in the meeting that {owner} takes care of Atlas from here on.")
        await talk.work()
    first, second = await facts(agent)
    assert first.superseded_by == second.memory_id


@pytest.mark.shows("issue5-3-facts")
async def test_two_processes_at_once_store_each_fact_once(services: Services) -> None:
    model = ChatModel()
    same = ("The user lives in Ghent.", "Ghent is where the user lives.")
    model.answers["fact_extraction"] = lambda document: says(same[len(model.asked) - 1])(document)
    model.answer_together("fact_extraction", 2)
    async with talking(services, model) as talk:
        agent = await reader(talk)
        await agent.stored_id(SAID)
        settings = settings_for(services, llm_model="small", llm_base_url=talk.server.url)
        async with open_runtime(settings) as other:
            await asyncio.gather(
                *(Extracting(runtime.parts, Caller(agent.agent_id)).run() for runtime in (talk.runtime, other))
            )
        assert len(model.asked) == 2
        assert len(await facts(agent)) == 1


@pytest.mark.parametrize("deletes", [True, False])
async def test_what_was_deleted_or_changed_meanwhile_leaves_no_facts_of_its_old_words(
    talk: Talking, deletes: bool
) -> None:
    agent = await reader(talk)
    parent = await agent.stored_id(SAID)

    async def touch() -> None:
        if deletes:
            await agent.memory.delete(DeleteParams(memory_ids=[parent]))
        else:
            await change(agent, parent, content="I moved to Namur, and nobody helped me with that.")

    def moved(document: Document) -> Any:
        town = "Ghent" if "Ghent" in document["memories"][0]["text"] else "Namur"
        return says(f"The user moved to {town}.")(document)

    talk.model.answers["fact_extraction"] = moved
    tasks = talk.model.act_during("fact_extraction", touch)
    await talk.work()
    await tasks[0]
    expected = [] if deletes else ["The user moved to Namur."]
    assert [each.content for each in await facts(agent)] == expected


async def test_the_service_may_read_every_agents_memories_unless_one_wishes_otherwise(services: Services) -> None:
    async with talking(services, extract_facts=True) as talk:
        agent, other = talk.agent(), talk.agent()
        await other.memory.configure(ConfigureParams(extract_facts=False))
        await agent.stored_id(SAID)
        await other.stored_id(SAID)
        await talk.work()
        assert len(await facts(agent)) == 1
        assert await facts(other) == []


async def test_a_text_that_the_model_refuses_does_not_keep_the_others_from_being_read(services: Services) -> None:
    def picky(document: Document) -> Any:
        if any("forbidden" in each["text"] for each in document["memories"]):
            return Reply({"error": {"message": "content policy"}}, status=400)
        return says("Maren Holt keeps goats.")(document)

    model = ChatModel()
    async with talking(services, model) as talk:
        agent = await reader(talk)
        await agent.stored_id(SAID)
        await talk.work()
        model.answers["fact_extraction"] = picky
        bad = await agent.stored_id("This text of mine holds a forbidden word, sadly.")
        await agent.stored_id("My aunt Maren Holt keeps goats in the garden of Ghent.")
        await talk.work()
        history = await agent.memory.history(HistoryParams(memory_id=bad))
        after = history.changes[0].after
        assert after is not None
        assert "refused" in after["degraded"]
        assert "Maren Holt keeps goats." in [each.content for each in await facts(agent)]


@pytest.mark.shows("issue5-2-facts")
async def test_facts_read_from_words_that_are_no_more_go_and_the_new_words_are_read(talk: Talking) -> None:
    agent = await reader(talk)
    memory_id = await agent.stored_id("I moved from Bristol to Ghent in 2021 with my sister.")
    await talk.work()
    params = ListParams.model_validate({"tags": ["fact"]})
    [fact] = (await agent.memory.list(params)).memories
    assert "Bristol" in fact.content
    await change(agent, memory_id, content="I moved from Leeds to Ghent in 2021 with my brother.")
    assert (await agent.memory.list(params)).memories == []
    await talk.work()
    [fact] = (await agent.memory.list(params)).memories
    assert "Leeds" in fact.content
    await change(agent, memory_id, importance=0.9)
    await talk.work()
    assert len(talk.model.documents("fact_extraction")) == 2


async def test_a_fact_in_its_callers_words_stays_when_its_source_is_changed(talk: Talking) -> None:
    agent = await reader(talk)
    memory_id = await agent.stored_id("I moved from Bristol to Ghent in 2021 with my sister.")
    await talk.work()
    params = ListParams.model_validate({"tags": ["fact"]})
    [fact] = (await agent.memory.list(params)).memories
    await change(agent, fact.memory_id, content="Ghent is home since 2021.")
    await change(agent, memory_id, content="I moved from Leeds to Ghent in 2021 with my brother.")
    [kept] = (await agent.memory.list(params)).memories
    assert kept.content == "Ghent is home since 2021."
    await talk.work()
    assert len((await agent.memory.list(params)).memories) == 2
