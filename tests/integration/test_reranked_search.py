"""Searches with a reranker and a query rewriter: changed ranking, and degradations in the receipt."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentcore import assembly
from agentcore.errors import ConfigurationError
from agentcore.memory.params.memories import CapabilitiesParams, GetContextParams, RetrieveParams, RetrieveResult, Turn
from agentcore.runtime import open_runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.rerank_providers import chat_answer, cohere_rerank
from tests.fixtures.scripted_http import Received, Reply, ScriptedServer, scripted_http
from tests.fixtures.services import Services

QUERY = "when does the green ferry leave"
NEAREST = "when does the green ferry leave the harbour"
REPEATED = "ferry ferry ferry ferry ferry, green green green green paint"
OTHERS = ["The harbour is closed on Mondays.", "Paint for the hull is ordered.", "Tea is at five."]
PATIENT = 20_000


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_http(cohere_rerank) as running:
        yield running


@asynccontextmanager
async def serving(services: Services, **overrides: Any) -> AsyncIterator[Agent]:
    async with open_runtime(settings_for(services, **overrides)) as running:
        yield Agent(running)


def over_http(server: ScriptedServer, **overrides: Any) -> dict[str, Any]:
    url = f"{server.url}/rerank"
    return {"reranker": "http", "reranker_url": url, "reranker_timeout_ms": PATIENT, **overrides}


def rewriting(server: ScriptedServer, **overrides: Any) -> dict[str, Any]:
    return {"query_rewriter": "openai", "llm_model": "small", "llm_base_url": server.url, **overrides}


async def store_all(agent: Agent) -> None:
    for content in (NEAREST, REPEATED, *OTHERS):
        await agent.stored_id(content)


async def asked(agent: Agent, **params: Any) -> RetrieveResult:
    return await agent.memory.retrieve(RetrieveParams(query=QUERY, explain=True, **params))


def contents(result: RetrieveResult) -> list[str]:
    return [each.content for each in result.memories]


# --- rerankers ---------------------------------------------------------------------------------------------


async def test_a_reranker_decides_the_order_and_each_score_still_adds_up(
    services: Services, server: ScriptedServer
) -> None:
    server.otherwise = only(REPEATED)
    async with serving(services, **over_http(server)) as agent:
        await store_all(agent)
        result = await asked(agent)
        assert contents(result)[:2] == [REPEATED, NEAREST]
        scores: list[float] = []
        fused: dict[str, float] = {}
        for each in result.memories:
            assert each.score is not None
            assert each.terms is not None
            assert sum(term.contribution for term in each.terms.values()) == pytest.approx(each.score)
            scores.append(each.score)
            fused[each.content] = each.score - each.terms["reranker"].contribution
        assert scores == sorted(scores, reverse=True)
        assert max(fused, key=fused.__getitem__) == NEAREST
        assert result.receipt.searched["reranked"] == 5
        assert result.receipt.degraded == []
        assert "rerank" in result.receipt.timings_ms


async def test_without_one_nothing_is_told_of_it(agent: Agent) -> None:
    await store_all(agent)
    result = await asked(agent)
    assert contents(result)[0] == NEAREST
    assert "reranked" not in result.receipt.searched
    assert {"reranker", "query_rewriting"}.isdisjoint((await agent.memory.capabilities(CapabilitiesParams())).features)


@pytest.mark.shows("issue3-5-reranker")
async def test_it_chooses_among_more_than_are_given_back(
    services: Services, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.otherwise = backwards
    monkeypatch.setattr(assembly, "RERANKED_AT_MOST", 3)
    async with serving(services, **over_http(server)) as agent:
        await store_all(agent)
        everything = await asked(agent, k=5)
        best = await asked(agent, k=1)
        assert contents(best) == contents(everything)[:1]
        assert [(each.reason, each.count) for each in best.receipt.dropped] == [("beyond_k", 4)]
        assert [len(request.json["documents"]) for request in server.received] == [3, 3]
        terms = [each.terms for each in everything.memories if each.terms is not None]
        assert [("reranker" in each) for each in terms] == [True] * 3 + [False] * 2


def backwards(request: Received) -> Reply:
    """Scores later texts higher."""
    places = range(len(request.json["documents"]))
    return Reply({"results": [{"index": place, "relevance_score": place / 10} for place in places]})


async def test_it_reads_who_said_what_and_no_more_than_the_beginning(
    services: Services, server: ScriptedServer
) -> None:
    async with serving(services, **over_http(server)) as agent:
        await agent.stored_id("The green ferry leaves at seven.", speaker="Ada")
        await agent.stored_id(f"The green ferry {'x' * 20_000}", speaker="assistant")
        await asked(agent)
    [request] = server.received
    assert request.json["query"] == QUERY
    said, long = sorted(request.json["documents"], key=len)
    assert said == "Ada: The green ferry leaves at seven."
    assert (len(long), long[:9]) == (1_600, "The green")


async def test_of_a_long_query_it_reads_the_end(services: Services, server: ScriptedServer) -> None:
    async with serving(services, **over_http(server)) as agent:
        await store_all(agent)
        await agent.found(f"{'We talked about many things. ' * 100}{QUERY}")
    [request] = server.received
    assert len(request.json["query"]) == 400
    assert request.json["query"].endswith(f"many things. {QUERY}")


async def test_nothing_is_sent_where_there_is_nothing_to_choose_from(
    services: Services, server: ScriptedServer
) -> None:
    async with serving(services, **over_http(server)) as agent:
        await agent.stored_id(NEAREST)
        result = await asked(agent)
        assert contents(result) == [NEAREST]
        assert result.receipt.searched["reranked"] == 0
        assert result.receipt.degraded == []
    assert server.received == []


@pytest.mark.shows("issue3-5-reranker")
async def test_a_reranker_over_its_time_is_skipped_until_its_circuit_closes(
    services: Services, server: ScriptedServer
) -> None:
    server.otherwise = lambda request: Reply(hangs=True)
    async with serving(services, **over_http(server, reranker_timeout_ms=1500)) as agent:
        for number in range(20):
            await agent.stored_id(f"The green ferry leaves at {number}.", supersede=False)
        results = [await asked(agent, k=20) for _ in range(2)]
        first, second = [result.receipt.degraded for result in results]
        assert [contents(result) for result in results] == [contents(results[0])] * 2
        assert {result.receipt.searched["reranked"] for result in results} == {0}
        assert first == ["reranker: skipped, http/reranker did not answer within 1.5 seconds."]
        assert second == ["reranker: skipped, http/reranker is left alone for a while: it was too slow."]
        assert [len(request.json["documents"]) for request in server.received] == [20]
        told = (await agent.runtime.readiness())["reranker"]
        assert (told["ok"], told["required"]) == (False, False)


@pytest.mark.parametrize("reply", [Reply({}, status=500), Reply({"results": []}), Reply({}, status=401)])
async def test_a_reranker_that_fails_costs_nothing_but_its_order(
    services: Services, server: ScriptedServer, reply: Reply
) -> None:
    async with serving(services, **over_http(server)) as agent:
        await store_all(agent)
        server.otherwise = lambda request: reply
        result = await asked(agent)
        assert contents(result)[0] == NEAREST
        assert result.receipt.degraded[0].startswith("reranker: skipped, The reranker ")
        server.otherwise = cohere_rerank
        assert (await asked(agent)).receipt.searched["reranked"] == 5
        assert (await agent.runtime.readiness())["reranker"] == {"ok": True, "model": "http/reranker"}
        assert "reranker" in (await agent.memory.capabilities(CapabilitiesParams())).features


async def test_a_context_is_built_in_the_rerankers_order(services: Services, server: ScriptedServer) -> None:
    async with serving(services, **over_http(server)) as agent:
        await store_all(agent)
        server.otherwise = only("Tea is at five.")
        result = await agent.memory.get_context(GetContextParams(query=QUERY, max_tokens=400, explain=True))
        assert result.receipt.searched["reranked"] == 5
        assert result.memories is not None
        assert result.memories[0].content == "Tea is at five."


def only(best: str) -> Callable[[Received], Reply]:
    """Scores only the text with these words."""

    def answer(request: Received) -> Reply:
        texts = enumerate(request.json["documents"])
        return Reply({"results": [{"index": n, "relevance_score": float(text == best)} for n, text in texts]})

    return answer


async def test_a_reranker_that_does_not_exist_stops_the_start(services: Services) -> None:
    settings = settings_for(services, reranker="cross_encoder")
    with pytest.raises(ConfigurationError, match=r"There is no RERANKER named 'cross_encoder'. Known: http"):
        async with open_runtime(settings):
            pass


# --- rewriting ---------------------------------------------------------------------------------------------

TIDE = "Departure of the emerald boat depends on the tide."


async def test_what_only_another_wording_is_near_to_is_found_by_it(services: Services, server: ScriptedServer) -> None:
    wordings = {"queries": [TIDE, QUERY.upper(), "  "], "answer": "The emerald boat leaves at seven."}
    server.otherwise = lambda request: chat_answer(wordings)
    async with serving(services, **rewriting(server)) as agent:
        await agent.stored_id(TIDE)
        await agent.stored_id("The cat sleeps on the warm roof.")
        history = [Turn(role="user", content="I think of the harbour")]
        result = await asked(agent, min_score=0.9, history=history)
        assert contents(result) == [TIDE]
        assert result.memories[0].similarity == pytest.approx(1.0, abs=1e-3)
        assert result.receipt.searched["rewritten"] == 2
        assert "rewrite" in result.receipt.timings_ms
        assert "query_rewriting" in (await agent.memory.capabilities(CapabilitiesParams())).features
        assert (await agent.runtime.readiness())["query_rewriter"] == {"ok": True, "model": "openai/small"}
    [request] = server.received
    told = json.loads(request.json["messages"][1]["content"])
    assert told == {"conversation": [{"role": "user", "text": "I think of the harbour"}], "question": QUERY}


async def test_whatever_a_model_says_it_reaches_no_other_agents_memory_and_no_filter(
    services: Services, server: ScriptedServer
) -> None:
    server.otherwise = lambda request: chat_answer(
        {"queries": [TIDE] * 50, "answer": "x" * 100_000, "agent_id": "other", "k": 100, "namespace": None}
    )
    async with serving(services, **rewriting(server)) as agent:
        other = Agent(agent.runtime)
        await other.stored_id(TIDE)
        for namespace in ("mine", "yours"):
            await agent.stored_id(f"{namespace}: {TIDE}", namespace=namespace)
        result = await asked(agent, namespace="mine")
        assert contents(result) == [f"mine: {TIDE}"]
        assert result.receipt.searched["rewritten"] == 2


@pytest.mark.parametrize("reply", [Reply({}, status=500), chat_answer("no JSON")])
async def test_a_rewriter_that_fails_leaves_the_query_as_it_is(
    services: Services, server: ScriptedServer, reply: Reply
) -> None:
    server.otherwise = lambda request: reply
    async with serving(services, **rewriting(server)) as agent:
        await store_all(agent)
        result = await asked(agent)
        assert contents(result)[0] == NEAREST
        assert result.receipt.searched["rewritten"] == 0
        assert result.receipt.degraded[0].startswith("query rewriting: skipped, The language model ")
        assert not (await agent.runtime.readiness())["query_rewriter"]["ok"]


@pytest.mark.shows("issue5-3-limits")
async def test_a_rewriter_over_its_time_is_done_without_and_left_alone(
    services: Services, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.otherwise = lambda request: Reply(hangs=True)
    monkeypatch.setattr(assembly, "REWRITING_SECONDS", 3.0)
    async with serving(services, **rewriting(server)) as agent:
        await store_all(agent)
        results = [await asked(agent) for _ in range(3)]
        assert [contents(result)[0] for result in results] == [NEAREST] * 3
        assert [result.receipt.degraded for result in results] == [
            ["query rewriting: skipped, openai/small did not answer within 3 seconds."],
            *[["query rewriting: skipped, openai/small is left alone for a while: it was too slow."]] * 2,
        ]
    assert len(server.received) == 1


async def test_a_vector_of_the_callers_is_not_rewritten(services: Services, server: ScriptedServer) -> None:
    server.otherwise = lambda request: chat_answer({"queries": [TIDE]})
    async with serving(services, **rewriting(server)) as agent:
        await store_all(agent)
        result = await asked(agent, query_vector=[1.0] * 64)
        assert "rewritten" not in result.receipt.searched
    assert server.received == []


async def test_without_an_embedder_there_is_no_use_in_other_wordings(
    services: Services, server: ScriptedServer
) -> None:
    async with serving(services, embedding_model="none", **rewriting(server)) as agent:
        await store_all(agent)
        assert set(contents(await asked(agent))[:2]) == {NEAREST, REPEATED}
    assert server.received == []
