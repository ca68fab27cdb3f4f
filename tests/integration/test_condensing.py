"""Cluster summaries by a language model: background only, opt-in, validated."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.maintenance.rounds import CONSOLIDATE_EPISODES
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.agent_settings import ConfigureParams, ConsolidateParams
from agentcore.memory.params.memories import ListParams
from agentcore.summary_rules import SummaryRules
from tests.fixtures.chat_model import Talking, talking
from tests.fixtures.memory import Agent
from tests.fixtures.scripted_http import Reply
from tests.fixtures.services import Services

BOILER = (
    "The old boiler lost water pressure again.",
    "The old boiler lost its water pressure overnight.",
    "The old boiler lost all water pressure today.",
)
WRITTEN = "The old boiler keeps losing its water pressure."


async def wishing(talk: Talking, texts: tuple[str, ...] = BOILER, **wishes: Any) -> Agent:
    """Returns an agent with a cluster and a pending consolidation."""
    agent = talk.agent()
    await agent.memory.configure(ConfigureParams(consolidate=True, **wishes))
    for text in texts:
        await agent.stored_id(text, timestamp="2026-01-01")
    async with talk.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        await transaction.jobs.enqueue(CONSOLIDATE_EPISODES)
    return agent


async def made(agent: Agent) -> MemoryRecord:
    [summary] = (await agent.memory.list(ListParams(tags=["consolidated"]))).memories
    return summary


BY_MODEL = SummaryRules(provider="llm")


@pytest.mark.shows("issue5-3-consolidation")
async def test_a_cluster_is_told_in_the_models_words_where_its_agent_wishes_them(services: Services) -> None:
    async with talking(services) as talk:
        talk.model.answers["session_summary"] = lambda document: {"summary": WRITTEN, "topics": [], "key_facts": []}
        agent, other = await wishing(talk, summaries=BY_MODEL), await wishing(talk)
        await talk.work()
        summary = await made(agent)
        assert (summary.content, summary.metadata["by"]) == (WRITTEN, "openai/small")
        assert len(summary.links) == 3
        own = await made(other)
        assert set(own.content.splitlines()) <= {*BOILER}
        assert len(talk.model.asked) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reply(status=500), "The language model failed to summarise (500)."),
        ({"summary": "It cost 4,711 euros."}, "it told of names or numbers that nobody said"),
    ],
)
@pytest.mark.shows("issue5-3-consolidation")
async def test_what_the_model_does_not_tell_the_sentences_themselves_do(
    services: Services, answer: Any, why: str
) -> None:
    async with talking(services) as talk:
        talk.model.answers["session_summary"] = lambda document: answer
        agent = await wishing(talk, summaries=BY_MODEL)
        await talk.work()
        summary = await made(agent)
        assert set(summary.content.splitlines()) <= {*BOILER}
        assert summary.metadata["degraded"] == why


async def test_a_cluster_longer_than_a_request_is_told_in_its_own_sentences(services: Services) -> None:
    async with talking(services) as talk:
        long = " The pressure of the water in it was low." * 200
        agent = await wishing(talk, tuple(each + long for each in BOILER), summaries=BY_MODEL)
        await talk.work()
        assert (await made(agent)).metadata["degraded"] == "the sources exceed the size limit of one model request"
        assert talk.model.asked == []


async def test_a_call_that_consolidates_waits_for_no_model(services: Services) -> None:
    async with talking(services) as talk:
        agent = await wishing(talk, summaries=BY_MODEL)
        [cluster] = (await agent.memory.consolidate(ConsolidateParams())).clusters
        assert set(cluster.summary.splitlines()) <= {*BOILER}
        assert talk.model.asked == []
