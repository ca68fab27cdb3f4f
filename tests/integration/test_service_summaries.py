"""The operator's default summary provider applies to agents without their own rules."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.errors import ConfigurationError, NotAuthorised
from agentcore.maintenance.rounds import enqueue_llm_work
from agentcore.memory.llm import LlmOptions, SourceText, SummaryRequest, WrittenSummary
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import ConfigureParams, SettingsParams
from agentcore.memory.params.memories import DeleteParams, RetrieveParams
from agentcore.memory.params.sessions import AddSessionParams
from agentcore.runtime import open_runtime
from agentcore.server import create_app
from tests.fixtures.chat_model import Talking, talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services
from tests.fixtures.stretches import LINES, add, end, lines, message, periods, rules, say, summaries, told_in, waiting

HERE = __name__
EVERY_THREE = {"provider": "llm", "user_turns": 3}
A_DAY_AGO = "UPDATE llm_queue SET queued_at = queued_at - interval '25 hours' WHERE agent_id = ANY (%s)"


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services, summaries=EVERY_THREE) as running:
        yield running


async def in_force(agent: Agent) -> Any:
    return (await agent.memory.settings(SettingsParams())).summaries


@pytest.mark.shows("issue5-5-default")
async def test_the_services_trigger_fires_for_an_agent_that_configured_nothing(talk: Talking) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 2))
    await talk.work()
    assert await summaries(agent) == []
    await add(agent, lines(2, 3))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.metadata["by"] == "openai/small"
    assert told_in(talk) == [list(LINES[:3])]
    assert (await in_force(agent)).user_turns == 3


@pytest.mark.parametrize(
    "rules_of_service",
    [
        {"trigger": "message_count", "message_count": 3},
        {"trigger": "inactivity", "inactivity_seconds": 60},
        {"trigger": "session_end", "max_tokens": 40},
    ],
)
async def test_each_trigger_may_be_the_services(services: Services, rules_of_service: dict[str, Any]) -> None:
    async with talking(services, summaries=rules_of_service) as talk:
        agent = talk.agent()
        await add(agent, lines(0, 3))
        await talk.run("UPDATE llm_queue SET queued_at = queued_at - interval '70 seconds'")
        await talk.later()
        done = rules_of_service["trigger"] != "session_end"
        assert len(await summaries(agent)) == done
        await end(agent)
        [summary] = await summaries(agent)
        assert summary.metadata["summarised_count"] == 3
        assert summary.provenance["max_tokens"] == rules_of_service.get("max_tokens", 200)


@pytest.mark.shows("issue5-5-default")
async def test_an_agents_own_rules_go_before_the_services(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", user_turns=5)
    await add(agent, lines(0, 4))
    await talk.work()
    assert await summaries(agent) == []
    await add(agent, lines(4, 5))
    await talk.work()
    assert [each.metadata["by"] for each in await summaries(agent)] == ["extractive"]
    assert talk.model.asked == []


@pytest.mark.shows("issue5-5-default")
async def test_none_is_a_rule_of_ones_own_and_default_gives_the_services_back(talk: Talking) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 2))
    assert await waiting(agent) == ["summary"] * 2
    await rules(agent, provider="none")
    assert (await in_force(agent), await waiting(agent)) == (None, [])
    await add(agent, lines(2, 6))
    await talk.work()
    assert (await summaries(agent), await waiting(agent)) == ([], [])
    await rules(agent, provider="default")
    assert (await in_force(agent)).user_turns == 3
    await add(agent, lines(6, 9))
    await talk.work()
    assert told_in(talk) == [list(LINES[6:9])]


async def test_what_jobs_left_behind_is_found_by_the_services_rules(talk: Talking) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 3))
    await talk.run("DELETE FROM procrastinate_jobs")
    assert await enqueue_llm_work(talk.runtime.database, talk.runtime.parts) == 1
    await talk.work()
    assert len(await summaries(agent)) == 1


async def test_what_waits_by_rules_that_the_service_has_no_more_is_gone_after_a_day(
    services: Services, talk: Talking
) -> None:
    agent, own = talk.agent(), talk.agent()
    await rules(own, trigger="session_end")
    for each in (agent, own):
        await add(each, lines(0, 2))
    async with open_runtime(settings_for(services)) as without:
        parts, database = without.parts, without.database
        await enqueue_llm_work(database, parts)
        assert await waiting(agent) == ["summary"] * 2
        async with database.owner_transaction() as connection:
            await connection.execute(A_DAY_AGO, [[agent.agent_id, own.agent_id]])
        await enqueue_llm_work(database, parts)
        assert (await waiting(agent), await waiting(own)) == ([], ["summary"] * 2)
        again = Agent(without, agent.agent_id)
        assert (await end(again)).summary_id is not None


async def test_of_a_stretch_that_lost_a_message_the_rest_is_told_again_by_the_services_rules(talk: Talking) -> None:
    agent = talk.agent()
    await add(agent, lines(0, 3))
    await talk.work()
    await agent.memory.delete(DeleteParams(memory_ids=[await message(agent, LINES[1])]))
    assert await summaries(agent) == []
    await talk.work()
    assert told_in(talk)[1:] == [[LINES[0], LINES[2]]]
    assert len(await summaries(agent)) == 1


@pytest.mark.shows("issue5-5-default")
async def test_the_services_periods_are_told_of_without_a_word_of_the_agent(services: Services) -> None:
    by_week = {"provider": "extractive", "trigger": "session_end", "period": "week"}
    async with talking(services, summaries=by_week) as talk:
        agent, other = talk.agent(), talk.agent()
        await rules(other, provider="none")
        for each in (agent, other):
            await say(each, "a", 0, LINES[0])
            await say(each, "b", 1, LINES[2])
        await talk.work()
        assert [each.metadata["period"] for each in await periods(agent)] == ["2026-W23"]
        assert await periods(other) == []


async def test_the_services_compaction_trigger_keeps_each_compaction(services: Services) -> None:
    async with talking(services, summaries={"trigger": "compaction"}) as talk:
        agent = talk.agent()
        await add(agent, lines(0, 3))
        [*_, last] = lines(0, 3)
        own = {"role": "assistant", "content": "Antwerp flooded.", "compacted_until": last["timestamp"]}
        await add(agent, [own])
        await talk.work()
        [kept] = await summaries(agent)
        assert (kept.content, len(kept.links)) == ("Antwerp flooded.", 3)
        assert (await waiting(agent), talk.model.asked) == ([], [])


@pytest.mark.shows("issue5-5-default")
async def test_a_token_to_read_and_write_is_all_that_it_takes(talk: Talking) -> None:
    secret, agent = talk.runtime.settings.jwt_secret_key, talk.agent()
    assert secret is not None
    token = mint_token(secret.get_secret_value(), agent.agent_id, ["memory:read", "memory:write"], 600)
    async with MemoryClient.in_process(create_app(talk.runtime), token) as memory:
        params = {"session_id": "s", "messages": lines(0, 3)}
        await memory.add_session(AddSessionParams.model_validate(params))
        await talk.work()
        asked = RetrieveParams(query="What flooded?", memory_types=[MemoryType.SEMANTIC])
        assert [each.tags for each in (await memory.retrieve(asked)).memories] == [["session_summary"]]
        wish = ConfigureParams.model_validate({"summaries": {"provider": "none"}})
        with pytest.raises(NotAuthorised):
            await memory.configure(wish)


# --- providers ----------------------------------------------------------------------------------------------


class Telegraphist:
    """A third-party summarizer: the first speaker and their first words."""

    model, prompt = "tests/telegraph", "telegraph@1"

    def __init__(self, options: LlmOptions) -> None:
        self.is_open = False

    async def open(self) -> None:
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False

    async def summarise(self, said: list[SourceText], wish: SummaryRequest, *, agent_id: str) -> WrittenSummary:
        assert self.is_open
        return WrittenSummary(f"STOP {said[0].text} STOP")


def own_summariser(path: str) -> str:
    return json.dumps({"summariser": path, "summaries": {"provider": "llm", "user_turns": 3}})


@pytest.mark.shows("issue5-4-providers")
async def test_a_summariser_of_ones_own_is_named_by_its_path_and_needs_no_chat_model(services: Services) -> None:
    settings = settings_for(services, llm_options=own_summariser(f"{HERE}:Telegraphist"))
    async with open_runtime(settings) as runtime:
        agent = Agent(runtime)
        await add(agent, lines(0, 3))
        await runtime.jobs.run_pending()
        [summary] = await summaries(agent)
        assert summary.content.startswith(f"STOP {LINES[0]} STOP")
        assert (summary.metadata["by"], summary.metadata["prompt"]) == ("tests/telegraph", "telegraph@1")
        assert (await agent.memory.settings(SettingsParams())).warnings == []


async def test_a_summariser_that_there_is_not_stops_the_start(services: Services) -> None:
    settings = settings_for(services, llm_options=own_summariser(f"{HERE}:Nobody"))
    with pytest.raises(ConfigurationError, match=r"summariser of LLM_OPTIONS .*Nobody"):
        async with open_runtime(settings):
            pass
