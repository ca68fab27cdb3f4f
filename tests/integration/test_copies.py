"""Duplicates: a search returns the newest and lists the others."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.memory.models import MemorySummary, Receipt
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import GetContextParams, RetrieveParams
from tests.fixtures.memory import Agent, counted

OLD = "User prefers window seats on trains."
NEW = "USER prefers window seats  on trains."
OTHER = "The user prefers aisle seats on trains."
QUERY = "Which seats does the user prefer on trains?"


async def search(agent: Agent, **values: Any) -> tuple[list[MemorySummary], Receipt]:
    result = await agent.memory.retrieve(RetrieveParams.model_validate({"query": QUERY, "k": 20, **values}))
    return result.memories, result.receipt


@pytest.mark.shows("issue3-3-near-duplicates")
async def test_the_newest_is_given_and_names_the_older_ones(agent: Agent) -> None:
    oldest = await agent.stored_id(OLD, timestamp="2026-01-01")
    newest = await agent.stored_id(NEW, timestamp="2026-03-01")
    older = await agent.stored_id("user prefers window seats on trains.", timestamp="2026-02-01")
    other = await agent.stored_id(OTHER, timestamp="2026-01-15")
    memories, receipt = await search(agent)
    stands_for = {each.memory_id: each.stands_for for each in memories}
    assert stands_for == {newest: [older, oldest], other: []}
    assert counted(receipt) == {"same_text_as_newer": 2}


@pytest.mark.shows("issue3-3-near-duplicates")
async def test_who_wants_every_copy_gets_it(agent: Agent) -> None:
    for at, content in enumerate((OLD, NEW, NEW)):
        await agent.stored_id(content, timestamp=f"2026-01-0{at + 1}", force=True)
    assert counted((await search(agent))[1]) == {"same_text_as_newer": 2}
    memories, receipt = await search(agent, distinct=False)
    assert len(memories) == 3
    assert not any(each.stands_for for each in memories)
    assert counted(receipt) == {}


async def test_a_context_holds_the_newest_alone_unless_asked_for_all(agent: Agent) -> None:
    oldest = await agent.stored_id(OLD, timestamp="2026-01-01")
    newest = await agent.stored_id(NEW, timestamp="2026-03-01")
    params = {"query": QUERY, "explain": True}
    context = await agent.memory.get_context(GetContextParams.model_validate(params))
    assert context.memory_ids == [newest]
    assert [each.stands_for for each in context.memories or []] == [[oldest]]
    assert counted(context.receipt) == {"same_text_as_newer": 1}
    whole = await agent.memory.get_context(GetContextParams.model_validate({**params, "distinct": False}))
    assert set(whole.memory_ids) == {oldest, newest}


async def test_at_an_earlier_time_the_one_that_was_newest_then_is_given(agent: Agent) -> None:
    oldest = await agent.stored_id(OLD, timestamp="2026-01-01")
    await agent.stored_id(NEW, timestamp="2026-03-01")
    memories, _ = await search(agent, as_of="2026-02-01")
    assert [each.memory_id for each in memories] == [oldest]
    memories, _ = await search(agent, before="2026-02-01")
    assert [each.memory_id for each in memories] == [oldest]


@pytest.mark.parametrize("scope", [{"speaker": "Ada"}, {"user_id": "u2"}, {"namespace": "travel"}])
async def test_the_same_from_another_scope_is_another_memory(agent: Agent, scope: dict[str, str]) -> None:
    both = {await agent.stored_id(OLD), await agent.stored_id(NEW, **scope)}
    memories, _ = await search(agent)
    assert {each.memory_id for each in memories} == both


async def test_changed_content_is_compared_by_what_it_says_now(agent: Agent) -> None:
    first = await agent.stored_id(OLD, timestamp="2026-01-01")
    second = await agent.stored_id(OTHER, timestamp="2026-03-01")
    assert len((await search(agent))[0]) == 2
    await change(agent, second, {"content": NEW})
    assert [each.stands_for for each in (await search(agent))[0]] == [[first]]
    await change(agent, second, {"tags": ["travel"]})
    assert [each.stands_for for each in (await search(agent))[0]] == [[first]]
    await change(agent, first, {"content": OTHER})
    assert len((await search(agent))[0]) == 2


async def change(agent: Agent, memory_id: object, updates: dict[str, Any]) -> None:
    params = {"memory_id": memory_id, "updates": updates}
    await agent.memory.update(UpdateParams.model_validate(params))


async def test_what_was_said_in_the_time_asked_for_is_given_rather_than_a_newer_copy(agent: Agent) -> None:
    then = await agent.stored_id(OLD, timestamp="2026-01-10")
    now = await agent.stored_id(NEW, timestamp="2026-03-01")
    [given], _ = await search(agent, query="Which seats did the user prefer in January 2026?")
    assert (given.memory_id, given.stands_for) == (then, [now])
