"""Stored summaries replace their sources in contexts and on-demand summaries, without repetition."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentcore.memory.deriving import sessions
from agentcore.memory.models import MemorySummary
from agentcore.memory.params.memories import GetContextParams, RetrieveParams
from agentcore.memory.params.sessions import SummarizeParams
from tests.fixtures.chat_model import Talking
from tests.fixtures.stretches import LINES, NOON, message, periods, say, summaries, summarised, weekly


@pytest.mark.shows("issue5-2-reused")
async def test_a_context_leaves_a_summary_out_whose_messages_stand_there(talk: Talking) -> None:
    agent = talk.agent()
    summary = await summarised(agent, talk)
    context = await agent.memory.get_context(GetContextParams(query="Which warehouse flooded in Antwerp?"))
    assert summary.memory_id not in context.memory_ids
    assert [(each.memory_id, each.reason) for each in context.left_out] == [(summary.memory_id, "told_by_sources")]
    assert context.context.count(LINES[0]) == 1
    assert {each.reason: each.count for each in context.receipt.dropped}["told_by_sources"] == 1


async def test_without_its_messages_a_summary_stands_in_the_context(talk: Talking) -> None:
    agent = talk.agent()
    summary = await summarised(agent, talk)
    asked = GetContextParams.model_validate(
        {"query": "Which warehouse flooded in Antwerp?", "memory_types": ["semantic"]}
    )
    assert (await agent.memory.get_context(asked)).memory_ids == [summary.memory_id]


async def test_a_period_stands_back_behind_the_summaries_of_its_sessions(talk: Talking) -> None:
    agent = await weekly(talk)
    await say(agent, "a", 0, LINES[0])
    await say(agent, "b", 1, LINES[2])
    await talk.work()
    [period] = await periods(agent)
    asked = GetContextParams.model_validate(
        {"query": "warehouse in Antwerp flooded, the damage comes to euros", "memory_types": ["semantic"]}
    )
    context = await agent.memory.get_context(asked)
    assert {*context.memory_ids} == {each.memory_id for each in await summaries(agent)}
    assert [(each.memory_id, each.reason) for each in context.left_out] == [(period.memory_id, "told_by_sources")]


async def test_what_a_search_gives_back_says_nothing_of_sources(talk: Talking) -> None:
    """A summary may have hundreds of sources."""
    agent = talk.agent()
    await summarised(agent, talk)
    found = (await agent.memory.retrieve(RetrieveParams(query="warehouse in Antwerp flooded"))).memories
    assert all("sources" not in each.model_dump() for each in found)
    assert any(each.sources for each in found)
    assert "sources" not in MemorySummary.model_fields


@pytest.mark.shows("issue5-2-reused")
async def test_what_is_older_than_a_summary_on_call_reads_is_told_by_its_summaries(
    talk: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_SUMMARISED", 4)
    agent = await weekly(talk)
    for place in range(4):
        await say(agent, f"s{place}", 7 * place, *LINES[2 * place : 2 * place + 2])
    # The newest context cut through the session before the last.
    late = NOON + timedelta(days=30)
    await agent.stored_id("The keys of the warehouse hang in the office.", timestamp=late)
    await talk.work()
    result = await agent.memory.summarize(
        SummarizeParams.model_validate({"memory_types": ["episodic"], "max_tokens": 1_000})
    )
    assert all(result.summary.count(each) == 1 for each in LINES[:8])
    own = {each.session_id: each.memory_id for each in await summaries(agent)}
    assert {own["s0"], own["s1"], own["s2"]} < {*result.memory_ids}
    assert own["s3"] not in result.memory_ids
    assert await message(agent, LINES[7]) in result.memory_ids
    assert result.memory_count == 8


async def test_with_tags_or_other_layers_asked_for_no_summary_is_added(
    talk: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_SUMMARISED", 1)
    agent = await weekly(talk)
    await say(agent, "a", 0, LINES[0], LINES[1])
    await say(agent, "b", 7, LINES[2])
    for asked in ({"memory_types": ["procedural"]}, {"session_id": "a", "tags": ["none"]}):
        result = await agent.memory.summarize(SummarizeParams.model_validate(asked))
        assert result.memory_count == 0


async def test_a_summary_on_call_does_not_tell_twice_what_a_summary_and_its_messages_say(talk: Talking) -> None:
    agent = talk.agent()
    summary = await summarised(agent, talk, provider="llm")
    result = await agent.memory.summarize(SummarizeParams(session_id="s", max_tokens=1_000))
    assert summary.memory_id not in result.memory_ids
    assert "They spoke" not in result.summary
