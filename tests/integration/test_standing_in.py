"""Fallback summaries for hits that do not fit into the context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.compression import build_context
from agentcore.memory.contexts.rendering import PAST, ContextEntry
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import DeleteParams, GetContextParams
from agentcore.memory.params.sessions import EndSessionParams
from agentcore.memory.recall.recalling import replacements
from agentcore.summary_rules import SEGMENT_MESSAGES, SummaryRules
from tests.fixtures.memory import Agent

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MORE = "The log goes on about the weather and the wheat. "
LOG = "On day {0} the bearing of mill {0} was oiled. " + MORE * 20
LINE = "On day {0} the bearing of mill {0} was oiled. " + MORE * 4
QUERY = "bearing of mill oiled"
# A search for this budget returns twelve hits; three lines fit in full, followed by a short summary.
ROOM = 255
NOW = {"current": True}


async def logs(agent: Agent, log: str = LOG, count: int = 4) -> tuple[UUID, list[UUID]]:
    """Stores and ends a session; returns its message ids and the id of its summary."""
    rules = SummaryRules(provider="extractive", trigger="session_end", max_tokens=40)
    await agent.memory.configure(ConfigureParams(summaries=rules))
    scope = {"session_id": "logs", "namespace": "mills", "timestamp": NOON.isoformat()}
    of = [await agent.stored_id(log.format(number), **scope) for number in range(count)]
    ended = await agent.memory.end_session(EndSessionParams(session_id="logs"))
    assert ended.summary_id is not None
    return ended.summary_id, of


def found(memory_ids: Sequence[UUID]) -> list[ContextEntry]:
    """Returns memories as hits of a search."""
    return [
        ContextEntry(each, PAST, NOON, None, LOG.format(rank), "a log", rank=rank, score=1 - rank / 10)
        for rank, each in enumerate(memory_ids)
    ]


async def looked_up(
    agent: Agent, memory_ids: Sequence[UUID], conditions: Mapping[str, object] = NOW, max_tokens: int = 200
) -> list[ContextEntry]:
    caller = Caller(agent.agent_id)
    return await replacements(agent.runtime.parts, caller, found(memory_ids), conditions, max_tokens)


@pytest.mark.shows("FR-3.2")
async def test_the_summary_of_several_found_memories_is_looked_up_with_all_it_is_of(agent: Agent) -> None:
    summary, of = await logs(agent)
    [told] = await looked_up(agent, of[:2])
    assert (told.memory_id, told.sources) == (summary, set(of))
    record = await agent.get(summary)
    assert (told.content, told.timestamp) == (record.content, record.timestamp)
    built = build_context(found(of), 150, agent.runtime.parts.count_tokens, replacements=[told])
    assert built.token_count <= 150


async def test_of_one_memory_alone_or_where_all_may_fit_nothing_is_looked_up(agent: Agent) -> None:
    summary, of = await logs(agent)
    assert await looked_up(agent, of[:1]) == []
    assert await looked_up(agent, of, max_tokens=50_000) == []
    assert await looked_up(agent, [*of, summary]) == []


@pytest.mark.shows("issue5-2-summaries")
async def test_what_is_looked_up_matches_what_was_asked_for_and_holds(agent: Agent) -> None:
    summary, of = await logs(agent)
    assert len(await looked_up(agent, of, {**NOW, "namespace": "mills"})) == 1
    assert await looked_up(agent, of, {**NOW, "namespace": "boats"}) == []
    assert await looked_up(agent, of, {**NOW, "memory_types": ["episodic"]}) == []
    assert await looked_up(agent, of, {"as_of": "2026-04-01T00:00:00+00:00"}) == []
    await agent.memory.delete(DeleteParams(memory_ids=[summary]))
    assert await looked_up(agent, of) == []


async def test_another_agents_summaries_are_none(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    _, of = await logs(agent)
    assert await looked_up(new_agent(), of) == []


async def test_a_summary_that_no_search_finds_stands_in_a_context_for_what_has_no_room(agent: Agent) -> None:
    summary, of = await logs(agent, LINE, SEGMENT_MESSAGES - 1)
    words = Updates(content="Grease for the gears, week by week.")
    await agent.memory.update(UpdateParams(memory_id=summary, updates=words))
    result = await agent.memory.get_context(GetContextParams(query=QUERY, max_tokens=ROOM, explain=True))
    assert result.memories is not None
    found_there = {each.memory_id for each in result.memories}
    assert found_there < {*of}
    assert {*result.memory_ids} == {summary, *found_there}
    assert words.content is not None
    assert words.content in result.context
    assert result.token_count <= ROOM
    assert {each.reason for each in result.left_out} == {"beyond_max_tokens"}
    assert "summaries" in result.receipt.timings_ms
