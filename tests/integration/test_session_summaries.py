"""Session summaries by stretch: triggers, and once per stretch under concurrency."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.maintenance.rounds import enqueue_llm_work
from agentcore.memory.api import Caller
from agentcore.memory.deriving import session_summaries
from agentcore.memory.deriving.session_summaries import SessionSummarizing
from agentcore.memory.params.agent_settings import ConfigureParams, SettingsParams
from agentcore.memory.params.archived import EraseParams
from agentcore.memory.params.changes import HistoryParams
from agentcore.memory.params.memories import DeleteParams, GetParams, ListParams
from agentcore.memory.params.sessions import AddSessionParams
from agentcore.runtime import open_runtime
from tests.fixtures.chat_model import ChatModel, Talking, talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services
from tests.fixtures.stretches import LINES, add, change, end, lines, messages, rules, summaries, told_in, waiting


async def jobs_of(talk: Talking, agent: Agent) -> list[Any]:
    return await talk.runtime.jobs.queue.page(agent_id=agent.agent_id)


async def text_of(agent: Agent, memory_id: UUID) -> str:
    return (await agent.memory.get(GetParams(memory_id=memory_id))).memory.content


# --- triggers ----------------------------------------------------------------------------------------------


@pytest.mark.shows("issue5-5-triggers")
async def test_every_five_user_turns_a_stretch_is_summarised_in_the_background(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm")
    await add(agent, lines(0, 4))
    await talk.work()
    assert await summaries(agent) == []
    await add(agent, [{"role": "assistant", "content": "I have noted all of that for you."}, *lines(4, 5)])
    assert talk.model.asked == []
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content.splitlines()[0] == f"They spoke of this: {LINES[0]}"
    assert [len(each) for each in told_in(talk)] == [6]
    assert summary.metadata["summarised_count"] == 6
    assert (summary.metadata["by"], summary.metadata["prompt"]) == ("openai/small", "session_summary@1")
    assert summary.metadata["topics"] == ["talk"]
    assert len(summary.links) == 6
    history = await agent.memory.history(HistoryParams(memory_id=summary.memory_id))
    assert [change.operation for change in history.changes] == ["summarise"]


@pytest.mark.shows("issue5-5-once")
async def test_the_same_session_saved_again_adds_only_what_is_new(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm")
    await add(agent, lines(0, 5))
    await talk.work()
    await add(agent, lines(0, 9))
    await talk.work()
    assert len(await summaries(agent)) == 1
    await add(agent, lines(0, 10))
    await talk.work()
    assert told_in(talk) == [list(LINES[:5]), list(LINES[5:])]
    assert len(await summaries(agent)) == 2
    await add(agent, lines(0, 10))
    await talk.later()
    assert len(told_in(talk)) == 2


@pytest.mark.shows("issue5-5-triggers")
async def test_a_number_of_messages_ends_a_stretch_whoever_speaks(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="message_count", message_count=3)
    await add(agent, lines(0, 3, role="assistant"))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.metadata["by"] == "extractive"
    assert talk.model.asked == []


async def test_of_a_stretch_that_lost_a_message_the_rest_is_summarised_again(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    await add(agent, lines(0, 3))
    await end(agent)
    [summary] = await summaries(agent)
    assert "HX-2210" in summary.content
    going = [link.target_id for link in summary.links if (await text_of(agent, link.target_id)) == LINES[1]]
    await agent.memory.delete(DeleteParams(memory_ids=going))
    assert await summaries(agent) == []
    await end(agent)
    [again] = await summaries(agent)
    assert again.metadata["summarised_count"] == 2
    assert "HX-2210" not in again.content
    assert "Antwerp" in again.content


@pytest.mark.shows("issue5-5-triggers")
async def test_inactivity_ends_a_stretch_and_another_message_puts_it_off(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="inactivity", inactivity_seconds=60)
    await add(agent, lines(0, 2))
    await talk.later()
    assert await summaries(agent) == []
    await talk.run("UPDATE llm_queue SET queued_at = queued_at - interval '70 seconds'")
    await add(agent, lines(2, 3))
    await talk.later()
    assert await summaries(agent) == []
    await talk.run("UPDATE llm_queue SET queued_at = queued_at - interval '70 seconds'")
    await talk.later()
    assert [each.metadata["summarised_count"] for each in await summaries(agent)] == [3]


@pytest.mark.shows("issue5-5-triggers")
async def test_the_end_of_a_session_summarises_what_is_left(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    await add(agent, lines(0, 3))
    ended = await end(agent)
    assert (ended.summary_pending, ended.summary_id) == (True, None)
    assert "Antwerp" in ended.summary
    assert talk.model.asked == []
    await talk.work()
    assert len(await summaries(agent)) == 1
    [summary] = await summaries(agent)
    again = await end(agent)
    assert (again.summary_pending, again.summary, again.summary_id) == (False, summary.content, summary.memory_id)
    await talk.work()
    assert len(told_in(talk)) == 1


async def test_a_session_of_more_than_one_call_reads_is_summarised_to_its_end(
    talk: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_summaries, "MOST_MESSAGES", 40)
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end", max_tokens=20)
    # More messages than one pass reads, and than the maximum of passes without a result.
    told = (session_summaries.MOST_LOOKS + 1) * session_summaries.MOST_MESSAGES - 30
    await add(agent, [{"role": "user", "content": f"Pallet {n} is on the barge."} for n in range(told)])
    await end(agent)
    assert await waiting(agent) == []


async def test_what_was_said_before_the_rules_were_set_is_summarised_at_the_end_too(talk: Talking) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 2))
    await rules(agent, provider="extractive", trigger="session_end")
    await add(agent, lines(2, 3))
    await end(agent)
    [summary] = await summaries(agent)
    assert summary.metadata["summarised_count"] == 3
    assert "Antwerp" in summary.content


async def test_rules_taken_back_and_set_again_summarise_nothing_twice(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    await add(agent, lines(0, 3))
    await rules(agent, provider="none")
    await end(agent)
    [kept] = await summaries(agent)
    await rules(agent, provider="extractive", trigger="session_end")
    ended = await end(agent)
    assert [each.memory_id for each in await summaries(agent)] == [kept.memory_id]
    assert ended.summary_id == kept.memory_id


async def test_without_a_model_the_end_of_a_session_keeps_its_summary_at_once(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    await add(agent, lines(0, 3))
    ended = await end(agent)
    [summary] = await summaries(agent)
    assert (ended.summary_id, ended.summary_pending) == (summary.memory_id, False)
    assert ended.summary == summary.content


async def test_what_side_by_side_stores_cannot_see_is_found_later(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", user_turns=100)
    await add(agent, lines(0, 6))
    await rules(agent, provider="extractive", user_turns=5)
    await talk.work()
    assert await summaries(agent) == []
    assert await jobs_of(talk, agent) == []
    await talk.runtime.maintenance.round()
    assert len(await jobs_of(talk, agent)) == 1
    await talk.work()
    assert [each.metadata["summarised_count"] for each in await summaries(agent)] == [6]


async def test_a_quiet_session_whose_job_was_lost_is_found_too(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="inactivity", inactivity_seconds=60)
    await add(agent, lines(0, 2))
    await talk.run("DELETE FROM procrastinate_jobs")
    await talk.runtime.maintenance.round()
    await talk.work()
    assert await summaries(agent) == []
    await talk.run("UPDATE llm_queue SET queued_at = queued_at - interval '70 seconds'")
    assert await enqueue_llm_work(talk.runtime.database, talk.runtime.parts) >= 1
    await talk.work()
    assert len(await summaries(agent)) == 1


async def test_rules_that_were_taken_back_leave_what_waits_alone(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="inactivity", inactivity_seconds=60)
    await add(agent, lines(0, 2))
    await rules(agent, provider="none")
    await talk.run("UPDATE llm_queue SET queued_at = queued_at - interval '70 seconds'")
    await talk.later()
    await enqueue_llm_work(talk.runtime.database, talk.runtime.parts)
    await talk.work()
    assert await summaries(agent) == []


async def test_an_agent_without_rules_leaves_nothing_waiting(talk: Talking) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 10))
    await talk.work()
    assert (await end(agent)).summary_id is not None
    assert talk.model.asked == []
    assert (await agent.memory.settings(SettingsParams())).summaries is None
    await rules(agent, provider="llm")
    await rules(agent, provider="none")
    assert (await agent.memory.settings(SettingsParams())).summaries is None
    await add(agent, lines(10, 16))
    await talk.work()
    assert talk.model.asked == []


# --- concurrency --------------------------------------------------------------------------------------------


@pytest.mark.shows("issue5-5-once")
async def test_two_processes_at_once_make_one_summary(services: Services) -> None:
    """As when a live worker is taken for dead: the second write is dropped."""
    model = ChatModel()
    model.answer_together("session_summary", 2)
    async with talking(services, model) as talk:
        agent = talk.agent()
        await rules(agent, provider="llm", trigger="session_end")
        await add(agent, lines(0, 5))
        settings = settings_for(services, llm_model="small", llm_base_url=talk.server.url)
        async with open_runtime(settings) as other:
            kept = await asyncio.gather(
                *(
                    SessionSummarizing(runtime.parts, Caller(agent.agent_id), "s").run()
                    for runtime in (talk.runtime, other)
                )
            )
        assert sorted(map(len, kept)) == [0, 1]
        assert len(await summaries(agent)) == 1


@pytest.mark.shows("issue5-5-once")
async def test_two_workers_share_the_sessions_and_summarise_each_once(services: Services) -> None:
    async with talking(services) as talk:
        agents = [talk.agent() for _ in range(4)]
        for agent in agents:
            await rules(agent, provider="llm")
            await add(agent, lines(0, 5))
        settings = settings_for(services, llm_model="small", llm_base_url=talk.server.url)
        async with open_runtime(settings) as other:
            await asyncio.gather(talk.work(), other.jobs.run_pending())
        assert [len(await summaries(agent)) for agent in agents] == [1] * 4
        assert len(told_in(talk)) == 4


async def test_what_changes_while_the_model_reads_is_read_again(talk: Talking) -> None:
    """A summary contains no text of a deleted memory and none from before a correction."""
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    await add(agent, lines(0, 3))
    held = await messages(agent)

    async def touch() -> None:
        await agent.memory.delete(DeleteParams(memory_ids=[held[0].memory_id]))
        await change(agent, held[1].memory_id, content="The policy number of that warehouse is HX-9999.")

    tasks = talk.model.act_during("session_summary", touch)
    await end(agent)
    await talk.work()
    await tasks[0]
    [summary] = await summaries(agent)
    assert "Antwerp" not in summary.content
    assert "HX-9999" in summary.content
    assert told_in(talk)[1][0].endswith("HX-9999.")


async def test_what_was_made_of_a_users_words_is_erased_with_them(talk: Talking) -> None:
    agent = talk.agent()
    await agent.memory.configure(ConfigureParams(extract_facts=True))
    await rules(agent, provider="llm", trigger="session_end")
    for user_id, first in (("u-1", 0), ("u-2", 3)):
        params = {"session_id": "s", "user_id": user_id, "messages": lines(first, first + 3)}
        await agent.memory.add_session(AddSessionParams.model_validate(params))
    await end(agent)
    await talk.work()
    assert [each.user_id for each in await summaries(agent)] == [None]
    await agent.memory.erase(EraseParams(user_id="u-1", confirm=True))
    left = (await agent.memory.list(ListParams(limit=100))).memories
    assert {each.user_id for each in left} == {"u-2"}
    assert not any(LINES[0] in each.content for each in left)


async def test_others_at_work_for_ever_is_told_rather_than_waited_for(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    await add(agent, lines(0, 2))
    held = (await messages(agent))[0].memory_id
    times = count()

    async def touch() -> None:
        await change(agent, held, content=f"It is different now, for the {next(times)}th time.")

    tasks = talk.model.act_during("session_summary", touch, once=False)
    with pytest.raises(DependencyUnavailable, match="Others are at work"):
        await SessionSummarizing(talk.runtime.parts, Caller(agent.agent_id), "s").run()
    await asyncio.gather(*tasks)
    assert await summaries(agent) == []
