"""Query understanding: times, several questions in one prompt, abstention."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import Link
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import GetContextParams, RetrieveParams, StoreBatchParams
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent

NOW = "2026-06-10T12:00:00Z"
LATE = "We signed the lease yesterday."
EARLY = "We looked at the harbour flat."


@pytest.fixture
async def tenant(agent: Agent) -> AsyncIterator[Agent]:
    """An agent with dated events, and a hundred undated memories."""
    await agent.stored_id(EARLY, timestamp="2026-05-04T09:00:00Z")
    await agent.stored_id(LATE, timestamp="2026-06-04T09:00:00Z")
    clauses = [
        {"content": f"The lease has a clause {number + 100}.", "timestamp": "2026-01-02T00:00:00Z", "force": True}
        for number in range(100)
    ]
    await agent.memory.store_batch(StoreBatchParams.model_validate({"items": clauses}))
    yield agent


@pytest.mark.shows("issue3-1-temporal")
async def test_a_time_in_the_query_finds_what_happened_then_though_no_word_or_vector_does(tenant: Agent) -> None:
    params = {"query": "what happened in early May?", "asked_at": NOW, "k": 5, "explain": True}
    result = await tenant.memory.retrieve(RetrieveParams.model_validate(params))
    [found] = [each for each in result.memories if each.content == EARLY]
    assert found.terms is not None
    assert found.terms["time"].value == 1.0
    assert result.memories[0].content == EARLY
    assert result.receipt.candidates["temporal"] == 1


@pytest.mark.shows("issue3-1-temporal")
async def test_what_was_told_later_of_a_day_is_found_by_that_day(tenant: Agent) -> None:
    assert await tenant.found("the lease on 3 June", asked_at=NOW, k=1) == [LATE]


async def test_without_a_time_in_the_query_none_is_searched(tenant: Agent) -> None:
    result = await tenant.memory.retrieve(RetrieveParams(query="the lease", explain=True))
    assert "temporal" not in result.receipt.candidates
    assert all(each.terms is not None and each.terms["time"].weight == 0 for each in result.memories)


async def test_filters_hold_for_a_time_too(tenant: Agent) -> None:
    assert await tenant.found("early May", asked_at=NOW, k=200, memory_types=["semantic"]) == []


PROMPT = (
    "I am preparing the review of the week and have three things to settle before the meeting starts. "
    "Which colour did we choose for the shutters of the boathouse? "
    "How much does the mooring in Ostend cost for a season? "
    "And who repairs the outboard engines these days? Thank you very much for looking into all of this."
)


@pytest.mark.shows("issue3-4-prompts")
async def test_each_question_of_a_long_prompt_is_searched(agent: Agent) -> None:
    answers = {
        "The shutters of the boathouse will be sea green.",
        "The mooring in Ostend costs 900 euros for a season.",
        "Outboard engines are repaired by Joost.",
    }
    for content in answers:
        await agent.stored_id(content)
    for number in range(60):
        await agent.store(f"The weekly review number {number} starts the meeting late.", force=True)
    result = await agent.memory.retrieve(RetrieveParams(query=PROMPT, k=10))
    assert result.receipt.searched["queries"] > 1
    assert answers <= {each.content for each in result.memories}


async def test_the_working_memory_of_a_task_stays_in_a_context_whose_search_abstains(agent: Agent) -> None:
    await agent.stored_id("The draft is at step two.", task_id="draft")
    result = await agent.memory.get_context(
        GetContextParams(query="Which animals have stripes?", task_id="draft", min_fit=0.99)
    )
    assert "nothing_fits" in [each.reason for each in result.receipt.dropped]
    assert "The draft is at step two." in result.context


@pytest.mark.shows("issue3-3-abstention")
async def test_below_the_callers_bound_a_search_is_silent_and_counts_what_it_held_back(tenant: Agent) -> None:
    result = await tenant.memory.retrieve(RetrieveParams(query="zebra stripes", min_fit=0.99))
    assert result.memories == []
    assert result.receipt.fit is not None
    assert result.receipt.fit < 0.99
    assert [each.reason for each in result.receipt.dropped if each.count > 50] == ["nothing_fits"]
    found = await tenant.memory.retrieve(RetrieveParams(query="zebra stripes", min_fit=0.0))
    assert len(found.memories) == 5


@pytest.mark.shows("issue3-3-abstention")
async def test_what_is_far_below_the_best_is_left_out_and_counted(runtime: Runtime, tenant: Agent) -> None:
    policy = replace(runtime.parts.policy, retrieve_cut_offs=CutOffs(least_share=0.9))
    strict = MemoryManager(replace(runtime.parts, policy=policy), Caller(tenant.agent_id))
    result = await strict.retrieve(RetrieveParams(query="We signed the lease", k=10))
    assert [each.content for each in result.memories] == [LATE]
    assert [each.reason for each in result.receipt.dropped] == ["far_below_the_best"]


@pytest.mark.shows("issue3-3-abstention")
async def test_entries_of_a_log_step_back_behind_what_says_something_else(agent: Agent) -> None:
    for number in range(30):
        await agent.store(f"Backup of the ledger host finished, run {number}.", force=True)
    other = "The ledger host loses its backup when the disk is full."
    await agent.stored_id(other)
    result = await agent.memory.retrieve(RetrieveParams(query="ledger host backup", k=31, explain=True))
    assert other in [each.content for each in result.memories[:2]]
    terms = [each.terms or {} for each in result.memories]
    assert sum("repetition" in each for each in terms) == 29
    assert all(each["repetition"].contribution < 0 for each in terms if "repetition" in each)


async def test_without_vectors_a_search_holds_nothing_back_by_itself(runtime: Runtime, tenant: Agent) -> None:
    policy = replace(runtime.parts.policy, retrieve_cut_offs=CutOffs(min_fit=0.99, least_share=0.9))
    wordless = MemoryManager(replace(runtime.parts, policy=policy, embedder=None), Caller(tenant.agent_id))
    assert len((await wordless.retrieve(RetrieveParams(query="the lease", k=10))).memories) == 10
    asked = await wordless.retrieve(RetrieveParams(query="the lease", k=10, min_fit=0.999))
    assert len(asked.memories) == 10
    assert [each for each in asked.receipt.degraded if each.startswith("min_fit: not applied")]


async def test_a_filter_that_leaves_one_memory_does_not_make_it_unfit(agent: Agent) -> None:
    await agent.stored_id("I am allergic to peanuts.", tags=["health"])
    for number in range(20):
        await agent.store(f"The greengrocer had {number} boxes of peanuts.", force=True)
    alone = await agent.memory.retrieve(RetrieveParams(query="allergic peanuts", tags=["health"]))
    among = await agent.memory.retrieve(RetrieveParams(query="allergic peanuts"))
    assert alone.receipt.fit is not None
    assert among.receipt.fit is not None
    assert alone.receipt.fit >= among.receipt.fit - 0.05


async def test_links_that_filters_leave_out_take_no_place(agent: Agent) -> None:
    hub = await agent.stored_id("The invoice for Acme is open.", tags=["mine"])
    wanted = await agent.stored_id("Zebra stripes.", tags=["mine"], timestamp="2020-01-01T00:00:00Z")
    others = [await agent.stored_id(f"Zebra number {number}.", tags=["other"]) for number in range(25)]
    for number in range(90):
        await agent.store(f"The meeting note number {number} says hello.", tags=["mine"], force=True)
    links = [Link(target_id=each, relation="near", weight=1.0) for each in others]
    links.append(Link(target_id=wanted, relation="near", weight=0.5))
    await agent.memory.update(UpdateParams(memory_id=hub, updates=Updates(links=links)))
    result = await agent.memory.retrieve(RetrieveParams(query="invoice Acme open", k=200, tags=["mine"]))
    assert result.receipt.candidates["links"] == 1
    assert "Zebra stripes." in [each.content for each in result.memories]
