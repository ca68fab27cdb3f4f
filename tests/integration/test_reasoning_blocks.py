"""Reasoning blocks of models are excluded from search and contexts; the record keeps them on request."""

from __future__ import annotations

import pytest

from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import GetContextParams, StoreParams
from agentcore.memory.params.sessions import AddSessionParams, SummarizeParams
from tests.fixtures.memory import Agent

RAW = "<think>\nThe user may mean Lyon. No, Paris.\n</think>\n\nThe capital is Paris."
SPOKEN = "The capital is Paris."


def asked(response: str, **values: object) -> StoreParams:
    interaction = {"query": "What is the capital?", "response": response, "session_id": "s"}
    return StoreParams.model_validate({"interaction": interaction, **values})


@pytest.mark.shows("B15")
async def test_a_response_is_stored_without_its_reasoning(agent: Agent) -> None:
    stored = await agent.memory.store(asked(RAW))
    assert stored.memory_id is not None
    record = await agent.get(stored.memory_id)
    assert record.content == f"User: What is the capital?\nAgent: {SPOKEN}"
    assert "Lyon" not in record.model_dump_json()
    assert record.response is None
    context = await agent.memory.get_context(GetContextParams(query="capital", min_fit=0.0))
    told = await agent.memory.summarize(SummarizeParams(session_id="s", max_tokens=500))
    assert "Paris" in context.context
    assert "Lyon" not in context.context + told.summary


@pytest.mark.shows("issue13-keep_reasoning")
async def test_the_raw_response_stays_in_the_record_on_request(agent: Agent) -> None:
    stored = await agent.memory.store(asked(RAW, keep_reasoning=True))
    assert stored.memory_id is not None
    record = await agent.get(stored.memory_id)
    assert record.response == RAW
    assert "Lyon" not in record.content + record.summary


@pytest.mark.parametrize(
    "values", [{"speaker": "assistant"}, {"metadata": {"role": "assistant"}, "speaker": "Robo"}, {}]
)
@pytest.mark.shows("B15")
async def test_contents_of_a_model_lose_their_reasoning_too(agent: Agent, values: dict[str, object]) -> None:
    memory_id = await agent.stored_id(RAW, **values)
    assert (await agent.get(memory_id)).content == SPOKEN


@pytest.mark.shows("issue13-keep_reasoning")
async def test_messages_of_a_session_lose_the_reasoning_of_the_assistant_alone(agent: Agent) -> None:
    written = "I wrote <think>it</think> myself.\n<think>like this</think>\nWhat does it mean?"
    messages = [{"role": "user", "content": written}, {"role": "assistant", "name": "Robo", "content": RAW}]
    added = await agent.memory.add_session(
        AddSessionParams.model_validate({"session_id": "s", "messages": messages, "keep_reasoning": True})
    )
    ids = [each.memory_id for each in added.results if each.memory_id is not None]
    records = [await agent.get(each) for each in ids]
    assert [each.content for each in records] == [written, SPOKEN]
    assert records[1].response == RAW


async def test_a_response_of_reasoning_alone_is_rejected(agent: Agent) -> None:
    result = await agent.store("<think>It was cut off here", speaker="assistant", force=True)
    assert (result.status, result.reason) == ("rejected", "it contains nothing but a model's reasoning")


async def test_an_update_of_what_an_assistant_said_loses_its_reasoning(agent: Agent) -> None:
    memory_id = await agent.stored_id("The capital is Lyon, I think.", speaker="assistant")
    await agent.memory.update(UpdateParams.model_validate({"memory_id": memory_id, "updates": {"content": RAW}}))
    assert (await agent.get(memory_id)).content == SPOKEN
