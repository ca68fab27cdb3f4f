"""Period summaries: derived from session summaries, refreshed with them, once under concurrency."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from agentcore.maintenance.rounds import enqueue_llm_work
from agentcore.memory.api import Caller
from agentcore.memory.deriving.period_summaries import PeriodSummarizing
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import SettingsParams
from agentcore.memory.params.changes import HistoryParams
from agentcore.memory.params.sessions import AddSessionParams
from agentcore.runtime import open_runtime
from tests.fixtures.chat_model import ChatModel, Talking, talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.scripted_http import Reply
from tests.fixtures.services import Services
from tests.fixtures.stretches import (
    LINES,
    NOON,
    SALT,
    change,
    compaction,
    message,
    periods,
    rules,
    say,
    summaries,
    told_in,
    two_sessions,
    weekly,
)


@pytest.mark.shows("issue5-2-periods")
async def test_two_sessions_of_a_week_have_a_summary_together(talk: Talking) -> None:
    agent = await weekly(talk)
    await say(agent, "a", 0, LINES[0], LINES[1])
    await talk.work()
    assert await periods(agent) == []
    await say(agent, "b", 3, LINES[2])
    await say(agent, "c", 7, LINES[3])
    await talk.work()
    [period] = await periods(agent)
    own = [each for each in await summaries(agent) if each.session_id in ("a", "b")]
    assert (period.memory_type, period.tags) == (MemoryType.SEMANTIC, ["period_summary"])
    assert period.content == f"user: {LINES[0]}\nuser: {LINES[1]}\nuser: {LINES[2]}"
    assert period.metadata == {
        "period": "2026-W23",
        "from": "2026-06-01T12:00:00+00:00",
        "until": "2026-06-04T12:00:00+00:00",
        "summarised_count": 2,
        "by": "extractive",
    }
    assert period.timestamp == NOON + timedelta(days=3)
    assert {link.target_id for link in period.links} == {each.memory_id for each in own}
    assert {link.relation for link in period.links} == {"summarises"}
    assert period.provenance["form"] == "period"
    assert {*period.provenance["sources"]} == {str(each.memory_id) for each in own}
    history = (await agent.memory.history(HistoryParams(memory_id=period.memory_id))).changes
    assert [each.operation for each in history] == ["summarise"]
    assert any("Antwerp" in each for each in await agent.found("warehouse Antwerp", tags=["period_summary"]))


@pytest.mark.parametrize(
    ("unit", "labels"), [("day", ["2026-06-01"]), ("week", ["2026-W23"]), ("month", ["2026-06"]), (None, [])]
)
@pytest.mark.shows("issue5-2-periods")
async def test_the_agents_rules_say_of_what_time_there_are_summaries(
    talk: Talking, unit: str | None, labels: list[str]
) -> None:
    agent = await weekly(talk, period=unit)
    for place, day in enumerate((0, 0, 2, 20)):
        await say(agent, f"s{place}", day, LINES[place])
    await talk.work()
    assert [each.metadata["period"] for each in await periods(agent)] == labels
    settings = (await agent.memory.settings(SettingsParams())).summaries
    assert settings is not None
    assert settings.period == unit


@pytest.mark.shows("issue5-2-periods")
async def test_users_and_namespaces_have_periods_of_their_own(talk: Talking) -> None:
    agent = await weekly(talk)
    scopes: list[dict[str, Any]] = [{"user_id": "u-1"}, {"user_id": "u-2"}, {"namespace": "n"}, {}]
    for place, scope in enumerate(scopes):
        await say(agent, f"a{place}", 0, LINES[place], **scope)
        await say(agent, f"b{place}", 1, LINES[place + 4], **scope)
    await talk.work()
    found = await periods(agent)
    assert {(each.user_id, each.namespace) for each in found} == {
        ("u-1", None),
        ("u-2", None),
        (None, "n"),
        (None, None),
    }
    assert all(each.metadata["summarised_count"] == 2 for each in found)


@pytest.mark.shows("issue5-2-periods")
async def test_another_session_of_the_week_is_told_in_the_same_summary(talk: Talking) -> None:
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    [before] = await periods(agent)
    await say(agent, "c", 2, SALT)
    await talk.work()
    [period] = await periods(agent)
    assert (period.memory_id, period.version) == (before.memory_id, 2)
    assert SALT in period.content
    assert period.metadata["summarised_count"] == 3
    assert period.timestamp == NOON + timedelta(days=2)
    assert len(period.links) == 3
    assert len(period.provenance["sources"]) == 3
    history = (await agent.memory.history(HistoryParams(memory_id=period.memory_id))).changes
    assert [each.operation for each in history] == ["refresh", "summarise"]


@pytest.mark.shows("issue5-2-periods")
async def test_what_changes_in_a_message_reaches_the_period(talk: Talking) -> None:
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    await change(agent, await message(agent, LINES[1]), content=SALT)
    await talk.work()
    [period] = await periods(agent)
    assert period.content == f"user: {LINES[0]}\nuser: {SALT}"
    [summary] = [each for each in await summaries(agent) if each.session_id == "b"]
    await change(agent, summary.memory_id, content="It was about a policy, says the caller.")
    await talk.work()
    [period] = await periods(agent)
    assert period.content == f"user: {LINES[0]}\nIt was about a policy, says the caller."


async def test_a_period_in_its_callers_words_is_not_written_over(talk: Talking) -> None:
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    [period] = await periods(agent)
    await change(agent, period.memory_id, content="A week of water.")
    await say(agent, "c", 2, SALT)
    await talk.work()
    assert [each.content for each in await periods(agent)] == ["A week of water."]


async def test_callers_compactions_are_told_in_their_period(talk: Talking) -> None:
    agent = await weekly(talk, provider="compaction_aware")
    await say(agent, "a", 0, LINES[0])
    told = compaction("The flood, told by the agent itself.", 2)
    params = {"session_id": "b", "messages": [told]}
    await agent.memory.add_session(AddSessionParams.model_validate(params))
    await talk.work()
    [period] = await periods(agent)
    assert period.metadata["summarised_count"] == 2
    assert told_in(talk)[-1] == [f"They spoke of this: {LINES[0]}", "The flood, told by the agent itself."]


@pytest.mark.shows("issue5-2-periods")
async def test_the_model_tells_of_periods_where_it_tells_of_sessions(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    await two_sessions(agent, talk)
    [period] = await periods(agent)
    assert period.content.splitlines()[0] == f"They spoke of this: They spoke of this: {LINES[0]}"
    assert (period.metadata["by"], period.metadata["prompt"]) == ("openai/small", "session_summary@1")
    assert len(told_in(talk)) == 3


async def test_more_than_one_request_holds_is_told_in_steps(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm", max_tokens=4_000)

    def spoken(document: dict[str, Any]) -> dict[str, Any]:
        first = document["conversation"][0]["text"].split(". ")[0]
        at_length = "" if len(document["conversation"]) > 1 else "They spoke at length. " * 300
        return {"summary": f"They spoke. {first}. {at_length}", "topics": [], "key_facts": []}

    talk.model.answers["session_summary"] = spoken
    for place in range(4):
        await say(agent, f"s{place}", 1, LINES[place])
    await talk.work()
    [period] = await periods(agent)
    assert period.content.startswith("They spoke. ")
    assert period.metadata["by"] == "openai/small"
    assert period.metadata["summarised_count"] == 4


async def test_what_was_said_as_it_was_is_told_of_a_period_by_the_model_or_by_extraction(
    services: Services, talk: Talking
) -> None:
    agent = await weekly(talk, provider="passthrough")
    await two_sessions(agent, talk)
    assert [each.metadata["by"] for each in await periods(agent)] == ["openai/small"]
    async with open_runtime(settings_for(services)) as alone:
        other = Agent(alone)
        await rules(other, provider="passthrough", trigger="session_end", period="week")
        await say(other, "a", 0, LINES[0])
        await say(other, "b", 1, LINES[1])
        await alone.jobs.run_pending()
        [period] = await periods(other)
        assert period.metadata["by"] == "extractive"
        assert "degraded" not in period.metadata


@pytest.mark.shows("issue5-2-periods")
async def test_a_model_that_fails_for_long_is_done_without_and_that_is_told(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    await say(agent, "a", 0, LINES[0])
    await say(agent, "b", 1, LINES[1])
    talk.model.answers["session_summary"] = lambda document: Reply({}, status=500)
    await talk.work()
    assert await periods(agent) == []
    await talk.wait_in_vain()
    await talk.wait_in_vain()
    [period] = await periods(agent)
    assert period.metadata["by"] == "extractive"
    assert period.metadata["degraded"]


async def test_sessions_of_one_job_are_told_together(talk: Talking) -> None:
    agent = await weekly(talk)
    for place in range(5):
        await say(agent, f"s{place}", place, LINES[place])
    await talk.work()
    [period] = await periods(agent)
    assert (period.version, period.metadata["summarised_count"]) == (1, 5)


@pytest.mark.shows("issue5-2-periods")
async def test_sessions_summarised_before_the_rule_are_told_too(talk: Talking) -> None:
    agent = talk.agent()
    await say(agent, "old", 0, LINES[0])
    await rules(agent, provider="extractive", trigger="session_end")
    await say(agent, "older", 1, LINES[1])
    await talk.work()
    assert await periods(agent) == []
    await rules(agent, provider="extractive", trigger="session_end", period="month")
    await talk.work()
    [period] = await periods(agent)
    assert (period.metadata["period"], period.metadata["summarised_count"]) == ("2026-06", 2)


async def test_old_sessions_are_queued_page_by_page(talk: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcore.maintenance.rounds.MEMORIES_A_PAGE", 2)
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    for place in range(4):
        await say(agent, f"s{place}", place, LINES[place])
    await rules(agent, provider="extractive", trigger="session_end", period="week")
    await talk.work()
    assert [each.metadata["summarised_count"] for each in await periods(agent)] == [4]


async def test_of_another_kind_of_period_the_summaries_stay_and_follow_too(talk: Talking) -> None:
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    await rules(agent, provider="extractive", trigger="session_end", period="month")
    await talk.work()
    await change(agent, await message(agent, LINES[1]), content=SALT)
    await talk.work()
    found = await periods(agent)
    assert sorted(each.metadata["period"] for each in found) == ["2026-06", "2026-W23"]
    assert all(SALT in each.content and LINES[1] not in each.content for each in found)
    await rules(agent, provider="none")
    await change(agent, await message(agent, SALT), content=LINES[1])
    await talk.work()
    assert all(LINES[1] in each.content for each in await periods(agent))


# --- concurrency --------------------------------------------------------------------------------------------


@pytest.mark.shows("issue5-2-periods")
async def test_two_workers_at_once_tell_a_period_once(services: Services) -> None:
    model = ChatModel()
    async with talking(services, model) as talk:
        agent = await weekly(talk, period=None, provider="llm")
        await say(agent, "a", 0, LINES[0])
        await say(agent, "b", 1, LINES[1])
        await talk.work()

        model.answer_together("session_summary", 4)
        await rules(agent, provider="llm", trigger="session_end", period="week")
        async with talk.runtime.parts.storage.transaction(agent.agent_id) as transaction:
            ids = [each.memory_id for each in await summaries(agent)]
            await transaction.summaries.enqueue_for_period(ids)
        settings = settings_for(services, llm_model="small", llm_base_url=talk.server.url)
        async with open_runtime(settings) as other:
            await asyncio.gather(
                *(PeriodSummarizing(runtime.parts, Caller(agent.agent_id)).run() for runtime in (talk.runtime, other))
            )
        [period] = await periods(agent)
        assert period.version == 1


async def test_many_sessions_stored_side_by_side_are_all_told(talk: Talking) -> None:
    agent = await weekly(talk)
    await asyncio.gather(*(say(agent, f"s{place}", place % 5, LINES[place]) for place in range(10)))
    parts, caller = talk.runtime.parts, Caller(agent.agent_id)
    await asyncio.gather(*(PeriodSummarizing(parts, caller).run() for _ in range(3)))
    await talk.work()
    [period] = await periods(agent)
    assert period.metadata["summarised_count"] == 10
    assert len(period.links) == 10


async def test_a_period_whose_job_was_lost_is_found_by_the_round(talk: Talking) -> None:
    agent = await weekly(talk)
    await say(agent, "a", 0, LINES[0])
    await say(agent, "b", 1, LINES[1])
    await talk.run("DELETE FROM procrastinate_jobs")
    assert await enqueue_llm_work(talk.runtime.database, talk.runtime.parts) >= 1
    await talk.work()
    assert len(await periods(agent)) == 1
