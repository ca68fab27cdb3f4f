"""Traces of single memories in a search: each outcome, and the ranks behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args
from uuid import UUID, uuid4

from agentcore.memory.models import WeightName
from agentcore.memory.params.memories import MemoryTrace, RetrieveParams
from tests.fixtures.memory import Agent, fill

TEA = "Ada drinks green tea in the garden"


async def traced(agent: Agent, memory_id: UUID, query: str = "green tea garden", **values: object) -> MemoryTrace:
    params = RetrieveParams.model_validate({"query": query, "trace": [memory_id], **values})
    found = await agent.memory.retrieve(params)
    assert found.traces is not None
    [trace] = found.traces
    assert trace.memory_id == memory_id
    return trace


async def test_a_returned_memory_reports_its_retrievers_and_ranks(agent: Agent) -> None:
    memory_id = await agent.stored_id(TEA)
    await fill(agent, 20)
    trace = await traced(agent, memory_id)
    assert (trace.outcome, trace.rank, trace.words_rank, trace.similarity_rank) == ("returned", 1, 1, 1)
    assert {"vector", "lexical"} <= set(trace.retrievers)
    assert trace.score is not None
    assert trace.terms is not None
    assert trace.candidate_count == 21


async def test_explained_results_report_their_retrievers(agent: Agent) -> None:
    await agent.stored_id(TEA)
    await fill(agent, 20)
    plain = await agent.memory.retrieve(RetrieveParams(query="green tea garden"))
    assert {each.retrievers for each in plain.memories} == {None}
    explained = await agent.memory.retrieve(RetrieveParams(query="green tea garden", explain=True))
    assert {"vector", "lexical"} <= set(explained.memories[0].retrievers or ())


async def test_weights_replace_those_of_the_service_in_one_search(agent: Agent) -> None:
    await agent.stored_id(TEA)
    await fill(agent, 20)

    async def weight_of(name: str, **weights: float) -> float:
        params = RetrieveParams(query="green tea garden", explain=True, weights=weights)
        terms = (await agent.memory.retrieve(params)).memories[0].terms or {}
        return terms[name].weight if name in terms else 0.0

    usual = await weight_of("words")
    assert await weight_of("words", words=0.9) > usual
    assert await weight_of("words") == usual
    assert await weight_of("words", words=0.0) == 0.0
    names = get_args(WeightName)
    assert await weight_of("words", **dict.fromkeys(names, 0.0)) == 0.0


async def test_without_ids_nothing_is_traced(agent: Agent) -> None:
    await agent.stored_id(TEA)
    assert (await agent.memory.retrieve(RetrieveParams(query="tea"))).traces is None


async def test_cut_offs_are_named(agent: Agent) -> None:
    ids = [await agent.stored_id(f"{TEA}, as she said on day {day}") for day in range(4)]
    found = await agent.memory.retrieve(RetrieveParams(query="green tea garden", k=1, trace=ids))
    assert found.traces is not None
    outcomes = [each.outcome for each in found.traces]
    assert outcomes.count("returned") == 1
    assert set(outcomes) == {"returned", "beyond_k"}
    assert sorted(each.rank or 0 for each in found.traces) == [1, 2, 3, 4]
    assert (await traced(agent, ids[0], "green tea garden", min_fit=1.0)).outcome == "nothing_fits"
    assert (await traced(agent, ids[0], "something else", min_score=0.99)).outcome == "below_min_score"


async def test_filters_validity_and_absence_are_named(agent: Agent) -> None:
    memory_id = await agent.stored_id(TEA, user_id="ada")
    assert (await traced(agent, memory_id, user_id="ben")).outcome == "filtered"
    assert (await traced(agent, uuid4())).outcome == "unknown"
    newer = await agent.stored_id("Ada drinks only coffee now")
    old = await agent.stored_id("Green tea was her favorite in the garden", superseded_by=newer)
    trace = await traced(agent, old)
    assert (trace.outcome, trace.by) == ("superseded", newer)
    short = await agent.stored_id("Green tea is served at noon", ttl_seconds=60)
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute("UPDATE memories SET expires_at = now() WHERE memory_id = %s", [short])
    assert (await traced(agent, short)).outcome == "expired"


async def test_an_equal_text_names_the_one_returned(agent: Agent) -> None:
    first = await agent.stored_id(TEA, force=True, session_id="one")
    second = await agent.stored_id(TEA, force=True, session_id="two")
    trace = await traced(agent, first)
    assert (trace.outcome, trace.by) == ("same_text", second)


async def test_a_memory_that_no_retriever_found(agent: Agent) -> None:
    memory_id = await agent.stored_id("Ben repairs bicycles")
    for number in range(120):
        await agent.store(f"Ada drinks green tea in the garden, cup {number} of the year", force=True)
    trace = await traced(agent, memory_id)
    assert (trace.outcome, trace.retrievers, trace.rank) == ("not_found", [], None)
    assert trace.similarity is not None
    assert trace.least_similarity is not None
    assert trace.similarity < trace.least_similarity


async def test_another_agents_memory_is_unknown(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    memory_id = await agent.stored_id(TEA)
    assert (await traced(new_agent(), memory_id)).outcome == "unknown"
