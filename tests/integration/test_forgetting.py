"""`forget_memory` with the local model: the candidates for a short description, and the confirmed
deletion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcore.agents.scope import MemoryScope
from agentcore.agents.tools import MemoryTools
from agentcore.memory.params.memories import CountParams, DeleteParams, RetrieveParams, RetrieveResult
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent

TEA, PENICILLIN = "Grace likes Earl Grey tea.", "Grace is allergic to penicillin."
PASSPORT, MIA = "Grace's passport expires in May 2027.", "Grace's daughter is called Mia."
FACTS = (TEA, PENICILLIN, PASSPORT, MIA)


@pytest.fixture
async def grace(local_runtime: Runtime) -> Agent:
    agent = Agent(local_runtime)
    for fact in FACTS:
        await agent.stored_id(fact, memory_type="semantic", user_id="grace")
    return agent


@pytest.fixture
def tools(grace: Agent) -> MemoryTools:
    return MemoryTools(grace.memory, MemoryScope(user_id="grace"))


async def forget(tools: MemoryTools, **arguments: Any) -> dict[str, Any]:
    answer = await tools.answer("forget_memory", arguments)
    assert not answer.failed, answer.text
    told: dict[str, Any] = json.loads(answer.text)
    return told


async def proposed(tools: MemoryTools, query: str) -> list[str]:
    return [each["content"] for each in (await forget(tools, query=query)).get("would_forget", [])]


@pytest.mark.shows("issue6-3-tools")
async def test_only_what_is_surely_meant_is_proposed_to_be_forgotten(tools: MemoryTools) -> None:
    for query in ("that I like tea", "my tea preference", "tea", "Earl Grey"):
        assert await proposed(tools, query) == [TEA], query
    assert await proposed(tools, "Grace's daughter") == [MIA]
    assert await proposed(tools, "when my passport expires") == [PASSPORT]


async def test_what_was_never_stored_proposes_nothing_and_the_model_is_told_how_to_go_on(tools: MemoryTools) -> None:
    for query in ("my old phone number", "Grace's gym membership", "Grace's husband", "my salary"):
        answer = await forget(tools, query=query)
        assert set(answer) == {"note"}, query
        assert "recall_memory" in answer["note"]


async def test_a_proposal_gives_the_texts_with_their_scores(tools: MemoryTools) -> None:
    [each] = (await forget(tools, query="tea"))["would_forget"]
    assert (each["content"], 0 < each["score"] <= 1) == (TEA, True)


@pytest.mark.shows("issue6-3-tools")
async def test_fewer_than_were_proposed_may_be_confirmed(tools: MemoryTools, grace: Agent) -> None:
    answer = await forget(tools, query="Grace")
    ids = {each["content"]: each["memory_id"] for each in answer["would_forget"]}
    assert set(ids) == set(FACTS)
    given_up = [ids[TEA], ids[PASSPORT]]
    assert await forget(tools, memory_ids=given_up, confirmation=answer["confirmation"]) == {
        "status": "forgotten",
        "deleted_count": 2,
    }
    assert (await grace.memory.count(CountParams())).count == 2
    left = [ids[PENICILLIN]]
    again = await forget(tools, memory_ids=left, confirmation=answer["confirmation"])
    assert again["deleted_count"] == 1


async def test_what_is_gone_when_it_is_proposed_takes_nothing_else_with_it(grace: Agent) -> None:
    class Fleeting:
        """A memory whose top hit is deleted at once."""

        async def retrieve(self, params: RetrieveParams) -> RetrieveResult:
            found = await grace.memory.retrieve(params)
            await grace.memory.delete(DeleteParams(memory_ids=[found.memories[0].memory_id]))
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(grace.memory, name)

    before = (await grace.memory.count(CountParams())).count
    tools = MemoryTools(Fleeting(), MemoryScope(user_id="grace"))  # type: ignore[arg-type]
    assert len((await forget(tools, query="Grace"))["would_forget"]) == before - 1 > 0


@pytest.mark.shows("B19")
async def test_all_of_many_alike_memories_are_proposed(tools: MemoryTools, grace: Agent) -> None:
    alike = [f"Grace ordered parcel number {number} from the tea shop in Hamburg." for number in range(12)]
    for each in alike:
        await grace.stored_id(each, user_id="grace", force=True)
    assert sorted(await proposed(tools, "the parcels from the tea shop in Hamburg")) == sorted(alike)
