"""Storing: new, repeated, in batches, and with a missing dependency."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.memory.models import Interaction, Link, MemoryType
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import CountParams, GetContextParams, StoreBatchParams, StoreParams
from tests.fixtures.memory import Agent
from tests.fixtures.picky_embedder import picky_memory

MOMENT = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)


@pytest.mark.shows("FR-1.1", "FR-1.2")
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


@pytest.mark.shows("issue2-6-keys")
async def test_the_same_idempotency_key_stores_nothing_twice(agent: Agent) -> None:
    params = StoreParams(content="The budget is 9,000 euros.", idempotency_key="k1")
    first, second = await agent.memory.store(params), await agent.memory.store(params)
    assert (first.status, second.status) == ("stored", "existing")
    assert first.memory_id == second.memory_id
    assert (await agent.memory.count(CountParams())).count == 1


async def test_another_body_under_the_same_key_is_a_conflict(agent: Agent) -> None:
    memory_id = await agent.stored_id("The budget is 9,000 euros.", idempotency_key="k1")
    with pytest.raises(Conflict) as refused:
        await agent.store("The budget is 12,000 euros.", idempotency_key="k1")
    assert refused.value.data["memory_id"] == str(memory_id)
    assert (await agent.memory.count(CountParams())).count == 1


async def test_the_same_words_in_the_same_session_reinforce(agent: Agent) -> None:
    first = await agent.stored_id("I prefer window seats.", session_id="s")
    again = await agent.store("I prefer  window seats.", session_id="s")
    assert (again.status, again.memory_id) == ("reinforced", first)
    await agent.runtime.parts.accesses.flush(agent.runtime.parts.storage)
    assert (await agent.get(first)).access_count == 1


async def test_the_same_words_in_another_task_are_another_memory(agent: Agent) -> None:
    first = await agent.stored_id("I prefer window seats.", task_id="a")
    second = await agent.stored_id("I prefer window seats.", task_id="b")
    context = await agent.memory.get_context(GetContextParams(query="anything else", task_id="b"))
    assert first not in context.memory_ids
    assert second in context.memory_ids


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("tags", ["seat"], ["travel"]),
        ("importance", 0.9, 0.1),
        ("metadata", {"a": 1}, {"a": 2}),
        ("pinned", True, None),
        ("ttl_seconds", 60, 90),
        ("external_id", "x", "y"),
    ],
)
async def test_the_same_words_with_something_new_are_stored_and_without_it_reinforce(
    agent: Agent, name: str, value: object, other: object
) -> None:
    plain = await agent.stored_id("I prefer window seats.")
    carrying = await agent.stored_id("I prefer window seats.", **{name: value})
    again = await agent.store("I prefer window seats.", **{name: value})
    assert (again.status, again.memory_id) == ("reinforced", carrying)
    assert (await agent.store("I prefer window seats.")).memory_id in (plain, carrying)
    if other is not None:
        await agent.stored_id("I prefer window seats.", **{name: other})


async def test_a_new_link_is_not_lost_to_a_reinforcement(agent: Agent) -> None:
    target = await agent.stored_id("Seats are chosen on the website.")
    link = Link(target_id=target, relation="about", weight=0.3)
    await agent.stored_id("I prefer window seats.")
    linked = await agent.stored_id("I prefer window seats.", links=[link])
    assert (await agent.store("I prefer window seats.", links=[link])).memory_id == linked
    items = [StoreParams(content="I prefer the aisle.", links=[link])] * 2
    result = await agent.memory.store_batch(StoreBatchParams(items=items))
    assert [each.status for each in result.results] == ["stored", "reinforced"]


async def test_one_refused_text_leaves_the_others_their_vectors(agent: Agent) -> None:
    picky, memory = picky_memory(agent)
    items = [StoreParams(content=f"Fact {n} about the {'forbidden ' * (n == 5)}heron.") for n in range(16)]
    result = await memory.store_batch(StoreBatchParams(items=items))
    assert result.success
    assert len(result.receipt.degraded) == 1
    assert "refuses" in result.receipt.degraded[0]
    ids = [each.memory_id for each in result.results if each.memory_id is not None]
    models = [(await agent.get(memory_id)).embedding_model for memory_id in ids]
    assert models == [f"refused:{picky.model}" if n == 5 else picky.model for n in range(16)]
    assert picky.requests < 16


async def test_a_batch_says_that_its_embedder_is_gone(agent: Agent) -> None:
    picky, memory = picky_memory(agent)
    picky.forbidden = ""
    result = await memory.store_batch(StoreBatchParams(items=[StoreParams(content="A fact of a heron.")]))
    assert "embedded later" in result.receipt.degraded[0]
    assert result.receipt.timings_ms


async def test_the_same_words_at_another_time_or_by_force_are_another_memory(agent: Agent) -> None:
    await agent.stored_id("I had soup for lunch.", session_id="s", timestamp="2026-01-01T12:00:00Z")
    await agent.stored_id("I had soup for lunch.", session_id="s", timestamp="2026-01-02T12:00:00Z")
    await agent.stored_id("I had soup for lunch.", session_id="s", timestamp="2026-01-01T12:00:00Z", force=True)
    await agent.stored_id("I had soup for lunch.", session_id="other", timestamp="2026-01-01T12:00:00Z")
    assert (await agent.memory.count(CountParams())).count == 4


@pytest.mark.parametrize(("content", "reason"), [("Hello!", "greeting"), ("...", "empty"), ("👍", "empty")])
@pytest.mark.shows("issue2-8-gate")
async def test_what_is_not_worth_storing_is_answered_with_the_reason_and_can_be_forced(
    agent: Agent, content: str, reason: str
) -> None:
    refused = await agent.store(content)
    assert (refused.success, refused.memory_id, refused.status) == (False, None, "rejected")
    assert refused.reason is not None
    assert reason in refused.reason
    assert (await agent.store(content, force=True)).status == "stored"


@pytest.mark.shows("issue2-6-batch")
async def test_a_batch_answers_for_each_item_in_order(agent: Agent) -> None:
    items = [StoreParams(content=f"Fact number {n} about project {n % 7}.", external_id=str(n)) for n in range(500)]
    items[3] = StoreParams(content="thanks!")
    items[5] = StoreParams(content=items[4].content or "")
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
    assert [each.code for each in result.results] == [None, None, -32002]
    assert (await agent.memory.count(CountParams())).count == 1


@pytest.mark.shows("issue2-6-batch")
async def test_what_is_wrong_with_one_item_of_a_batch_is_its_answer_and_the_others_are_stored(agent: Agent) -> None:
    nobody = uuid4()
    await agent.store("The code word is heron.", idempotency_key="k")
    items = [
        StoreParams(content="First fact of six."),
        StoreParams(content="Second fact of six.", links=[Link(target_id=nobody)]),
        StoreParams(content="Third fact of six.", parent_memory_id=nobody),
        StoreParams(content="Fourth fact of six.", embedding=[0.1, 0.2, 0.3]),
        StoreParams(content="Fifth fact of six.", idempotency_key="k"),
        StoreParams(interaction=Interaction(query="long " * 50_000, response="text " * 50_000)),
        StoreParams(content="thanks!"),
    ]
    result = await agent.memory.store_batch(StoreBatchParams(items=items))
    assert [each.code for each in result.results] == [None, -32001, -32001, -32602, -32002, -32602, None]
    assert [each.status for each in result.results] == ["stored"] + ["rejected"] * 6
    assert str(nobody) in (result.results[1].reason or "")
    assert "3 dimensions" in (result.results[3].reason or "")
    assert not result.success
    assert (await agent.memory.count(CountParams())).count == 2
    alone = await agent.memory.store_batch(StoreBatchParams(items=[items[4]]))
    assert (alone.results[0].status, alone.results[0].code) == ("rejected", -32002)


@pytest.mark.shows("A14-timestamps")
async def test_a_timestamp_far_in_the_future_is_refused_and_hides_no_later_fact(agent: Agent) -> None:
    now = datetime.now(UTC)
    for ahead in ({"timestamp": now + timedelta(hours=25)}, {"timestamp": datetime(2999, 1, 1, tzinfo=UTC)}):
        with pytest.raises(InvalidParams, match="24 hours in the future"):
            await agent.store("My room number is 412.", **ahead)
    with pytest.raises(InvalidParams, match="24 hours in the future"):
        await agent.memory.add_interaction(
            Interaction(query="Where?", response="Room 412 it is.", timestamp=now + timedelta(days=2))
        )
    assert (await agent.store("My room number is 413.", timestamp=now + timedelta(hours=23))).success
    assert (await agent.memory.count(CountParams())).count == 1


async def test_a_joined_text_longer_than_any_given_one_is_refused_by_its_field(agent: Agent) -> None:
    with pytest.raises(InvalidParams, match="interaction"):
        await agent.memory.add_interaction(Interaction(query="q " * 100_000, response="r " * 100_000))
    memory_id = await agent.stored_id("a note " * 20_000)
    updates = {"memory_id": memory_id, "updates": {"context": "more of it " * 20_000}}
    with pytest.raises(InvalidParams, match=r"updates\.context"):
        await agent.memory.update(UpdateParams.model_validate(updates))


async def test_a_key_stays_good_when_a_caller_writes_out_a_default(agent: Agent) -> None:
    first = await agent.store("The budget is 9,000 euros.", idempotency_key="k")
    again = await agent.store("The budget is 9,000 euros.", idempotency_key="k", tags=[], pinned=False, speaker=None)
    assert (again.status, again.memory_id) == ("existing", first.memory_id)
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT request_digest FROM idempotency_keys WHERE agent_id = %s", (agent.agent_id,)
        )
        [row] = await cursor.fetchall()
    # Omitted fields are not part of the digest, so new fields of later versions do not change it.
    assert bytes(row["request_digest"]) == hashlib.sha256(b'{"content":"The budget is 9,000 euros."}').digest()


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
    assert (await agent.found("zzz", query_vector=vector, k=1)) == ["It has nothing in common with the query."]


async def test_a_time_to_live_hides_a_memory_when_it_is_over(agent: Agent) -> None:
    memory_id = await agent.stored_id("The parking code is 4711.", ttl_seconds=3_600)
    record = await agent.get(memory_id)
    assert record.expires_at is not None
    assert 3_590 < (record.expires_at - record.created_at).total_seconds() <= 3_601
