"""Storing: what becomes of an item, once, twice, in a batch, and when a part is missing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.memory.models import Interaction, Link, MemoryType
from agentcore.memory.params import CountParams, StoreBatchParams, StoreParams
from tests.fixtures.memory import Agent

MOMENT = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)


async def test_an_interaction_becomes_one_record_with_its_derived_fields(agent: Agent) -> None:
    interaction = Interaction(
        query="My flight LH454 to San Francisco leaves on 12 March. Which gate?",
        response="LH454 leaves from gate B42.",
        actions=["look up flight", {"tool": "gates", "flight": "LH454"}],
        outcome="answered",
        task_id="trip",
        session_id="s1",
        timestamp=MOMENT,
        metadata={"channel": "chat"},
    )
    result = await agent.memory.add_interaction(interaction, tags=["travel"], importance=0.8)
    assert result.success
    assert result.status == "stored"
    assert result.memory_id is not None
    record = await agent.get(result.memory_id)
    assert record.memory_type is MemoryType.EPISODIC
    assert "LH454 leaves from gate B42." in record.content
    assert "LH454" in record.entities
    assert (record.task_id, record.session_id, record.timestamp) == ("trip", "s1", MOMENT)
    assert record.actions == interaction.actions
    assert record.outcome == "answered"
    assert [pair.outcome for pair in record.action_outcomes] == ["answered", "answered"]
    assert record.relevance_score == pytest.approx(0.8)
    assert record.metadata == {"channel": "chat"}
    assert record.embedding_model is not None
    assert record.provenance["trace_id"] == "t" * 32
    assert len(record.summary) < len(record.content)


async def test_the_same_idempotency_key_stores_nothing_twice(agent: Agent) -> None:
    params = StoreParams(content="The budget is 9,000 euros.", idempotency_key="k1")
    first, second = await agent.memory.store(params), await agent.memory.store(params)
    assert (first.status, second.status) == ("stored", "existing")
    assert first.memory_id == second.memory_id
    assert (await agent.memory.count(CountParams())).count == 1


async def test_another_body_under_the_same_key_is_a_conflict(agent: Agent) -> None:
    await agent.store("The budget is 9,000 euros.", idempotency_key="k1")
    with pytest.raises(Conflict):
        await agent.store("The budget is 12,000 euros.", idempotency_key="k1")
    assert (await agent.memory.count(CountParams())).count == 1


async def test_the_same_words_in_the_same_session_reinforce(agent: Agent) -> None:
    first = await agent.stored_id("I prefer window seats.", session_id="s")
    again = await agent.store("I prefer  window seats.", session_id="s")
    assert (again.status, again.memory_id) == ("reinforced", first)
    await agent.runtime.parts.accesses.flush(agent.runtime.parts.storage)
    assert (await agent.get(first)).access_count == 1


async def test_the_same_words_at_another_time_or_by_force_are_another_memory(agent: Agent) -> None:
    await agent.stored_id("I had soup for lunch.", session_id="s", timestamp="2026-01-01T12:00:00Z")
    await agent.stored_id("I had soup for lunch.", session_id="s", timestamp="2026-01-02T12:00:00Z")
    await agent.stored_id(
        "I had soup for lunch.", session_id="s", timestamp="2026-01-01T12:00:00Z", force=True
    )
    await agent.stored_id("I had soup for lunch.", session_id="other", timestamp="2026-01-01T12:00:00Z")
    assert (await agent.memory.count(CountParams())).count == 4


@pytest.mark.parametrize(("content", "reason"), [("Hello!", "greeting"), ("...", "empty"), ("👍", "empty")])
async def test_what_is_not_worth_storing_is_answered_with_the_reason_and_can_be_forced(
    agent: Agent, content: str, reason: str
) -> None:
    refused = await agent.store(content)
    assert (refused.success, refused.memory_id, refused.status) == (False, None, "rejected")
    assert refused.reason is not None
    assert reason in refused.reason
    assert (await agent.store(content, force=True)).status == "stored"


async def test_a_batch_answers_for_each_item_in_order(agent: Agent) -> None:
    items = [
        StoreParams(content=f"Fact number {n} about project {n % 7}.", external_id=str(n)) for n in range(500)
    ]
    items[3] = StoreParams(content="thanks!")
    items[4] = StoreParams(content=items[5].content or "")
    result = await agent.memory.store_batch(StoreBatchParams(items=items))
    assert [each.status for each in result.results[:7]] == [
        "stored",
        "stored",
        "stored",
        "rejected",
        "stored",
        "reinforced",
        "stored",
    ]
    assert result.results[5].memory_id == result.results[4].memory_id
    assert not result.success
    assert (await agent.memory.count(CountParams())).count == 498


async def test_keys_repeated_inside_a_batch_store_once(agent: Agent) -> None:
    same = StoreParams(content="The code word is heron.", idempotency_key="k")
    other = StoreParams(content="The code word is stork.", idempotency_key="k")
    result = await agent.memory.store_batch(StoreBatchParams(items=[same, same, other]))
    assert [each.status for each in result.results] == ["stored", "existing", "rejected"]
    assert "conflict" in (result.results[2].reason or "")
    assert (await agent.memory.count(CountParams())).count == 1


async def test_a_batch_with_a_bad_link_stores_nothing(agent: Agent) -> None:
    items = [
        StoreParams(content="First fact of two."),
        StoreParams(content="Second fact of two.", links=[Link(target_id=uuid4())]),
    ]
    with pytest.raises(NotFound):
        await agent.memory.store_batch(StoreBatchParams(items=items))
    assert (await agent.memory.count(CountParams())).count == 0


async def test_a_memory_of_another_agent_can_be_neither_parent_nor_target(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    foreign = await new_agent().stored_id("Somebody else's secret plan.")
    with pytest.raises(NotFound):
        await agent.store("A child of a foreign memory.", parent_memory_id=foreign)
    with pytest.raises(NotFound):
        await agent.store("A neighbour of a foreign memory.", links=[Link(target_id=foreign)])


async def test_a_vector_of_the_wrong_length_is_refused(agent: Agent) -> None:
    with pytest.raises(InvalidParams, match="3 dimensions"):
        await agent.store("A text with a vector.", embedding=[0.1, 0.2, 0.3])


async def test_a_vector_of_the_callers_is_kept(agent: Agent) -> None:
    vector = [1.0] + [0.0] * 63
    await agent.stored_id("It has nothing in common with the query.", embedding=vector)
    await agent.stored_id("Completely unrelated words over here.")
    assert (await agent.found("zzz", query_vector=vector, k=1)) == [
        "It has nothing in common with the query."
    ]


async def test_a_time_to_live_hides_a_memory_when_it_is_over(agent: Agent) -> None:
    memory_id = await agent.stored_id("The parking code is 4711.", ttl_seconds=3_600)
    record = await agent.get(memory_id)
    assert record.expires_at is not None
    assert 3_590 < (record.expires_at - record.created_at).total_seconds() <= 3_601
