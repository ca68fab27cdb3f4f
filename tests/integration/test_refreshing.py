"""Summaries of sessions say what their sources say now: made anew in their place, once, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from agentcore.maintenance.llm_work import enqueue_llm_work
from agentcore.memory.api import Caller
from agentcore.memory.archive_params import RestoreParams
from agentcore.memory.change_params import HistoryParams, RevertParams, UpdateParams
from agentcore.memory.layer_params import ConfigureParams
from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.params import DeleteParams, ListParams, PruneParams
from agentcore.memory.refreshing import Refreshing
from agentcore.memory.session_params import EndSessionParams
from agentcore.runtime import open_runtime
from tests.fixtures.chat_model import ChatModel, Talking, answered, talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.scripted_http import Reply
from tests.fixtures.services import Services
from tests.fixtures.stretches import LINES, add, at, compaction, end, lines, rules, summaries, told_in

NEW = "The policy number of that warehouse is HX-9999."


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services) as running:
        running.model.answers["fact_judge"] = lambda document: {"verdict": "SUPERSEDE"}
        yield running


async def messages(agent: Agent) -> list[MemoryRecord]:
    params = ListParams.model_validate({"session_id": "s", "memory_types": ["episodic"], "descending": False})
    return (await agent.memory.list(params)).memories


async def change(agent: Agent, memory_id: UUID, **updates: Any) -> None:
    params = {"memory_id": memory_id, "updates": updates}
    await agent.memory.update(UpdateParams.model_validate(params))


async def summarised(agent: Agent, talk: Talking, count: int = 3, **wishes: Any) -> MemoryRecord:
    """A session of so many messages with its summary."""
    await rules(agent, **{"provider": "extractive", "trigger": "session_end", **wishes})
    await add(agent, lines(0, count))
    await end(agent)
    await talk.work()
    [summary] = await summaries(agent)
    return summary


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


async def test_without_rules_the_summary_of_a_sessions_end_follows_within_its_own_budget(
    talk: Talking
) -> None:
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


async def test_a_summary_is_made_anew_by_the_agents_rules(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk, provider="llm")
    await change(agent, (await messages(agent))[0].memory_id, content="The warehouse in Bruges burned down.")
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.memory_id == before.memory_id
    assert summary.content == "They spoke of this: The warehouse in Bruges burned down."
    assert summary.metadata["by"] == "openai/small"
    assert summary.metadata["summarised_count"] == 3
    assert [len(each) for each in told_in(talk)] == [3, 3]


async def test_a_model_that_fails_leaves_the_summary_waiting_and_then_plain_code_does_it(
    talk: Talking
) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk, provider="llm")
    talk.model.answers["session_summary"] = lambda document: Reply({}, status=500)
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.work()
    assert [each.content for each in await summaries(agent)] == [before.content]
    await talk.wait_in_vain()
    [summary] = await summaries(agent)
    assert "HX-9999" in summary.content
    assert summary.metadata["by"] == "extractive"
    assert summary.metadata["degraded"]


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


async def test_a_summary_in_its_callers_words_is_not_written_over(talk: Talking) -> None:
    agent = talk.agent()
    summary = await summarised(agent, talk)
    await change(agent, summary.memory_id, content="It was about the flood.")
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.work()
    [kept] = await summaries(agent)
    assert (kept.content, kept.version) == ("It was about the flood.", 2)
    assert await waiting(agent) == []


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


async def waiting(agent: Agent) -> list[str]:
    """Kinds of work that waits."""
    statement = "SELECT work FROM llm_queue WHERE agent_id = %s ORDER BY work"
    async with agent.runtime.database.owner_transaction() as connection:
        rows = await (await connection.execute(statement, [agent.agent_id])).fetchall()
    return [row["work"] for row in rows]


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


# --- once --------------------------------------------------------------------------------------------------


async def test_two_workers_at_once_write_a_summary_once(services: Services) -> None:
    release, model = asyncio.Event(), ChatModel()
    answer = model.answers["session_summary"]
    async with talking(services, model) as talk:
        agent = talk.agent()
        await summarised(agent, talk, provider="llm")
        await change(agent, (await messages(agent))[1].memory_id, content=NEW)

        def slow(document: dict[str, Any]) -> Reply:
            said = answer(document)
            assert isinstance(said, dict)
            if len(model.documents("session_summary")) == 3:
                release.set()
            return Reply(answered(said).body, waits_for=release)

        model.answers["session_summary"] = slow
        settings = settings_for(services, llm_model="small", llm_base_url=talk.server.url)
        async with open_runtime(settings) as other:
            await asyncio.gather(*(
                Refreshing(runtime.parts, Caller(agent.agent_id)).run() for runtime in (talk.runtime, other)))
        [summary] = await summaries(agent)
        history = (await agent.memory.history(HistoryParams(memory_id=summary.memory_id))).changes
        # The words are the same as before: nothing but the account of what it is of was written.
        assert [each.operation for each in history] == ["summarise"]
        assert await waiting(agent) == []


async def test_a_message_changed_while_the_model_reads_is_read_again(services: Services) -> None:
    model, tasks = ChatModel(), []
    answer = model.answers["session_summary"]
    async with talking(services, model) as talk:
        agent = talk.agent()
        await summarised(agent, talk, provider="llm")
        first = (await messages(agent))[0]
        changed = asyncio.Event()

        async def again() -> None:
            await change(agent, first.memory_id, content="The warehouse in Bruges burned down.")
            changed.set()

        def meanwhile(document: dict[str, Any]) -> Reply:
            if not tasks:
                tasks.append(asyncio.get_running_loop().create_task(again()))
            said = answer(document)
            assert isinstance(said, dict)
            return Reply(answered(said).body, waits_for=changed)

        model.answers["session_summary"] = meanwhile
        await change(agent, first.memory_id, content="The warehouse in Aalst was sold.")
        await talk.work()
        await tasks[0]
        [summary] = await summaries(agent)
        assert summary.content == "They spoke of this: The warehouse in Bruges burned down."
        assert summary.version == 2


# --- deleted, archived, expired ----------------------------------------------------------------------------


@pytest.mark.parametrize("wishes", [
    {"trigger": "session_end"}, {"trigger": "user_turns", "user_turns": 5},
    {"trigger": "inactivity", "inactivity_seconds": 3_600}, {"trigger": "message_count", "message_count": 5},
])
async def test_what_lost_its_summary_has_another_at_once_whatever_the_trigger(
    talk: Talking, wishes: dict[str, Any]
) -> None:
    agent = talk.agent()
    await summarised(agent, talk, 5, **wishes)
    going = (await messages(agent))[1]
    await agent.memory.delete(DeleteParams(memory_ids=[going.memory_id]))
    assert await summaries(agent) == []
    await add(agent, lines(6, 7))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.metadata["summarised_count"] == 4
    assert "HX-2210" not in summary.content
    assert await waiting(agent) == ["summary"]


async def test_what_lost_its_summary_and_its_job_is_found_by_the_round(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    await agent.memory.delete(DeleteParams(memory_ids=[(await messages(agent))[1].memory_id]))
    await talk.run("DELETE FROM procrastinate_jobs")
    assert await enqueue_llm_work(talk.runtime.database, talk.runtime.parts) >= 1
    await talk.work()
    assert len(await summaries(agent)) == 1


async def test_many_sessions_that_lost_their_summaries_all_have_another(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    for number in range(23):
        messages_of = [{**line, "message_id": f"{number}-{line['message_id']}"} for line in lines(0, 2)]
        await add(agent, messages_of, f"s{number}")
        await end(agent, f"s{number}")
    assert len(await summaries(agent)) == 23
    listed = await agent.memory.list(ListParams(memory_types=[MemoryType.EPISODIC], limit=100))
    going = [each.memory_id for each in listed.memories if each.content == LINES[0]]
    await agent.memory.delete(DeleteParams(memory_ids=going))
    await talk.work()
    made = await summaries(agent)
    assert [each.content for each in made] == [f"user: {LINES[1]}"] * 23


async def test_two_deletions_from_one_session_at_once_leave_a_summary_of_the_rest(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk, 5)
    going = [each.memory_id for each in (await messages(agent))[:4]]
    await asyncio.gather(*(agent.memory.delete(DeleteParams(memory_ids=[each])) for each in going))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == f"user: {LINES[4]}"


async def test_words_of_a_message_that_was_superseded_go_from_the_history_when_it_is_deleted(
    talk: Talking
) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    old = await agent.stored_id("My phone number is 0151 223344.", session_id="s", timestamp=at(0))
    await add(agent, lines(1, 3))
    await end(agent)
    await agent.store("My phone number is 0170 998877.", session_id="t", timestamp=at(30))
    await talk.work()
    await agent.memory.delete(DeleteParams(memory_ids=[old]))
    await talk.work()
    statement = "SELECT FROM memory_history WHERE agent_id = %s AND before ->> 'content' LIKE '%%223344%%'"
    async with talk.runtime.database.owner_transaction() as connection:
        assert await (await connection.execute(statement, [agent.agent_id])).fetchall() == []
    assert len(await summaries(agent)) == 1


async def archive(agent: Agent, target: int) -> None:
    prune = PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=target)
    await agent.memory.prune(prune)


async def test_what_a_summary_says_of_archived_messages_stays_when_another_is_changed(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    await archive(agent, 1)
    assert len(await messages(agent)) == 2
    await change(agent, (await messages(agent))[0].memory_id, content=NEW)
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == f"user: {LINES[0]}\nuser: {NEW}\nuser: {LINES[2]}"
    assert "not there any more" in summary.metadata["degraded"]


async def test_a_models_words_of_archived_messages_stay_and_what_changed_stands_behind_them(
    talk: Talking
) -> None:
    agent = talk.agent()
    await summarised(agent, talk, provider="llm")
    await archive(agent, 1)
    policy = (await messages(agent))[0]
    await change(agent, policy.memory_id, content=NEW)
    await talk.work()
    told = f"They spoke of this: {LINES[0]}"
    assert (await summaries(agent))[0].content == f"{told}\nuser: {NEW}"
    await change(agent, policy.memory_id, content="The policy number of that warehouse is HX-1111.")
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == f"{told}\nuser: The policy number of that warehouse is HX-1111."
    assert len(told_in(talk)) == 1


async def test_a_summary_outlives_expired_messages_and_keeps_what_it_says_of_them(talk: Talking) -> None:
    agent = talk.agent()
    await summarised(agent, talk)
    first, policy, _ = await messages(agent)
    over = "UPDATE memories SET expires_at = now() - interval '1 hour' WHERE memory_id = %s"
    async with talk.runtime.database.owner_transaction() as connection:
        await connection.execute(over, [first.memory_id])
    await change(agent, policy.memory_id, content=NEW)
    await talk.work()
    await talk.runtime.maintenance.round()
    [summary] = await summaries(agent)
    assert "Antwerp" in summary.content
    assert "HX-9999" in summary.content


async def test_with_all_messages_archived_a_summary_stays_as_it_is(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    await archive(agent, 3)
    assert [each.content for each in await summaries(agent)] == [before.content]
    assert await waiting(agent) == []


async def test_restored_messages_are_told_anew_with_what_was_changed_meanwhile(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    first = (await messages(agent))[0].memory_id
    await archive(agent, 1)
    await change(agent, (await messages(agent))[0].memory_id, content=NEW)
    await talk.work()
    await agent.memory.restore(RestoreParams(memory_ids=[first]))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == before.content.replace(LINES[1], NEW)
    assert "degraded" not in summary.metadata


async def test_a_restored_summary_learns_what_was_changed_while_it_was_archived(talk: Talking) -> None:
    agent = talk.agent()
    before = await summarised(agent, talk)
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1))
    assert await summaries(agent) == []
    await change(agent, (await messages(agent))[1].memory_id, content=NEW)
    await talk.work()
    await agent.memory.restore(RestoreParams(memory_ids=[before.memory_id]))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == before.content.replace(LINES[1], NEW)


# --- facts -------------------------------------------------------------------------------------------------


async def test_facts_read_from_words_that_are_no_more_go_and_the_new_words_are_read(talk: Talking) -> None:
    agent = talk.agent()
    await agent.memory.configure(ConfigureParams(extract_facts=True))
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
    agent = talk.agent()
    await agent.memory.configure(ConfigureParams(extract_facts=True))
    memory_id = await agent.stored_id("I moved from Bristol to Ghent in 2021 with my sister.")
    await talk.work()
    params = ListParams.model_validate({"tags": ["fact"]})
    [fact] = (await agent.memory.list(params)).memories
    await change(agent, fact.memory_id, content="Ghent is home since 2021.")
    await change(agent, memory_id, content="I moved from Leeds to Ghent in 2021 with my brother.")
    [kept] = (await agent.memory.list(params)).memories
    assert kept.content == "Ghent is home since 2021."
