"""Supersession: a changed fact supersedes the old one, which stays readable; no other memory is affected."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from agentcore.database import Row
from agentcore.memory.models import Interaction, MemoryType
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import (
    DeleteParams,
    GetContextParams,
    ListParams,
    PruneParams,
    RetrieveParams,
    StoreBatchParams,
    StoreParams,
)
from agentcore.memory.params.sessions import ClearParams, EndSessionParams
from tests.fixtures.memory import Agent

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
APRIL = datetime(2026, 4, 2, 9, 0, tzinfo=UTC)
OLD = "The budget for the Atlas project is 48,000 euros."
NEW = "The budget for the Atlas project is now 52,500 euros."


async def history_of(agent: Agent, memory_id: object) -> list[Row]:
    """Returns the changes of one memory, oldest first."""
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        cursor = await connection.execute(
            "SELECT operation, before, after, token_id, trace_id FROM memory_history"
            " WHERE agent_id = %s AND memory_id = %s ORDER BY change_id",
            (agent.agent_id, memory_id),
        )
        return [*await cursor.fetchall()]


@pytest.mark.shows("issue4-2-changed-facts")
async def test_a_changed_fact_takes_the_place_of_the_old_one(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, timestamp=MARCH)
    result = await agent.store(NEW, timestamp=APRIL)
    assert result.status == "stored"
    assert result.superseded == [old_id]
    assert await agent.found("budget of Atlas") == [NEW]
    old, new = await agent.get(old_id), await agent.get(result.memory_id or old_id)
    assert (old.superseded_by, old.valid_to, old.content) == (new.memory_id, APRIL, OLD)
    assert (new.superseded_by, new.valid_to, new.valid_from) == (None, None, APRIL)
    assert [(link.target_id, link.relation) for link in new.links] == [(old_id, "supersedes")]


@pytest.mark.shows("issue4-2-changed-facts")
async def test_what_held_before_is_the_answer_as_of_then(agent: Agent) -> None:
    await agent.stored_id(OLD, timestamp=MARCH)
    await agent.stored_id(NEW, timestamp=APRIL)
    for as_of, told in ((MARCH + timedelta(days=3), OLD), (APRIL + timedelta(days=3), NEW)):
        assert await agent.found("budget of Atlas", as_of=as_of) == [told]


async def test_an_older_fact_that_is_told_later_is_filed_as_superseded_already(agent: Agent) -> None:
    new_id = await agent.stored_id(NEW, timestamp=APRIL)
    late = await agent.store(OLD, timestamp=MARCH, task_id="plan")
    assert (late.status, late.superseded, late.superseded_by) == ("stored", [], new_id)
    assert late.memory_id is not None
    old, new = await agent.get(late.memory_id), await agent.get(new_id)
    assert (old.superseded_by, old.valid_to, new.superseded_by) == (new_id, APRIL, None)
    assert [(link.target_id, link.relation) for link in new.links] == [(late.memory_id, "supersedes")]
    assert await agent.found("budget of Atlas") == [NEW]
    assert await agent.found("budget of Atlas", as_of=APRIL - timedelta(days=1)) == [OLD]
    [gone] = await history_of(agent, late.memory_id)
    assert (gone["operation"], gone["after"]["superseded_by"]) == ("superseded", str(new_id))
    context = await agent.memory.get_context(GetContextParams(query="the Atlas budget", task_id="plan"))
    assert OLD not in context.context


@pytest.mark.parametrize("order", [[0, 2, 3, 1], [3, 2, 1, 0], [0, 3, 1, 2], [2, 0, 3, 1], [1, 3, 0, 2]])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.shows("issue4-2-changed-facts")
async def test_in_whatever_order_changes_are_told_each_holds_for_its_time(
    agent: Agent, order: list[int], at_once: bool
) -> None:
    said = [f"The API rate limit is {limit} requests per minute." for limit in (60, 90, 120, 150)]
    items = [StoreParams(content=said[day], timestamp=MARCH + timedelta(days=day)) for day in order]
    for each in [items] if at_once else [[item] for item in items]:
        await agent.memory.store_batch(StoreBatchParams(items=each))
    assert await agent.found("API rate limit") == [said[3]]
    for day in range(4):
        as_of = MARCH + timedelta(days=day, hours=1)
        assert await agent.found("API rate limit", as_of=as_of) == [said[day]]


async def test_a_session_summary_or_what_was_stored_beside_takes_no_late_facts_place(agent: Agent) -> None:
    await agent.stored_id(NEW, timestamp=APRIL, supersede=False)
    late = await agent.store(OLD, timestamp=MARCH)
    assert late.superseded_by is None
    await agent.stored_id("The deadline of the Orion project is 4 May.", session_id="s", timestamp=APRIL)
    await agent.memory.end_session(EndSessionParams(session_id="s"))
    summaries = await agent.memory.list(ListParams(tags=["session_summary"]))
    assert len(summaries.memories) == 1
    other = await agent.store(
        "The deadline of the Orion project is 3 April.", timestamp=MARCH, memory_type=MemoryType.SEMANTIC
    )
    assert other.superseded_by != summaries.memories[0].memory_id


@pytest.mark.shows("issue4-2-changed-facts")
async def test_both_sides_of_a_supersession_are_in_the_history(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, timestamp=MARCH)
    new_id = await agent.stored_id(NEW, timestamp=APRIL)
    [gone] = await history_of(agent, old_id)
    assert (gone["operation"], gone["token_id"], gone["trace_id"]) == ("superseded", "token-1", "t" * 32)
    assert gone["before"] == {"superseded_by": None, "valid_to": None}
    assert gone["after"]["superseded_by"] == str(new_id)
    [come] = await history_of(agent, new_id)
    assert (come["operation"], come["after"]["supersedes"]) == ("supersede", str(old_id))


async def test_a_chain_of_changes_leaves_the_last_one_current(agent: Agent) -> None:
    said = [f"The API rate limit is {limit} requests per minute." for limit in (60, 90, 120)]
    for content in said:
        await agent.stored_id(content)
    assert await agent.found("API rate limit") == [said[-1]]


async def test_in_one_batch_later_items_take_the_place_of_earlier_ones(agent: Agent) -> None:
    said = ["My parking spot is number 17.", "My parking spot is number 31 now.", "I like the view from there."]
    items = [StoreParams(content=content) for content in said]
    results = (await agent.memory.store_batch(StoreBatchParams(items=items))).results
    assert results[1].superseded == [results[0].memory_id]
    assert await agent.found("parking spot", k=1) == [said[1]]


async def test_an_exchange_that_tells_a_new_fact_takes_the_place_of_the_earlier_exchange(agent: Agent) -> None:
    for query in ("My phone number is +44 7700 900123.", "My new phone number is +44 7700 900456."):
        told = Interaction(query=query, response="Got it, I will keep that in mind.")
        result = await agent.memory.store(StoreParams(interaction=told))
    assert len(result.superseded) == 1


@pytest.mark.parametrize(
    ("old", "new", "differing"),
    [
        ("I live in Lisbon.", "I live in Porto now.", {"user_id": "mara"}),
        ("I live in Lisbon.", "I live in Porto now.", {"speaker": "Mara"}),
        (OLD, NEW, {"namespace": "other"}),
        (OLD, NEW, {"memory_type": MemoryType.PROCEDURAL}),
        (OLD, NEW, {"ttl_seconds": 3_600}),
        (OLD, NEW, {"supersede": False}),
        (OLD, "Is the budget for the Atlas project 52,500 euros now?", {"session_id": "s"}),
    ],
)
async def test_what_is_said_in_another_scope_leaves_a_fact_in_its_place(
    agent: Agent, old: str, new: str, differing: dict[str, Any]
) -> None:
    old_id = await agent.stored_id(old, timestamp=MARCH)
    result = await agent.store(new, **{"timestamp": APRIL, **differing})
    assert result.superseded == []
    assert (await agent.get(old_id)).superseded_by is None


@pytest.mark.parametrize(
    ("old", "new", "differing"),
    [
        ("I live in Lisbon.", "I live in Porto now.", {"user_id": "mara"}),
        ("I live in Lisbon.", "I live in Porto now.", {"speaker": "Mara"}),
        (OLD, NEW, {"namespace": "other"}),
        (OLD, NEW, {"memory_type": MemoryType.PROCEDURAL}),
        (OLD, NEW, {"pinned": True}),
        (OLD, NEW, {"supersede": False}),
        (f"{OLD} Ruth leads it from Lisbon.", NEW, {}),
        ("The budget for the Atlas project was 48,000 euros.", NEW, {}),
        ("Elena is allergic to nuts.", "Elena is allergic to eggs.", {}),
    ],
)
async def test_what_is_told_late_in_another_scope_or_says_more_holds_beside(
    agent: Agent, old: str, new: str, differing: dict[str, Any]
) -> None:
    await agent.stored_id(new, timestamp=APRIL)
    late = await agent.store(old, **{"timestamp": MARCH, **differing})
    assert (late.status, late.superseded_by) == ("stored", None)
    assert late.memory_id is not None
    assert (await agent.get(late.memory_id)).superseded_by is None


async def test_what_expires_takes_no_late_facts_place_that_does_not(agent: Agent) -> None:
    new_id = await agent.stored_id(NEW, timestamp=APRIL, ttl_seconds=3_600)
    assert (await agent.store(OLD, timestamp=MARCH)).superseded_by is None
    other = "The budget for the Atlas project is 47,000 euros."
    late = await agent.store(other, timestamp=MARCH, ttl_seconds=9)
    assert late.superseded_by == new_id


async def test_a_pinned_fact_stays_in_its_place(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, pinned=True)
    assert (await agent.store(NEW)).superseded == []
    assert (await agent.get(old_id)).superseded_by is None


@pytest.mark.shows("issue4-5-never-taken")
async def test_a_prune_by_hand_takes_what_was_superseded_and_leaves_what_alone_says_it(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, timestamp=MARCH)
    new_id = await agent.stored_id(NEW, timestamp=APRIL)
    everything = PruneParams(memory_layer=MemoryType.EPISODIC, target=1.0)
    assert (await agent.memory.prune(everything)).memory_ids == [old_id]
    assert (await agent.get(new_id)).superseded_by is None


async def test_another_agents_fact_stays_in_its_place(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    other = new_agent()
    old_id = await other.stored_id(OLD)
    assert (await agent.store(NEW)).superseded == []
    assert (await other.get(old_id)).superseded_by is None


async def test_a_short_correction_and_what_it_corrects_are_both_found(agent: Agent) -> None:
    scope = {"session_id": "s", "speaker": "user"}
    dinner, right = "Dinner with the investors is on Friday at Osteria Mario.", "Sorry, I meant Saturday."
    await agent.stored_id(dinner, timestamp=MARCH, **scope)
    stored = await agent.store(right, timestamp=MARCH + timedelta(minutes=3), **scope)
    assert stored.superseded == []
    assert {*await agent.found("When is the dinner with the investors?")} == {dinner, right}


@pytest.mark.shows("issue4-2-near-duplicates")
async def test_a_near_duplicate_is_linked_and_both_stay(agent: Agent) -> None:
    old_id = await agent.stored_id("The search cluster has five nodes.")
    result = await agent.store("The search cluster has 5 nodes in all.")
    assert (result.superseded, result.near_duplicate_of) == ([], old_id)
    assert result.memory_id is not None
    [link] = (await agent.get(result.memory_id)).links
    assert (link.target_id, link.relation) == (old_id, "near_duplicate_of")
    assert len((await agent.memory.list(ListParams())).memories) == 2


@pytest.mark.shows("issue4-2-changed-facts")
async def test_a_superseded_memory_can_be_let_hold_again(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, timestamp=MARCH)
    new_id = await agent.stored_id(NEW, timestamp=APRIL)
    update = {"memory_id": old_id, "updates": {"current": True}}
    await agent.memory.update(UpdateParams.model_validate(update))
    assert sorted(await agent.found("budget of Atlas")) == sorted([OLD, NEW])
    old = await agent.get(old_id)
    assert (old.superseded_by, old.valid_to) == (None, None)
    assert (await agent.get(new_id)).links == []
    last = (await history_of(agent, old_id))[-1]
    assert last["before"]["superseded_by"] == str(new_id)
    assert (await agent.store("The budget for the Atlas project is 55,000 euros.")).superseded != []


@pytest.mark.shows("issue4-2-changed-facts")
async def test_deleting_what_took_a_facts_place_lets_it_hold_again(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, timestamp=MARCH, task_id="plan")
    new_id = await agent.stored_id(NEW, timestamp=APRIL)
    deleted = await agent.memory.delete(DeleteParams(memory_ids=[new_id]))
    assert (deleted.deleted_count, deleted.reinstated_count) == (1, 1)
    old = await agent.get(old_id)
    assert (old.superseded_by, old.valid_to, old.version) == (None, None, 3)
    assert await agent.found("budget of Atlas") == [OLD]
    context = await agent.memory.get_context(GetContextParams(query="the Atlas budget", task_id="plan"))
    assert OLD in context.context
    last = (await history_of(agent, old_id))[-1]
    assert (last["operation"], last["token_id"]) == ("successor_deleted", "token-1")
    assert (last["before"]["superseded_by"], last["after"]["superseded_by"]) == (str(new_id), None)
    assert (await agent.store("The budget for the Atlas project is 55,000 euros.")).superseded == [old_id]


@pytest.mark.parametrize("going", [[0], [1], [1, 2], [3], [2, 3], [0, 3], [1, 3]])
async def test_in_a_line_of_changes_a_deleted_ones_place_goes_to_what_took_its_own(
    agent: Agent, going: list[int]
) -> None:
    moments = [MARCH + timedelta(days=each) for each in range(4)]
    said = [f"The API rate limit is {limit} requests per minute." for limit in (60, 90, 120, 150)]
    ids = [await agent.stored_id(content, timestamp=at) for content, at in zip(said, moments, strict=True)]
    deleted = await agent.memory.delete(DeleteParams(memory_ids=[ids[each] for each in going]))
    left = [each for each in range(4) if each not in going]
    current = said[left[-1]]
    assert await agent.found("API rate limit") == [current]
    assert deleted.reinstated_count == (1 if 3 in going else 0)
    for place, following in pairwise(left):
        record = await agent.get(ids[place])
        assert record.superseded_by == ids[following]
        assert record.valid_to is not None
        as_of = record.valid_to - timedelta(hours=1)
        assert await agent.found("API rate limit", as_of=as_of) == [said[place]]


async def test_what_is_deleted_with_what_took_its_place_does_not_hold_again(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, timestamp=MARCH, session_id="s")
    await agent.stored_id(NEW, timestamp=APRIL, session_id="s")
    other = await agent.stored_id("Atlas is a project of the harbour office.", session_id="t")
    cleared = await agent.memory.clear(ClearParams(session_id="s"))
    assert (cleared.cleared_count, cleared.reinstated_count) == (2, 0)
    assert [each.memory_id for each in (await agent.memory.list(ListParams())).memories] == [other]
    assert await history_of(agent, old_id) == []


async def test_what_goes_to_the_archive_lets_nothing_hold_again(agent: Agent) -> None:
    old_id = await agent.stored_id(OLD, timestamp=MARCH, memory_type=MemoryType.SEMANTIC)
    new_id = await agent.stored_id(NEW, timestamp=APRIL)
    pruned = await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1.0))
    assert pruned.pruned_count == 0
    assert (await agent.get(old_id)).superseded_by == new_id


async def test_a_changed_memory_states_what_it_says_now(agent: Agent) -> None:
    memory_id = await agent.stored_id("The port of the gateway is 8080.")
    changed = {"memory_id": memory_id, "updates": {"content": "The host of the gateway is gw-1.internal."}}
    await agent.memory.update(UpdateParams.model_validate(changed))
    assert (await agent.store("The port of the gateway is 9090.")).superseded == []
    assert (await agent.store("The host of the gateway is gw-2.internal.")).superseded == [memory_id]


async def test_working_memory_tells_what_holds_now(agent: Agent) -> None:
    await agent.stored_id(OLD, task_id="plan", timestamp=MARCH)
    await agent.memory.get_context(GetContextParams(query="hello", task_id="plan"))
    await agent.stored_id(NEW, task_id="plan", timestamp=APRIL)
    context = (await agent.memory.get_context(GetContextParams(query="the Atlas budget", task_id="plan"))).context
    assert NEW in context
    assert OLD not in context


async def test_a_deleted_memorys_subjects_go_with_it(agent: Agent) -> None:
    memory_id = await agent.stored_id(OLD)
    await agent.memory.delete(DeleteParams(memory_ids=[memory_id]))
    async with agent.runtime.database.transaction(agent.agent_id) as connection:
        cursor = await connection.execute("SELECT count(*) AS held FROM memory_subjects")
        assert [row["held"] for row in await cursor.fetchall()] == [0]


async def test_retrieval_never_holds_both_values_of_a_changed_fact(agent: Agent) -> None:
    for limit in range(10, 40, 5):
        await agent.stored_id(f"The upload limit of the portal is {limit} MB.")
    found = await agent.memory.retrieve(RetrieveParams(query="upload limit of the portal", k=10))
    assert [memory.content for memory in found.memories] == ["The upload limit of the portal is 35 MB."]
