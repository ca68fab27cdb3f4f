"""A summary and a context leave out superseded statements; later statements stand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agentcore.memory.params.memories import GetContextParams
from tests.fixtures.chat_model import Talking, talking
from tests.fixtures.memory import Agent
from tests.fixtures.services import Services
from tests.fixtures.stretches import add, at, end, rules, summaries

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
STATED, REPEATED = "My boss is Henrik Dahl.", "Noted, your boss is Henrik Dahl."
NOW = "My boss is Marit Solberg now."


@pytest.fixture
async def talk(services: Services) -> AsyncIterator[Talking]:
    async with talking(services) as running:
        running.model.answers["fact_judge"] = lambda document: {"verdict": "SUPERSEDE"}
        yield running


async def said(agent: Agent, content: str, speaker: str, seconds: int, session_id: str = "one") -> UUID:
    moment = MARCH + timedelta(seconds=seconds)
    return await agent.stored_id(content, speaker=speaker, timestamp=moment, session_id=session_id)


async def test_what_is_said_after_the_change_stands(agent: Agent) -> None:
    stated = await said(agent, STATED, "user", 0)
    now = await said(agent, NOW, "user", 20)
    repeated = await said(agent, REPEATED, "assistant", 40)
    late = await said(agent, "My boss is Leo Brandt now.", "user", 60)
    assert (await agent.get(stated)).superseded_by == now
    assert (await agent.get(repeated)).superseded_by is None
    assert (await agent.get(now)).superseded_by == late


async def test_a_summary_leaves_out_a_superseded_statement(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive")
    turns = (("user", STATED), ("user", "The plan for the harbour is due in June."))
    told = [
        {"role": role, "content": content, "timestamp": at(place).isoformat()}
        for place, (role, content) in enumerate(turns)
    ]
    await add(agent, told)
    await end(agent)
    [before] = await summaries(agent)
    assert "Henrik" in before.content
    moment = at(9_000)
    await agent.stored_id(NOW, speaker="user", timestamp=moment, session_id="later")
    await talk.work()
    [after] = await summaries(agent)
    assert "harbour" in after.content
    context = await agent.memory.get_context(GetContextParams(query="Who is my boss?"))
    assert "Marit Solberg" in context.context
    assert "Henrik" not in after.content + context.context
