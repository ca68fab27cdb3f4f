"""A store of thirty facts: light verbs do not count as answers, and contexts contain the salient facts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.memories import GetContextParams, RetrieveParams
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent

TAKES = "Priya takes over billing."
TABLETS = "Doctor Okafor prescribed metformin tablets."
THINGS = """
bicycle lamp passport ladder garden kettle violin tent carpet mirror drill canoe piano fridge scarf globe
anvil easel trumpet hammock lantern sledge barrel loom abacus quilt compass saddle
"""


@pytest.fixture
async def tenant(agent: Agent) -> AsyncIterator[Agent]:
    for thing in THINGS.split():
        await agent.stored_id(f"The {thing} stands behind number {thing[::-1]}.")
    for content in (TAKES, TABLETS):
        await agent.stored_id(content)
    yield agent


async def share_of_words(agent: Agent, query: str, content: str) -> float:
    """Returns the word score of this memory."""
    result = await agent.memory.retrieve(RetrieveParams(query=query, k=30, explain=True))
    return next((each.terms or {})["words"].value for each in result.memories if each.content == content)


async def test_a_light_verb_in_common_is_hardly_a_match(tenant: Agent) -> None:
    assert 0 < await share_of_words(tenant, "what medicine do I take", TAKES) < 0.25


async def test_a_word_that_tells_something_is_more_of_a_match_than_a_light_verb(tenant: Agent) -> None:
    query = "which tablets do I take"
    tablets, takes = [await share_of_words(tenant, query, each) for each in (TABLETS, TAKES)]
    assert tablets > 1.3 * takes
    assert await tenant.found(query, k=1) == [TABLETS]


async def test_the_arm_of_words_puts_what_tells_something_first(runtime: Runtime, tenant: Agent) -> None:
    wordless = MemoryManager(replace(runtime.parts, embedder=None), Caller(tenant.agent_id))
    found = await wordless.retrieve(RetrieveParams(query="which tablets do I take", k=2))
    assert [each.content for each in found.memories] == [TABLETS, TAKES]


async def test_a_context_of_a_small_store_holds_what_stands_above_its_typical_memory(
    runtime: Runtime, tenant: Agent
) -> None:
    async def held(cut_offs: CutOffs) -> int:
        policy = replace(runtime.parts.policy, context_cut_offs=cut_offs)
        manager = MemoryManager(replace(runtime.parts, policy=policy), Caller(tenant.agent_id))
        result = await manager.get_context(GetContextParams(query="metformin tablets of Doctor Okafor"))
        assert TABLETS in result.context
        return len(result.memory_ids)

    assert await held(CutOffs()) == 30
    assert await held(CutOffs(least_rise=0.2)) <= 15
