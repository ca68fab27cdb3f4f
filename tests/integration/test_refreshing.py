"""Session summaries follow their sources: refreshed in place, once, without loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agentcore.maintenance.rounds import enqueue_llm_work
from agentcore.memory.api import Caller
from agentcore.memory.deriving.session_summaries import Refreshing
from agentcore.memory.params.changes import HistoryParams, RevertParams
from agentcore.memory.params.memories import DeleteParams
from agentcore.memory.params.sessions import EndSessionParams
from agentcore.runtime import open_runtime
from tests.fixtures.chat_model import ChatModel, Talking, talking
from tests.fixtures.memory import settings_for
from tests.fixtures.services import Services
from tests.fixtures.stretches import (
    LINES,
    add,
    at,
    change,
    compaction,
    end,
    lines,
    messages,
    rules,
    summaries,
    summarised,
    told_in,
    waiting,
)

NEW = "The policy number of that warehouse is HX-9999."


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services) as running:
        running.model.answers["fact_judge"] = lambda document: {"verdict": "SUPERSEDE"}
        yield running


@pytest.mark.shows("issue5-2-refreshed")
async def test_a_summary_follows_a_message_that_is_changed_in_its_place(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    policy = (await messages(agent))[1]
    await change(agent, policy.memory_id, content=NEW)
    assert [each.content for each in await summaries(agent)] == [before.content]
    await talk.work()
    [summary] = await summaries(agent)
    assert (summary.memory_id, summary.version) == (before.memory_id, 2)
    assert "HX-9999" in summary.content
    assert "HX-2210" not in summary.content
    assert "HX-9999" in " ".join(await agent.found("policy number HX-9999", memory_types=["semantic"]))
    history = (await agent.memory.history(HistoryParams(memory_id=summary.memory_id))).changes
    assert [each.operation for each in history] == ["refresh", "summarise"]
    assert (history[0].before or {})["content"] == before.content
    assert {link.target_id for link in summary.links} == {link.target_id for link in before.links}


@pytest.mark.shows("issue5-2-refreshed")
async def test_without_rules_the_summary_of_a_sessions_end_follows_within_its_own_budget(talk: Talking) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 10))
    await agent.memory.end_session(EndSessionParams(session_id="s", max_tokens=60))
    [before] = await summaries(agent)
    told = next(each for each in await messages(agent) if each.content in before.content)
    await change(agent, told.memory_id, content="The cellar went to Mertens.")
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.memory_id == before.memory_id
    assert told.content not in summary.content
    assert "Mertens" in summary.content
    assert talk.runtime.parts.count_tokens(summary.content) <= 60
    assert talk.model.asked == []


@pytest.mark.shows("issue5-2-refreshed")
async def test_what_no_longer_holds_leaves_a_summary_and_comes_back_with_it(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    old = await agent.stored_id("My phone number is 0151 223344.", session_id="s", timestamp=at(0))
    await add(agent, lines(1, 3))
    await end(agent)
    [first] = await summaries(agent)
    assert "223344" in first.content
    new = await agent.store("My phone number is 0170 998877.", session_id="t", timestamp=at(30))
    assert new.superseded == [old]
    await talk.work()
    [second] = await summaries(agent)
    assert "223344" not in second.content
    assert new.memory_id is not None
    await agent.memory.delete(DeleteParams(memory_ids=[new.memory_id]))
    await talk.work()
    [third] = await summaries(agent)
    assert (third.content, third.memory_id) == (first.content, first.memory_id)
    await agent.store("My phone number is 0170 998877.", session_id="t", timestamp=at(30))
    await talk.work()
    await change(agent, old, current=True)
    await talk.work()
    assert [each.content for each in await summaries(agent)] == [first.content]


async def test_a_message_reverted_is_told_as_it_was(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    policy = (await messages(agent))[1]
    await change(agent, policy.memory_id, content=NEW)
    await talk.work()
    await agent.memory.revert(RevertParams(memory_id=policy.memory_id, version=1))
    await talk.work()
    [summary] = await summaries(agent)
    assert (summary.content, summary.version) == (before.content, 3)


@pytest.mark.shows("issue5-2-refreshed")
async def test_a_summary_is_made_anew_by_the_agents_rules(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk, provider="llm")
    await change(agent, (await messages(agent))[0].memory_id, content="The warehouse in Bruges burned down.")
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.memory_id == before.memory_id
    assert summary.content.splitlines()[0] == "They spoke of this: The warehouse in Bruges burned down."
    assert summary.metadata["by"] == "openai/small"
    assert summary.metadata["summarised_count"] == 3
    assert [len(each) for each in told_in(talk)] == [3, 3]


async def test_what_was_said_as_it_was_said_is_so_again(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk, provider="passthrough")
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == f"user: {LINES[0]}\nuser: {NEW}\nuser: {LINES[2]}"


async def test_a_summary_with_nothing_left_to_say_goes(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    await agent.stored_id("My phone number is 0151 223344.", session_id="s", timestamp=at(0))
    await end(agent)
    assert len(await summaries(agent)) == 1
    await agent.store("My phone number is 0170 998877.", session_id="t", timestamp=at(30))
    await talk.work()
    assert await summaries(agent) == []


@pytest.mark.shows("issue5-2-refreshed")
async def test_a_summary_in_its_callers_words_is_not_written_over(talk: Talking) -> None:
    agent = talk.agent()
    summary = await summarised(agent, talk)
    await change(agent, summary.memory_id, content="It was about the flood.")
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.work()
    [kept] = await summaries(agent)
    assert (kept.content, kept.version) == ("It was about the flood.", 2)
    assert await waiting(agent) == []


@pytest.mark.shows("issue5-2-refreshed")
async def test_a_callers_compaction_is_never_touched(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="compaction_aware", trigger="session_end")
    await add(agent, [*lines(0, 3), compaction("The flood, told by the agent itself.", 2)])
    await end(agent)
    await talk.work()
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.work()
    [summary] = await summaries(agent)
    assert (summary.content, summary.version) == ("The flood, told by the agent itself.", 1)
    assert talk.model.asked == []


async def test_what_changes_other_than_in_words_makes_nothing_wait(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    await change(agent, (await messages(agent))[1].memory_id, tags=["urgent"], importance=0.9)
    assert await waiting(agent) == []


async def test_changed_and_changed_back_no_model_is_asked(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk, provider="llm")
    policy = (await messages(agent))[1]
    await change(agent, policy.memory_id, content=NEW)
    await talk.work()
    await change(agent, policy.memory_id, content="It is unknown.")
    await change(agent, policy.memory_id, content=NEW)
    await talk.work()
    assert len(told_in(talk)) == 2
    assert await waiting(agent) == []


async def test_a_refresh_whose_job_was_lost_is_found_by_the_round(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.run("DELETE FROM procrastinate_jobs")
    assert await enqueue_llm_work(talk.runtime.database, talk.runtime.parts) >= 1
    await talk.work()
    assert "HX-9999" in (await summaries(agent))[0].content


# --- concurrency --------------------------------------------------------------------------------------------


@pytest.mark.shows("issue5-2-refreshed")
async def test_two_workers_at_once_write_a_summary_once(services: Services) -> None:
    model = ChatModel()
    async with talking(services, model) as talk:
        agent = talk.agent()
        await summarised(agent, talk, provider="llm")
        await change(agent, (await messages(agent))[1].memory_id, content=NEW)

        words = {2: "They spoke to one of Antwerp.", 3: "They spoke to the other of Antwerp."}
        model.answers["session_summary"] = lambda document: {
            "summary": words[len(model.documents("session_summary"))],
            "topics": [],
            "key_facts": [],
        }
        model.answer_together("session_summary", 3)
        settings = settings_for(services, llm_model="small", llm_base_url=talk.server.url)
        async with open_runtime(settings) as other:
            await asyncio.gather(
                *(Refreshing(runtime.parts, Caller(agent.agent_id)).run() for runtime in (talk.runtime, other))
            )
        [summary] = await summaries(agent)
        history = (await agent.memory.history(HistoryParams(memory_id=summary.memory_id))).changes
        assert [each.operation for each in history] == ["refresh", "summarise"]
        assert summary.content.startswith("They spoke to ")
        assert await waiting(agent) == []


@pytest.mark.shows("issue5-2-refreshed")
async def test_a_message_changed_while_the_model_reads_is_read_again(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk, provider="llm")
    first = (await messages(agent))[0].memory_id
    burned = "The warehouse in Bruges burned down."
    tasks = talk.model.act_during("session_summary", lambda: change(agent, first, content=burned))
    await change(agent, first, content="The warehouse in Aalst was sold.")
    await talk.work()
    await tasks[0]
    [summary] = await summaries(agent)
    assert summary.content.splitlines()[0] == f"They spoke of this: {burned}"
    assert summary.version == 2
